"""Thousands of sessions in slices: losses, duplicates, reordering and delays while subscribers keep moving.

Each slice runs a fresh fleet, so that one failing slice does not hide the results of the others.
"""
