"""Decisions: where a subscriber should be served, and which subscribers should move.

A policy is a frozen dataclass of its parameters. It takes values and returns values; it holds no clock, randomness or
memory and knows no broker, store or wire. Other code decides whether its proposals are carried out.
"""

from plimsoll.core.policies.placement import LeastLoadedPlacer, Location, PlacementTarget, PlacementUnit, Placer

__all__ = ["LeastLoadedPlacer", "Location", "PlacementTarget", "PlacementUnit", "Placer"]
