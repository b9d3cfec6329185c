"""The consumer groups of a head: who is a member, who has which slice, and how slices move between members.

`consumer_group` decides, `slices` and `member` are its tables, `stamps` gives publications their slice, and `requests`
takes messages and time to all of it. docs/groups.md has the rules, tests/exploration/slice_move.py proves them.
"""
