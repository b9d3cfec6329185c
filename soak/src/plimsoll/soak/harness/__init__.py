"""The fleet of a soak run: brokers, clients, a driver of hand-overs, and the search for residue.

Everything runs in one folder on loopback addresses, and is stopped and removed at the end.
"""
