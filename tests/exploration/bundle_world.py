"""Ranges and owners of bundles as a small world, with the product's own tables in head and edges.

Two edges, one topic in each half of a bundle that may be split, a mediator that stores before it tells, one session
that moves or releases the bundle, and a network that loses, keeps and repeats what the mediator says. A state is a
value; a step copies what it changes. `without` switches rules of the mediator off; rules of head and edge are switched
off in the product's code.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any, NamedTuple

from tests.exploration.search import Result, ViolationError, search

from plimsoll.core.edge.bundle_meter import BundleMeter
from plimsoll.core.head.bundles import Bundles
from plimsoll.core.head.placement import policy_of
from plimsoll.core.policies.model.hash_ranges import Partition
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol.topic_units import unit_name

POLICY = policy_of({"type": "Pulsar", "pulsar": {"topicAttribute": "topic", "bundles": {"initial": 2}}})
assert POLICY is not None
assert POLICY.pulsar is not None
OWN = POLICY.pulsar
WHOLE = Partition.of_count(2)
RANGES = (WHOLE, WHOLE.split(WHOLE.ranges[0], 0x40000000))
"""The partition of each version."""
UNITS = (0x00000001, 0x50000000)
"""Topics that a split takes apart."""
EDGES = ("a", "b")
RELEASE = 1
"""The number of the only release of a world."""

Version = tuple[int, int]
"""The epoch of the mediator, and the version of the ranges."""


class Config(NamedTuple):
    """`session`: what it does to the bundle, `transfer` or `lookup`; empty: there is none. `faults`: each once.

    `tables`: how many are under way at once on each link, and arrive in any order. `without`: rules of the mediator
    that are switched off, `stored-first` or `assigned`.
    """

    session: str = ""
    faults: tuple[str, ...] = ()
    is_split: bool = True
    tables: int = 1
    without: tuple[str, ...] = ()


class Table(NamedTuple):
    """What a mediator says of the first bundle: the edge that it is assigned to, or the number of its release."""

    mediator: int
    version: int
    assigned: str = ""
    released: int = 0

    def message(self) -> msg.BundleTable:
        low, bounds = RANGES[self.version].ranges[0].low, list(RANGES[self.version].boundaries)
        assigned = [msg.AssignedBundle(low, self.assigned)] if self.assigned else []
        released = [msg.ReleasedBundle(low, self.released)] if self.released else []
        return msg.BundleTable(self.mediator, self.version, bounds, assigned, released)


class HeadState(NamedTuple):
    """One life of the head. `is_assigned`: it has taken the table that gives the bundle to the target."""

    version: Version = (0, 0)
    owners: tuple[tuple[int, str], ...] = ()
    released: tuple[tuple[int, tuple[int, ...]], ...] = ()
    is_assigned: bool = False
    vacant: tuple[int, ...] = ()

    def bundles(self) -> Bundles:
        found = Bundles(POLICY)
        found.partition, found.version = RANGES[self.version[1]], self.version
        found.owners = {found.partition.range_of(low): edge for low, edge in self.owners}
        found._released = {found.partition.range_of(low): frozenset(numbers) for low, numbers in self.released}
        found._vacant = {found.partition.range_of(low) for low in self.vacant}
        return found

    def of(self, found: Bundles) -> HeadState:
        owners = tuple(sorted((bundle.low, edge) for bundle, edge in found.owners.items()))
        released = tuple(sorted((bundle.low, tuple(sorted(some))) for bundle, some in found._released.items()))
        vacant = tuple(sorted(bundle.low for bundle in found._vacant))
        version = found.version[0], RANGES.index(found.partition)
        return HeadState(version, owners, released, self.is_assigned, vacant)


class EdgeState(NamedTuple):
    """One life of an edge: what it was told."""

    version: Version = (0, 0)
    released: tuple[tuple[int, int], ...] = ()

    def meter(self) -> BundleMeter:
        found = BundleMeter(OWN, 0.0)
        found.partition, found.version = RANGES[self.version[1]], self.version
        found._released = {found.partition.range_of(low): number for low, number in self.released}
        return found

    @classmethod
    def of(cls, found: BundleMeter) -> EdgeState:
        released = tuple(sorted((bundle.low, number) for bundle, number in found._released.items()))
        return cls((found.version[0], RANGES.index(found.partition)), released)

    def report(self) -> msg.EdgeReport:
        meter, cover = self.meter(), msg.Cover(1, [], [])
        bounds, seen = list(meter.partition.boundaries), meter.seen_releases()
        return msg.EdgeReport("", "", cover, [], False, self.version[0], bounds, *meter.version, released=seen)


FIRST_HEAD, FIRST_EDGE = HeadState(), EdgeState()


@dataclass(frozen=True)
class State:
    """`tables`: of the mediator, under way to the head, which may come again; `told`: from the head to each edge.

    `phase`: of the session, `before`, `moving` or `over`; `began`: the version at its begin. `answered`: for each unit
    the edge that a lookup has named and that it has not attached to yet; `serves`: its edge, empty if it has none.
    """

    stored: int = 0
    mediator: int = 1
    phase: str = "before"
    began: int = 0
    source: str = ""
    head: HeadState | None = FIRST_HEAD
    edges: tuple[EdgeState | None, ...] = (FIRST_EDGE, FIRST_EDGE)
    tables: tuple[Table, ...] = ()
    told: tuple[tuple[Table, ...], ...] = ((), ())
    answered: tuple[str, ...] = ("", "")
    serves: tuple[str, ...] = ("", "")
    faults: tuple[str, ...] = ()

    @property
    def target(self) -> str:
        return "" if not self.source else EDGES[1 - EDGES.index(self.source)]

    def is_up(self, edge: str) -> bool:
        return self.edges[EDGES.index(edge)] is not None


class Candidates:
    """The part of a placement that a lookup uses; what it draws is the search's choice."""

    message_rate = 0.0

    def __init__(self, state: State, drawn: str) -> None:
        self._state, self._drawn = state, drawn

    def open_candidate(self, name: str) -> Any:
        return SimpleNamespace(name=name) if name and self._state.is_up(name) else None

    def note(self, candidate: Any) -> Any:
        return candidate

    def place(self, exclude: Collection[str], prefer: str = "", rate: float = 0.0, **_: Any) -> Any:
        assert not exclude
        assert not prefer
        assert rate > 0.0
        return SimpleNamespace(name=self._drawn)


def put(some: tuple[Any, ...], at: int, value: Any) -> tuple[Any, ...]:
    return (*some[:at], value, *some[at + 1 :])


# -- what happens


def looked_up(at: State, unit: int, drawn: str) -> State:
    """A unit asks the head; what it is told is where it will attach, unless that edge is gone by then."""
    assert at.head is not None
    found = at.head.bundles()
    candidate = found.place(UNITS[unit], Candidates(at, drawn), ())  # type: ignore[arg-type]  # the part that is used
    assert candidate is not None
    owner = found.owners.get(found.partition.range_of(UNITS[unit]))
    if candidate.name != owner:
        raise ViolationError(f"a lookup answers {candidate.name}, and {owner or 'no edge'} owns the bundle")
    is_of_session = at.phase == "moving" and RANGES[at.began].ranges[0].holds(UNITS[unit])
    if is_of_session and at.head.is_assigned and at.is_up(at.target) and candidate.name != at.target:
        raise ViolationError(f"a lookup answers {candidate.name}, which has given the bundle up")
    head = at.head.of(found)
    if head.owners != at.head.owners:  # the target was gone when the unit asked, and has lost the bundle
        head = head._replace(is_assigned=False)
    return replace(at, head=head, answered=put(at.answered, unit, candidate.name))


def attached(at: State, unit: int) -> State:
    """A unit attaches to the edge that it was told of, which tells the head; or it finds that this edge is gone."""
    assert at.head is not None
    edge, at = at.answered[unit], replace(at, answered=put(at.answered, unit, ""))
    if not at.is_up(edge):
        return at
    assert at.head is not None
    found = at.head.bundles()
    found.attached(unit_name("s", UNITS[unit]), edge)
    return replace(at, head=at.head.of(found), serves=put(at.serves, unit, edge))


def table_of(at: State, config: Config) -> Table:
    """What the mediator of now says."""
    version = at.stored
    if "stored-first" in config.without and config.is_split:
        version = 1
    is_session = at.phase == "moving" and at.began == version
    if is_session and config.session == "lookup":
        return Table(at.mediator, version, released=RELEASE)
    if is_session and config.session == "transfer" and "assigned" not in config.without:
        return Table(at.mediator, version, assigned=at.target)
    return Table(at.mediator, version)


def taken(at: State, table: Table, most: int = 1) -> State:
    """A table reaches the head, which passes it on to its edges; `most` are under way to each, the latest."""
    assert at.head is not None
    found = at.head.bundles()
    if not found.take_table(table.message()):
        return at
    is_carried_out = 0 in dict(at.head.owners) and found.partition.range_of(0) not in found.owners
    seen = {dict(edge.released).get(0) for edge in at.edges if edge is not None}
    if is_carried_out and table.released in seen:
        raise ViolationError("the head carries a release out that an edge has seen before")
    if found.is_vacant(table.message()):
        found.adopt({unit_name("s", UNITS[unit]): edge for unit, edge in enumerate(at.serves) if edge})
    head = at.head.of(found)
    if table.assigned and at.phase == "moving":
        head = head._replace(is_assigned=True)
    passed = Table(*found.version, released=table.released)
    under_way = (
        tuple(dict.fromkeys((*told, passed)))[-most:] if edge is not None else ()
        for told, edge in zip(at.told, at.edges, strict=True)
    )
    return replace(at, head=head, told=tuple(under_way))


def heard(at: State, number: int, table: Table) -> State:
    """What the head has said reaches an edge: units of released bundles leave it."""
    edge = at.edges[number]
    assert edge is not None
    meter = edge.meter()
    meter.take_ranges(table.message())
    gone = meter.released(table.message())
    name = EDGES[number]
    if gone and dict(edge.released).get(gone[0].low) == table.released:
        raise ViolationError(f"{name} sends units away by a release that it has seen before")
    serves = tuple(
        "" if at_edge == name and any(each.holds(UNITS[unit]) for each in gone) else at_edge
        for unit, at_edge in enumerate(at.serves)
    )
    left = tuple(each for each in at.told[number] if each != table)
    edges = put(at.edges, number, EdgeState.of(meter))
    return replace(at, edges=edges, told=put(at.told, number, left), serves=serves)


def head_started(at: State) -> State:
    """A new life: every edge that runs reports, then owners are taken from what edges serve."""
    found = Bundles(POLICY)
    for edge in at.edges:
        if edge is not None:
            found.take_report(edge.report())
    found.adopt({unit_name("s", UNITS[unit]): edge for unit, edge in enumerate(at.serves) if edge})
    return replace(at, head=HeadState().of(found))


def edge_started(at: State, number: int) -> State:
    edge = EdgeState()
    head = at.head
    if head is not None:
        found = head.bundles()
        found.take_report(edge.report())
        head = head.of(found)
    return replace(at, edges=put(at.edges, number, edge), head=head)


def edge_died(at: State, number: int) -> State:
    serves = tuple("" if edge == EDGES[number] else edge for edge in at.serves)
    head = at.head
    if head is not None and EDGES[number] == at.target:  # it owns nothing any more
        head = head._replace(is_assigned=False)
    return replace(at, head=head, edges=put(at.edges, number, None), told=put(at.told, number, ()), serves=serves)


def steps(at: State, config: Config) -> Iterator[tuple[str, State]]:
    """All that can happen next."""
    yield from _of_mediator(at, config)
    yield from _of_network(at, config.tables)
    yield from _of_units(at)
    yield from _faults(at)


def _of_mediator(at: State, config: Config) -> Iterator[tuple[str, State]]:
    if config.is_split and at.stored == 0:
        yield "a split is stored", replace(at, stored=1)
    if len(at.tables) < config.tables and (table := table_of(at, config)) not in at.tables:
        yield "the mediator tells", replace(at, tables=(*at.tables, table))
    if at.phase == "before" and config.session and at.head is not None and None not in at.edges:
        owner = dict(at.head.owners).get(0, "")
        if owner:
            yield "the session begins", replace(at, phase="moving", began=at.stored, source=owner)
    if at.phase == "moving":
        yield "the session ends", _session_ended(at)


def _session_ended(at: State) -> State:
    return replace(at, phase="over", head=at.head._replace(is_assigned=False) if at.head is not None else None)


def _of_network(at: State, most: int) -> Iterator[tuple[str, State]]:
    for table in at.tables:
        yield "a table is lost", replace(at, tables=tuple(each for each in at.tables if each != table))
        if at.head is not None:
            yield "a table arrives, and may come again", taken(at, table, most)
    for number, told in enumerate(at.told):
        for table in told:
            yield f"{EDGES[number]} is told", heard(at, number, table)


def _of_units(at: State) -> Iterator[tuple[str, State]]:
    for unit in range(len(UNITS)):
        if at.answered[unit] and at.head is not None:
            yield f"unit {unit} attaches", attached(at, unit)
        elif not at.answered[unit] and not at.serves[unit] and at.head is not None:
            for drawn in (name for name in EDGES if at.is_up(name)):
                yield f"unit {unit} looks up, {drawn} is drawn", looked_up(at, unit, drawn)
        elif is_movable(at, unit):
            yield f"unit {unit} is handed over", replace(at, serves=put(at.serves, unit, at.target))


def is_movable(at: State, unit: int) -> bool:
    """Whether the session hands a unit over now."""
    is_transfer = at.phase == "moving" and at.head is not None and at.is_up(at.target)
    return is_transfer and at.serves[unit] == at.source and RANGES[at.began].ranges[0].holds(UNITS[unit])


def _faults(at: State) -> Iterator[tuple[str, State]]:
    for fault in dict.fromkeys(at.faults):
        left = put(at.faults, at.faults.index(fault), "")
        after = replace(at, faults=tuple(each for each in left if each))
        match fault:
            case "mediator":
                yield "the mediator dies", replace(after, mediator=at.mediator + 1)
            case "head" if at.head is not None:
                yield "the head dies", replace(after, head=None, told=((), ()))
            case _ if fault in EDGES and at.is_up(fault):
                yield f"{fault} dies", edge_died(after, EDGES.index(fault))
    if at.head is None:
        yield "the head starts", head_started(at)
    for number, edge in enumerate(at.edges):
        if edge is None:
            yield f"{EDGES[number]} starts", edge_started(at, number)


# -- laws


def check(before: State, at: State) -> None:
    """The laws that hold at every step."""
    for name, old, new in _copies(before, at):
        if new.version[1] > at.stored:
            raise ViolationError(f"{name} knows ranges that the store does not have")
        if old is not None and new.version < old.version:
            raise ViolationError(f"an older table has changed {name}")
    if at.head is not None:
        parted = RANGES[at.head.version[1]]
        if any(parted.range_of(low).low != low for low, _ in at.head.owners):
            raise ViolationError("an owner of a bundle that is none")


def _copies(before: State, at: State) -> Iterator[tuple[str, HeadState | EdgeState | None, HeadState | EdgeState]]:
    if at.head is not None:
        yield "the head", before.head, at.head
    for name, old, new in zip(EDGES, before.edges, at.edges, strict=True):
        if new is not None:
            yield name, old, new


def settled(at: State, config: Config) -> State:
    """What it comes to once nothing fails any more: all run, tables are repeated, and the session comes to its end."""
    is_whole = not config.faults or at.faults == config.faults
    was_moving = at.phase == "moving"
    for number, edge in enumerate(at.edges):
        at = at if edge is not None else edge_started(at, number)
    at = at if at.head is not None else head_started(at)
    at = _told_to_all(replace(at, tables=(), told=((), ())), config)
    if was_moving and config.session == "lookup" and at.began == at.stored:
        for name, edge in zip(EDGES, at.edges, strict=True):
            if edge is not None and dict(edge.released).get(0) != RELEASE:
                raise ViolationError(f"units of a bundle that is released stay at {name}")
    if at.phase == "moving":
        for unit in range(len(UNITS)):
            if config.session == "transfer" and is_movable(at, unit):
                at = replace(at, serves=put(at.serves, unit, at.target))
        at = _session_ended(at)
    at = _told_to_all(at, config)
    at = _late_brought(at)
    again = _told_to_all(at, config)
    if again != at:
        raise ViolationError("what is told again changes something")
    if was_moving and config.session == "transfer" and is_whole and at.began == at.stored:
        assert at.head is not None
        if dict(at.head.owners).get(0) != at.target:
            raise ViolationError("a bundle that was handed over is not its target's")
    return at


def _told_to_all(at: State, config: Config) -> State:
    for _ in range(2):
        at = taken(at, table_of(at, config))
        for number, told in enumerate(at.told):
            at = heard(at, number, told[0]) if told else at
        for unit in range(len(UNITS)):
            at = attached(at, unit) if at.answered[unit] else at
            if not at.serves[unit]:
                at = attached(looked_up(at, unit, EDGES[0]), unit)
    return at


def _late_brought(at: State) -> State:
    """The policy brings units to the owner of their bundle, where it has one."""
    assert at.head is not None
    parted, owners = RANGES[at.head.version[1]], dict(at.head.owners)
    homes = [owners.get(parted.range_of(topic).low, edge) for topic, edge in zip(UNITS, at.serves, strict=True)]
    return replace(at, serves=tuple(homes))


def check_end(at: State) -> None:
    """The laws of a state in which all has come to rest."""
    assert at.head is not None
    parted, owners = RANGES[at.stored], dict(at.head.owners)
    for name, version in [("the head", at.head.version), *((n, e.version) for n, e in zip(EDGES, at.edges) if e)]:  # noqa: B905  # two of each
        if version[1] != at.stored:
            raise ViolationError(f"{name} does not know the ranges of the store")
    for topic, edge in zip(UNITS, at.serves, strict=True):
        owner = owners.get(parted.range_of(topic).low, "")
        if not edge:
            raise ViolationError("a unit is served by no edge")
        if not owner:
            raise ViolationError("a bundle with units has no owner")
        if owner != edge:
            raise ViolationError(f"{edge} serves a unit of a bundle that {owner} owns")


def explore(config: Config) -> Result:
    """Visit every reachable state once; in each one look at what it comes to. `outcomes`: `moved` and `released`."""
    rested = set[State]()

    def visit(at: State, outcomes: Counter[str]) -> Iterator[tuple[str, State]]:
        quiet = replace(at, tables=(), told=((), ()))
        if quiet not in rested:
            rested.add(quiet)
            check_end(settled(quiet, config))
        for what, after in steps(at, config):
            try:
                check(at, after)
            except ViolationError as error:
                raise ViolationError(f"{error}; at or behind: {what}") from None
            outcomes["moved"] += "handed over" in what
            outcomes["released"] += after.serves.count("") > at.serves.count("") and "is told" in what
            yield what, after

    return search(State(faults=config.faults), visit, most=400_000)
