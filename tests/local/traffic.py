"""Applications of a real fleet, inside a test: they publish, subscribe, and record what the audit needs."""

from __future__ import annotations

import threading
import time
from types import TracebackType
from typing import Any, Self

from plimsoll import client
from plimsoll.core.verify import AuditVerdict, Observation, audit_journal
from plimsoll.core.verify import observations as seen
from plimsoll.local.head_access import HeadAccess, head_access
from plimsoll.local.storage.fleet_folder import FleetFolder

LIFE = 1
PREDICATES = (("class", "=", "STOCK"),)
TEXT = "[class,=,'STOCK']"


class Traffic:
    """One publisher, `count` subscribers to everything. Use it in a `with`; callbacks come on other threads."""

    def __init__(self, where: FleetFolder | HeadAccess, count: int, name: str = "s", per_second: float = 200.0) -> None:
        way = where if isinstance(where, HeadAccess) else head_access(where)
        security: Any = client.Curve(secret=way.secret_key_file, server=way.server) if way.secret_key_file else "plain"
        self._lock = threading.Lock()
        self._seen: list[Observation] = []
        self._stopped = threading.Event()
        self.edges: dict[str, str] = {}
        self.last = dict[str, int]()
        self.sent = 0
        self._interval = 1.0 / per_second
        self._unanswered: dict[int, tuple[float, client.Receipt, dict[str, Any]]] = {}
        self._connections = [client.Connection(way.endpoint, security=security) for _ in range(2)]
        try:
            self._publisher = client.Publisher(self._connections[0], name=f"quotes-{name}")
            self._subscribers = [self._subscriber(f"{name}{number:03}") for number in range(count)]
            for one in self._subscribers:
                one.wait_acknowledged()
        except BaseException:  # there is no `with` yet that would end them
            self._close()
            raise
        self._thread = threading.Thread(target=self._publish)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopped.set()
        self._thread.join(300)
        self._close()

    def _close(self) -> None:
        for connection in self._connections:
            connection.close()

    def at(self, edge: str) -> list[str]:
        """The subscribers of an edge, as they know it themselves."""
        with self._lock:
            return sorted(name for name, served_by in self.edges.items() if served_by == edge)

    def verdict(self, seconds: float = 300.0) -> AuditVerdict:
        """End the publishing, wait for the last publication at each subscriber, and judge."""
        self._stopped.set()
        self._thread.join(300)
        self._publisher.flush(300)
        deadline = time.monotonic() + seconds
        while self._waits() and time.monotonic() < deadline:
            time.sleep(0.02)
        for number, (at, receipt, attributes) in self._unanswered.items():
            answer = receipt.answer
            assert answer is not None, f"publication {number} has no answer"
            seq = answer.first_seq + number - answer.first
            self._note(seen.PublicationObserved(self._publisher.name, answer.incarnation, seq, attributes, at))
            self._note(
                seen.AnswerObserved(self._publisher.name, answer.incarnation, seq, answer.answer, time.monotonic())
            )
        return audit_journal(self._seen)

    def _waits(self) -> bool:
        with self._lock:
            return len(self.last) < len(self._subscribers) or min(self.last.values()) < self.sent

    def _note(self, one: Observation) -> None:
        with self._lock:
            self._seen.append(one)

    def _publish(self) -> None:
        due = time.monotonic()
        while not self._stopped.wait(max(0.0, due - time.monotonic())):
            due += self._interval
            attributes: dict[str, Any] = {"class": "STOCK", "n": self.sent + 1}
            at = time.monotonic()
            receipt = self._publisher.publish(attributes)
            self._unanswered[receipt.number] = (at, receipt, attributes)
            self.sent += 1

    def _subscriber(self, name: str) -> client.Subscriber:
        with self._lock:
            one = client.Subscriber(
                self._connections[1],
                name=name,
                on_batch=lambda items: self._on_batch(name, items),
                on_state=lambda state: self._on_state(name, state),
            )
            number = one.subscribe(TEXT, wait=False).id
            self._seen.append(seen.SubscriptionObserved(name, LIFE, number, PREDICATES, time.monotonic()))
        return one

    def _on_batch(self, name: str, items: Any) -> None:
        at = time.monotonic()
        with self._lock:
            for item in items:
                if isinstance(item, client.Delivery):
                    self._seen.append(seen.DeliveryObserved(name, LIFE, item.identity, item.origin, at, item.token))
                    self.last[name] = int(item.attributes["n"])
                else:
                    last = [(head, epoch, offset) for head, epoch, offset in item.last]
                    self._seen.append(
                        seen.GapObserved(
                            name, LIFE, item.head, item.low_epoch, item.low, item.epoch, item.high, last, item.reason,
                            at,
                        )
                    )  # fmt: skip

    def _on_state(self, name: str, state: Any) -> None:
        at = time.monotonic()
        with self._lock:
            if isinstance(state, client.Attached):
                self.edges[name] = state.edge
            elif isinstance(state, client.Acknowledged):
                self._seen.append(seen.AcknowledgementObserved(name, LIFE, state.ids, state.head, state.unreached, at))
            elif isinstance(state, client.Lapsed):
                self._seen.append(seen.LeaseEndObserved(name, LIFE, at))
