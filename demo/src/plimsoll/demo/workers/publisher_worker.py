"""The process of all publishers: replays quotes at their times and records the outcome of each.

    python -m plimsoll.demo.workers.publisher_worker     (started by the demo, which sends orders on standard input)

Publishing is open-loop: the time of a publication is planned, and does not wait for earlier answers.
"""

from __future__ import annotations

import heapq
import sys
import time
from collections import Counter, deque
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from plimsoll import client
from plimsoll.core.verify import observations as seen
from plimsoll.demo import workload
from plimsoll.demo.journal import DeliveryJournal
from plimsoll.demo.topic_workload import plan_scenario
from plimsoll.demo.workers.worker_process import connect
from plimsoll.demo.workers.worker_protocol import FINISH, WorkerPipe, run_worker

LONGEST_WAIT_SECONDS = 0.05
CLOSE_SECONDS = 10.0


@dataclass
class PublisherProgress:
    """One publisher, and its unanswered publications: their time, receipt and attributes by number."""

    plan: workload.PlannedPublisher
    publisher: client.Publisher
    unanswered: dict[int, tuple[float, client.Receipt, dict[str, Any]]] = field(default_factory=dict)
    said: int = 0
    incarnations: set[int] = field(default_factory=set)


class QuotePublishers:
    """All publishers of a plan on one connection."""

    def __init__(self, plan: workload.WorkloadPlan, connection: client.Connection, journal: DeliveryJournal) -> None:
        self._journal = journal
        self._answers: deque[tuple[PublisherProgress, float, list[client.Answered]]] = deque()
        self._voices = [self._voice(one, connection) for one in plan.publishers]
        self._due: list[tuple[float, int]] = []
        self._counts: Counter[str] = Counter()
        self._start = self._end = 0.0

    def begin(self, start: float, seconds: float) -> None:
        """Plan the first publication of each publisher; nothing is due after `seconds`."""
        self._start, self._end = start, start + seconds
        self._due = [(start + voice.plan.first_at, i) for i, voice in enumerate(self._voices)]
        heapq.heapify(self._due)

    def round(self) -> float:
        """Publish what is due and record answers; returns the time of the next thing to do."""
        while self._due and self._due[0][0] <= min(time.monotonic(), self._end):
            at, i = self._due[0]
            voice = self._voices[i]
            self._publish(voice)
            heapq.heapreplace(self._due, (self._start + voice.plan.after(at - self._start), i))
        self._note_answers()
        return self._due[0][0] if self._due else self._end

    def state(self) -> dict[str, Any]:
        unanswered = sum(len(voice.unanswered) for voice in self._voices)
        return {"ready": True, "unanswered": unanswered, **self._counts}

    def close(self) -> dict[str, int]:
        """Wait for the last answers, close, and record the library's counters, which the audit compares."""
        for voice in self._voices:
            voice.publisher.close(CLOSE_SECONDS)
            statistics = voice.publisher.statistics()
            self._counts["resent"] += statistics["resent"]
            self._note_answers()
            for number, (_, receipt, _) in list(voice.unanswered.items()):
                if receipt.answer is not None:
                    self._note(voice, number, receipt.answer, time.monotonic())
            if voice.incarnations - {statistics["incarnation"]}:
                continue  # the library counts over all publishers, the audit each one separately
            for what in ("published", "accepted"):
                count = statistics[what]
                self._journal.note(
                    seen.CounterObserved(voice.plan.name, statistics["incarnation"], what, count, time.monotonic())
                )
        return {f"publications_{name}": self._counts[name] for name in ("accepted", "refused", "unknown", "resent")}

    def _voice(self, plan: workload.PlannedPublisher, connection: client.Connection) -> PublisherProgress:
        def on_answer(answers: list[client.Answered]) -> None:
            self._answers.append((voice, time.monotonic(), answers))

        voice = PublisherProgress(plan, client.Publisher(connection, name=plan.name, on_answer=on_answer))
        return voice

    def _publish(self, voice: PublisherProgress) -> None:
        attributes = voice.plan.quote(voice.said).attributes()
        voice.said += 1
        at = time.monotonic()
        receipt = voice.publisher.publish(attributes, bytes(voice.plan.payload_bytes))
        voice.unanswered[receipt.number] = (at, receipt, attributes)
        self._counts["published"] += 1

    def _note_answers(self) -> None:
        """Answers come on another thread; they are recorded here, next to their publications."""
        while self._answers:
            voice, at, answers = self._answers.popleft()
            for answer in answers:
                for number in range(answer.first, answer.last + 1):
                    self._note(voice, number, answer, at)

    def _note(self, voice: PublisherProgress, number: int, answer: client.Answered, at: float) -> None:
        """Only the answer has the identity that subscribers see, so publication and answer are recorded together."""
        published_at, _, attributes = voice.unanswered.pop(number)
        voice.incarnations.add(answer.incarnation)
        seq = answer.first_seq + number - answer.first
        self._journal.note(seen.PublicationObserved(voice.plan.name, answer.incarnation, seq, attributes, published_at))
        self._journal.note(seen.AnswerObserved(voice.plan.name, answer.incarnation, seq, answer.answer, at))
        self._counts[answer.answer] += 1


def run(orders: WorkerPipe) -> None:
    """Run from the first order to the last."""
    task = orders.task()
    plan = plan_scenario(task.scenario)
    with DeliveryJournal(Path(task.journal)) as journal, connect(task, "publishing") as connection:
        orders.await_open(connection)
        publishing = QuotePublishers(plan, connection, journal)
        orders.report(publishing.state())
        publishing.begin(float(orders.next()), task.scenario.seconds)
        while True:
            due = publishing.round()
            if orders.is_report_due:
                orders.report(publishing.state())
            if orders.wait(min(max(due - time.monotonic(), 0.0005), LONGEST_WAIT_SECONDS)) == FINISH:
                break
        counters = publishing.close()
        orders.report({**publishing.state(), "counters": counters})


if __name__ == "__main__":
    sys.exit(run_worker(run))
