"""Thousands of sessions in slices: losses, duplicates, reordering and latency while subscribers are moved.

Each slice has a fleet of its own, so that a failed slice does not affect the results of the others.
"""
