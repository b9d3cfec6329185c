"""The mediators of a simulated fleet: one that commands hand-overs directly, one that runs the session engine.

They follow one another in epochs, and may be killed at any write or command.
"""
