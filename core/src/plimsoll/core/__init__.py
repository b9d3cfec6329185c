"""Values, machines and decisions: all of Plimsoll's logic, without any input or output.

The core is pure. It opens no socket, reads no clock, draws no unseeded random number, logs nothing and starts nothing:
time comes in as `now` in seconds, randomness as ids and seeded generators, and what should happen goes out as values.
So the same objects run in pods, in local processes and in the simulator, and a fault found under a seed is a fault of
the product. Values are frozen; machines answer `handle(event, now)` with effects; decisions give each result a reason.
"""
