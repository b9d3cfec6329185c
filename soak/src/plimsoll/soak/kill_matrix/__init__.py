"""The kill matrix: each party killed at each state of a hand-over, under load, with every delivery audited.

A cell is one kill; its result is stored, so that a run can go on where it stopped.
"""
