"""The cost of balancing in messages: all that brokers, clients and mediators send, by purpose.

Brokers count what they send by kind and report it; clients report theirs to the demo; the heads count what they receive
from mediators. One delivery is one message, and so is one command that names a hundred subscribers.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final

from plimsoll.core.protocol import messages as msg

SENT_PREFIX: Final = "said_"
RECEIVED_PREFIX: Final = "heard_"


def _kinds(*messages: type[Any]) -> frozenset[str]:
    """The names in the counters: brokers count each message under the name of its class."""
    return frozenset(kind.__name__ for kind in messages)


LOAD_REPORTS: Final = _kinds(msg.LoadUpdate, msg.PeerLoads)
"""Load reports, to edges and to watchers."""

SESSIONS: Final = _kinds(
    msg.Trigger, msg.Reservation, msg.ReservationReply, msg.ProfileQuery, msg.ProfileReply, msg.CoverQuery,
    msg.CoverReply, msg.Command, msg.Outcome, msg.ListSubscribers, msg.SubscriberPage, msg.Prepare, msg.Slot,
    msg.StartMove, msg.Install, msg.Installed, msg.Cut, msg.CutRequest, msg.TargetAttached, msg.End, msg.Go, msg.Done,
    msg.Stay, msg.Abort, msg.Held, msg.Expire, msg.HandoverRejected, msg.ForceDetach, msg.Orphan, msg.Marker,
    msg.Route, msg.MediatorEpoch, msg.Revoke, msg.Release, msg.Fetch, msg.Fetched, msg.ExpectedDeliveries,
    msg.AuditQuery, msg.AuditReply, msg.AuditSummary,
)  # fmt: skip
"""Messages to agree, to estimate and to hand over."""

REDIRECTS: Final = _kinds(msg.MoveTo, msg.Moved)
RESUBSCRIPTIONS: Final = _kinds(msg.Attach, msg.Cover, msg.Detach)
JOINS: Final = _kinds(
    msg.Join, msg.Placed, msg.Resume, msg.ResumeUp, msg.ResumedDown, msg.Resumed, msg.Suback, msg.CoverAck
)
"""One of each when a subscriber joins; any more come from moves."""

ACKNOWLEDGEMENTS: Final = frozenset({"Ack"}) | _kinds(msg.Accepted, msg.Credit, msg.Progress)
FROM_MEDIATORS: Final = _kinds(msg.Command, msg.ListSubscribers, msg.Reservation, msg.ProfileQuery, msg.CoverQuery)

CATEGORIES: Final = ("load_reports", "sessions", "redirects", "resubscriptions")
"""What counts as overhead. Subscriptions of newcomers and acknowledgements are shown beside it and are no part of it.
"""


def message_counts(report: Mapping[str, Any]) -> Counter[str]:
    """What one broker has sent since its start, by kind, from its load report.

    `PublicationHistory` is what has come in, `Delivery` what has gone out to subscribers.
    """
    counters, is_head = report.get("counters", {}), report.get("role") == "head"
    found = sent_counts(counters)
    if is_head:
        for kind in FROM_MEDIATORS:
            found[kind] += counters.get(RECEIVED_PREFIX + kind, 0)
    else:
        found["Delivery"] = counters.get("deliveries", 0)
    found["Publication"] = counters.get("arrivals", 0)
    return found


def sent_counts(counters: Mapping[str, int]) -> Counter[str]:
    """The counters of one party's messages, by kind."""
    return Counter(
        {name.removeprefix(SENT_PREFIX): count for name, count in counters.items() if name.startswith(SENT_PREFIX)}
    )


class MessageLedger:
    """Counts of all parties over time. They only rise; a party that restarts continues from its last count."""

    def __init__(self) -> None:
        self._times: dict[str, list[float]] = {}
        self._counts: dict[str, list[Counter[str]]] = {}
        self._lives: dict[str, int] = {}
        self._before: dict[str, Counter[str]] = {}
        self._watched: list[tuple[float, Counter[str]]] = []

    def watch(self, received: Mapping[str, int], seconds: float) -> None:
        """Note messages sent to mere watchers of the run: they are no part of the measurement."""
        self._watched.append((seconds, Counter(received)))

    def take(self, party: str, counts: Counter[str], seconds: float, life: int = 0) -> None:
        """Note the messages that a party has sent so far."""
        kept = self._counts.setdefault(party, [])
        if self._lives.setdefault(party, life) != life:
            self._lives[party], self._before[party] = life, kept[-1]
        self._times.setdefault(party, []).append(seconds)
        kept.append(counts + self._before.get(party, Counter()))

    def total(self, seconds: float) -> Counter[str]:
        """Messages of all parties up to a time, by kind."""
        found: Counter[str] = Counter()
        for party, times in self._times.items():
            if (at := bisect_right(times, seconds)) > 0:
                found.update(self._counts[party][at - 1])
        if (at := bisect_right(self._watched, seconds, key=lambda each: each[0])) > 0:
            found.subtract(self._watched[at - 1][1])
        return found

    def summed(self, seconds: float) -> dict[str, int]:
        """The same by purpose: the categories, `payload`, `subscriptions` and `acknowledgements`."""
        return counts_by_category(self.total(seconds))


def counts_by_category(total: Mapping[str, int]) -> dict[str, int]:
    """Turn counts by kind into counts by purpose. `Newcomer` is the number of subscribers that have joined.

    `replayed`: publications that an edge has read from the log of its head for a subscriber that resumes there; they
    are part of `payload`.
    """

    def of(kinds: Iterable[str]) -> int:
        return sum(total.get(kind, 0) for kind in kinds)

    newcomers = total.get("Newcomer", 0)
    first = sum(min(total.get(kind, 0), newcomers) for kind in JOINS)
    return {
        "load_reports": of(LOAD_REPORTS),
        "sessions": of(SESSIONS),
        "redirects": of(REDIRECTS),
        "resubscriptions": of(RESUBSCRIPTIONS) + of(JOINS) - first,
        "payload": of(("Publication", "Delivery", "Replay")),
        "replayed": of(("Replay",)),
        "subscriptions": first,
        "acknowledgements": of(ACKNOWLEDGEMENTS),
    }


def counts_between(ledger: MessageLedger, *windows: tuple[float, float]) -> dict[str, int]:
    """Messages in these windows of time together, by purpose."""
    found: Counter[str] = Counter()
    for start, end in windows:
        before, after = ledger.summed(start), ledger.summed(end)
        found.update({name: after[name] - before[name] for name in after})
    return dict(found)


def overhead_ratio(counts: Mapping[str, int]) -> float | None:
    """Overhead as a share of all messages except acknowledgements; None if there are none."""
    overhead = sum(counts.get(name, 0) for name in CATEGORIES)
    everything = overhead + counts.get("payload", 0) + counts.get("subscriptions", 0)
    return overhead / everything if everything else None
