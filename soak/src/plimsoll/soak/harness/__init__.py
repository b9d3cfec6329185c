"""The fleet of a soak: brokers, clients, a driver of hand-overs, and a check for residue.

A run has one folder and loopback addresses; its processes are stopped and its state is removed at the end.
"""
