"""What changed between recordings, and whether it is more than noise: `traceferry compare`.

`runs` loads each recording as totals; `matching` finds the same functions in both sides; `amounts` makes tables of one
amount for each row and run; `factors` brings the runs of a side to one length; `statistics` tests; `level` says how
much slower the machine of the new side was, and how surely; the result is a `Comparison`, which `text`, `markdown`,
`as_json`, `gate` and the exporters read.
"""
