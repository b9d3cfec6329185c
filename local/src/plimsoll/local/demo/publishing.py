"""The process of all publishers: replays quotes at their times, and writes down what became of each.

    python -m plimsoll.local.demo.publishing     (started by the demo; its orders come on standard input)

Publishing is open-loop: the time of a publication is planned, and does not wait for answers to others.
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
from plimsoll.local.demo import quotes, workload
from plimsoll.local.demo.journal import Journal
from plimsoll.local.demo.orders import FINISH, Orders, work
from plimsoll.local.demo.workers import connect

LONGEST_WAIT_SECONDS = 0.05
CLOSE_SECONDS = 10.0


@dataclass
class Voice:
    """One publisher, and its publications that have no answer yet: their time, receipt and attributes by number."""

    plan: workload.Publisher
    publisher: client.Publisher
    unanswered: dict[int, tuple[float, client.Receipt, dict[str, Any]]] = field(default_factory=dict)
    said: int = 0
    incarnations: set[int] = field(default_factory=set)


class Publishing:
    """All publishers of a plan on one connection."""

    def __init__(self, plan: workload.Plan, connection: client.Connection, journal: Journal) -> None:
        self._journal = journal
        self._answers: deque[tuple[Voice, float, list[client.Answered]]] = deque()
        self._voices = [self._voice(one, connection) for one in plan.publishers]
        self._due: list[tuple[float, int]] = []
        self._counts: Counter[str] = Counter()
        self._start = self._end = 0.0

    def begin(self, start: float, seconds: float) -> None:
        """Plan the first publication of each; nothing is due after `seconds`."""
        self._start, self._end = start, start + seconds
        self._due = [(start + voice.plan.first_at, i) for i, voice in enumerate(self._voices)]
        heapq.heapify(self._due)

    def round(self) -> float:
        """Publish what is due and note what was answered; returns when there is something to do again."""
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
        """Wait for the last answers, close, and note what the library counted, which the audit compares."""
        for voice in self._voices:
            voice.publisher.close(CLOSE_SECONDS)
            statistics = voice.publisher.statistics()
            self._counts["resent"] += statistics["resent"]
            self._note_answers()
            for number, (_, receipt, _) in list(voice.unanswered.items()):
                if receipt.answer is not None:
                    self._note(voice, number, receipt.answer, time.monotonic())
            if voice.incarnations - {statistics["incarnation"]}:
                continue  # the library counts over all of them, the audit each by itself
            for what in ("published", "accepted"):
                count = statistics[what]
                self._journal.note(
                    seen.Counter(voice.plan.name, statistics["incarnation"], what, count, time.monotonic())
                )
        return {f"publications_{name}": self._counts[name] for name in ("accepted", "refused", "unknown", "resent")}

    def _voice(self, plan: workload.Publisher, connection: client.Connection) -> Voice:
        def on_answer(answers: list[client.Answered]) -> None:
            self._answers.append((voice, time.monotonic(), answers))

        voice = Voice(plan, client.Publisher(connection, name=plan.name, on_answer=on_answer))
        return voice

    def _publish(self, voice: Voice) -> None:
        attributes = voice.plan.quote(voice.said).attributes()
        voice.said += 1
        at = time.monotonic()
        receipt = voice.publisher.publish(attributes)
        voice.unanswered[receipt.number] = (at, receipt, attributes)
        self._counts["published"] += 1

    def _note_answers(self) -> None:
        """Answers come on another thread; they are noted here, where their publications are known."""
        while self._answers:
            voice, at, answers = self._answers.popleft()
            for answer in answers:
                for number in range(answer.first, answer.last + 1):
                    self._note(voice, number, answer, at)

    def _note(self, voice: Voice, number: int, answer: client.Answered, at: float) -> None:
        """Only the answer tells under which identity subscribers see a publication, so both are noted together."""
        published_at, _, attributes = voice.unanswered.pop(number)
        voice.incarnations.add(answer.incarnation)
        seq = answer.first_seq + number - answer.first
        self._journal.note(seen.Published(voice.plan.name, answer.incarnation, seq, attributes, published_at))
        self._journal.note(seen.Answered(voice.plan.name, answer.incarnation, seq, answer.answer, at))
        self._counts[answer.answer] += 1


def run(orders: Orders) -> None:
    """From the first order to the last."""
    task = orders.task()
    plan = workload.plan(task.scenario, quotes.load())
    with Journal(Path(task.journal)) as journal, connect(task, "publishing") as connection:
        orders.await_open(connection)
        publishing = Publishing(plan, connection, journal)
        orders.say(publishing.state())
        publishing.begin(float(orders.next()), task.scenario.seconds)
        while True:
            due = publishing.round()
            if orders.is_time_to_say:
                orders.say(publishing.state())
            if orders.wait(min(max(due - time.monotonic(), 0.0005), LONGEST_WAIT_SECONDS)) == FINISH:
                break
        counters = publishing.close()
        orders.say({**publishing.state(), "counters": counters})


if __name__ == "__main__":
    sys.exit(work(run))
