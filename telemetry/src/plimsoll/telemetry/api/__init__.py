"""The collector's HTTP service: the snapshot, the fold that stands in for it, session outcomes, and metrics.

Every answer states the source and the age of its figures; a request costs bounded time and memory.
"""
