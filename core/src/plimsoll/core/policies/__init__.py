"""Decisions: where a subscriber should be served, and which should move.

A policy is a frozen dataclass of its parameters. It is asked with values and answers with values; it holds no clock, no
randomness and no memory, and knows of no broker, store or wire. What it proposes is carried out by others, or is not.
"""

from plimsoll.core.policies.placement import LeastLoaded, Placer, Port, Unit

__all__ = ["LeastLoaded", "Placer", "Port", "Unit"]
