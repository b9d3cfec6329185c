"""A process of subscribers that may be killed: a delivery is in the journal before anything else is done with it.

    python -m plimsoll.soak.harness.subscriber_worker     (started by the soak; its orders come on standard input)

The successor of a killed process gets the journals of its earlier lives. Its subscribers resume from them under the
same names, so that the audit sees the same subscribers. Beside its journal each process keeps a file of tokens, written
at each change of state and every second: a subscriber without a delivery, or without one from its current head, has
nothing else to resume from.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec

from plimsoll import client
from plimsoll.core.verify import observations as seen
from plimsoll.demo import quotes, workload
from plimsoll.demo.journal import DeliveryJournal, read_journal
from plimsoll.demo.workers.subscriber_worker import ROUND_SECONDS, JournaledSubscribers, ReceivedBatch
from plimsoll.demo.workers.worker_process import ClientTask, connect
from plimsoll.demo.workers.worker_protocol import FINISH, WorkerPipe, run_worker

EVERYTHING = (("class", "=", "STOCK"),)
HOMES, COUNTS = b"homes", b"counts"
"""Orders: start or stop to report the edge of each subscriber."""
NOTE_SECONDS = 1.0
JOINS_PER_ROUND = 50
"""Subscribers that join between two rounds."""


class SoakSubscriberTask(ClientTask, frozen=True, kw_only=True):
    """The task of a worker. `wide`: its subscribers subscribe to everything. `before`: journals of earlier lives."""

    wide: bool = False
    before: tuple[str, ...] = ()


@dataclass
class ResumePoint:
    """Where a subscriber of an earlier life resumes: its token, and the last offset of each origin."""

    token: tuple[str, int, int] | None = None
    marks: dict[tuple[str, int], int] = field(default_factory=dict)

    def advance(self, token: tuple[str, int, int], last: Sequence[tuple[str, int, int]]) -> None:
        self.token = token
        for head, epoch, offset in last:
            self.marks[head, epoch] = max(offset, self.marks.get((head, epoch), 0))

    @property
    def watermarks(self) -> list[tuple[str, int, int]]:
        return [(head, epoch, offset) for (head, epoch), offset in self.marks.items()]


TokenNote = tuple[float, str, tuple[str, int, int], Sequence[tuple[str, int, int]]]
"""Time, subscriber, token, last offsets."""


def resume_points(journals: Sequence[str]) -> dict[str, ResumePoint]:
    """The resume points of the subscribers of earlier lives, by name."""
    found: dict[str, ResumePoint] = {}
    noted: list[TokenNote] = []
    for path in journals:
        for one in read_journal(Path(path)):
            if isinstance(one, seen.SubscriptionObserved):
                found.setdefault(one.subscriber, ResumePoint())
            elif isinstance(one, seen.DeliveryObserved) and one.place is not None:
                noted.append((one.at, one.subscriber, one.place, [one.origin]))
            elif isinstance(one, seen.GapObserved):
                noted.append((one.at, one.subscriber, (one.head, one.epoch, one.high), one.last))
        noted += read_tokens(Path(path))
    for _, name, token, last in sorted(noted, key=lambda one: one[0]):
        found[name].advance(token, last)
    return found


def read_tokens(journal: Path) -> Iterator[TokenNote]:
    """The lines of the token file beside a journal; without the last one if a kill has cut it off."""
    path = token_file(journal)
    if path.exists():
        for line in path.read_bytes().splitlines(keepends=True):
            if line.endswith(b"\n"):
                yield msgspec.json.decode(line, type=TokenNote)


def token_file(journal: Path) -> Path:
    """The token file of a journal."""
    return journal.with_name(journal.name + ".tokens")


class RestartableSubscribers(JournaledSubscribers):
    """Subscribers that flush each delivery to the journal, and may resume from an earlier life."""

    def __init__(
        self,
        plan: Sequence[workload.PlannedSubscriber],
        connection: client.Connection,
        journal: DeliveryJournal,
        job: SoakSubscriberTask,
    ) -> None:
        super().__init__(plan, connection, journal)
        self._wide, self._places = job.wide, resume_points(job.before)
        self._homes: dict[str, str] = {}
        self._named: dict[str, client.Subscriber] = {}
        self._tokens = token_file(Path(job.journal)).open("ab", buffering=0)
        self.reports_homes = False

    def state(self) -> dict[str, Any]:
        """Counts, and on request the edge of each subscriber."""
        return {**super().state(), **({"homes": dict(self._homes)} if self.reports_homes else {})}

    def join_some(self) -> bool:
        """Start some subscribers; False when all have joined."""
        for _ in range(min(JOINS_PER_ROUND, len(self._plan))):
            self._join(self._plan.pop())
        self._journal.flush()
        return bool(self._plan)

    def close(self) -> dict[str, int]:
        """As in the demo, but without counts if there was an earlier life: they would be of this life only."""
        self._tokens.close()
        if not self._places:
            return super().close()
        for one in self._subscribers:
            one.close()
        return {}

    def _join(self, plan: workload.PlannedSubscriber) -> None:
        super()._join(replace(plan, predicates=EVERYTHING) if self._wide else plan)

    def _open(self, plan: workload.PlannedSubscriber, **callbacks: Any) -> client.Subscriber:
        before = self._places.get(plan.name, ResumePoint())
        one = client.Subscriber(
            self._connection, name=plan.name, token=before.token, watermarks=before.watermarks, **callbacks
        )
        self._homes[plan.name], self._named[plan.name] = "", one
        return one

    def _note_subscription(self, observed: seen.SubscriptionObserved) -> None:
        if observed.subscriber not in self._places:  # else a journal of an earlier life has it
            super()._note_subscription(observed)

    def save_tokens(self, names: Iterable[str] = ()) -> None:
        """Write the tokens of these subscribers; of all, if none is named."""
        if self._tokens.closed:
            return
        lines = []
        for name in names or list(self._named):
            at, one = time.monotonic(), self._named[name]
            if (token := one.token) is not None:
                lines.append(msgspec.json.encode((at, name, token, one.watermarks)) + b"\n")
        self._tokens.write(b"".join(lines))

    def _on_batch(self, name: str, items: ReceivedBatch) -> None:
        super()._on_batch(name, items)
        self._journal.flush()

    def _on_state(self, name: str, state: Any) -> None:
        super()._on_state(name, state)
        if isinstance(state, client.Attached):
            self._homes[name] = state.edge
        elif isinstance(state, client.Detached):
            self._homes[name] = ""
        self._journal.flush()
        self.save_tokens([name])


def run(orders: WorkerPipe) -> None:
    """Run from the first order to the last."""
    job = msgspec.json.decode(orders.next(), type=SoakSubscriberTask)
    plan = workload.plan_workload(job.scenario, quotes.load()).subscribers[job.part :: job.of]
    with DeliveryJournal(Path(job.journal)) as journal, connect(job, f"subscribing-{job.part}") as connection:
        orders.await_open(connection)
        subscribing = RestartableSubscribers(plan, connection, journal, job)
        while subscribing.join_some():
            orders.wait(0.0)
        note_at = 0.0
        while True:
            if orders.is_report_due:
                orders.report(subscribing.state())
            if (now := time.monotonic()) >= note_at:
                note_at = now + NOTE_SECONDS
                subscribing.save_tokens()
            order = orders.wait(ROUND_SECONDS)
            if order == FINISH:
                break
            if order in (HOMES, COUNTS):
                subscribing.reports_homes = order == HOMES
        state = subscribing.state()
        orders.report({**state, "counters": subscribing.close()})


if __name__ == "__main__":
    sys.exit(run_worker(run))
