"""A head in the explored world: it puts publications in order, and the head of the source decides the session."""

from __future__ import annotations

from typing import Any

from tests.exploration.world import Epoch, Node, World, get, put

OPEN = ("PREP", "ATTACHED", "CUTTING")
"""States of a member that can still be undone."""


class Head(Node):
    """Sequencer of its edges; the head of A coordinates and alone decides."""

    def __init__(self, name: str, neighbor: str | None) -> None:
        self.name, self.neighbor = name, neighbor
        self.cov: tuple[Any, ...] = ()
        self.told: frozenset[str] = frozenset()
        self.oseq = self.oack = 0
        self.waits: tuple[Any, ...] = ()
        self.log: tuple[Any, ...] = ()
        self.owner: tuple[Any, ...] = ()
        self.past: tuple[Any, ...] = ()
        self.session = ""
        self.members: tuple[Any, ...] = ()
        self.guests: frozenset[str] = frozenset()
        self.ghosts: frozenset[str] = frozenset()

    # publications and covers

    def publish(self, w: World, pid: Any) -> None:
        self.on_pub(w, "", 0, pid)

    def on_pub(self, w: World, src: str, _lsn: int, pid: Any) -> None:
        self.log = (*self.log, pid)
        for link, cover in self.cov:
            if link != src and cover:
                w.send(self.name, link, "PUB", len(self.log), pid)

    def apply(self, w: World, link: str, seq: int, cover: frozenset[str]) -> None:
        self.cov = put(self.cov, link, cover)
        self._tell_neighbor(w)
        self.waits = (*self.waits, (link, seq, 0 if link == self.neighbor else self.oseq))
        self._acknowledge(w)

    def _tell_neighbor(self, w: World) -> None:
        if self.neighbor is None:
            return
        wanted = frozenset().union(*(cover for link, cover in self.cov if link != self.neighbor))
        if wanted != self.told:
            self.oseq, self.told = self.oseq + 1, wanted
            w.send(self.name, self.neighbor, "COVER", self.oseq, wanted)

    def _acknowledge(self, w: World) -> None:
        for link, seq, need in self.waits:
            if need <= self.oack:
                w.send(self.name, link, "ACKC", seq)
        self.waits = tuple(wait for wait in self.waits if wait[2] > self.oack)

    def on_cover(self, w: World, src: str, seq: int, cover: frozenset[str]) -> None:
        self.apply(w, src, seq, cover)

    def on_ackc(self, w: World, _src: str, seq: int) -> None:
        self.oack = max(self.oack, seq)
        self._acknowledge(w)

    def on_down(self, w: World, edge: str) -> None:
        self.ghosts |= {edge}
        self.waits = tuple(wait for wait in self.waits if wait[0] != edge)
        if self.name == w.config.h1:
            self._abort(w, list(w.config.subscribers))
        elif edge == "B":
            self.up(w, "NAK", tuple(sorted(self.guests)))
        self._collect(w)

    def _collect(self, w: World) -> None:
        """A dead edge's cover stays until no owner entry names it."""
        for edge in self.ghosts:
            if all(owner[0] != edge for _, owner in self.owner):
                self.cov = put(self.cov, edge, None)
                self.ghosts -= {edge}
                self._tell_neighbor(w)

    # sessions

    def undecided(self) -> bool:
        return any(state in OPEN for _, (state, _) in self.members)

    def cut_members(self) -> list[str]:
        return [x for x, (state, _) in self.members if state == "CUT"]

    def epoch_at_cut(self, x: str) -> Epoch:
        return int(get(self.members, x)[1])

    def up(self, w: World, kind: str, *args: Any) -> None:
        """To the session's coordinator."""
        if self.name == w.config.h1:
            getattr(self, "at_" + kind.lower())(w, *args)
        else:
            w.send(self.name, w.config.h1, "UP", kind, *args)

    def on_via(self, w: World, _src: str, kind: str, *args: Any) -> None:
        """From an edge, for the coordinator."""
        self.up(w, kind, *args)

    def on_up(self, w: World, _src: str, kind: str, *args: Any) -> None:
        getattr(self, "at_" + kind.lower())(w, *args)

    def down(self, w: World, edge: str, *message: Any) -> None:
        head = w.config.head(edge)
        if head == self.name:
            w.send(self.name, edge, *message)
        else:
            w.send(self.name, head, "TO", edge, *message)

    def on_to(self, w: World, _src: str, edge: str, *message: Any) -> None:
        if message[0] == "PREPARE":
            self.guests |= set(message[1])
        elif message[0] == "ABORT":
            for x, ep in message[1]:
                self.guests -= {x}
                if get(self.owner, x) == (edge, ep + 1):
                    self._forget(x)
            self._collect(w)
        w.send(self.name, edge, *message)

    def _forget(self, x: str) -> None:
        self.past = put(self.past, x, get(self.owner, x)[1])
        self.owner = put(self.owner, x, None)

    def command(self, w: World, command: str) -> None:
        if command == "PREPARE":
            if self.session and not w.off("a-repeated-command-says-how-things-stand"):
                return
            self.session = "PREP"
            for x in w.config.subscribers:
                edge, ep = get(self.owner, x, ("", 0))
                self.members = put(self.members, x, ("PREP" if edge == "A" else "stayed", ep))
            xs = tuple(x for x, (state, _) in self.members if state == "PREP")
            if xs:
                self.down(w, "B", "PREPARE", xs)
        elif command == "ABORT":
            if not self.session and not w.off("abort-leaves-a-tombstone"):
                self.session = "ABORTED"
            self._abort(w, list(w.config.subscribers))
        elif self.session == "READY":
            self._cut(w)
        self._ended()

    def _cut(self, w: World) -> None:
        attached = tuple(x for x, (state, _) in self.members if state == "ATTACHED")
        self._abort(w, [x for x, (state, _) in self.members if state == "PREP"])
        if w.config.mode == "replay":
            for x in attached:
                ep = self.epoch_at_cut(x)
                good = get(self.owner, x) == ("A", ep)
                self.members = put(self.members, x, ("CUT" if good else "stayed", ep))
            self.session = "CUT"
        elif attached:
            self.session = "CUTTING"
            for x in attached:
                self.members = put(self.members, x, ("CUTTING", self.epoch_at_cut(x)))
            self.down(w, "B", "INSTALL", attached)

    def _abort(self, w: World, xs: list[str], outcome: str = "stayed") -> None:
        gone = tuple((x, self.epoch_at_cut(x)) for x in xs if get(self.members, x, ("", 0))[0] in OPEN)
        for x, ep in gone:
            self.members = put(self.members, x, (outcome, ep))
        if gone:
            if "A" not in w.dead:
                self.down(w, "A", "ABORT", gone)
            self.down(w, "B", "ABORT", gone)
        self._ended()

    def _ended(self) -> None:
        states = {state for _, (state, _) in self.members}
        if self.session and states and not states & {*OPEN, "CUT"}:
            self.session = "DONE" if "moved" in states or "returned" in states else "ABORTED"

    def at_nak(self, w: World, xs: tuple[str, ...]) -> None:
        self._abort(w, list(xs))

    def at_slot(self, w: World, xs: tuple[str, ...]) -> None:
        xs = tuple(x for x in xs if get(self.members, x, ("", 0))[0] == "PREP")
        if xs and w.config.mode == "replay":
            for x in xs:
                self.members = put(self.members, x, ("ATTACHED", self.epoch_at_cut(x)))
            self.session = "READY"
        elif xs:
            self.down(w, "A", "MOVE", tuple((x, self.epoch_at_cut(x)) for x in xs))

    def at_attached(self, w: World, x: str) -> None:
        if get(self.members, x, ("", 0))[0] == "PREP":
            self.members = put(self.members, x, ("ATTACHED", self.epoch_at_cut(x)))
            if self.session == "PREP":
                self.session = "READY"

    def on_cutreq(self, w: World, src: str, seq: int, cover: frozenset[str], xs: tuple[Any, ...]) -> None:
        self.apply(w, src, seq, cover)
        if not w.config.local:
            good = tuple((x, ep) for x, ep in xs if x in self.guests)
            bad = tuple((x, ep - 1) for x, ep in xs if (x, ep) not in good)
            if bad:
                w.send(self.name, src, "ABORT", bad)
            for x, ep in good:
                self.owner = put(self.owner, x, (src, ep))
            if good:
                w.send(self.name, src, "INSTALLED", tuple(x for x, _ in good), len(self.log))
                self.up(w, "MARKER", tuple(x for x, _ in good), (self.name, len(self.log)))
            return
        swapped = tuple(str(x) for x, _ in xs if self._swappable(w, x))
        bad = tuple((x, ep - 1) for x, ep in xs if x not in swapped)
        if bad:
            w.send(self.name, src, "ABORT", bad)
        cut = [(name, self.epoch_at_cut(name)) for name in swapped]
        for x, ep in cut:
            self.owner = put(self.owner, x, (src, ep + 1))
            self.members = put(self.members, x, ("CUT", ep))
        if swapped:
            self.session = "CUT"
            w.send(self.name, src, "INSTALLED", swapped, len(self.log))
            w.send(self.name, "A", "CUT", tuple(cut), (self.name, len(self.log)), False)

    def _swappable(self, w: World, x: str) -> bool:
        state, ep = get(self.members, x, ("", 0))
        return (state == "CUTTING" or w.off("first-of-cut-or-abort-wins")) and (
            get(self.owner, x) == ("A", ep) or w.off("compare-and-swap")
        )

    def at_marker(self, w: World, xs: tuple[str, ...], position: Any) -> None:
        good = tuple((name, self.epoch_at_cut(name)) for name in xs if self._swappable(w, name))
        for x, ep in good:
            self.members = put(self.members, x, ("CUT", ep))
        if good:
            self.session = "CUT"
            w.send(self.name, "A", "CUT", good, position, True)

    def on_done(self, w: World, _src: str, x: str) -> None:
        self.guests -= {x}
        self.up(w, "DONE", x)

    def at_done(self, w: World, x: str) -> None:
        state, ep = get(self.members, x, ("", 0))
        if state != "CUT":
            return
        if not w.config.local:
            w.send(self.name, "A", "RELEASE", x, ep + 1)
            if get(self.owner, x) == ("A", ep):
                self._forget(x)
                self._collect(w)
        self._finish(w, x, "moved")

    def _finish(self, w: World, x: str, outcome: str) -> None:
        ep = self.epoch_at_cut(x)
        self.members = put(self.members, x, (outcome, ep))
        if w.config.mode == "replay":
            self.down(w, "B", "ABORT", ((x, ep),))
        self._ended()

    # reading the log

    def on_fetch(self, w: World, src: str, x: str, lid: int, after: int) -> None:
        """A slice of two entries, if there are so many; `done` if the stream goes on behind it."""
        items = tuple((after + i, pid) for i, pid in enumerate(self.log[after : after + 2], 1))
        at = after + len(items)
        done = at == len(self.log) or w.off("live-when-the-log-is-read")
        w.send(self.name, src, "REPLAY", x, lid, at, items, done)

    # resume

    def on_resume(
        self, w: World, src: str, x: str, ep: Epoch, seq: int, cover: frozenset[str], token: Any, named: bool
    ) -> None:
        self.apply(w, src, seq, cover)
        old = get(self.owner, x)
        newest = max(old[1] if old else -1, get(self.past, x, -1))
        if newest >= ep and not w.off("older-resume-is-refused"):
            w.send(self.name, src, "RELEASE", x, newest + 1)
            return
        self.owner = put(self.owner, x, (src, ep))
        if x in self.guests:
            self.guests -= {x}
        if named and self.name != w.config.h1:
            self.up(w, "DONE", x)
        if self.name == w.config.h1:
            self._resumed_here(w, x, named)
        at = len(self.log) if token is None else token[1]
        items = tuple((i + 1, pid) for i, pid in enumerate(self.log) if i + 1 > at)
        w.send(self.name, src, "RESUMED", x, ep, (self.name, len(self.log)), items)
        if old and old[0] != src:
            w.send(self.name, old[0], "RELEASE", x, ep)
        self._collect(w)

    def _resumed_here(self, w: World, x: str, named: bool) -> None:
        state, ep = get(self.members, x, ("", 0))
        if state in OPEN and not w.off("resume-voids-the-session"):
            self._abort(w, [x], "returned")
        elif state == "CUT":
            if not w.config.local and not named:  # the stream of A is resumed: B forgets
                self.down(w, "B", "ABORT", ((x, ep),))
            self._finish(w, x, "moved" if named else "returned")
