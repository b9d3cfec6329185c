"""A small world with one session, as an abstract model of hand-over whose reachable states can all be visited.

There is one class per role and one method per message; channels are FIFO and arbitrarily slow. A world is a value: a
step copies the parts that it changes. Every publication matches every subscriber, so a cover is the set of subscribers
that a link needs; the model is about the order of messages, not about matching. Rules are switched off by name
(`without`), to show that the exploration finds the violation.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from tests.exploration.search import ViolationError

Message = tuple[Any, ...]
Epoch = int


class Config(NamedTuple):
    """`heads`: the head of each edge. `pubs`: the head at which each publication is accepted, in order.

    `faults`: one of them happens, at any time. `again`: commands that arrive once more, at any time and in any state of
    the session, since commands may be repeated, late or stale.
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
    def edges(self) -> list[str]:
        return [edge for edge, _ in self.heads]

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
    """The state of a role: `__dict__` holds only immutable values, so a shallow copy is enough."""

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
    """Set a name in an immutable mapping, a sorted tuple of pairs; None removes the name."""
    rest = [pair for pair in pairs if pair[0] != name]
    return tuple(sorted(rest if value is None else [*rest, (name, value)], key=repr))


def get(pairs: tuple[tuple[Any, Any], ...], name: Any, default: Any = None) -> Any:
    for key, value in pairs:
        if key == name:
            return value
    return default


class World:
    """All nodes and channels. `must`: per subscriber, the publications that are due to it.

    `served`: the subscribers that A has been seen to serve since they were undone, of those that are.
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        self.nodes: dict[str, Any] = {}
        self.channels: dict[tuple[str, str], tuple[Message, ...]] = {}
        self.published: tuple[tuple[str, int], ...] = ()
        self.must: tuple[frozenset[Any], ...] = tuple(frozenset() for _ in config.subscribers)
        self.commands: frozenset[str] = frozenset()
        self.again = config.again
        self.faults = 1 if config.faults else 0
        self.dead: frozenset[str] = frozenset()
        self.served: frozenset[str] = frozenset()

    def key(self) -> tuple[Any, ...]:
        channels = tuple(sorted(self.channels.items()))
        nodes = tuple(self.nodes[name].key() for name in sorted(self.nodes))
        rest = (self.published, self.must, self.commands, self.again, self.faults, self.dead, self.served)
        return channels, nodes, *rest

    def copy(self) -> World:
        other = object.__new__(World)
        other.__dict__.update(self.__dict__)
        other.nodes, other.channels = dict(self.nodes), dict(self.channels)
        return other

    def edit(self, name: str) -> Any:
        """Replace a node by a copy of it, since other worlds share the original; returns the copy."""
        node = self.nodes[name] = self.nodes[name].copy()
        return node

    def send(self, src: str, dst: str, *message: Any) -> None:
        if src not in self.dead and dst not in self.dead:
            self.channels[src, dst] = (*self.channels.get((src, dst), ()), message)

    def is_off(self, rule: str) -> bool:
        return rule in self.config.without

    # -- steps

    def steps(self) -> list[tuple[Any, ...]]:
        """Every step that is possible in this state, in a fixed order."""
        found: list[tuple[Any, ...]] = [("deliver", *channel) for channel in sorted(self.channels)]
        if len(self.published) < len(self.config.pubs):
            found.append(("publish",))
        coordinator = self.nodes[self.config.h1]
        if "PREPARE" not in self.commands:
            found.append(("command", "PREPARE"))
        elif coordinator.session not in ("DONE", "ABORTED"):
            if coordinator.session == "READY" and "CUT" not in self.commands:
                found.append(("command", "CUT"))
            if coordinator.is_waiting():
                found.append(("give_up",))
            if coordinator.is_undecided() and "ABORT" not in self.commands:
                found.append(("command", "ABORT"))  # from the mediator, or at the deadline of the head
            if self.config.mode == "replay" and coordinator.session == "CUT":
                found += [("revoke", x) for x in coordinator.cut_members()]
        found += [("again", command) for command in dict.fromkeys(self.again)]
        if self.faults:
            found += [("fault", fault) for fault in self.config.faults]
        return found

    def step(self, step: tuple[Any, ...]) -> World:
        world = self.copy()
        getattr(world, "do_" + step[0])(*step[1:])
        world.watch_source()
        return world

    def watch_source(self) -> None:
        """I8: a member has `stayed` only if its source serves it then, or has since the member was undone."""
        source = self.nodes.get("A")
        for x, (state, _) in self.nodes[self.config.h1].members:
            if state in ("ABORTING", "stayed") and source is not None and source.serves(x):
                self.served |= {x}
            if state == "stayed" and x not in self.served:
                raise ViolationError(f"I8: {x} is said to have stayed, and A does not serve it")

    def do_deliver(self, src: str, dst: str) -> None:
        first, *rest = self.channels[src, dst]
        if rest:
            self.channels[src, dst] = tuple(rest)
        else:
            del self.channels[src, dst]
        node = self.edit(dst)
        getattr(node, "on_" + first[0].lower())(self, src, *first[1:])

    def do_publish(self) -> None:
        head = self.config.pubs[len(self.published)]
        offset = 1 + sum(pid[0] == head for pid in self.published)
        pid = (head, offset)
        self.published = (*self.published, pid)
        self.must = tuple(
            must | {pid} if self.nodes[x].is_acknowledged else must
            for x, must in zip(self.config.subscribers, self.must, strict=True)
        )
        self.edit(head).publish(self, pid)

    def do_command(self, command: str) -> None:
        self.commands |= {command}
        self.edit(self.config.h1).command(self, command)

    def do_again(self, command: str) -> None:
        """A repeated or late command arrives."""
        self.again = tuple(each for each in self.again if each != command)
        self.edit(self.config.h1).command(self, command)

    def do_give_up(self) -> None:
        """The source has not answered in time: channels may be slower than any bound."""
        self.edit(self.config.h1).give_up()

    def do_revoke(self, x: str) -> None:
        """REVOKE travels on the control socket, outside the stream; it is repeated until the subscriber has resumed."""
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
                self._break_connection(x, which)

    def _crash(self, edge: str) -> None:
        self.dead |= {edge}
        self.channels = {pair: queue for pair, queue in self.channels.items() if edge not in pair}
        del self.nodes[edge]
        self.edit(self.config.head(edge)).on_edge_lost(self, edge)
        for x in self.config.subscribers:
            self.edit(x).connection_lost(self, edge)

    def _break_connection(self, x: str, edge: str) -> None:
        """Break the connection between a subscriber and an edge; both sides notice."""
        if edge in self.dead:
            return
        self.channels.pop((x, edge), None)
        self.channels.pop((edge, x), None)
        self.edit(edge).on_connection_lost(self, x)
        self.edit(x).connection_lost(self, edge)
