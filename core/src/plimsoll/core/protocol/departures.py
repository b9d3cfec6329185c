"""Codes by which the source of a hand-over says whether it serves a member, and the outcome that each leads to.

They begin the `reason` of a HANDOVER_REJECTED, as "code: text". A reason without one of these codes says that the
member is not moved, and nothing of where it is served: the head asks the source then, by ABORT.
"""

from __future__ import annotations

from typing import Final, NamedTuple

AWAY: Final = "away"
"""The source keeps the subscriber's place, but no live link of its client."""

LEFT: Final = "left"
"""The source does not know the subscriber any more: it has left, or its lease has ended."""

SERVED: Final = "served"
"""The source serves the subscriber, as before."""

UNCUT_OUTCOMES: Final = ("stayed", "away", "gone")
"""Outcomes of members that are known not to have been cut, and did not attach anywhere by themselves meanwhile."""

UNKNOWN: Final = "unknown"
"""The outcome of a member that was not cut, and whose source has not answered in time."""

_OUTCOMES: Final = {SERVED: "stayed", AWAY: "away", LEFT: "gone", "source": "away"}
"""By code; `source` is that of a head that refuses a whole hand-over because it does not have the source."""


class Departure(NamedTuple):
    """What a reason says of a member that was not cut. `outcome`: empty if the reason says nothing of the source."""

    outcome: str
    text: str

    @property
    def is_coded(self) -> bool:
        return self.outcome != ""


def departure(reason: str) -> Departure:
    """The outcome that the code of a reason leads to, and the text behind it."""
    code, _, text = reason.partition(":")
    outcome = _OUTCOMES.get(code, "")
    return Departure(outcome, text.strip() if outcome else reason)
