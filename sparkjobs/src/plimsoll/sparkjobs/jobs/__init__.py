"""The jobs, one module each; `python -m plimsoll.sparkjobs NAME` starts them.

A job reads, transforms and writes. Transformations are functions from DataFrames to DataFrames, tested on their own.
"""
