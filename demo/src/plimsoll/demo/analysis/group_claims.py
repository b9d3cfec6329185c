"""What a run with a consumer group claims, from the journals of consumers and the looks at their slices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from plimsoll.core.verify.slice_laws import GivenItem, SliceVerdict
from plimsoll.demo.analysis.measured_claims import MeasuredClaim, at_most, near

FAST, SLOW, LATE = "fast", "slow", "late"
"""The consumers: one, one whose items take one and a half times as long, and one that joins later."""

FAST_SHARE: Final = 0.6
"""DPSLB 2014, 3.1: slices 0 to 5 and 6 to 9 are 60 and 40 % of the stream."""
SHARE_TOLERANCE: Final = 0.03
JOIN_SECONDS: Final = 20.0
"""Two intervals of balancing."""
LEAVE_SECONDS: Final = 10.0
CRASH_SECONDS: Final = 10.0


@dataclass(frozen=True, slots=True)
class GroupSteps:
    """When what happens, in seconds of the traffic."""

    burn: float
    join: float
    leave: float
    kill: float
    end: float

    @classmethod
    def of(cls, seconds: float) -> GroupSteps:
        """The times of a run of this length."""
        return cls(0.4 * seconds, 0.62 * seconds, 0.75 * seconds, 0.85 * seconds, seconds)


@dataclass(frozen=True, slots=True)
class GroupLook:
    """The slices of each consumer that runs, as it says itself, and of the head: its items per second and moves."""

    at: float
    slices: Mapping[str, int]
    items_per_second: Mapping[str, float]
    backlog: int
    moved: int


@dataclass(frozen=True)
class GroupFigures:
    """What was measured. `joined_at`, `left_at`: when the newcomer had its share, and when the leaver had ended; None
    if that was not seen. `count`: slices of the group.
    """

    verdict: SliceVerdict
    given: Sequence[GivenItem]
    looks: Sequence[GroupLook]
    times: GroupSteps
    count: int
    left_at: float | None

    def share(self, consumer: str, since: float, until: float) -> float | None:
        """Its share of the items that were finished between two times."""
        ended = [each.consumer for each in self.given if each.until is not None and since <= each.until < until]
        return ended.count(consumer) / len(ended) if ended else None

    def slices(self, consumer: str, at: float) -> int | None:
        """How many slices it had, as it said last before a time."""
        known = [look.slices[consumer] for look in self.looks if look.at <= at and consumer in look.slices]
        return known[-1] if known else None

    def seconds_until(self, consumer: str, slices: int, since: float) -> float | None:
        """How long after a time it had this many slices."""
        found = (look.at - since for look in self.looks if look.at >= since and look.slices.get(consumer, 0) >= slices)
        return next(found, None)


def judged_claims(figures: GroupFigures) -> list[MeasuredClaim]:
    """All claims in the order of the report."""
    verdict, times = figures.verdict, figures.times
    before, after = figures.slices(SLOW, times.burn), figures.slices(SLOW, times.join)
    return [
        at_most("items lost", verdict.lost, 0),
        at_most("items processed twice without a mark", verdict.repeated, 0),
        at_most("items out of order in their slice", verdict.reordered, 0),
        at_most("slices in the hands of two consumers", verdict.overlapping, 0),
        near("share of the items of the consumer that is one and a half times as fast",
             figures.share(FAST, 0.7 * times.burn, times.burn), FAST_SHARE, SHARE_TOLERANCE),
        _burning(before, after),
        at_most("time until a newcomer has its even share (s)",
                figures.seconds_until(LATE, figures.count // 3, times.join), JOIN_SECONDS),
        at_most("time until a leaving consumer has given all and ended (s)",
                None if figures.left_at is None else figures.left_at - times.leave, LEAVE_SECONDS),
        at_most("time until all slices of a killed consumer were elsewhere (s)",
                figures.seconds_until(FAST, figures.count, times.kill), CRASH_SECONDS),
    ]  # fmt: skip


def _burning(before: int | None, after: int | None) -> MeasuredClaim:
    claim = "slices left to the consumer that burns processor time"
    if before is None or after is None:
        return MeasuredClaim(claim, None, "fewer than before", held=False)
    return MeasuredClaim(claim, after, f"< {before}", after < before)
