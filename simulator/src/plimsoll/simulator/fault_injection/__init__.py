"""Faults: drawn at random over time, or aimed at the messages of one hand-over.

Each fault has a label, so that a failed run can be shrunk to the faults that make it fail.
"""
