"""Runs in a pod: publishers and many subscribers of a fleet, and in the end the audit of every delivery.

Configured by its environment; writes files below /tmp: `progress.json` once a second, `verdict.json` after `stop`.
Publications are of one class, or of each of some classes in turn; every subscriber asks for one class.
"""

from __future__ import annotations

import gc
import json
import os
import threading
import time
from pathlib import Path
from typing import Any

from plimsoll import client
from plimsoll.core.verify import Observation, audit_journal
from plimsoll.core.verify import observations as seen

FILES = Path(os.environ.get("CROWD_FILES", "/tmp"))
KEYS = Path("/etc/plimsoll/client")
LIFE = 1
PUBLISHERS = 3
PAUSE_SECONDS = 0.3
"""Without an answer to any publisher for so long is a pause."""


class Crowd:
    """`subscribers` on one link, one after the other, to all publications of a class; `classes` take turns.

    `size`: bytes of a publication's payload. `served_at`: the cluster whose edges serve the subscribers.
    """

    def __init__(
        self,
        name: str,
        cluster: str,
        served_at: str,
        subscribers: int,
        per_second: float,
        classes: list[str],
        size: int,
    ) -> None:
        heads = [json.loads((KEYS / "heads.json").read_text())[each] for each in (cluster, served_at)]
        self._lock = threading.Lock()
        self._seen: list[Observation] = []
        self._edges: dict[str, str] = {}
        self._last: dict[str, dict[str, int]] = {}
        self._classes, self._payload = classes, bytes(size)
        self._class_of: dict[str, str] = {}
        self._sent_of = dict.fromkeys(classes, 0)
        self._sent = self._answered = self.gaps = 0
        self._told: dict[str, str] = {}
        self._unanswered: list[tuple[client.Publisher, float, client.Receipt, dict[str, Any]]] = []
        self._stopped = threading.Event()
        self._interval = 1.0 / per_second
        self._connections = [_connection(head, name) for head in heads]
        self._answered_at, self._pauses = time.monotonic(), list[float]()
        self._publishers = [
            client.Publisher(self._connections[0], name=f"{name}-quotes-{number}", on_answer=self._on_answer)
            for number in range(PUBLISHERS)
        ]
        self._subscribers = [
            self._subscriber(f"{name}-{number:04}", classes[number % len(classes)]) for number in range(subscribers)
        ]
        for one in self._subscribers:
            one.wait_acknowledged(120)
        self._thread = threading.Thread(target=self._publish)
        self._thread.start()

    def progress(self) -> dict[str, Any]:
        with self._lock:
            at: dict[str, int] = {}
            by_class: dict[str, dict[str, int]] = {name: {} for name in self._classes}
            for name, edge in self._edges.items():
                at[edge] = at.get(edge, 0) + 1
                here = by_class[self._class_of[name]]
                here[edge] = here.get(edge, 0) + 1
            return {
                "at": at, "at_by_class": by_class, "sent": self._sent, "answered": self._answered, "gaps": self.gaps,
                "subscribers": len(self._subscribers), "told": self._told, "behind": self._behind(),
                "pauses": self._pauses,
            }  # fmt: skip

    def links(self) -> dict[str, Any]:
        """What both connections say of themselves, and when: for the text of a test that fails."""
        return {"at_seconds": time.time(), "connections": [each.status() for each in self._connections]}

    def verdict(self, seconds: float) -> dict[str, Any]:
        """End the publishing, wait for the last publication at each subscriber, and judge."""
        self._stopped.set()
        self._thread.join(60)
        for publisher in self._publishers:
            publisher.flush(60)
        deadline = time.monotonic() + seconds
        while self._waits() and time.monotonic() < deadline:
            time.sleep(0.05)
        for publisher, at, receipt, attributes in self._unanswered:
            answer = receipt.answer
            if answer is None:
                return {"ok": False, "why": f"publication {attributes} of {publisher.name} has no answer"}
            seq = answer.first_seq + receipt.number - answer.first
            self._note(seen.PublicationObserved(publisher.name, answer.incarnation, seq, attributes, at))
            self._note(seen.AnswerObserved(publisher.name, answer.incarnation, seq, answer.answer, time.monotonic()))
        found = audit_journal(self._seen)
        names = ("lost", "duplicated", "reordered", "gaps", "delivered")
        unknown = sum(isinstance(one, seen.AnswerObserved) and one.answer == "unknown" for one in self._seen)
        counts = {name: getattr(found, name) for name in names}
        return {"ok": found.ok, "sent": self._sent, "unknown": unknown, **counts}

    def _waits(self) -> bool:
        with self._lock:
            return self._behind() > 0

    def _behind(self) -> int:
        """The number of publications that the subscriber lacks that lacks most."""
        had = {name: sum(self._last.get(name, {}).values()) for name in self._class_of}
        return max((self._sent_of[self._class_of[name]] - count for name, count in had.items()), default=0)

    def _note(self, one: Observation) -> None:
        with self._lock:
            self._seen.append(one)

    def _on_answer(self, answers: Any) -> None:
        """Note how long no publisher had an answer."""
        now = time.monotonic()
        with self._lock:
            self._answered += sum(each.last - each.first + 1 for each in answers)
            if now - self._answered_at > PAUSE_SECONDS and self._sent:
                self._pauses.append(round(now - self._answered_at, 2))
            self._answered_at = now

    def _publish(self) -> None:
        due, counts = time.monotonic(), dict[tuple[str, str], int]()
        while not self._stopped.wait(max(0.0, due - time.monotonic())):
            due += self._interval
            publisher, class_ = (
                self._publishers[self._sent % PUBLISHERS],
                self._classes[self._sent % len(self._classes)],
            )
            count = counts[publisher.name, class_] = counts.get((publisher.name, class_), 0) + 1
            attributes: dict[str, Any] = {"class": class_, "by": publisher.name, "n": count}
            at = time.monotonic()
            receipt = publisher.publish(attributes, self._payload)
            self._unanswered.append((publisher, at, receipt, attributes))
            with self._lock:
                self._sent += 1
                self._sent_of[class_] += 1

    def _subscriber(self, name: str, class_: str) -> client.Subscriber:
        with self._lock:
            self._class_of[name] = class_
            one = client.Subscriber(
                self._connections[1], name=name,
                on_batch=lambda items: self._on_batch(name, items), on_state=lambda state: self._on_state(name, state),
            )  # fmt: skip
            number = one.subscribe(f"[class,=,'{class_}']", wait=False).id
            asked = (("class", "=", class_),)
            self._seen.append(seen.SubscriptionObserved(name, LIFE, number, asked, time.monotonic()))
        return one

    def _on_batch(self, name: str, items: Any) -> None:
        at = time.monotonic()
        with self._lock:
            for item in items:
                if isinstance(item, client.Delivery):
                    self._seen.append(seen.DeliveryObserved(name, LIFE, item.identity, item.origin, at, item.token))
                    last = self._last.setdefault(name, {})
                    last[str(item.attributes["by"])] = int(item.attributes["n"])
                else:
                    self.gaps += 1
                    self._told[f"{item.head}: {item.reason}"] = f"{name}: {item.low} to {item.high} of {item.epoch}"
                    ends = [(head, epoch, offset) for head, epoch, offset in item.last]
                    self._seen.append(
                        seen.GapObserved(
                            name, LIFE, item.head, item.low_epoch, item.low, item.epoch, item.high, ends, item.reason,
                            at,
                        )
                    )  # fmt: skip

    def _on_state(self, name: str, state: Any) -> None:
        at = time.monotonic()
        with self._lock:
            if isinstance(state, client.Attached):
                self._edges[name] = state.edge
            elif isinstance(state, client.Acknowledged):
                self._seen.append(seen.AcknowledgementObserved(name, LIFE, state.ids, state.head, state.unreached, at))
            elif isinstance(state, client.Lapsed):
                self._seen.append(seen.LeaseEndObserved(name, LIFE, at))


def _connection(head: dict[str, str], name: str) -> client.Connection:
    security = client.Curve(secret=str(KEYS / "secret.key"), server=head["publicKey"])
    return client.Connection(head["endpoint"], security=security, name=name)


def write(name: str, content: dict[str, Any]) -> None:
    """In one step, so that a reader finds all of it or the previous contents."""
    partial = FILES / f"{name}.new"
    partial.write_text(json.dumps(content))
    partial.replace(FILES / name)


def main() -> None:
    """Run until `stop` exists; then judge, and stay, so that the verdict can be read."""
    gc.disable()  # the record only grows: collecting it again and again would stall all subscribers
    environment = os.environ
    crowd = Crowd(
        environment["CROWD_NAME"], environment["CROWD_CLUSTER"], environment["CROWD_SERVED_AT"],
        int(environment["CROWD_SUBSCRIBERS"]), float(environment["CROWD_PER_SECOND"]),
        environment.get("CROWD_CLASSES", "STOCK").split(","), int(environment.get("CROWD_BYTES", "0")),
    )  # fmt: skip
    until = time.monotonic() + float(environment.get("CROWD_SECONDS", "1800"))
    while not (FILES / "stop").exists() and time.monotonic() < until:
        write("progress.json", crowd.progress())
        write("links.json", crowd.links())
        time.sleep(1.0)  # how often it reports
    found = crowd.verdict(120.0)
    write("verdict.json", found)
    print(json.dumps(found), flush=True)
    while time.monotonic() < until:
        time.sleep(1.0)  # until its pod is deleted


if __name__ == "__main__":
    main()
