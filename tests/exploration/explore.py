"""Visit every reachable state of a small world once, and check the laws in each of them and at every end."""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass, field
from typing import Any

from tests.exploration.edge import Edge
from tests.exploration.head import Head
from tests.exploration.subscriber import Subscriber
from tests.exploration.world import Config, ViolationError, World, get

Step = tuple[Any, ...]


@dataclass
class Result:
    """What an exploration has seen. `outcomes`: how members ended, over all ends."""

    states: int = 0
    steps: int = 0
    ends: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    violation: str = ""
    path: tuple[Step, ...] = ()


def start(config: Config) -> World:
    """Every subscriber is attached to A and has its acknowledgement."""
    w = World(config)
    heads = sorted({head for _, head in config.heads})
    for head in heads:
        others = [other for other in heads if other != head]
        w.nodes[head] = Head(head, others[0] if others else None)
    for edge, head in config.heads:
        w.nodes[edge] = Edge(edge, head)
    for x in config.subscribers:
        subscriber = w.nodes[x] = Subscriber(x)
        subscriber.cur = "A"
        subscriber.resume(w)
        while w.chans:
            w = w.step(("deliver", *sorted(w.chans)[0]))
        assert w.nodes[x].promised
    return w


def check(w: World) -> None:
    """What must hold in every state."""
    for x in w.config.subscribers:
        got = w.nodes[x].got
        for origin in {pid[0] for pid in got}:
            numbers = [pid[1] for pid in got if pid[0] == origin]
            if numbers != sorted(numbers):
                raise ViolationError(f"I3: {x} got {got}")
        by_epoch: dict[int, list[str]] = {}
        for name, node in w.nodes.items():
            rec = get(node.recs, x) if isinstance(node, Edge) else None
            if rec is not None and rec.state in ("LIVE", "HOLD") and not rec.closed:
                by_epoch.setdefault(rec.ep, []).append(name)
        if any(len(names) > 1 for names in by_epoch.values()):
            raise ViolationError(f"I4: {x} is served twice in one epoch: {by_epoch}")


def check_end(w: World) -> None:
    """What must hold where nothing more can happen."""
    coordinator = w.nodes[w.config.h1]
    if coordinator.session not in ("DONE", "ABORTED"):
        raise ViolationError(f"I5: the session ends as {coordinator.session}")
    for x, must in zip(w.config.subscribers, w.must, strict=True):
        subscriber = w.nodes[x]
        if subscriber.cur:
            missing = must - set(subscriber.got)
            if missing:
                raise ViolationError(f"I1: {x} lost {sorted(missing)}, got {subscriber.got}")
            _check_orphans(w, x, subscriber)


def _check_orphans(w: World, x: str, subscriber: Any) -> None:
    if subscriber.nxt:
        raise ViolationError(f"I5: {x} is still attached to {subscriber.nxt}, too")
    for name, node in w.nodes.items():
        if isinstance(node, Edge):
            rec = get(node.recs, x)
            if (rec is not None) != (name == subscriber.cur):
                raise ViolationError(f"I5: orphan of {x} at {name}: {rec}, served at {subscriber.cur}")
            if rec is not None and (rec.state != "LIVE" or rec.closed):
                raise ViolationError(f"I5: {x} is {rec} at {name}")
            if x in node.slots:
                raise ViolationError(f"I5: the slot of {x} at {name} is never freed")
        elif isinstance(node, Head):
            owner = get(node.owner, x)
            here = w.config.head(subscriber.cur) == name
            if (owner is not None) != here or (here and owner != (subscriber.cur, subscriber.ep)):
                raise ViolationError(f"I5: {name} says {owner}, served at {subscriber.cur} {subscriber.ep}")
            if x in node.guests:
                raise ViolationError(f"I5: {x} is a guest of {name} for ever")


def explore(config: Config, most: int = 2_000_000) -> Result:
    """Breadth first, so that a violation comes with a shortest way to it.

    Raises:
        RuntimeError: the world has more states than `most`.

    """
    result = Result()
    first = start(config)
    seen = {hash(first.key())}
    parents: list[tuple[int, Step]] = [(-1, ())]
    queue: deque[tuple[int, World]] = deque([(0, first)])
    while queue:
        number, w = queue.popleft()
        result.states += 1
        steps = w.steps()
        try:
            check(w)
            if not [step for step in steps if step[0] != "fault"]:
                result.ends += 1
                check_end(w)
                result.outcomes.update(state for _, (state, _) in w.nodes[config.h1].members)
            for step in steps:
                result.steps += 1
                after = w.step(step)
                key = hash(after.key())
                if key not in seen:
                    if len(seen) >= most:
                        raise RuntimeError(f"more than {most:,} states")
                    seen.add(key)
                    parents.append((number, step))
                    queue.append((len(parents) - 1, after))
        except ViolationError as error:
            result.violation, result.path = str(error), _path(parents, number)
            return result
    return result


def _path(parents: list[tuple[int, Step]], number: int) -> tuple[Step, ...]:
    path: list[Step] = []
    while number > 0:
        number, step = parents[number]
        path.append(step)
    return tuple(reversed(path))
