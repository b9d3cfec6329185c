"""The broker's ZeroMQ sockets, and the timer of its event loop.

Frames pass through as opaque bytes; the machines of the core interpret them.
"""
