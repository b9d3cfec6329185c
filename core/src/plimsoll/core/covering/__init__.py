"""Covering: the subscriptions of a link that represent all the others.

A broker announces its covering set upward, so the size of that set bounds what neighbours must match. The front door is
`CoveringSet`; it uses `frontier` and `spans` to find the subscriptions that cover a newcomer.
"""
