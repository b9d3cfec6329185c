"""The owner of a topic as a small world, with the product's own table in the head.

One topic, two edges, units that join whenever they like, one session that hands the topic over, a mediator whose words
are lost, late and repeated, a client that cannot reach the owner, edges and heads that die. A state is a value; a step
copies what it changes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any, Final, NamedTuple

from tests.exploration.search import Result, ViolationError, search

from plimsoll.core.head.placement import policy_of
from plimsoll.core.head.topic_owners import TopicOwners
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol.topic_units import topic_hash, unit_name

POLICY: Final = policy_of({"type": "DelaySensitive", "delaySensitive": {"topicAttribute": "topic"}})
TOPIC: Final = topic_hash("tides")
EDGES: Final = ("a", "b")


class Config(NamedTuple):
    """`units`: of the topic; `has_session`: one hands the topic over, or fails at any point; `faults`: each once.

    Faults are `head`, the name of an edge, or `unreachable`: a client that cannot reach the owner.
    """

    units: int = 2
    has_session: bool = True
    faults: tuple[str, ...] = ()


class HeadState(NamedTuple):
    """One life of the head. `owner`: of the topic; `looks`: for how many looks it keeps it without a unit there.

    `is_told`: what the mediator has assigned is in force.
    """

    owner: str = ""
    looks: int = -1
    is_told: bool = False

    def topics(self) -> TopicOwners:
        found = TopicOwners(POLICY)
        found.owners = {TOPIC: self.owner} if self.owner else {}
        found._assigned = {TOPIC: self.looks} if self.looks >= 0 else {}
        return found

    def of(self, found: TopicOwners) -> HeadState:
        return self._replace(owner=found.owners.get(TOPIC, ""), looks=found._assigned.get(TOPIC, -1))


@dataclass(frozen=True)
class State:
    """`phase`: of the session, `before`, `moving` or `over`; `source`: the edge that it empties.

    `tables`: how many of what the mediator has said are under way, which may come late and again. `answered`: for each
    unit the edge that it was told of and has not attached to yet; `serves`: its edge, empty if it has none.
    """

    head: HeadState | None = HeadState()  # noqa: RUF009  # a frozen value
    up: tuple[bool, bool] = (True, True)
    phase: str = "before"
    source: str = ""
    tables: int = 0
    answered: tuple[str, ...] = ()
    serves: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()

    @property
    def target(self) -> str:
        return "" if not self.source else EDGES[1 - EDGES.index(self.source)]

    def is_up(self, edge: str) -> bool:
        return bool(edge) and self.up[EDGES.index(edge)]

    @property
    def served(self) -> dict[str, str]:
        """What the head knows of units: those at edges that run."""
        return {unit_name(f"s{unit}", TOPIC): edge for unit, edge in enumerate(self.serves) if self.is_up(edge)}


class Candidates:
    """The part of a placement that is used; what it draws is the search's choice."""

    message_rate = 0.0

    def __init__(self, state: State, drawn: str) -> None:
        self._state, self._drawn = state, drawn

    def open_candidate(self, name: str) -> Any:
        return SimpleNamespace(name=name) if self._state.is_up(name) else None

    def note(self, candidate: Any) -> Any:
        return candidate

    def place(self, exclude: Collection[str], prefer: str = "", **_: Any) -> Any:
        assert not prefer
        elsewhere = [name for name in EDGES if name not in exclude and self._state.is_up(name)]
        return SimpleNamespace(name=self._drawn if self._drawn in elsewhere or not elsewhere else elsewhere[0])


def put(some: tuple[Any, ...], at: int, value: Any) -> tuple[Any, ...]:
    return (*some[:at], value, *some[at + 1 :])


# -- what happens


def looked_up(at: State, unit: int, drawn: str, exclude: tuple[str, ...] = ()) -> State:
    """A unit asks the head; what it is told is where it will attach, unless that edge is gone by then."""
    assert at.head is not None
    found = at.head.topics()
    candidate = found.place(TOPIC, Candidates(at, drawn), exclude)  # type: ignore[arg-type]  # the part that is used
    if candidate is None or not at.is_up(candidate.name):
        raise ViolationError("a newcomer is told of no edge, or of one that is gone")
    owner = found.owners.get(TOPIC, "")
    if candidate.name != owner and not exclude:
        raise ViolationError(f"a newcomer is told of {candidate.name}, and {owner or 'no edge'} owns the topic")
    if exclude and at.is_up(at.head.owner) and owner != at.head.owner:
        raise ViolationError("a client that cannot reach the owner takes the topic away from it")
    is_moved = at.phase == "moving" and at.head.is_told and at.is_up(at.target)
    if is_moved and not exclude and candidate.name != at.target:
        raise ViolationError(f"a newcomer is told of {candidate.name}, which has given the topic up")
    head = at.head.of(found)
    if head.owner != at.head.owner:
        head = head._replace(is_told=False)
    return replace(at, head=head, answered=put(at.answered, unit, candidate.name))


def attached(at: State, unit: int) -> State:
    """A unit attaches to the edge that it was told of, which tells the head; or it finds that this edge is gone."""
    assert at.head is not None
    edge, at = at.answered[unit], replace(at, answered=put(at.answered, unit, ""))
    if not at.is_up(edge):
        return at
    assert at.head is not None
    found = at.head.topics()
    found.attached(unit_name(f"s{unit}", TOPIC), edge)
    return replace(at, head=at.head.of(found), serves=put(at.serves, unit, edge))


def told(at: State) -> State:
    """What the mediator assigns reaches the head."""
    assert at.head is not None
    found = at.head.topics()
    found.take_table(msg.BundleTable(1, 0, [], [msg.AssignedBundle(TOPIC, at.target)]))
    return replace(at, head=at.head.of(found)._replace(is_told=True))


def looked_at(at: State, *, soon: bool = False) -> State:
    """The head looks at where units are."""
    assert at.head is not None
    found = at.head.topics()
    found.reconcile(lambda: at.served, 0.0, soon=soon)
    head = at.head.of(found)
    if at.phase == "moving" and at.head.is_told and at.is_up(at.target) and head.owner != at.target:
        raise ViolationError("a topic that a session moves is taken back from its target")
    return replace(at, head=head._replace(is_told=head.is_told and head.looks >= 0))


def head_started(at: State) -> State:
    """A new life: edges that run tell it what they serve, and owners are taken from that."""
    found = TopicOwners(POLICY)
    found.adopt(at.served)
    if at.served and not found.owners:
        raise ViolationError("a topic with units has no owner after a start of the head")
    return replace(at, head=HeadState().of(found))


def edge_died(at: State, edge: str) -> State:
    serves = tuple("" if each == edge else each for each in at.serves)
    at = replace(at, up=put(at.up, EDGES.index(edge), False), serves=serves)
    if at.head is None:
        return at
    at = looked_at(at, soon=True)
    assert at.head is not None
    return replace(at, head=at.head._replace(is_told=at.head.is_told and edge != at.target))


def steps(at: State) -> Iterator[tuple[str, State]]:
    """All that can happen next."""
    if at.head is not None:
        yield from _of_session(at, at.head)
        yield "the head looks", looked_at(at)
        yield from _of_units(at)
    elif at.phase == "moving":
        yield "the session ends", replace(at, phase="over")
    yield from _faults(at)


def _of_session(at: State, head: HeadState) -> Iterator[tuple[str, State]]:
    if at.phase == "before" and at.is_up(head.owner) and head.owner in at.serves and all(at.up):
        yield "the session begins", replace(at, phase="moving", source=head.owner)
    if at.phase != "moving":
        if at.tables:
            yield "what was assigned comes late", replace(told(at), tables=0)
        return
    if not at.tables:
        yield "the mediator assigns", replace(at, tables=1)
    else:
        yield "what is assigned arrives", told(at)
        yield "what is assigned is lost", replace(at, tables=0)
    for unit, edge in enumerate(at.serves):
        if edge == at.source and at.is_up(at.target):
            yield f"unit {unit} is handed over", replace(at, serves=put(at.serves, unit, at.target))
    yield "the session ends", replace(at, phase="over")


def _of_units(at: State) -> Iterator[tuple[str, State]]:
    assert at.head is not None
    for unit, edge in enumerate(at.serves):
        if at.answered[unit]:
            yield f"unit {unit} attaches", attached(at, unit)
        elif not edge and any(at.up):
            for drawn in (name for name in EDGES if at.is_up(name)):
                yield f"unit {unit} looks up, {drawn} is drawn", looked_up(at, unit, drawn)
            if "unreachable" in at.faults and all(at.up) and at.head.owner:
                left = tuple(each for each in at.faults if each != "unreachable")
                away = looked_up(replace(at, faults=left), unit, EDGES[0], (at.head.owner,))
                yield f"unit {unit} cannot reach the owner", away
        elif edge:
            yield f"unit {unit} leaves", replace(at, serves=put(at.serves, unit, ""))


def _faults(at: State) -> Iterator[tuple[str, State]]:
    for fault in dict.fromkeys(at.faults):
        after = replace(at, faults=tuple(each for each in at.faults if each != fault))
        if fault == "head" and at.head is not None:
            yield "the head dies", replace(after, head=None, answered=("",) * len(at.answered))
        elif fault in EDGES and at.is_up(fault):
            yield f"{fault} dies", edge_died(after, fault)
    if at.head is None and any(at.up):
        yield "the head starts", head_started(at)
    for edge, is_up in zip(EDGES, at.up, strict=True):
        if not is_up:
            yield f"{edge} starts", replace(at, up=put(at.up, EDGES.index(edge), True))


# -- laws


def look(at: State) -> None:
    """What it comes to once nothing fails any more: one owner, which serves the topic, and every unit is served."""
    end = settled(at)
    assert end.head is not None
    if "" in end.serves:
        raise ViolationError("a unit is served by no edge")
    owner = end.head.owner
    if owner not in end.serves:
        raise ViolationError(f"{owner or 'no edge'} owns the topic, and only others serve it")
    for drawn in EDGES:
        newcomer = looked_up(replace(end, serves=("", *end.serves[1:])), 0, drawn)
        if newcomer.answered[0] != owner or newcomer.head is None or newcomer.head.owner != owner:
            raise ViolationError("newcomers of one topic go to two edges")


def settled(at: State) -> State:
    """All run; the session ends; the head looks again and again; every unit that is served by none looks up.

    Units that are served stay where they are: only a session moves them.
    """
    at = replace(at, up=(True, True), tables=0)
    at = at if at.head is not None else head_started(at)
    at = replace(at, phase="over")
    for _ in range(ROUNDS):
        at = looked_at(at)
        for unit in range(len(at.serves)):
            at = attached(at, unit) if at.answered[unit] else at
    if any(at.serves) and at.head is not None and at.head.owner not in at.serves:
        raise ViolationError(f"{at.head.owner or 'no edge'} keeps a topic for good that only others serve")
    for unit, edge in enumerate(at.serves):
        at = at if edge else attached(looked_up(at, unit, EDGES[0]), unit)
    return looked_at(at)


ROUNDS: Final = 4
"""Looks of the head after which what was assigned has lost its effect; the search makes `ASSIGNED_FOR` 1."""


def visit(at: State, outcomes: Counter[str]) -> Iterator[tuple[str, State]]:
    """Look at what a state comes to, and count its steps by what happens."""
    look(at)
    for what, after in steps(at):
        outcomes[what] += 1
        yield what, after


def explore(config: Config) -> Result:
    """Visit every reachable state once."""
    none = ("",) * config.units
    phase = "before" if config.has_session else "over"
    return search(State(phase=phase, answered=none, serves=none, faults=config.faults), visit)
