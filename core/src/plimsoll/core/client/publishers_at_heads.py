"""The publishers of a client: the handles under which heads know them, and at which head each of them is.

Rules of the place:
- A handle is used for one opening. Answers to an older one are void.
- A publisher is at the head behind its port; without a port, at home. It opens there whenever that link is new.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Protocol

from plimsoll.core.client.head_ports import HeadPort, HeadPorts
from plimsoll.core.client.publisher import ClientPublisher
from plimsoll.core.client.publisher_moves import ClientPublisherMoves, MoveState
from plimsoll.core.transport.link import NEVER


class PublishersHost(Protocol):
    """The interface to the client of what its publishers share."""

    now: float
    counters: Counter[str]
    head_ports: HeadPorts
    publisher_moves: ClientPublisherMoves[ClientPublisher]

    def guard(self, owner: ClientPublisher, action: Callable[[], object], /) -> None: ...


class PublishersAtHeads:
    """`by_name`: all publishers of the client."""

    def __init__(self, client: PublishersHost) -> None:
        self._client = client
        self.by_name: dict[str, ClientPublisher] = {}
        self._by_handle: dict[int, ClientPublisher] = {}
        self._last_handle = 0
        self._refused: dict[ClientPublisher, float] = {}

    # -- handles

    def new_handle(self, publisher: ClientPublisher, old: int) -> int:
        """A handle in place of `old`: answers to that one are ignored from now on."""
        self.drop_handle(old)
        self._refused.pop(publisher, None)
        self._last_handle += 1
        self._by_handle[self._last_handle] = publisher
        return self._last_handle

    def drop_handle(self, handle: int) -> None:
        self._by_handle.pop(handle, None)

    def of_handle(self, handle: int) -> ClientPublisher | None:
        """The publisher with this handle; None if the handle is an older one."""
        return self._by_handle.get(handle)

    def drop(self, publisher: ClientPublisher) -> None:
        """The publisher is closed."""
        self._client.publisher_moves.end(publisher)
        if publisher.port is not None:
            self._client.head_ports.release(publisher.port, publisher)
        self.by_name.pop(publisher.name, None)
        self._refused.pop(publisher, None)
        self.drop_handle(publisher.handle)

    # -- links

    def on_open(self, port: HeadPort | None) -> None:
        """There is a new link to the head behind `port`: those that are there open again, unless it has let them go."""
        for publisher in self._at(port):
            if publisher.move is None or publisher.move.state is not MoveState.LEFT:
                self._client.guard(publisher, publisher.open)
        self._client.publisher_moves.link_open(port)

    def on_lost(self, port: HeadPort | None) -> None:
        """The link to the head behind `port` is over."""
        lost = self._at(port)
        for publisher in lost:
            publisher.lost(self._client.now)
        self._client.publisher_moves.source_lost(lost)
        self._client.publisher_moves.target_lost(port)

    def merge_into_home(self, port: HeadPort) -> None:
        """The home link leads to the head of a port. That has ended the older link, so the home serves for both."""
        for publisher in self._at(port):
            publisher.port = None
        for move in self._client.publisher_moves.moving.values():
            move.port = None if move.port is port else move.port
        self._client.head_ports.close(port, "the home link leads there")

    def open_later(self, publisher: ClientPublisher, seconds: float) -> None:
        """Open a publisher again after this time: the head has refused it for now."""
        self._refused[publisher] = self._client.now + seconds

    def open_again(self) -> None:
        """Open those whose pause after a refusal is over."""
        for publisher in [each for each, at in self._refused.items() if at <= self._client.now]:
            del self._refused[publisher]
            publisher.open()  # without a link as soon as there is one

    def wake_at(self) -> float:
        return min(self._refused.values(), default=NEVER)

    def leave_lost_heads(self) -> None:
        """Publishers at a head that has been away for too long start again at home."""
        client = self._client
        for port in list(client.head_ports.away()):
            for publisher in self._at(port):
                client.publisher_moves.end(publisher)
                publisher.go_home(f"head {port.head} has been away for too long")
            client.publisher_moves.target_lost(port)
            client.counters["heads_left"] += 1
            client.head_ports.close(port, "it has been away for too long")

    def _at(self, port: HeadPort | None) -> list[ClientPublisher]:
        return [publisher for publisher in self.by_name.values() if publisher.port is port]
