"""Consumer groups: slices of a stream that move between consumers (DPSLB, 2014).

`assignment_functions` says which slice a publication belongs to, `model` has the values of decisions, `pairing` is the
algorithm of the text, `cost_balancing` one of ours that plans by measured cost, and `membership` is what both do when a
consumer joins, leaves or has gone. docs/groups.md explains them.
"""
