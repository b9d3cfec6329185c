"""The audit of hand-overs in real processes: every delivery, outcomes against observations, and added latency."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from plimsoll.core.protocol.departures import UNCUT_OUTCOMES, UNKNOWN
from plimsoll.core.verify import AuditVerdict, LawAudit, Observation
from plimsoll.core.verify import observations as seen
from plimsoll.demo.journal import JournalAttachment, read_journal
from plimsoll.soak.added_latency import AddedLatency, HandoverWindow, HandoverWindows
from plimsoll.soak.harness.handover_driver import DrivenHandover

GRACE_SECONDS: Final = 3.0
"""Allowance on top of a hand-over's own deadlines until its outcome is known."""
LATE_SECONDS: Final = 5.0
"""Allowance for an application that learns of its new edge later than the mediator, since its process was frozen."""


@dataclass(frozen=True)
class SoakAudit:
    """`contradictions`: outcomes that applications did not see. `silence`: by subscriber, see `DeliverySilences`."""

    verdict: AuditVerdict
    added: AddedLatency
    contradictions: tuple[str, ...]
    silence: Mapping[str, float]

    @property
    def violations(self) -> list[str]:
        """All violations and contradictions as text."""
        return [*map(str, self.verdict.violations), *self.contradictions]

    @property
    def is_clean(self) -> bool:
        return self.verdict.ok and not self.contradictions


def audit_handovers(
    publishers: Sequence[Path], subscribers: Sequence[Path], handovers: Sequence[DrivenHandover],
    others: Iterable[Observation] = (), watched: Mapping[str, tuple[float, float]] | None = None,
    *, saturated: bool = False, disturbed: bool = False,
) -> SoakAudit:  # fmt: skip
    """Audit the journals of a run. `others`: observations from elsewhere, such as ends of heads and residue.

    `watched`: the interval over which the silence of a subscriber is measured. `saturated`: only hand-overs by replay
    count for latency. `disturbed`: edges or applications are killed during hand-overs. Then a subscriber that stayed
    may have attached to the target before the hand-over ended; and one that resumed counts as moved or returned as soon
    as the head has its RESUME, although its application or its edge may be killed before the application learns of it.

    Raises:
        JournalError: a journal is damaged.

    """
    audit = LawAudit()
    take = audit.take
    added = AddedLatency(HandoverWindows(_windows(handovers, saturated)))
    published: dict[seen.PublicationIdentity, float] = {}
    attached: dict[str, list[tuple[float, str]]] = {}
    home: dict[str, str] = {}
    silences = DeliverySilences(watched or {})
    for one in [*others, *_session_observations(handovers)]:
        take(one)
    for noted in itertools.chain.from_iterable(map(read_journal, [*publishers, *subscribers])):
        if isinstance(noted, JournalAttachment):
            attached.setdefault(noted.subscriber, []).append((noted.at, noted.edge))
            home[noted.subscriber] = noted.edge
            continue
        if isinstance(noted, seen.PublicationObserved):
            published[noted.publisher, noted.incarnation, noted.seq] = noted.at
        elif isinstance(noted, seen.DeliveryObserved):
            silences.take(noted.subscriber, noted.at)
            if (at := published.get(noted.publication)) is not None:
                added.add(noted.publication, noted.subscriber, at, noted.at, home.get(noted.subscriber, ""))
        take(noted)
    added.compare()
    return SoakAudit(audit.verdict(), added, tuple(_contradictions(handovers, attached, disturbed)), silences.longest())


def _windows(handovers: Sequence[DrivenHandover], saturated: bool) -> Iterable[tuple[str, HandoverWindow]]:
    for one in handovers:
        window = HandoverWindow(
            one.began_at, one.ended_at or float("inf"), one.plan.source, one.plan.replay or not saturated
        )
        for name, _ in one.members:
            yield name, window


def _session_observations(handovers: Sequence[DrivenHandover]) -> Iterable[Observation]:
    """I5: every hand-over ends by its deadline, even if its mediator was killed."""
    for one in handovers:
        deadline = one.began_at + one.plan.prepare_seconds + one.plan.drain_seconds + GRACE_SECONDS
        yield seen.SessionStartObserved(one.session, deadline, one.began_at)
        if one.ended_at is not None:
            yield seen.SessionEndObserved(one.session, one.state, one.ended_at)


def _contradictions(
    handovers: Sequence[DrivenHandover], attached: Mapping[str, Sequence[tuple[float, str]]], disturbed: bool
) -> Iterable[str]:
    """Outcomes of members that differ from the edges which their applications saw."""
    for one in handovers:
        if one.state not in ("done", "aborted"):
            continue
        named = {name for name, _ in one.members}
        if one.members and named != set(one.plan.members):
            yield f"hand-over {one.session} of {len(one.plan.members)} members has outcomes for {len(named)}"
        until = one.ended_at or float("inf")
        for name, outcome in one.members:
            had = [(at, edge) for at, edge in attached.get(name, ()) if one.began_at <= at <= until + LATE_SECONDS]
            here = [at for at, edge in had if edge == one.plan.target]
            if outcome == "moved" and not here and not (disturbed and one.plan.replay):
                yield f"hand-over {one.session}: {name} is `moved`, but never attached to {one.plan.target}"
            elif outcome == "returned" and not had and not disturbed:
                yield f"hand-over {one.session}: {name} is `returned`, but never attached again"
            elif outcome in (*UNCUT_OUTCOMES, UNKNOWN) and not disturbed and any(at <= until for at in here):
                yield f"hand-over {one.session}: {name} is `{outcome}`, but attached to {one.plan.target}"
            elif outcome == "detached" and until - one.began_at < one.plan.drain_seconds:
                yield f"hand-over {one.session}: {name} is `detached` before the time for draining was over"


class DeliverySilences:
    """The longest time without a delivery, by subscriber; the start and the end of the watched interval count."""

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
