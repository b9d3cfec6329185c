"""A process that publishes readings of sensors at a steady rate, one sensor after another.

    python -m plimsoll.demo.workers.reading_worker     (started by the demo, which sends orders on standard input)

Publishing is open-loop: when one is due does not depend on earlier answers.
"""

from __future__ import annotations

import sys
import time
from typing import Final

from plimsoll import client
from plimsoll.demo.workers.worker_process import ConnectingTask, connect
from plimsoll.demo.workers.worker_protocol import FINISH, WorkerPipe, run_worker

PUBLISHER: Final = "sensors"
FLUSH_SECONDS: Final = 20.0


class ReadingTask(ConnectingTask, frozen=True, kw_only=True):
    """The task of the publisher. `sensors`: how many there are."""

    rate_per_second: float
    sensors: int


def run(orders: WorkerPipe) -> None:
    """Run from the first order to the last; says how many were published, and how many of them were accepted."""
    task = orders.task_of(ReadingTask)
    with connect(task, PUBLISHER) as connection:
        orders.await_open(connection)
        publisher = client.Publisher(connection, name=PUBLISHER)
        orders.report({"ready": True, "published": 0})
        start, published = float(orders.next()), 0
        while True:
            while time.monotonic() >= start + published / task.rate_per_second:
                publisher.publish({"class": "READING", "sensor": published % task.sensors, "n": published + 1})
                published += 1
            if orders.is_report_due:
                orders.report({"ready": True, "published": published})
            due = start + published / task.rate_per_second - time.monotonic()
            if orders.wait(min(max(due, 0.0), 0.05)) == FINISH:
                break
        publisher.flush(FLUSH_SECONDS)
        counts = publisher.statistics()
        publisher.close()
        orders.report({"ready": True, "published": published, "accepted": counts["accepted"]})


if __name__ == "__main__":
    sys.exit(run_worker(run))
