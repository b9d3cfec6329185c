"""Scenarios: which fleet, workload, faults and hand-overs a seed runs under, by name.

Names are used on the command line and in the figures of docs/simulation.md; they do not change.
"""
