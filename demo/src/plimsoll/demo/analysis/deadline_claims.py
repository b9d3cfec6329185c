"""What the demo of deadlines claims: times in seconds of the text, deliveries of all runs. Bounds were set beforehand.

Tao, Poslad, Bigham 2013, section V: topic 8 triggers 4 s after the burst, topic 1 goes to b0, and the queue is gone
28 s later; PEER moves subscribers at 31 and 33 s, before any deadline is in danger. In processes two looks more or
less are allowed. The queue drains at a hundredth of the output, less than the heads of frames take: it is to be gone
when the text's run ends.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from plimsoll.demo import crisis_tables as tables
from plimsoll.demo.analysis.measured_claims import MeasuredClaim, at_least, at_most, near, no_faults
from plimsoll.demo.analysis.topic_moves import TopicMove

TRIGGER_TOLERANCE: Final = 2.0
"""Seconds of the text."""

SHARE_OF_NONE: Final = 0.1
"""Of the late deliveries without balancing, which are about a twelfth of all: without any there is nothing to judge."""

MORE_THAN_PADRES: Final = 0.001
"""Of all deliveries. Padres may keep every deadline, too, by moving at once; one pause of a process may be late."""

OWN: Final = "DelaySensitive"
PADRES: Final = "Padres"
NONE: Final = "none"


@dataclass(frozen=True)
class DeadlineFigures:
    """What was measured. `counts`: of the audit, all runs together; `late`: deliveries by run.

    Of the run of the policy: `moves` behind the burst, `trigger` when the first of them was asked for and `clear` when
    the queue of topic 8 was gone, in seconds of the text. `early`: subscribers that moved before a deadline was in
    danger, by run.
    """

    counts: Mapping[str, int]
    late: Mapping[str, int]
    moves: Sequence[TopicMove]
    trigger: float | None
    clear: float | None
    early: Mapping[str, int]


def judged_claims(figures: DeadlineFigures) -> list[MeasuredClaim]:
    """All claims in the order of the report."""
    own = figures.late[OWN]
    wanted = tables.TOPICS[tables.MOVED].subscribers
    right, wrong = _moved(figures.moves)
    return [
        *no_faults(figures.counts),
        near("second at which topic 8 triggers balancing", figures.trigger, tables.TRIGGER_AT, TRIGGER_TOLERANCE),
        near("subscribers of topic 1 that go from b1 to b0", right, wanted, 0),
        at_most("subscribers of other topics, or to other edges, that move", wrong, 0),
        at_most("second at which the queue of topic 8 is gone", figures.clear, tables.ENDS_AT),
        at_most("late deliveries, as a share of those without balancing", _share(own, figures.late[NONE]),
                SHARE_OF_NONE),
        at_most("late deliveries more than with Padres, as a share of all",
                _share(max(0, own - figures.late[PADRES]), figures.counts["delivered"]), MORE_THAN_PADRES),
        at_most("subscribers that move before a deadline is in danger", figures.early[OWN], 0),
        at_least("subscribers that Padres moves before that", figures.early[PADRES], 1),
    ]  # fmt: skip


def _moved(moves: Sequence[TopicMove]) -> tuple[int, int]:
    """Subscribers of the text's topic that went the text's way, and all others that moved."""
    right = wrong = 0
    for move in moves:
        for number, count in move.topics.items():
            if (number, move.source, move.target) == (tables.MOVED, "b1", "b0"):
                right += count
            else:
                wrong += count
    return right, wrong


def _share(own: int, other: int) -> float | None:
    """None if the other had none: then there is nothing to compare with."""
    return own / other if other else None
