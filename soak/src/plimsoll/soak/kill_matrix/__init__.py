"""The kill matrix: each process of a hand-over killed or frozen at each step, with an audit of every delivery.

A cell is one process, signal and step. Its result is stored, so that an interrupted run can be resumed.
"""
