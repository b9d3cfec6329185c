"""Virtual time: the event queue, the network with its delays and losses, hosts, and traces of frames.

The same seed gives the same run; nothing here reads a clock or an unseeded generator.
"""
