"""A head in the explored model: it logs publications, and the head of the source decides the session."""

from __future__ import annotations

from typing import Any

from tests.exploration.world import Epoch, Node, World, get, put

OPEN = ("PREPARING", "ATTACHED", "CUTTING")
"""States of a member that can still be undone."""

ABORTING = "ABORTING"
"""State of a member that has been undone, and of which the source has not said whether it serves it."""


class LogHead(Node):
    """Logs and relays publications, and knows who serves whom.

    `covers`: by link. `announced`: the cover sent to the neighbour, under `cover_number`. `owners`: edge and epoch of
    each subscriber; `past`: the epochs of deleted entries.
    """

    def __init__(self, name: str, neighbor: str | None) -> None:
        self.name, self.neighbor = name, neighbor
        self.covers: tuple[Any, ...] = ()
        self.announced: frozenset[str] = frozenset()
        self.cover_number = self.cover_acked = 0
        self.waits: tuple[Any, ...] = ()
        self.log: tuple[Any, ...] = ()
        self.owners: tuple[Any, ...] = ()
        self.past: tuple[Any, ...] = ()
        self.session = ""
        self.members: tuple[Any, ...] = ()
        self.remote_members: frozenset[str] = frozenset()
        self.dead_edges: frozenset[str] = frozenset()

    def publish(self, w: World, pid: Any) -> None:
        self.on_pub(w, "", 0, pid)

    def on_pub(self, w: World, src: str, _position: int, pid: Any) -> None:
        self.log = (*self.log, pid)
        for link, cover in self.covers:
            if link != src and cover:
                w.send(self.name, link, "PUB", len(self.log), pid)

    def apply(self, w: World, link: str, number: int, cover: frozenset[str]) -> None:
        self.covers = put(self.covers, link, cover)
        self._announce(w)
        self.waits = (*self.waits, (link, number, 0 if link == self.neighbor else self.cover_number))
        self._acknowledge(w)

    def _announce(self, w: World) -> None:
        """Send the neighbour a cover, if it has changed."""
        if self.neighbor is None:
            return
        wanted = frozenset().union(*(cover for link, cover in self.covers if link != self.neighbor))
        if wanted != self.announced:
            self.cover_number, self.announced = self.cover_number + 1, wanted
            w.send(self.name, self.neighbor, "COVER", self.cover_number, wanted)

    def _acknowledge(self, w: World) -> None:
        for link, number, need in self.waits:
            if need <= self.cover_acked:
                w.send(self.name, link, "COVER_ACK", number)
        self.waits = tuple(wait for wait in self.waits if wait[2] > self.cover_acked)

    def on_cover(self, w: World, src: str, number: int, cover: frozenset[str]) -> None:
        self.apply(w, src, number, cover)

    def on_cover_ack(self, w: World, _src: str, number: int) -> None:
        self.cover_acked = max(self.cover_acked, number)
        self._acknowledge(w)

    def _drop_covers(self, w: World) -> None:
        """The cover of a dead edge stays until no owner entry names the edge."""
        for edge in self.dead_edges:
            if all(owner[0] != edge for _, owner in self.owners):
                self.covers = put(self.covers, edge, None)
                self.dead_edges -= {edge}
                self._announce(w)

    def _forget(self, x: str) -> None:
        self.past = put(self.past, x, get(self.owners, x)[1])
        self.owners = put(self.owners, x, None)

    def on_fetch(self, w: World, src: str, x: str, number: int, after: int) -> None:
        """Answer with at most two entries; `done`: the log ends there, and the stream continues."""
        items = tuple((after + i, pid) for i, pid in enumerate(self.log[after : after + 2], 1))
        at = after + len(items)
        done = at == len(self.log) or w.is_off("live-when-the-log-is-read")
        w.send(self.name, src, "REPLAY", x, number, at, items, done)


class CoordinatingHead(LogHead):
    """The head of A is the coordinator of the session: it decides for each member between cut and abort."""

    def is_undecided(self) -> bool:
        return any(state in OPEN for _, (state, _) in self.members)

    def is_waiting(self) -> bool:
        return any(state == ABORTING for _, (state, _) in self.members)

    def cut_members(self) -> list[str]:
        return [x for x, (state, _) in self.members if state == "CUT"]

    def epoch_at_cut(self, x: str) -> Epoch:
        return int(get(self.members, x)[1])

    def to_edge(self, w: World, edge: str, *message: Any) -> None:
        head = w.config.head(edge)
        if head == self.name:
            w.send(self.name, edge, *message)
        else:
            w.send(self.name, head, "ROUTE_TO_EDGE", edge, *message)

    def command(self, w: World, command: str) -> None:
        if command == "PREPARE":
            if self.session and not w.is_off("a-repeated-command-returns-the-state"):
                return
            self.session = "PREPARING"
            for x in w.config.subscribers:
                edge, epoch = get(self.owners, x, ("", 0))
                self.members = put(self.members, x, ("PREPARING" if edge == "A" else "gone", epoch))
            xs = tuple(x for x, (state, _) in self.members if state == "PREPARING")
            if xs:
                self.to_edge(w, "B", "PREPARE", xs)
        elif command == "ABORT":
            if not self.session and not w.is_off("abort-leaves-a-tombstone"):
                self.session = "ABORTED"
            self._abort(w, list(w.config.subscribers))
        elif self.session == "READY":
            self._cut(w)
        self._end_session()

    def _cut(self, w: World) -> None:
        attached = tuple(x for x, (state, _) in self.members if state == "ATTACHED")
        self._abort(w, [x for x, (state, _) in self.members if state == "PREPARING"])
        if w.config.mode == "replay":
            for x in attached:
                epoch = self.epoch_at_cut(x)
                is_owned = get(self.owners, x) == ("A", epoch)
                self.members = put(self.members, x, ("CUT" if is_owned else "gone", epoch))
            self.session = "CUT"
        elif attached:
            self.session = "CUTTING"
            for x in attached:
                self.members = put(self.members, x, ("CUTTING", self.epoch_at_cut(x)))
            self.to_edge(w, "B", "INSTALL", attached)

    def _abort(self, w: World, xs: list[str], outcome: str = "") -> None:
        """Undo members that are not cut: with this outcome, or asking the source for it. End those that were asked for.

        A message about A, which is dead, is lost; so is its answer.
        """
        state = outcome or ("stayed" if w.is_off("stayed-is-the-word-of-the-source") else ABORTING)
        gone = tuple((x, self.epoch_at_cut(x)) for x in xs if get(self.members, x, ("", 0))[0] in OPEN)
        waiting = [x for x in xs if outcome and get(self.members, x, ("", 0))[0] == ABORTING]
        for x in (*(x for x, _ in gone), *waiting):
            self.members = put(self.members, x, (state, self.epoch_at_cut(x)))
        if gone:
            self.to_edge(w, "A", "ABORT", gone, state == ABORTING)
            self.to_edge(w, "B", "ABORT", gone)
        self._end_session()

    def give_up(self) -> None:
        """The time for the answer of the source is over."""
        for x, (state, epoch) in self.members:
            if state == ABORTING:
                self.members = put(self.members, x, ("unknown", epoch))
        self._end_session()

    def _end_session(self) -> None:
        """End the session if every member has an outcome."""
        states = {state for _, (state, _) in self.members}
        if self.session and states and not states & {*OPEN, ABORTING, "CUT"}:
            self.session = "DONE" if "moved" in states or "returned" in states else "ABORTED"

    def coordinate_handover_rejected(self, w: World, xs: tuple[str, ...], outcome: str = "") -> None:
        self._abort(w, list(xs), outcome)

    def coordinate_slot(self, w: World, xs: tuple[str, ...]) -> None:
        xs = tuple(x for x in xs if get(self.members, x, ("", 0))[0] == "PREPARING")
        if xs and w.config.mode == "replay":
            for x in xs:
                self.members = put(self.members, x, ("ATTACHED", self.epoch_at_cut(x)))
            self.session = "READY"
        elif xs:
            self.to_edge(w, "A", "START_MOVE", tuple((x, self.epoch_at_cut(x)) for x in xs))

    def coordinate_target_attached(self, w: World, x: str) -> None:
        if get(self.members, x, ("", 0))[0] == "PREPARING":
            self.members = put(self.members, x, ("ATTACHED", self.epoch_at_cut(x)))
            if self.session == "PREPARING":
                self.session = "READY"

    def _may_swap(self, w: World, x: str) -> bool:
        state, epoch = get(self.members, x, ("", 0))
        return (state == "CUTTING" or w.is_off("first-of-cut-or-abort-wins")) and (
            get(self.owners, x) == ("A", epoch) or w.is_off("compare-and-swap")
        )

    def coordinate_marker(self, w: World, xs: tuple[str, ...], token: Any) -> None:
        good = tuple((name, self.epoch_at_cut(name)) for name in xs if self._may_swap(w, name))
        for x, epoch in good:
            self.members = put(self.members, x, ("CUT", epoch))
        if good:
            self.session = "CUT"
            w.send(self.name, "A", "CUT", good, token, True)

    def coordinate_done(self, w: World, x: str) -> None:
        state, epoch = get(self.members, x, ("", 0))
        if state != "CUT":
            return
        if not w.config.local:
            w.send(self.name, "A", "RELEASE", x, epoch + 1)
            if get(self.owners, x) == ("A", epoch):
                self._forget(x)
                self._drop_covers(w)
        self._finish(w, x, "moved")

    def _finish(self, w: World, x: str, outcome: str) -> None:
        epoch = self.epoch_at_cut(x)
        self.members = put(self.members, x, (outcome, epoch))
        if w.config.mode == "replay":
            self.to_edge(w, "B", "ABORT", ((x, epoch),))
        self._end_session()

    def _resumed_at_coordinator(self, w: World, x: str, named: bool) -> None:
        state, epoch = get(self.members, x, ("", 0))
        if state in (*OPEN, ABORTING) and not w.is_off("resume-voids-the-session"):
            self._abort(w, [x], "returned")
        elif state == "CUT":
            if not w.config.local and not named:  # x stays in this cluster, so B drops it
                self.to_edge(w, "B", "ABORT", ((x, epoch),))
            self._finish(w, x, "moved" if named else "returned")


class Head(CoordinatingHead):
    """All that a head is told by its edges and by the other head."""

    def on_edge_lost(self, w: World, edge: str) -> None:
        self.dead_edges |= {edge}
        self.waits = tuple(wait for wait in self.waits if wait[0] != edge)
        if self.name == w.config.h1:
            self._abort(w, list(w.config.subscribers), "away" if edge == "A" else "")
        elif edge == "B":
            self.to_coordinator(w, "HANDOVER_REJECTED", tuple(sorted(self.remote_members)))
        self._drop_covers(w)

    def to_coordinator(self, w: World, kind: str, *args: Any) -> None:
        """Pass a message to the coordinator: this head, or the other one."""
        if self.name == w.config.h1:
            getattr(self, "coordinate_" + kind.lower())(w, *args)
        else:
            w.send(self.name, w.config.h1, "ROUTE_TO_COORDINATOR", kind, *args)

    def on_for_coordinator(self, w: World, _src: str, kind: str, *args: Any) -> None:
        """From an edge of this head."""
        self.to_coordinator(w, kind, *args)

    def on_route_to_coordinator(self, w: World, _src: str, kind: str, *args: Any) -> None:
        """From the other head."""
        getattr(self, "coordinate_" + kind.lower())(w, *args)

    def on_route_to_edge(self, w: World, _src: str, edge: str, *message: Any) -> None:
        if message[0] == "PREPARE":
            self.remote_members |= set(message[1])
        elif message[0] == "ABORT":
            for x, epoch in message[1]:
                self.remote_members -= {x}
                if get(self.owners, x) == (edge, epoch + 1):
                    self._forget(x)
            self._drop_covers(w)
        w.send(self.name, edge, *message)

    def on_cut_request(self, w: World, src: str, number: int, cover: frozenset[str], xs: tuple[Any, ...]) -> None:
        self.apply(w, src, number, cover)
        if w.config.local:
            self._cut_locally(w, src, xs)
        else:
            self._cut_remote_members(w, src, xs)

    def _cut_remote_members(self, w: World, src: str, xs: tuple[Any, ...]) -> None:
        """The target owns its remote members from here on; the MARKER lets the coordinator decide their cut."""
        good = tuple((x, epoch) for x, epoch in xs if x in self.remote_members)
        bad = tuple((x, epoch - 1) for x, epoch in xs if (x, epoch) not in good)
        if bad:
            w.send(self.name, src, "ABORT", bad)
        for x, epoch in good:
            self.owners = put(self.owners, x, (src, epoch))
        if good:
            names = tuple(x for x, _ in good)
            w.send(self.name, src, "INSTALLED", names, len(self.log))
            self.to_coordinator(w, "MARKER", names, (self.name, len(self.log)))

    def _cut_locally(self, w: World, src: str, xs: tuple[Any, ...]) -> None:
        """Swap the owners, and send INSTALLED and CUT, in one step."""
        swapped = tuple(str(x) for x, _ in xs if self._may_swap(w, x))
        bad = tuple((x, epoch - 1) for x, epoch in xs if x not in swapped)
        if bad:
            w.send(self.name, src, "ABORT", bad)
        cut = [(name, self.epoch_at_cut(name)) for name in swapped]
        for x, epoch in cut:
            self.owners = put(self.owners, x, (src, epoch + 1))
            self.members = put(self.members, x, ("CUT", epoch))
        if swapped:
            self.session = "CUT"
            w.send(self.name, src, "INSTALLED", swapped, len(self.log))
            w.send(self.name, "A", "CUT", tuple(cut), (self.name, len(self.log)), False)

    def on_done(self, w: World, _src: str, x: str) -> None:
        self.remote_members -= {x}
        self.to_coordinator(w, "DONE", x)

    def on_resume(
        self, w: World, src: str, x: str, epoch: Epoch, number: int, cover: frozenset[str], token: Any, named: bool
    ) -> None:
        self.apply(w, src, number, cover)
        old = get(self.owners, x)
        newest = max(old[1] if old else -1, get(self.past, x, -1))
        if newest >= epoch and not w.is_off("older-resume-is-refused"):
            w.send(self.name, src, "RELEASE", x, newest + 1)
            return
        self.owners = put(self.owners, x, (src, epoch))
        self.remote_members -= {x}
        if self.name == w.config.h1:
            self._resumed_at_coordinator(w, x, named)
        elif named:
            self.to_coordinator(w, "DONE", x)
        at = len(self.log) if token is None else token[1]
        items = tuple((i + 1, pid) for i, pid in enumerate(self.log) if i + 1 > at)
        w.send(self.name, src, "RESUMED", x, epoch, (self.name, len(self.log)), items)
        if old and old[0] != src:
            w.send(self.name, old[0], "RELEASE", x, epoch)
        self._drop_covers(w)
