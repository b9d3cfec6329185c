"""A process that consumes a group's items: it works on each for a while, and writes down when it had it.

    python -m plimsoll.demo.workers.consumer_worker     (started by the demo, which sends orders on standard input)

Its work keeps a processor busy. At the order `burn` an item takes it four times as long; at `finish` it leaves the
group. An item's end is written before the next one is taken, which acknowledges it: the journal of a killed process is
whole.
"""

from __future__ import annotations

import sys
import time
from io import RawIOBase
from pathlib import Path
from typing import Any, Final

from plimsoll import client
from plimsoll.core.verify import observations as seen
from plimsoll.demo.workers.worker_process import ConnectingTask, connect
from plimsoll.demo.workers.worker_protocol import FINISH, WorkerPipe, run_worker

BURN: Final = b"burn"
BURN_FACTOR: Final = 4.0
WAIT_SECONDS: Final = 0.05
JOIN_SECONDS: Final = 30.0


class ConsumerTask(ConnectingTask, frozen=True, kw_only=True):
    """The task of a consumer. `work_seconds`: that an item keeps its processor busy."""

    group: str
    name: str
    work_seconds: float


class WorkingConsumer:
    """A member of a group, and its journal."""

    def __init__(self, task: ConsumerTask, member: client.GroupSubscriber, journal: RawIOBase) -> None:
        self._task, self._member, self._journal = task, member, journal
        self._work_seconds = task.work_seconds
        self._finished = 0

    def burn(self) -> None:
        self._work_seconds = self._task.work_seconds * BURN_FACTOR

    def take(self) -> None:
        """Work on the next item, if one comes soon."""
        try:
            item = self._member.receive(WAIT_SECONDS)
        except client.errors.WaitTimeoutError:
            return  # nothing has come
        if item.is_gap:
            return
        at = time.monotonic()
        while (now := time.monotonic()) < at + self._work_seconds:
            pass  # the work
        self._finished += 1
        observed = seen.SliceItemObserved(
            self._task.group, item.slice, self._task.name, item.delivery.identity, item.is_redelivered, at, now
        )
        self._journal.write(seen.encode_line(observed))

    def state(self) -> dict[str, Any]:
        return {"ready": True, "slices": len(self._member.slices), "finished": self._finished}

    def close(self) -> None:
        """Give up all slices, then end."""
        self._member.close()


def run(orders: WorkerPipe) -> None:
    """Run from the first order to the last."""
    task = orders.task_of(ConsumerTask)
    with Path(task.journal).open("ab", buffering=0) as journal, connect(task, task.name) as connection:
        orders.await_open(connection)
        member = connection.group(task.group).subscribe(name=task.name, timeout=JOIN_SECONDS)
        consumer = WorkingConsumer(task, member, journal)
        while (order := orders.wait(0.0)) != FINISH:
            if order == BURN:
                consumer.burn()
            if orders.is_report_due:
                orders.report(consumer.state())
            consumer.take()
        consumer.close()
        orders.report(consumer.state())


if __name__ == "__main__":
    sys.exit(run_worker(run))
