"""The laws of sessions by which publishers leave overloaded heads, over all of a run.

Heads are relieved one after another. A plan lessens what its head sends, and leaves every other head below the lower
threshold. A publisher that has left a head for its overload does not come back to it by another session of the policy.
Each session ends, and those that move publishers are planned without a fault.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise

from plimsoll.core import session as s
from plimsoll.core.session.session_plan import SessionPlan
from plimsoll.core.verify import observations as seen

ROUNDING = 1e-4
"""Forecasts are stored with four digits."""


class HeadLaws:
    """`sessions`: all that are stored. `lower`: the share of its uplink above which a head takes no publishers."""

    def __init__(self, sessions: Callable[[], Iterable[s.Session]], lower: float) -> None:
        self._sessions, self._lower = sessions, lower

    def leftovers(self, at: float) -> Iterator[seen.ResidueObserved]:
        """Every breach of a law, as something that is left over at the end."""
        own = [one for one in self._sessions() if one.kind == "publishers" and one.triggered]
        for what in (*_overlaps(own), *_returns(own)):
            yield seen.ResidueObserved("heads", what, 1, at)
        for one in own:
            for what in () if one.plan is None else self._faults(one.plan):
                yield seen.ResidueObserved(one.name, what, 1, at)

    def _faults(self, plan: SessionPlan) -> Iterator[str]:
        yield from plan.faults
        sources = {pair.source for pair in plan.pairs}
        for one in plan.forecasts:
            if one.before is None or one.after is None:
                continue
            if one.edge in sources and one.after.output > one.before.output - ROUNDING / 2:
                yield f"a plan that does not relieve {one.edge}: {one.before.output} before, {one.after.output} after"
            if one.edge not in sources and one.after.output > self._lower + ROUNDING:
                yield f"a plan with which {one.edge} carries too much: {one.after.output}"


def _overlaps(sessions: Iterable[s.Session]) -> Iterator[str]:
    """Sessions that were asked for while another one had not ended."""
    some = sorted(sessions, key=lambda one: (one.requested_at, one.name))
    for before, after in pairwise(some):
        if before.ended_at is None or after.requested_at < before.ended_at:
            yield f"{after.name} was asked for before {before.name} had ended"


def _returns(sessions: Iterable[s.Session]) -> Iterator[str]:
    left: set[tuple[str, str]] = set()
    for one in sorted(sessions, key=lambda one: (one.requested_at, one.name)):
        for pair in () if one.plan is None else one.plan.pairs:
            moved = [name for name in pair.members if one.outcomes().get(name) == "moved"]
            for name in moved:
                if (name, pair.target) in left:
                    yield f"{name} is back at {pair.target}, which it had left"
            left |= {(name, pair.source) for name in moved}
