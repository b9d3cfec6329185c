"""The broker process: a head or an edge of `plimsoll.core`, given ZeroMQ sockets, a clock and metering.

A thin shell. It moves bytes and timers in, effects out, serves control sockets before data, and keeps to its bandwidth.
What a message means and where it goes is decided in the core; nothing here may decide it again.
"""
