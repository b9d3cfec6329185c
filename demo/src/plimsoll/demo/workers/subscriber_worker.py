"""A process of many subscribers on few connections: each joins at its time, and all it receives is recorded.

    python -m plimsoll.demo.workers.subscriber_worker     (started by the demo, which sends orders on standard input)

The head assigns an edge to each newcomer; one link per edge serves all its subscribers. A subscriber of topics is
journaled as one reader per topic: its order is promised, and audited, for each of them.
"""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from plimsoll import client
from plimsoll.core.verify import observations as seen
from plimsoll.demo import workload
from plimsoll.demo.analysis import delays
from plimsoll.demo.journal import DeliveryJournal, JournalAttachment
from plimsoll.demo.topic_workload import plan_scenario
from plimsoll.demo.workers.worker_process import connect
from plimsoll.demo.workers.worker_protocol import FINISH, WorkerPipe, run_worker

ROUND_SECONDS = 0.02
INCARNATION = 1
"""Every subscriber of the demo has one life."""

ReceivedBatch = Sequence[client.Delivery | client.GapNotice]


class JournaledReaders:
    """The names under which one subscriber stands in the journal: its own, or one for each of its topics."""

    def __init__(self, plan: workload.PlannedSubscriber) -> None:
        self._plan = plan
        self.names = [f"{plan.name}/{topic}" for topic in plan.topics] or [plan.name]
        self._by_id: dict[int, str] = {}
        self.acknowledged: set[int] = set()
        """The subscriptions that count now."""

    def subscribe(self, one: client.Subscriber, at: float) -> list[seen.SubscriptionObserved]:
        """Ask for everything that is planned; returns what the journal is to hold of it."""
        # The audit asks only filters whose first equality holds; the symbol is more selective than the class.
        asked: list[tuple[seen.Triple, ...]] = [((workload.TOPIC, "=", topic),) for topic in self._plan.topics]
        asked = asked or [self._plan.predicates]
        observed = []
        for name, predicates in zip(self.names, asked, strict=True):
            number = one.subscribe(workload.subscription_text(predicates), wait=False).id
            self._by_id[number] = name
            observed.append(seen.SubscriptionObserved(name, INCARNATION, number, predicates[::-1], at))
        return observed

    def of_delivery(self, item: client.Delivery) -> str:
        return f"{self._plan.name}/{item.attributes[workload.TOPIC]}" if self._plan.topics else self._plan.name

    def of_gap(self, item: client.GapNotice) -> list[str]:
        """The readers that may have missed something."""
        topics = zip(self.names, self._plan.topics, strict=True) if self._plan.topics else ()
        return [name for name, topic in topics if item.concerns(topic)] if self._plan.topics else self.names

    def of_ids(self, ids: Sequence[int]) -> dict[str, list[int]]:
        """These subscriptions by the reader that asked for them."""
        found: dict[str, list[int]] = {}
        for number in ids:
            found.setdefault(self._by_id[number], []).append(number)
        return found


class JournaledSubscribers:
    """Some subscribers of a plan, in the order of joining. Callbacks come on the thread of their connection.

    `shared`: connections by the name that subscribers give theirs; all others are on `connection`.
    """

    def __init__(
        self,
        plan: Sequence[workload.PlannedSubscriber],
        connection: client.Connection,
        journal: DeliveryJournal,
        prefer: str = "",
        shared: Mapping[str, client.Connection] = {},  # never changed
    ) -> None:
        self._plan, self._connection, self._journal = list(reversed(plan)), connection, journal
        self._prefer, self._shared = prefer, shared
        self._lock = threading.Lock()
        self._subscribers: list[client.Subscriber] = []
        self._readers: dict[str, JournaledReaders] = {}
        self._counts: Counter[str] = Counter()
        self._attached: set[str] = set()
        self._delays: list[float] = []

    def join(self, start: float) -> None:
        """Start the subscribers whose time to join has come."""
        while self._plan and start + self._plan[-1].joins_at <= time.monotonic():
            self._join(self._plan.pop())

    def state(self) -> dict[str, Any]:
        """The counts so far; the positions of the subscribers; the delays since the last call."""
        standing = [(token[2], one.name) for one in self._subscribers if (token := one.token) is not None]
        positions = [position for position, _ in standing]
        with self._lock:
            counts, recent = dict(self._counts), self._delays
            self._delays = []
        return {
            "ready": True,
            **counts,
            "started": len(self._subscribers),
            "said": self._said(),
            "subscribers": len(self._attached),
            "unsettled": sum(len(each.names) - len(each.acknowledged) for each in self._readers.values()),
            "lowest_position": min(positions, default=0),
            "furthest_behind": min(standing, default=(0, ""))[1],
            "highest_position": max(positions, default=0),
            "delay_p99": delays.summary(recent)["p99"],
        }

    def _said(self) -> dict[str, int]:
        """Messages that it has sent, by kind, on all connections."""
        total: Counter[str] = Counter()
        for one in (self._connection, *self._shared.values()):
            total.update({name: n for name, n in one.status()["counters"].items() if name.startswith("said_")})
        return dict(total)

    def close(self) -> dict[str, int]:
        """Close all, and record the library's counters, which the audit compares."""
        total: Counter[str] = Counter()
        for one in self._subscribers:
            statistics = one.statistics()
            one.close()
            if self._readers[one.name].names == [one.name]:  # the library counts over all topics of a subscriber
                for what in ("delivered", "gaps"):
                    self._journal.note(
                        seen.CounterObserved(one.name, INCARNATION, what, statistics[what], time.monotonic())
                    )
            for name in ("duplicates_suppressed", "gaps_known", "reconnects", "redirects", "pauses"):
                total[name] += statistics[name]
        return {f"subscribers_{name}": count for name, count in total.items()}

    def _join(self, plan: workload.PlannedSubscriber) -> None:
        name = plan.name
        with self._lock:  # so that the subscription is recorded before anything of it
            at = time.monotonic()
            readers = self._readers[name] = JournaledReaders(plan)
            one = self._open(
                plan,
                on_batch=lambda items: self._on_batch(name, items),
                on_state=lambda state: self._on_state(name, state),
            )
            for observed in readers.subscribe(one, at):
                self._note_subscription(observed)
            self._subscribers.append(one)

    def _open(self, plan: workload.PlannedSubscriber, **callbacks: Any) -> client.Subscriber:
        connection = self._shared.get(plan.connection, self._connection)
        return client.Subscriber(connection, name=plan.name, prefer=plan.prefer or self._prefer, **callbacks)

    def _note_subscription(self, observed: seen.SubscriptionObserved) -> None:
        self._journal.note(observed)

    def _on_batch(self, name: str, items: ReceivedBatch) -> None:
        at, now_us = time.monotonic(), time.time_ns() // 1000
        with self._lock:
            readers = self._readers[name]
            for item in items:
                if isinstance(item, client.Delivery):
                    reader = (readers.of_delivery(item), INCARNATION)
                    self._journal.delivered(reader, item.identity, item.origin, item.token, at)
                    self._delays.append((now_us - item.sent_us) / 1e6)
                    self._counts["delivered"] += 1
                else:
                    self._counts["gaps"] += 1
                    for reader_name in readers.of_gap(item):
                        self._journal.note(_gap(reader_name, item, at))

    def _on_state(self, name: str, state: Any) -> None:
        at = time.monotonic()
        with self._lock:
            readers = self._readers[name]
            if isinstance(state, client.Attached):
                for reader in readers.names:
                    self._journal.attached(JournalAttachment(reader, state.edge, at))
                self._attached.add(name)
            elif isinstance(state, client.Detached):
                self._attached.discard(name)
            elif isinstance(state, client.Acknowledged):
                for reader, ids in readers.of_ids(state.ids).items():
                    self._journal.note(
                        seen.AcknowledgementObserved(reader, INCARNATION, ids, state.head, state.unreached, at)
                    )
                readers.acknowledged.update(state.ids)
            elif isinstance(state, client.Lapsed):
                for reader in readers.names:
                    self._journal.note(seen.LeaseEndObserved(reader, INCARNATION, at))
                readers.acknowledged.clear()
            elif isinstance(state, client.SubscriptionRefused | client.Failed):
                raise RuntimeError(f"subscriber {name}: {state}")


def _gap(reader: str, item: client.GapNotice, at: float) -> seen.GapObserved:
    last = [(head, epoch, offset) for head, epoch, offset in item.last]
    return seen.GapObserved(
        reader, INCARNATION, item.head, item.low_epoch, item.low, item.epoch, item.high, last, item.reason, at
    )


def run(orders: WorkerPipe) -> None:
    """Run from the first order to the last."""
    task = orders.task()
    plan = plan_scenario(task.scenario).subscribers_of(task.part, task.of)
    with contextlib.ExitStack() as stack:
        journal = stack.enter_context(DeliveryJournal(Path(task.journal)))
        connection = stack.enter_context(connect(task, f"subscribing-{task.part}"))
        names = sorted({each.connection for each in plan} - {""})
        shared = {name: stack.enter_context(connect(task, f"subscribing-{name}")) for name in names}
        for one in (connection, *shared.values()):
            orders.await_open(one)
        subscribing = JournaledSubscribers(plan, connection, journal, task.scenario.prefer, shared)
        orders.report(subscribing.state())
        start = float(orders.next())
        while True:
            subscribing.join(start)
            if orders.is_report_due:
                orders.report(subscribing.state())
            if orders.wait(ROUND_SECONDS) == FINISH:
                break
        state = subscribing.state()
        orders.report({**state, "counters": subscribing.close()})


if __name__ == "__main__":
    sys.exit(run_worker(run))
