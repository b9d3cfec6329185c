"""A process of subscribers that may be killed: what they were given is in the file before anything else happens.

    python -m plimsoll.local.soak.subscribing     (started by the soak; its orders come on standard input)

A process that follows a killed one is told the files of those before it. Its subscribers go on behind what stands
there, under the same names, so that to the audit they are the same readers. Beside its journal each process keeps a
file of tokens, noted at each state and each second: one who has had no delivery, or none since it came to another head,
has nothing else to go on from.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator, Sequence
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
NOTE_SECONDS = 1.0
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


Noted = tuple[float, str, tuple[str, int, int], Sequence[tuple[str, int, int]]]
"""When, of whom, token, last offsets."""


def places(journals: Sequence[str]) -> dict[str, Place]:
    """Where the subscribers of earlier lives stand, by name."""
    found: dict[str, Place] = {}
    noted: list[Noted] = []
    for path in journals:
        for one in read(Path(path)):
            if isinstance(one, seen.Subscribed):
                found.setdefault(one.subscriber, Place())
            elif isinstance(one, seen.Delivered) and one.place is not None:
                noted.append((one.at, one.subscriber, one.place, [one.origin]))
            elif isinstance(one, seen.GapTold):
                noted.append((one.at, one.subscriber, (one.head, one.epoch, one.high), one.last))
        noted += tokens(Path(path))
    for _, name, token, last in sorted(noted, key=lambda one: one[0]):
        found[name].pass_(token, last)
    return found


def tokens(journal: Path) -> Iterator[Noted]:
    """What stands in the file of tokens beside a journal; the last line may have been cut off by a kill."""
    path = tokens_of(journal)
    if path.exists():
        for line in path.read_bytes().splitlines(keepends=True):
            if line.endswith(b"\n"):
                yield msgspec.json.decode(line, type=Noted)


def tokens_of(journal: Path) -> Path:
    """The file of tokens of a journal."""
    return journal.with_name(journal.name + ".tokens")


class Surviving(Subscribing):
    """Subscribers that write before they deal with anything else, and may begin where others have ended."""

    def __init__(
        self, plan: Sequence[workload.Subscriber], connection: client.Connection, journal: Journal, job: Job
    ) -> None:
        super().__init__(plan, connection, journal)
        self._wide, self._places = job.wide, places(job.before)
        self._homes: dict[str, str] = {}
        self._named: dict[str, client.Subscriber] = {}
        self._tokens = tokens_of(Path(job.journal)).open("ab", buffering=0)
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
        self._tokens.close()
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
            self._named[name] = one

    def note_tokens(self, names: Iterable[str] = ()) -> None:
        """Write down where these stand, or all."""
        if self._tokens.closed:
            return
        lines = []
        for name in names or list(self._named):
            at, one = time.monotonic(), self._named[name]
            if (token := one.token) is not None:
                lines.append(msgspec.json.encode((at, name, token, one.watermarks)) + b"\n")
        self._tokens.write(b"".join(lines))

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
        self.note_tokens([name])


def run(orders: Orders) -> None:
    """From the first order to the last."""
    job = msgspec.json.decode(orders.next(), type=Job)
    plan = workload.plan(job.scenario, quotes.load()).subscribers[job.part :: job.of]
    with Journal(Path(job.journal)) as journal, connect(job, f"subscribing-{job.part}") as connection:
        orders.await_open(connection)
        subscribing = Surviving(plan, connection, journal, job)
        while subscribing.join_some():
            orders.wait(0.0)
        note_at = 0.0
        while True:
            if orders.is_time_to_say:
                orders.say(subscribing.state())
            if (now := time.monotonic()) >= note_at:
                note_at = now + NOTE_SECONDS
                subscribing.note_tokens()
            order = orders.wait(ROUND_SECONDS)
            if order == FINISH:
                break
            if order in (HOMES, COUNTS):
                subscribing.tells_homes = order == HOMES
        state = subscribing.state()
        orders.say({**state, "counters": subscribing.close()})


if __name__ == "__main__":
    sys.exit(work(run))
