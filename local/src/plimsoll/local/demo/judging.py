"""The judgement over a run: what the journals say, asked by `plimsoll.core.verify`, which decides by brute force.

No figure of the product enters here: neither its counters nor its predicates. What each process of subscribers saw is
judged by a process of its own, against all that was published: a law is about one subscriber, or about publications.
That publications are the same for all subscribers is compared afterwards.
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

from plimsoll.core.verify import Audit, Observation, Verdict
from plimsoll.core.verify.observations import Delivered, Identity, Origin, Published
from plimsoll.core.verify.verdict import Violation
from plimsoll.local.demo.delays import Delays
from plimsoll.local.demo.journal import Attached, read

ORDER_SECONDS: Final = 1.0
"""Publications come to a head's log in the order of their times, but for at most so long."""


@dataclass(frozen=True)
class Judgement:
    """The audit's verdict, the delivery delays, and what else went wrong (`faults`, each a sentence).

    `start`: the beginning of the traffic, on the clock of the verdict. What was published after `settled_until` was
    not judged.
    """

    verdict: Verdict
    delays: Delays
    start: float
    faults: tuple[str, ...] = ()
    settled_until: float = math.inf

    @property
    def passed(self) -> bool:
        return not self.problems

    @property
    def problems(self) -> list[str]:
        """What makes the run fail, each a sentence; the counts first."""
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
        """The violations that the verdict spells out, with their time in seconds of the traffic."""
        return [
            f"{case.law} at {case.at - self.start:.3f} s, {case.subject}: {case.text}"
            for case in self.verdict.violations
        ]


@dataclass(frozen=True)
class Part:
    """What one process of subscribers saw. `origins`: where each publication came from, as far as it was seen."""

    verdict: Verdict
    delays: Delays
    settled_until: float
    origins: Mapping[Identity, Origin]


def judge(
    publishers: Sequence[Path],
    subscribers: Sequence[Path],
    start: float,
    faults: Iterable[str] = (),
    settled_position: int | None = None,
) -> Judgement:
    """Read all journals and judge them. `start`: the beginning of the traffic, on the journals' clock.

    `settled_position`: where the reader stands that is the furthest behind, if the run ended before all had arrived.
    What was published after that may still have been under way, and is not judged.

    Raises:
        JournalError: one of them is damaged.

    """
    if settled_position is not None or len(subscribers) < 2:  # where that is, only all of them together know
        parts = [part(publishers, subscribers, start, settled_position)]
    else:
        spawn = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(len(subscribers), mp_context=spawn) as pool:
            waiting = [pool.submit(part, publishers, [path], start) for path in subscribers]
            parts = [each.result() for each in waiting]
    delays = Delays(start)
    for each in parts:
        delays.add(each.delays)
    return Judgement(merged(parts), delays, start, tuple(faults), parts[0].settled_until)


def part(
    publishers: Sequence[Path], subscribers: Sequence[Path], start: float, settled_position: int | None = None
) -> Part:
    """Judge some journals of subscribers against those of all publishers."""
    audit, delays = Audit(), Delays(start)
    published: dict[Identity, float] = {}
    edges: dict[str, str] = {}
    places: dict[int, Identity] = {}
    take = audit.take  # looked up once: each look-up of a dispatching method makes a new one
    for path in [*publishers, *subscribers]:
        for seen in read(path):
            _measure(seen, published, edges, delays)
            if settled_position is not None and isinstance(seen, Delivered) and seen.place is not None:
                places[seen.place[2]] = seen.publication
            if isinstance(seen, Observation):
                take(seen)
    settled_until = math.inf if settled_position is None else _published_at(settled_position, places, published)
    origins = {each.identity: each.origin for each in audit.publications.all if each.origin is not None}
    return Part(audit.verdict(settled_until), delays, settled_until, origins)


_OF_SUBSCRIBERS: Final = (
    "expected", "delivered", "lost", "duplicated", "reordered", "unwanted", "gaps", "excused", "uncertain",
    "undisturbed",
)  # fmt: skip


def merged(parts: Sequence[Part]) -> Verdict:
    """One verdict of all. What each has found of publications counts once."""
    first, known = parts[0].verdict, dict[Violation, None]()
    violated: Counter[str] = Counter()
    for each in parts:
        violated.update(each.verdict.violated)
        for violation in each.verdict.violations:
            violated[violation.law] -= violation in known
            known[violation] = None
    for violation in _of_two_origins(parts):
        violated[violation.law] += 1
        known[violation] = None
    counts = {name: sum(getattr(each.verdict, name) for each in parts) for name in _OF_SUBSCRIBERS}
    return replace(first, **counts, violated=dict(+violated), violations=tuple(known))


def _of_two_origins(parts: Sequence[Part]) -> Iterable[Violation]:
    """A publication is logged once, at one place: all who see it see that place."""
    known: dict[Identity, Origin] = {}
    for each in parts:
        for identity, origin in each.origins.items():
            if (other := known.setdefault(identity, origin)) != origin:
                yield Violation("I2", f"publication {identity}", f"comes from {other} and from {origin}", 0.0)


def _published_at(position: int, places: Mapping[int, Identity], published: Mapping[Identity, float]) -> float:
    """When the publication at a position, or the next one before it, was published; -inf if there is none."""
    before = max((place for place in places if place <= position), default=None)
    return -math.inf if before is None else published.get(places[before], -math.inf) - ORDER_SECONDS


def _measure(
    seen: Observation | Attached, published: dict[Identity, float], edges: dict[str, str], delays: Delays
) -> None:
    """Note the delay of a delivery; where it came from and when it was published was read before it."""
    if isinstance(seen, Delivered):
        sent = published.get(seen.publication)
        if sent is not None:
            delays.take(edges.get(seen.subscriber, "?"), seen.at, seen.at - sent)
    elif isinstance(seen, Published):
        published[seen.publisher, seen.incarnation, seen.seq] = seen.at
    elif isinstance(seen, Attached):
        edges[seen.subscriber] = seen.edge
