"""The mediators of a simulated fleet: one that commands hand-overs directly, and one that runs the session engine.

A run has several of them, one after another or at the same time; each has a higher epoch than those before it.
"""
