"""Visit every reachable state of a small world once; check the laws in each state, and at every end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from tests.exploration.edge import Edge
from tests.exploration.head import Head
from tests.exploration.search import Result, ViolationError, search
from tests.exploration.subscriber import Subscriber
from tests.exploration.world import Config, World, get

Step = tuple[Any, ...]


def start(config: Config) -> World:
    """The initial world: every subscriber is attached to A, and its subscription is acknowledged."""
    w = World(config)
    heads = sorted({head for _, head in config.heads})
    for head in heads:
        others = [other for other in heads if other != head]
        w.nodes[head] = Head(head, others[0] if others else None)
    for edge, head in config.heads:
        w.nodes[edge] = Edge(edge, head)
    for x in config.subscribers:
        subscriber = w.nodes[x] = Subscriber(x)
        subscriber.current = "A"
        subscriber.resume(w)
        while w.channels:
            w = w.step(("deliver", *sorted(w.channels)[0]))
        assert w.nodes[x].is_acknowledged
    return w


def check(w: World) -> None:
    """Check the laws that hold in every state."""
    for x in w.config.subscribers:
        received = w.nodes[x].received
        for origin in {pid[0] for pid in received}:
            offsets = [pid[1] for pid in received if pid[0] == origin]
            if offsets != sorted(offsets):
                raise ViolationError(f"I3: {x} received {received}")
        by_epoch: dict[int, list[str]] = {}
        for name, node in w.nodes.items():
            found = get(node.attachments, x) if isinstance(node, Edge) else None
            if found is not None and found.state in ("LIVE", "BUFFERING") and not found.is_closed:
                by_epoch.setdefault(found.epoch, []).append(name)
        if any(len(names) > 1 for names in by_epoch.values()):
            raise ViolationError(f"I4: {x} is served twice in one epoch: {by_epoch}")


def check_end(w: World) -> None:
    """Check the laws that hold when no step but a fault is possible."""
    coordinator = w.nodes[w.config.h1]
    if coordinator.session not in ("DONE", "ABORTED"):
        raise ViolationError(f"I5: the session stays in {coordinator.session}")
    for x, must in zip(w.config.subscribers, w.must, strict=True):
        subscriber = w.nodes[x]
        if subscriber.current:
            missing = must - set(subscriber.received)
            if missing:
                raise ViolationError(f"I1: {x} lost {sorted(missing)}, received {subscriber.received}")
            _check_leftovers(w, x, subscriber)


def _check_leftovers(w: World, x: str, subscriber: Any) -> None:
    if subscriber.next:
        raise ViolationError(f"I5: {x} is still attached to {subscriber.next} as well")
    for name, node in w.nodes.items():
        if isinstance(node, Edge):
            found = get(node.attachments, x)
            if (found is not None) != (name == subscriber.current):
                raise ViolationError(f"I5: attachment of {x} at {name}: {found}, served at {subscriber.current}")
            if found is not None and (found.state != "LIVE" or found.is_closed):
                raise ViolationError(f"I5: {x} is {found} at {name}")
            if x in node.slots:
                raise ViolationError(f"I5: the slot of {x} at {name} is never freed")
        elif isinstance(node, Head):
            owner = get(node.owners, x)
            is_here = w.config.head(subscriber.current) == name
            if (owner is not None) != is_here or (is_here and owner != (subscriber.current, subscriber.epoch)):
                raise ViolationError(
                    f"I5: the owner of {x} at {name} is {owner}, served at {subscriber.current} {subscriber.epoch}"
                )
            if x in node.remote_members:
                raise ViolationError(f"I5: {x} stays a remote member at {name}")
            _check_covers(w, x, subscriber, node)


def _check_covers(w: World, x: str, subscriber: Any, head: Any) -> None:
    for link, cover in head.covers:
        is_needed = link == subscriber.current or (
            link not in w.config.edges and w.config.head(subscriber.current) == link
        )
        if (x in cover) != is_needed:
            raise ViolationError(
                f"I5: {head.name} has {sorted(cover)} as what {link} needs, {x} is at {subscriber.current}"
            )


def explore(config: Config) -> Result:
    """Explore breadth first. `outcomes`: the outcomes of members, counted over all ends."""
    return search(start(config), _visit, key=lambda w: hash(w.key()))


def _visit(w: World, outcomes: Counter[str]) -> Iterator[tuple[Step, World]]:
    steps = w.steps()
    check(w)
    if all(step[0] == "fault" for step in steps):
        check_end(w)
        outcomes.update(state for _, (state, _) in w.nodes[w.config.h1].members)
    for step in steps:
        yield step, w.step(step)
