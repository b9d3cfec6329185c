"""The log of a head on a disk: what is written, how it is found again, and what a head makes of it.

The format and every decision are here; a shell gives `LogFiles`, which move bytes. docs/durability.md.
"""
