"""The jobs, a module for each, as `python -m plimsoll.sparkjobs NAME` starts them: live, batch, and the oracle.

A job reads, transforms and writes. Transformations are functions from DataFrames to DataFrames, tested by themselves.
"""
