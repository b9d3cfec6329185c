"""A subscriber in the explored world: it owns its token and its attachments."""

from __future__ import annotations

from typing import Any

from tests.exploration.world import Epoch, Node, ViolationError, World, get, put


class Subscriber(Node):
    """Owns its token and its attachments."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.cur = self.nxt = ""
        self.lids: tuple[Any, ...] = ()
        self.lid = self.ep = 0
        self.token: Any = None
        self.marks: tuple[Any, ...] = ()
        self.got: tuple[Any, ...] = ()
        self.promised = self.named = self.acked = False

    def open(self, edge: str) -> int:
        self.lid += 1
        self.lids = put(self.lids, edge, self.lid)
        return self.lid

    def close(self, w: World, edge: str) -> None:
        lid = get(self.lids, edge) if edge else None
        if lid is not None:
            self.lids = put(self.lids, edge, None)
            w.send(self.name, edge, "CLOSE", lid)

    def resume(self, w: World, to: str = "") -> None:
        """Close all links and resume at a live edge of the head whose stream was being consumed."""
        self.close(w, self.nxt)
        self.close(w, self.cur)
        head = self.token[0] if self.token else w.config.h1
        edges = [edge for edge, at in w.config.heads if at == head and edge not in w.dead]
        self.nxt = ""
        self.cur = to if to in edges else next(iter(edges), "")
        if not self.cur:
            return
        self.ep += 2 if not w.off("resume-raises-by-two") else 1
        w.send(self.name, self.cur, "RESUME", self.open(self.cur), self.ep, self.token, self.named)

    def lost(self, w: World, edge: str) -> None:
        known = get(self.lids, edge) is not None
        self.lids = put(self.lids, edge, None)
        if edge == self.cur and known:
            self.resume(w)

    def _at(self, edge: str, lid: int) -> bool:
        return get(self.lids, edge) == lid

    def on_pub(self, w: World, src: str, lid: int, head: str, lsn: int, pid: Any) -> None:
        if not self._at(src, lid):
            return
        origin, number = pid
        if number > get(self.marks, origin, 0):
            if pid in self.got:
                raise ViolationError(f"I2: {self.name} gets {pid} twice")
            self.got = (*self.got, pid)
            self.marks = put(self.marks, origin, number)
        elif w.config.local:
            raise ViolationError(f"I2: {self.name} gets {pid} after {self.got}; a local cut needs no deduplication")
        if src == self.cur:
            self.token = (head, lsn)

    def on_ack(self, w: World, src: str, lid: int) -> None:
        if self._at(src, lid) and src == self.cur:
            self.promised = True

    def on_move(self, w: World, src: str, lid: int, ep: Epoch) -> None:
        if self._at(src, lid) and src == self.cur and self.ep == ep and not self.nxt:
            self.nxt = "B"
            w.send(self.name, "B", "ATTACH", self.open("B"), ep + 1)

    def on_stay(self, w: World, src: str, lid: int) -> None:
        if self._at(src, lid) and self.nxt:
            self.close(w, self.nxt)
            self.nxt = ""

    def on_end(self, w: World, src: str, lid: int, position: Any) -> None:
        if not self._at(src, lid) or not self.nxt:
            return
        self.close(w, self.cur)
        self.cur, self.nxt, self.named = self.nxt, "", True
        self.ep += 1
        if not w.off("end-carries-the-position"):
            self.token = position
        if get(self.lids, self.cur) is not None:
            w.send(self.name, self.cur, "GO", get(self.lids, self.cur))
        else:
            self.resume(w, self.cur)

    def on_shut(self, w: World, src: str, lid: int) -> None:
        if self._at(src, lid):
            self.lost(w, src)

    def on_moved(self, w: World, src: str, lid: int) -> None:
        if self._at(src, lid) and src == self.cur:
            self.lids = put(self.lids, src, None)
            self.named = True
            self.resume(w, "B")

    def on_resumed(self, w: World, src: str, lid: int, position: Any, count: int) -> None:
        if self._at(src, lid) and count == 0:
            self.token = position
