"""Codes by which the source of a hand-over says that it does not serve a member, and the outcome that each leads to.

They begin the `reason` of a HANDOVER_REJECTED, as "code: text". A reason without one of these codes is about a member
that the source still serves.
"""

from __future__ import annotations

from typing import Final, NamedTuple

AWAY: Final = "away"
"""The source keeps the subscriber's place, but no live link of its client."""

LEFT: Final = "left"
"""The source does not know the subscriber any more: it has left, or its lease has ended."""

UNCUT_OUTCOMES: Final = ("stayed", "away", "gone")
"""Outcomes of members that were not cut, and did not attach anywhere by themselves meanwhile."""

_OUTCOMES: Final = {AWAY: "away", LEFT: "gone", "source": "away"}
"""By code; `source` is that of a head that refuses a whole hand-over because it does not have the source."""


class Departure(NamedTuple):
    """What a reason says of a member that was not cut. `is_coded`: the source does not serve it."""

    outcome: str
    text: str

    @property
    def is_coded(self) -> bool:
        return self.outcome != "stayed"


def departure(reason: str) -> Departure:
    """The outcome that the code of a reason leads to, and the text behind it."""
    code, _, text = reason.partition(":")
    outcome = _OUTCOMES.get(code, "stayed")
    return Departure(outcome, reason if outcome == "stayed" else text.strip())
