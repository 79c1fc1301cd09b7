"""What changed between recordings, and whether it is more than noise: `traceferry compare`.

`runs` loads each recording as totals; `matching` finds the same functions in both sides; `amounts` makes tables of one
amount for each row and run; `factors` brings runs of different length or speed to one level; `statistics` tests; the
result is a `Comparison`, which `text`, `markdown`, `as_json`, `gate` and the exporters read.
"""
