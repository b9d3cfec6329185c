"""Scenarios: the fleet, workload, faults and hand-overs of a run, by name.

The name of a scenario is part of its seed, so renaming one changes all of its runs and invalidates recorded seeds.
"""
