"""Delays of a continuous channel, beside the same query in plain Spark from files."""
