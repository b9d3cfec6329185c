"""The audit of a run: `plimsoll.core.verify` judges the journals by brute force.

No figure of the product enters here: neither its counters nor its predicates. The journal of each subscribing process
is judged in a process of its own, against all publications: a law is about one subscriber, or about publications. That
all processes saw the same publications is checked afterwards.
"""

from __future__ import annotations

import math
import multiprocessing
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from plimsoll.core.verify import AuditVerdict, LawAudit, Observation
from plimsoll.core.verify.observations import DeliveryObserved, LogPosition, PublicationIdentity, PublicationObserved
from plimsoll.core.verify.verdict import LawViolation
from plimsoll.demo.analysis.delays import DeliveryDelays
from plimsoll.demo.journal import JournalAttachment, read_journal

REORDER_SECONDS: Final = 1.0
"""How far, at most, publications in a head's log are out of the order of their times."""


@dataclass(frozen=True)
class DemoAudit:
    """The audit's verdict, the delivery delays, and what else went wrong (`faults`, one sentence each).

    `start`: the beginning of the traffic, on the clock of the verdict. Publications after `settled_until` were not
    judged.
    """

    verdict: AuditVerdict
    delays: DeliveryDelays
    start: float
    faults: tuple[str, ...] = ()
    settled_until: float = math.inf

    @property
    def passed(self) -> bool:
        return not self.problems

    @property
    def problems(self) -> list[str]:
        """The reasons why the run fails, one sentence each; the counts first."""
        verdict = self.verdict
        found = [
            f"{count:,} deliveries were {what}"
            for what, count in (
                ("lost", verdict.lost),
                ("duplicated", verdict.duplicated),
                ("reordered", verdict.reordered),
            )
            if count
        ]
        others = {law: n for law, n in verdict.violated.items() if law not in ("I1", "I2", "I3")}
        found += [f"law {law} was broken {count:,} times" for law, count in others.items()]
        if not verdict.expected:
            found.append("nothing had to be delivered, so nothing was shown")
        return [*found, *self.faults]

    @property
    def cases(self) -> list[str]:
        """The violations that the verdict lists, with their time in seconds of the traffic."""
        return [
            f"{case.law} at {case.at - self.start:.3f} s, {case.subject}: {case.text}"
            for case in self.verdict.violations
        ]


@dataclass(frozen=True)
class JournalAudit:
    """The observations of one subscribing process. `origins`: the origin of each publication, if seen."""

    verdict: AuditVerdict
    delays: DeliveryDelays
    settled_until: float
    origins: Mapping[PublicationIdentity, LogPosition]


def audit_run(
    publishers: Sequence[Path],
    subscribers: Sequence[Path],
    start: float,
    faults: Iterable[str] = (),
    settled_position: int | None = None,
) -> DemoAudit:
    """Read all journals and judge them. `start`: the beginning of the traffic, on the journals' clock.

    `settled_position`: the position of the slowest reader, if the run ended before everything had arrived. Later
    publications may still have been under way, and are not judged.

    Raises:
        JournalError: one of them is damaged.

    """
    if settled_position is not None or len(subscribers) < 2:  # only all of them together know where that is
        parts = [audit_journals(publishers, subscribers, start, settled_position)]
    else:
        spawn = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(len(subscribers), mp_context=spawn) as pool:
            waiting = [pool.submit(audit_journals, publishers, [path], start) for path in subscribers]
            parts = [each.result() for each in waiting]
    delays = DeliveryDelays(start)
    for each in parts:
        delays.add(each.delays)
    return DemoAudit(merge_verdicts(parts), delays, start, tuple(faults), parts[0].settled_until)


def audit_journals(
    publishers: Sequence[Path], subscribers: Sequence[Path], start: float, settled_position: int | None = None
) -> JournalAudit:
    """Judge some journals of subscribers against those of all publishers."""
    audit, delays = LawAudit(), DeliveryDelays(start)
    published: dict[PublicationIdentity, float] = {}
    edges: dict[str, str] = {}
    places: dict[int, PublicationIdentity] = {}
    take = audit.take  # looked up once: each look-up of a dispatching method makes a new one
    for path in [*publishers, *subscribers]:
        for seen in read_journal(path):
            _record_delay(seen, published, edges, delays)
            if settled_position is not None and isinstance(seen, DeliveryObserved) and seen.place is not None:
                places[seen.place[2]] = seen.publication
            if isinstance(seen, Observation):
                take(seen)
    settled_until = math.inf if settled_position is None else _published_at(settled_position, places, published)
    origins = {each.identity: each.origin for each in audit.publishers.publications.all if each.origin is not None}
    return JournalAudit(audit.verdict(settled_until), delays, settled_until, origins)


_SUBSCRIBER_COUNTS: Final = (
    "expected", "delivered", "lost", "duplicated", "reordered", "unwanted", "gaps", "excused", "uncertain",
    "undisturbed",
)  # fmt: skip


def merge_verdicts(parts: Sequence[JournalAudit]) -> AuditVerdict:
    """Merge the verdicts. Results about publications, which every part reports, count once."""
    first, known = parts[0].verdict, dict[LawViolation, None]()
    violated: Counter[str] = Counter()
    for each in parts:
        violated.update(each.verdict.violated)
        for violation in each.verdict.violations:
            violated[violation.law] -= violation in known
            known[violation] = None
    for violation in _conflicting_origins(parts):
        violated[violation.law] += 1
        known[violation] = None
    counts = {name: sum(getattr(each.verdict, name) for each in parts) for name in _SUBSCRIBER_COUNTS}
    return replace(first, **counts, violated=dict(+violated), violations=tuple(known))


def _conflicting_origins(parts: Sequence[JournalAudit]) -> Iterable[LawViolation]:
    """A publication is logged once, at one position: everyone who sees it sees that position."""
    known: dict[PublicationIdentity, LogPosition] = {}
    for each in parts:
        for identity, origin in each.origins.items():
            if (other := known.setdefault(identity, origin)) != origin:
                yield LawViolation("I2", f"publication {identity}", f"comes from {other} and from {origin}", 0.0)


def _published_at(
    position: int, places: Mapping[int, PublicationIdentity], published: Mapping[PublicationIdentity, float]
) -> float:
    """When the publication at a position, or the next one before it, was published; -inf if there is none."""
    before = max((place for place in places if place <= position), default=None)
    return -math.inf if before is None else published.get(places[before], -math.inf) - REORDER_SECONDS


def _record_delay(
    seen: Observation | JournalAttachment,
    published: dict[PublicationIdentity, float],
    edges: dict[str, str],
    delays: DeliveryDelays,
) -> None:
    """Note the delay of a delivery; its origin and time of publication were read before it."""
    if isinstance(seen, DeliveryObserved):
        sent = published.get(seen.publication)
        if sent is not None:
            delays.take(edges.get(seen.subscriber, "?"), seen.at, seen.at - sent)
    elif isinstance(seen, PublicationObserved):
        published[seen.publisher, seen.incarnation, seen.seq] = seen.at
    elif isinstance(seen, JournalAttachment):
        edges[seen.subscriber] = seen.edge
