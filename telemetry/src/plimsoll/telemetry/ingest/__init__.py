"""A collector's intake: load reports from heads, deduplicated by broker, epoch and sequence number.

An unusable report is refused and counted by its reason; none is dropped silently.
"""
