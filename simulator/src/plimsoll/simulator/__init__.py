"""Virtual time, network and hardware around the machines of `plimsoll.core`.

One heap of events, driven by one seed: the same seed gives the same run, to the byte. The simulator adds delays, broken
connections, pauses and crashes, and no behaviour of its own, so a fault found here is a fault of the machines.
"""
