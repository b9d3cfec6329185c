"""A head and the standby that follows its log: what is sent, what waits for it, and what a standby is when promoted.

The standby has the segments of the head's log, byte for byte; so it becomes a head as one does that recovers from its
disk. Which of the two leads is decided by a mediator, in its store. docs/durability.md.
"""
