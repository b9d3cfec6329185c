"""A head that logs what it accepts, and the client's own publisher, in virtual time."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tests.core.client.conftest import HEAD, Script, Wire

from plimsoll.client import errors
from plimsoll.core.client import Address, Answered, Client, ClientPublisher, Failed, PublisherPosition
from plimsoll.core.client.publisher import encoded_body
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol import wire as frames
from plimsoll.core.protocol.wire import Scalar
from plimsoll.core.transport.link import Link


class LoggingHead(Script):
    """Takes publications in the order of their numbers, once each, and remembers publishers until it restarts."""

    def __init__(self, incarnation: int, log: list[dict[str, Any]]) -> None:
        super().__init__("h", "head", incarnation)
        self.log = log
        self.incarnations: dict[str, int] = {}
        self._open: dict[tuple[Link, int], tuple[str, int]] = {}

    def on_data(self, link: Link, frame: frames.Data, size: int) -> None:
        self.took(link)
        for raw in frame.records:
            record: Any = msg.decode(msg.from_client, raw)
            if isinstance(record, msg.Open):
                self._on_open(link, record)
            elif isinstance(record, msg.Publish):
                self._on_publish(link, record)

    def _on_open(self, link: Link, record: msg.Open) -> None:
        known = self.incarnations.get(record.publisher, 0)
        if known > record.incarnation:
            self.say(link, msg.Refused(record.handle, 0, "incarnation", "newer"))
            return
        self.incarnations[record.publisher] = record.incarnation
        self._open[link, record.handle] = key = (record.publisher, record.incarnation)
        last = self.last_seq.setdefault(key, 0)
        self.say(link, msg.Opened(record.handle, self.info.name, self.info.incarnation, last, last + 100))
        if last:
            self.say(link, msg.Accepted(record.handle, last))

    def _on_publish(self, link: Link, record: msg.Publish) -> None:
        key = self._open[link, record.handle]
        assert record.seq == self.last_seq[key] + 1, "a head takes numbers in their order"
        self.last_seq[key] = record.seq
        self.log.append(msg.decode(msg.body, record.body).attributes)
        self.say(link, msg.Accepted(record.handle, record.seq))


class ScriptedFleet:
    """One head, in virtual time, which may restart; and the lives of a driver's client, one after the other."""

    def __init__(self) -> None:
        self.log: list[dict[str, Any]] = []
        self.wire = Wire()
        self.lives = 0
        self.step: Callable[[], None] = lambda: None
        self.head = self.wire.add(LoggingHead(5, self.log), HEAD)
        self._client: Client | None = None

    def restart_head(self) -> None:
        self.wire.remove(self.head)
        self.head = self.wire.add(LoggingHead(self.head.info.incarnation + 1, self.log), HEAD)

    def new_life(self) -> None:
        """The driver's process is killed, and another one started."""
        if self._client is not None:
            self.wire.nodes.remove(self._client)
        self.lives += 1
        draw = random.Random(self.lives)
        self._client = Client(f"d{self.lives}", 1000 * self.lives, lambda: draw.getrandbits(32), [Address(HEAD)])
        self.wire.add(self._client)

    def clock(self) -> int:
        return round(self.wire.now * 1e6)

    def wait(self, seconds: float) -> None:
        self.step()
        self.wire.run(seconds)

    def opened(
        self,
        position: PublisherPosition | None,
        unanswered: Sequence[tuple[Mapping[str, Scalar], bytes]],
        away_seconds: float,
        on_answer: Callable[[list[Answered]], None],
    ) -> ScriptedPublisher:
        assert self._client is not None
        self._client.publishers.pop("p", None)
        bodies = [encoded_body(attributes, payload, 10_000) for attributes, payload in unanswered]
        inner = self._client.publisher("p", position=position, unanswered=bodies, away_seconds=away_seconds)
        return ScriptedPublisher(self, inner, on_answer)


class ScriptedPublisher:
    """As `plimsoll.client.Publisher`, without threads."""

    def __init__(
        self, fleet: ScriptedFleet, inner: ClientPublisher, on_answer: Callable[[list[Answered]], None]
    ) -> None:
        self._fleet, self._inner, self._on_answer = fleet, inner, on_answer

    @property
    def is_open(self) -> bool:
        return self._inner.is_open

    @property
    def position(self) -> PublisherPosition | None:
        events, self._inner.events = self._inner.events, []
        for event in events:
            if isinstance(event, Failed):
                raise errors.FailedError(event.code, event.text)
        self._on_answer([event for event in events if isinstance(event, Answered)])
        return self._inner.position

    def publish(self, attributes: Mapping[str, Scalar], payload: bytes = b"") -> int:
        self._fleet.step()
        return self._inner.publish(attributes, payload, sent_us=1)

    def flush(self, timeout: float | None = 30.0) -> None:
        self._fleet.wire.run(timeout or 0.0, lambda: not self._inner.buffer)

    def close(self, timeout: float = 0.0) -> None:
        pass  # as a process that ends
