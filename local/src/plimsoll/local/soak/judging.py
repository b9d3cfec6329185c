"""The judgement over hand-overs in real processes: the audit over every delivery, what sessions said against what
applications saw, and what hand-overs cost in time.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from plimsoll.core.verify import Audit, Observation, Verdict
from plimsoll.core.verify import observations as seen
from plimsoll.local.demo.journal import Attached, read
from plimsoll.local.soak.driver import Handover
from plimsoll.local.soak.latency import Added, Stay, Windows

GRACE_SECONDS: Final = 3.0
"""So much longer than its own deadlines a hand-over may take to be told of."""
LATE_SECONDS: Final = 5.0
"""An application may learn of its new edge so much later than the mediator, as by a frozen process."""


@dataclass(frozen=True)
class Judgement:
    """`contradictions`: outcomes that are not what applications saw. `silence`: by subscriber, see `silences`."""

    verdict: Verdict
    added: Added
    contradictions: tuple[str, ...]
    silence: Mapping[str, float]

    @property
    def violations(self) -> list[str]:
        """Everything that was broken, in words."""
        return [*map(str, self.verdict.violations), *self.contradictions]

    @property
    def is_clean(self) -> bool:
        return self.verdict.ok and not self.contradictions


def judge(
    publishers: Sequence[Path], subscribers: Sequence[Path], handovers: Sequence[Handover],
    others: Iterable[Observation] = (), watched: Mapping[str, tuple[float, float]] | None = None,
    *, saturated: bool = False, disturbed: bool = False,
) -> Judgement:  # fmt: skip
    """Read all journals and judge them. `others`: what else was seen, as ends of heads and residue.

    `watched`: between when the silence of a subscriber is measured. `saturated`: what counts for latency are hand-overs
    by replay. `disturbed`: edges or applications are killed meanwhile. Who stayed may then be at the target before the
    others are through; and who resumed has moved or returned when the head has heard of it, which an application may
    not live to hear, nor an edge to tell.

    Raises:
        JournalError: one of them is damaged.

    """
    audit = Audit()
    take = audit.take
    added = Added(Windows(_windows(handovers, saturated)))
    published: dict[seen.Identity, float] = {}
    attached: dict[str, list[tuple[float, str]]] = {}
    home: dict[str, str] = {}
    silences = Silences(watched or {})
    for one in [*others, *_claims(handovers)]:
        take(one)
    for noted in itertools.chain.from_iterable(map(read, [*publishers, *subscribers])):
        if isinstance(noted, Attached):
            attached.setdefault(noted.subscriber, []).append((noted.at, noted.edge))
            home[noted.subscriber] = noted.edge
            continue
        if isinstance(noted, seen.Published):
            published[noted.publisher, noted.incarnation, noted.seq] = noted.at
        elif isinstance(noted, seen.Delivered):
            silences.take(noted.subscriber, noted.at)
            if (at := published.get(noted.publication)) is not None:
                added.take(noted.publication, noted.subscriber, at, noted.at, home.get(noted.subscriber, ""))
        take(noted)
    added.fold()
    return Judgement(audit.verdict(), added, tuple(_contradictions(handovers, attached, disturbed)), silences.longest())


def _windows(handovers: Sequence[Handover], saturated: bool) -> Iterable[tuple[str, Stay]]:
    for one in handovers:
        stay = Stay(one.began_at, one.ended_at or float("inf"), one.plan.source, one.plan.replay or not saturated)
        for name, _ in one.members:
            yield name, stay


def _claims(handovers: Sequence[Handover]) -> Iterable[Observation]:
    """I5: every hand-over ends by its deadline, whatever became of its mediator."""
    for one in handovers:
        deadline = one.began_at + one.plan.prepare_seconds + one.plan.drain_seconds + GRACE_SECONDS
        yield seen.SessionBegan(one.session, deadline, one.began_at)
        if one.ended_at is not None:
            yield seen.SessionEnded(one.session, one.state, one.ended_at)


def _contradictions(
    handovers: Sequence[Handover], attached: Mapping[str, Sequence[tuple[float, str]]], disturbed: bool
) -> Iterable[str]:
    """Outcomes of members against the edges that their applications were told of."""
    for one in handovers:
        if one.state not in ("done", "aborted"):
            continue
        named = {name for name, _ in one.members}
        if one.members and named != set(one.plan.members):
            yield f"hand-over {one.session} was for {len(one.plan.members)} members and tells of {len(named)}"
        until = one.ended_at or float("inf")
        for name, outcome in one.members:
            had = [(at, edge) for at, edge in attached.get(name, ()) if one.began_at <= at <= until + LATE_SECONDS]
            here = [at for at, edge in had if edge == one.plan.target]
            if outcome == "moved" and not here and not (disturbed and one.plan.replay):
                yield f"hand-over {one.session} tells that {name} moved, which never heard of {one.plan.target}"
            elif outcome == "returned" and not had and not disturbed:
                yield f"hand-over {one.session} tells that {name} returned, which was never served anew"
            elif outcome == "stayed" and not disturbed and any(at <= until for at in here):
                yield f"hand-over {one.session} tells that {name} stayed, which went to {one.plan.target}"
            elif outcome == "detached" and until - one.began_at < one.plan.drain_seconds:
                yield f"hand-over {one.session} tells that {name} was detached before its time"


class Silences:
    """The longest time between two deliveries of a subscriber, or since or until the ends of the time watched."""

    def __init__(self, watched: Mapping[str, tuple[float, float]]) -> None:
        self._watched = watched
        self._last = {name: since for name, (since, _) in watched.items()}
        self._longest = dict.fromkeys(watched, 0.0)

    def take(self, subscriber: str, at: float) -> None:
        if subscriber in self._watched:
            since, until = self._watched[subscriber]
            if at >= since:
                at = min(at, until)
                self._longest[subscriber] = max(self._longest[subscriber], at - self._last[subscriber])
                self._last[subscriber] = at

    def longest(self) -> dict[str, float]:
        return {
            name: max(longest, self._watched[name][1] - self._last[name]) for name, longest in self._longest.items()
        }
