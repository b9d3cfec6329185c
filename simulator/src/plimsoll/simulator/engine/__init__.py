"""The event queue, the network with its delays and losses, the hosts, and readable traces of frames.

Nothing here reads a clock or an unseeded generator: the same seed gives the same run.
"""
