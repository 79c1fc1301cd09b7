"""What a trace adds up to: by function, call path, class, kind of marker. The only place that counts.

`collect` goes through a trace once. What it finds is indexed by the trace's own tables; `portable` makes totals of it
that name what they count, and of which any number can be merged, in any order.
"""
