"""The broker process: a head or an edge of `plimsoll.core`, given ZeroMQ sockets, a clock and metering.

A thin shell: it moves bytes and timers in and effects out, serves control sockets before data, and respects its
bandwidth. The core alone decides what a message means and where it goes.
"""
