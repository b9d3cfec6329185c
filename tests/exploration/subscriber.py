"""A subscriber in the explored model: it owns its token and its attachments."""

from __future__ import annotations

from typing import Any

from tests.exploration.search import ViolationError
from tests.exploration.world import Epoch, Node, World, get, put


class Subscriber(Node):
    """`current` and `next`: the edges that it is attached to. `attachments`: the number of each, by edge.

    `is_named`: its next RESUME names the session. `is_acknowledged`: deliveries are due to it.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.current = self.next = ""
        self.attachments: tuple[Any, ...] = ()
        self.last_number = self.epoch = 0
        self.token: Any = None
        self.watermarks: tuple[Any, ...] = ()
        self.received: tuple[Any, ...] = ()
        self.is_acknowledged = self.is_named = False

    def open(self, edge: str) -> int:
        self.last_number += 1
        self.attachments = put(self.attachments, edge, self.last_number)
        return self.last_number

    def detach(self, w: World, edge: str) -> None:
        number = get(self.attachments, edge) if edge else None
        if number is not None:
            self.attachments = put(self.attachments, edge, None)
            w.send(self.name, edge, "DETACH", number)

    def resume(self, w: World, to: str = "") -> None:
        """Leave all edges, and resume at a live edge of the head that the token names."""
        self.detach(w, self.next)
        self.detach(w, self.current)
        head = self.token[0] if self.token else w.config.h1
        edges = [edge for edge, at in w.config.heads if at == head and edge not in w.dead]
        self.next = ""
        self.current = to if to in edges else next(iter(edges), "")
        if not self.current:
            return
        self.epoch += 2 if not w.is_off("resume-raises-by-two") else 1
        number = self.open(self.current)
        w.send(self.name, self.current, "RESUME", number, self.epoch, self.token, self.is_named)

    def connection_lost(self, w: World, edge: str) -> None:
        was_attached = get(self.attachments, edge) is not None
        self.attachments = put(self.attachments, edge, None)
        if edge == self.current and was_attached:
            self.resume(w)

    def _is_attached(self, edge: str, number: int) -> bool:
        return get(self.attachments, edge) == number

    def on_deliver(self, w: World, src: str, number: int, head: str, position: int, pid: Any) -> None:
        if not self._is_attached(src, number):
            return
        origin, offset = pid
        if offset > get(self.watermarks, origin, 0):
            if pid in self.received:
                raise ViolationError(f"I2: {self.name} receives {pid} twice")
            self.received = (*self.received, pid)
            self.watermarks = put(self.watermarks, origin, offset)
        elif w.config.local:
            raise ViolationError(
                f"I2: {self.name} receives {pid} after {self.received}; a local cut needs no deduplication"
            )
        if src == self.current:
            self.token = (head, position)

    def on_suback(self, w: World, src: str, number: int) -> None:
        if self._is_attached(src, number) and src == self.current:
            self.is_acknowledged = True

    def on_move_to(self, w: World, src: str, number: int, epoch: Epoch) -> None:
        if self._is_attached(src, number) and src == self.current and self.epoch == epoch and not self.next:
            self.next = "B"
            w.send(self.name, "B", "ATTACH", self.open("B"), epoch + 1)

    def on_stay(self, w: World, src: str, number: int) -> None:
        if self._is_attached(src, number) and self.next:
            self.detach(w, self.next)
            self.next = ""

    def on_end(self, w: World, src: str, number: int, token: Any) -> None:
        if not self._is_attached(src, number) or not self.next:
            return
        self.detach(w, self.current)
        self.current, self.next, self.is_named = self.next, "", True
        self.epoch += 1
        if not w.is_off("end-carries-the-token"):
            self.token = token
        if get(self.attachments, self.current) is not None:
            w.send(self.name, self.current, "GO", get(self.attachments, self.current))
        else:
            self.resume(w, self.current)

    def on_attachment_closed(self, w: World, src: str, number: int) -> None:
        if self._is_attached(src, number):
            self.connection_lost(w, src)

    def on_moved(self, w: World, src: str, number: int) -> None:
        if self._is_attached(src, number) and src == self.current:
            self.attachments = put(self.attachments, src, None)
            self.is_named = True
            self.resume(w, "B")

    def on_resumed(self, w: World, src: str, number: int, token: Any, count: int) -> None:
        if self._is_attached(src, number) and count == 0:
            self.token = token
