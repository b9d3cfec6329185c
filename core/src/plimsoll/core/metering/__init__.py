"""Metering: a broker's counts of its own load, and the model of its input as a queue with a server.

Only arithmetic over counts and times passed as arguments. Decisions about loads are made in `policies`.
"""
