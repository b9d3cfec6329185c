"""The order of all sessions that wait, defined here and nowhere else.

Evacuations come first, as an edge is removed after them; then what users asked for; then what triggers and policies
created. Within these, the one that has been queued for longer comes first, and of two at the same time the smaller uid.
"""

from __future__ import annotations

from typing import Final, Literal

Origin = Literal["evacuation", "user", "trigger"]
ORIGINS: Final[tuple[Origin, ...]] = ("evacuation", "user", "trigger")
"""Who wants a session, the most urgent first. A child has the origin of its parent."""

Turn = tuple[int, float, str]


def turn(origin: Origin, queued_at: float, uid: str) -> Turn:
    """The place of a session in the queue, as a value to sort by. No two sessions have the same: a uid is unique."""
    return ORIGINS.index(origin), queued_at, uid
