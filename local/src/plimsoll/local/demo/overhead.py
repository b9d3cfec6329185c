"""What balancing costs in messages: all records that brokers, clients and mediators say, by what they are for.

Brokers count what they say by kind and report it; clients say it to the demo; what mediators say is counted by the
heads that hear it. A message is a record: one delivery is one, and one command that names a hundred subscribers is one.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final

SAID: Final = "said_"
HEARD: Final = "heard_"

LOADS: Final = frozenset({"Load", "Pie"})
"""Load reports, to edges and to whoever watches."""

SESSIONS: Final = frozenset({
    "Trigger", "State", "Stated", "ProfileQuery", "ProfileReply", "CoverQuery", "CoverTold", "Command", "Outcome",
    "Serving", "Served", "Prepare", "Slot", "Move", "Install", "Installed", "Cut", "CutRequest", "Attached", "End",
    "Go", "Done", "Stay", "Abort", "Held", "Expire", "Nak", "Part", "Orphan", "Marker", "Route", "Mediator",
    "Revoke", "Release", "Fetch", "Fetched", "DueList", "Count", "Counted", "Counts",
})  # fmt: skip
"""What it takes to agree, to estimate and to hand over."""

REDIRECTS: Final = frozenset({"MoveTo", "Moved"})
RESUBSCRIPTIONS: Final = frozenset({"Attach", "Cover", "Detach"})
JOINING: Final = frozenset({"Join", "Placed", "Resume", "ResumeUp", "ResumedDown", "Resumed", "Suback", "CoverAck"})
"""One of each when a subscriber comes; what there is more of, is said when it has moved."""

ACKNOWLEDGEMENTS: Final = frozenset({"Ack", "Accepted", "Credit", "Progress"})
FROM_MEDIATORS: Final = frozenset({"Command", "Serving", "State", "ProfileQuery", "CoverQuery"})

CATEGORIES: Final = ("load_reports", "sessions", "redirects", "resubscriptions")
"""What counts as overhead. Shown beside it, and no part of it: subscriptions of newcomers, acknowledgements."""


def messages(report: Mapping[str, Any]) -> Counter[str]:
    """What one broker has said since its start, by kind, as its load report has it.

    `Publication` is what has come in, `Delivery` what has gone out to subscribers.
    """
    counters, is_head = report.get("counters", {}), report.get("role") == "head"
    found = said(counters)
    if is_head:
        for kind in FROM_MEDIATORS:
            found[kind] += counters.get(HEARD + kind, 0)
    else:
        found["Delivery"] = counters.get("deliveries", 0)
    found["Publication"] = counters.get("arrivals", 0)
    return found


def said(counters: Mapping[str, int]) -> Counter[str]:
    """The counters of what a party says, by kind."""
    return Counter({name.removeprefix(SAID): count for name, count in counters.items() if name.startswith(SAID)})


class Ledger:
    """Counts of all parties over time. They only rise; a party that starts anew goes on from where it was."""

    def __init__(self) -> None:
        self._times: dict[str, list[float]] = {}
        self._counts: dict[str, list[Counter[str]]] = {}
        self._lives: dict[str, int] = {}
        self._before: dict[str, Counter[str]] = {}
        self._watched: list[tuple[float, Counter[str]]] = []

    def watch(self, heard: Mapping[str, int], seconds: float) -> None:
        """Note what has been said until now to whoever only watches the run: it is no part of what is measured."""
        self._watched.append((seconds, Counter(heard)))

    def take(self, party: str, counts: Counter[str], seconds: float, life: int = 0) -> None:
        """Note what a party has said until now."""
        kept = self._counts.setdefault(party, [])
        if self._lives.setdefault(party, life) != life:
            self._lives[party], self._before[party] = life, kept[-1]
        self._times.setdefault(party, []).append(seconds)
        kept.append(counts + self._before.get(party, Counter()))

    def total(self, seconds: float) -> Counter[str]:
        """What all have said until then, by kind."""
        found: Counter[str] = Counter()
        for party, times in self._times.items():
            if (at := bisect_right(times, seconds)) > 0:
                found.update(self._counts[party][at - 1])
        if (at := bisect_right(self._watched, seconds, key=lambda each: each[0])) > 0:
            found.subtract(self._watched[at - 1][1])
        return found

    def summed(self, seconds: float) -> dict[str, int]:
        """The same by what it is for: the categories, `payload`, `subscriptions` and `acknowledgements`."""
        return summed(self.total(seconds))


def summed(total: Mapping[str, int]) -> dict[str, int]:
    """Counts by kind as counts by what they are for. `Newcomer` says how many subscribers have come.

    `replayed`: publications that an edge has read from the log of its head, for a subscriber that goes on there; they
    are part of `payload`.
    """

    def of(kinds: Iterable[str]) -> int:
        return sum(total.get(kind, 0) for kind in kinds)

    newcomers = total.get("Newcomer", 0)
    first = sum(min(total.get(kind, 0), newcomers) for kind in JOINING)
    return {
        "load_reports": of(LOADS),
        "sessions": of(SESSIONS),
        "redirects": of(REDIRECTS),
        "resubscriptions": of(RESUBSCRIPTIONS) + of(JOINING) - first,
        "payload": of(("Publication", "Delivery", "Replay")),
        "replayed": of(("Replay",)),
        "subscriptions": first,
        "acknowledgements": of(ACKNOWLEDGEMENTS),
    }


def between(ledger: Ledger, *windows: tuple[float, float]) -> dict[str, int]:
    """What was said in these windows of time together, by what it is for."""
    found: Counter[str] = Counter()
    for start, end in windows:
        before, after = ledger.summed(start), ledger.summed(end)
        found.update({name: after[name] - before[name] for name in after})
    return dict(found)


def ratio(counts: Mapping[str, int]) -> float | None:
    """Overhead as a share of all messages but acknowledgements; None of nothing."""
    overhead = sum(counts.get(name, 0) for name in CATEGORIES)
    everything = overhead + counts.get("payload", 0) + counts.get("subscriptions", 0)
    return overhead / everything if everything else None
