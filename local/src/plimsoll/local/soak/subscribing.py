"""A process of subscribers that may be killed: what they were given is in the file before anything else happens.

    python -m plimsoll.local.soak.subscribing     (started by the soak; its orders come on standard input)

A process that follows a killed one is told the files of those before it. Its subscribers go on behind the last delivery
that stands there, under the same names, so that to the audit they are the same readers.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from plimsoll import client
from plimsoll.core.verify import observations as seen
from plimsoll.local.demo import quotes, workload
from plimsoll.local.demo.journal import Journal, read
from plimsoll.local.demo.orders import FINISH, Orders, work
from plimsoll.local.demo.subscribing import LIFE, ROUND_SECONDS, Batch, Subscribing
from plimsoll.local.demo.workers import Task, connect

EVERYTHING = (("class", "=", "STOCK"),)
HOMES, COUNTS = b"homes", b"counts"
"""Orders: say from now on where everybody is, or say it no more."""
AT_ONCE = 50
"""So many join between two rounds."""


class Job(Task, frozen=True, kw_only=True):
    """A worker's task. `wide`: its subscribers ask for everything. `before`: journals of its earlier lives."""

    wide: bool = False
    before: tuple[str, ...] = ()


@dataclass
class Place:
    """Where a subscriber of an earlier life stands: its token, and the last offset of each origin."""

    token: tuple[str, int, int] | None = None
    marks: dict[tuple[str, int], int] = field(default_factory=dict)

    def pass_(self, token: tuple[str, int, int], last: Sequence[tuple[str, int, int]]) -> None:
        self.token = token
        for head, epoch, offset in last:
            self.marks[head, epoch] = max(offset, self.marks.get((head, epoch), 0))

    @property
    def watermarks(self) -> list[tuple[str, int, int]]:
        return [(head, epoch, offset) for (head, epoch), offset in self.marks.items()]


def places(journals: Sequence[str]) -> dict[str, Place]:
    """Where the subscribers of earlier lives stand, by name."""
    found: dict[str, Place] = {}
    for path in journals:
        for one in read(Path(path)):
            if isinstance(one, seen.Subscribed):
                found.setdefault(one.subscriber, Place())
            elif isinstance(one, seen.Delivered) and one.place is not None:
                found[one.subscriber].pass_(one.place, [one.origin])
            elif isinstance(one, seen.GapTold):
                found[one.subscriber].pass_((one.head, one.epoch, one.high), one.last)
    return found


class Surviving(Subscribing):
    """Subscribers that write before they deal with anything else, and may begin where others have ended."""

    def __init__(
        self, plan: Sequence[workload.Subscriber], connection: client.Connection, journal: Journal, job: Job
    ) -> None:
        super().__init__(plan, connection, journal)
        self._wide, self._places = job.wide, places(job.before)
        self._homes: dict[str, str] = {}
        self.tells_homes = False

    def state(self) -> dict[str, Any]:
        """Counts; and, when that has been asked for, by subscriber the edge that serves it."""
        return {**super().state(), **({"homes": dict(self._homes)} if self.tells_homes else {})}

    def join_some(self) -> bool:
        """Let a few join; False if all have."""
        for _ in range(min(AT_ONCE, len(self._plan))):
            self._join(self._plan.pop())
        self._journal.flush()
        return bool(self._plan)

    def close(self) -> dict[str, int]:
        """As the demo; those who have had an earlier life know only what they counted in this one."""
        if not self._places:
            return super().close()
        for one in self._subscribers:
            one.close()
        return {}

    def _join(self, plan: workload.Subscriber) -> None:
        name, predicates = plan.name, EVERYTHING if self._wide else plan.predicates
        before = self._places.get(name, Place())
        with self._lock:  # so that nothing of it is noted before its subscription is
            at = time.monotonic()
            one = client.Subscriber(
                self._connection,
                name=name,
                token=before.token,
                watermarks=before.watermarks,
                on_batch=lambda items: self._on_batch(name, items),
                on_state=lambda state: self._on_state(name, state),
            )
            number = one.subscribe(workload.text(predicates), wait=False).id
            if name not in self._places:
                self._journal.note(seen.Subscribed(name, LIFE, number, predicates[::-1], at))
            self._subscribers.append(one)
            self._homes[name] = ""

    def _on_batch(self, name: str, items: Batch) -> None:
        super()._on_batch(name, items)
        self._journal.flush()

    def _on_state(self, name: str, state: Any) -> None:
        super()._on_state(name, state)
        if isinstance(state, client.Attached):
            self._homes[name] = state.edge
        elif isinstance(state, client.Detached):
            self._homes[name] = ""
        self._journal.flush()


def run(orders: Orders) -> None:
    """From the first order to the last."""
    job = msgspec.json.decode(orders.next(), type=Job)
    plan = workload.plan(job.scenario, quotes.load()).subscribers[job.part :: job.of]
    with Journal(Path(job.journal)) as journal, connect(job, f"subscribing-{job.part}") as connection:
        orders.await_open(connection)
        subscribing = Surviving(plan, connection, journal, job)
        while subscribing.join_some():
            orders.wait(0.0)
        while True:
            if orders.is_time_to_say:
                orders.say(subscribing.state())
            order = orders.wait(ROUND_SECONDS)
            if order == FINISH:
                break
            if order in (HOMES, COUNTS):
                subscribing.tells_homes = order == HOMES
        state = subscribing.state()
        orders.say({**state, "counters": subscribing.close()})


if __name__ == "__main__":
    sys.exit(work(run))
