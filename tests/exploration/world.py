"""The hand-over of one session on a small world, as an abstract model whose every reachable state can be visited.

One class per role, one method per message; channels are FIFO and arbitrarily slow. A world is a value: a step copies
what it changes. Every publication matches every subscriber, so a cover is the set of subscribers that a link needs;
what is explored is who sends what to whom, and when. Rules are switched off by name (`without`), to see that the
exploration finds it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

Message = tuple[Any, ...]
Epoch = int


class ViolationError(AssertionError):
    """A law is broken in this state."""


class Config(NamedTuple):
    """`heads`: the head of each edge. `pubs`: the head at which each publication is accepted, in order.

    `again`: commands that come once more, at any time, whatever has become of the session: repeated, late, or stale.
    """

    heads: tuple[tuple[str, str], ...] = (("A", "H"), ("B", "H"))
    subscribers: tuple[str, ...] = ("x",)
    pubs: tuple[str, ...] = ("H", "H", "H")
    mode: str = "drain"
    faults: tuple[str, ...] = ()
    again: tuple[str, ...] = ()
    without: tuple[str, ...] = ()

    def head(self, edge: str) -> str:
        return dict(self.heads)[edge]

    @property
    def h1(self) -> str:
        return self.head("A")

    @property
    def h2(self) -> str:
        return self.head("B")

    @property
    def local(self) -> bool:
        return self.h1 == self.h2


class Node:
    """A role's state: only immutable values in `__dict__`, so that a shallow copy is a copy."""

    name: str

    def copy(self) -> Any:
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        other.__dict__.pop("_key", None)
        return other

    def key(self) -> tuple[Any, ...]:
        found = self.__dict__.get("_key")
        if found is None:
            found = tuple(self.__dict__.values())
            self.__dict__["_key"] = found
        return found


def put(pairs: tuple[tuple[Any, Any], ...], name: Any, value: Any) -> tuple[tuple[Any, Any], ...]:
    """A sorted tuple of pairs as an immutable mapping; None removes."""
    rest = [pair for pair in pairs if pair[0] != name]
    return tuple(sorted(rest if value is None else [*rest, (name, value)], key=repr))


def get(pairs: tuple[tuple[Any, Any], ...], name: Any, default: Any = None) -> Any:
    for key, value in pairs:
        if key == name:
            return value
    return default


class World:
    """All nodes, all channels, and what has been seen so far."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.nodes: dict[str, Any] = {}
        self.chans: dict[tuple[str, str], tuple[Message, ...]] = {}
        self.published: tuple[tuple[str, int], ...] = ()
        self.must: tuple[frozenset[Any], ...] = tuple(frozenset() for _ in config.subscribers)
        self.commands: frozenset[str] = frozenset()
        self.again = config.again
        self.faults = 1 if config.faults else 0
        self.dead: frozenset[str] = frozenset()

    def key(self) -> tuple[Any, ...]:
        chans = tuple(sorted(self.chans.items()))
        nodes = tuple(self.nodes[name].key() for name in sorted(self.nodes))
        return chans, nodes, self.published, self.must, self.commands, self.again, self.faults, self.dead

    def copy(self) -> World:
        other = object.__new__(World)
        other.__dict__.update(self.__dict__)
        other.nodes, other.chans = dict(self.nodes), dict(self.chans)
        return other

    def edit(self, name: str) -> Any:
        """A copy of this node, in place of the one that other worlds share."""
        node = self.nodes[name] = self.nodes[name].copy()
        return node

    def send(self, src: str, dst: str, *message: Any) -> None:
        if src not in self.dead and dst not in self.dead:
            self.chans[src, dst] = (*self.chans.get((src, dst), ()), message)

    def off(self, rule: str) -> bool:
        return rule in self.config.without

    # -- what can happen next

    def steps(self) -> list[tuple[Any, ...]]:
        """Every step that is possible here, in a fixed order."""
        found: list[tuple[Any, ...]] = [("deliver", *channel) for channel in sorted(self.chans)]
        if len(self.published) < len(self.config.pubs):
            found.append(("publish",))
        coordinator = self.nodes[self.config.h1]
        if "PREPARE" not in self.commands:
            found.append(("command", "PREPARE"))
        elif coordinator.session not in ("DONE", "ABORTED"):
            if coordinator.session == "READY" and "CUT" not in self.commands:
                found.append(("command", "CUT"))
            if coordinator.undecided() and "ABORT" not in self.commands:
                found.append(("command", "ABORT"))  # a user's, or the deadline's
            if self.config.mode == "replay" and coordinator.session == "CUT":
                found += [("revoke", x) for x in coordinator.cut_members()]
        found += [("again", command) for command in dict.fromkeys(self.again)]
        if self.faults:
            found += [("fault", fault) for fault in self.config.faults]
        return found

    def step(self, step: tuple[Any, ...]) -> World:
        world = self.copy()
        getattr(world, "do_" + step[0])(*step[1:])
        return world

    def do_deliver(self, src: str, dst: str) -> None:
        first, *rest = self.chans[src, dst]
        if rest:
            self.chans[src, dst] = tuple(rest)
        else:
            del self.chans[src, dst]
        node = self.edit(dst)
        getattr(node, "on_" + first[0].lower())(self, src, *first[1:])

    def do_publish(self) -> None:
        head = self.config.pubs[len(self.published)]
        number = 1 + sum(pid[0] == head for pid in self.published)
        pid = (head, number)
        self.published = (*self.published, pid)
        self.must = tuple(
            must | {pid} if self.nodes[x].promised else must
            for x, must in zip(self.config.subscribers, self.must, strict=True)
        )
        self.edit(head).publish(self, pid)

    def do_command(self, command: str) -> None:
        self.commands |= {command}
        self.edit(self.config.h1).command(self, command)

    def do_again(self, command: str) -> None:
        """A command that was said before, or should have been, comes now."""
        self.again = tuple(each for each in self.again if each != command)
        self.edit(self.config.h1).command(self, command)

    def do_revoke(self, x: str) -> None:
        """On the control socket: out of band, and repeated until the subscriber has resumed."""
        coordinator = self.nodes[self.config.h1]
        if "A" not in self.dead:
            self.edit("A").on_revoke(self, x, coordinator.epoch_at_cut(x))

    def do_fault(self, fault: str) -> None:
        self.faults -= 1
        kind, _, which = fault.partition(" ")
        if kind == "crash":
            self._crash(which)
        elif kind == "behind":
            if which not in self.dead:
                self.edit(which).fall_behind(self, self.config.subscribers[0])
        else:
            for x in self.config.subscribers[:1]:
                self._cut_wire(x, which)

    def _crash(self, edge: str) -> None:
        self.dead |= {edge}
        self.chans = {pair: queue for pair, queue in self.chans.items() if edge not in pair}
        del self.nodes[edge]
        self.edit(self.config.head(edge)).on_down(self, edge)
        for x in self.config.subscribers:
            self.edit(x).lost(self, edge)

    def _cut_wire(self, x: str, edge: str) -> None:
        """The connection between a subscriber and an edge breaks; both sides notice."""
        if edge in self.dead:
            return
        self.chans.pop((x, edge), None)
        self.chans.pop((edge, x), None)
        self.edit(edge).on_wire(self, x)
        self.edit(x).lost(self, edge)
