"""The edge's two sides of a hand-over: the source lets a subscriber go, the target reserves a slot and takes over.

The head of the source decides every hand-over; an edge never rolls one back on its own (docs/handover.md, Decision).
"""
