"""How a demo run is judged: convergence, overhead, delays, sessions and loads over time.

Functions of recorded figures alone: the same journal gives the same verdict.
"""
