"""A consumer group in virtual time: the product's head of a group and session engine, and consumers that are modelled.

What decides is the product's own: the group with its epochs, its commands, the policy, the engine with its sessions;
they hear and say the records that they do in a fleet. A consumer is a server: it works on one item after another of the
slices that it has, reports itself as the client library does, and finishes the item in hand before it releases a slice.
A slice is a number of items by now, and a place in it; each range that is worked off is checked against the last.
"""

from __future__ import annotations

import random
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, Final, cast

from plimsoll.core import session as s
from plimsoll.core.head.groups.declarations import GroupDeclarations
from plimsoll.core.head.groups.definition import Declared
from plimsoll.core.head.groups.group_links import GroupLinks
from plimsoll.core.head.groups.group_table import GroupTable
from plimsoll.core.head.groups.lag import GroupLags
from plimsoll.core.head.groups.requests import GroupRequests
from plimsoll.core.head.groups.slice_commands import SliceCommands
from plimsoll.core.head.groups.times import GroupTimes
from plimsoll.core.head.handover.commands import MediatorCommands
from plimsoll.core.head.ownership import OwnershipTable
from plimsoll.core.permissions import ALL_PERMISSIONS
from plimsoll.core.protocol import messages as msg
from plimsoll.core.spec import SourceDocument
from plimsoll.core.spec.kinds import LoadBalancingSessionSpec
from plimsoll.core.spec.parser import parse_each
from plimsoll.core.transport.link import Link

GROUP: Final = "readings"
HEAD, EPOCH = "east-head", 1 << 40
MEDIATOR: Final = b"mediator"
PLACE_LEASE_SECONDS: Final = 30.0
ENGINE_SECONDS: Final = 0.5
REPORT_BEATS: Final = 2
EXCHANGES_AT_MOST: Final = 100_000
WALL_SECONDS: Final = 1_700_000_000.0
"""The engine's clock is that of the wall; a run begins then."""


def spec_of(fields: Mapping[str, Any]) -> LoadBalancingSessionSpec:
    """A specification from its fields as in YAML."""
    content = {
        "apiVersion": "plimsoll.dev/v1alpha1", "kind": "LoadBalancingSession", "metadata": {"name": "s"}, "spec": fields
    }  # fmt: skip
    found, problems = parse_each([SourceDocument(content)])
    for resource in found:
        if isinstance(resource.spec, LoadBalancingSessionSpec) and not problems:
            return resource.spec
    raise ValueError(f"not a specification of a session: {problems}")


@dataclass(slots=True)
class SliceStream:
    """A slice: items per second, and the number of the next item that is to be worked on. `faults`: ranges that were
    worked on twice, or left out."""

    rate: float
    phase: float
    expected: int = 0
    lost: int = 0
    repeated: int = 0

    def arrived(self, now: float) -> int:
        return int(self.rate * now + self.phase)

    def worked(self, begin: int, end: int) -> None:
        """A consumer has finished these items."""
        self.lost += max(0, begin - self.expected)
        self.repeated += max(0, self.expected - begin)
        self.expected = max(self.expected, end)


@dataclass(slots=True)
class HeldSlice:
    """A slice at its consumer; `done`, `busy`: items and seconds of work since the last report."""

    epoch: int
    at: int
    done: int = 0
    busy: float = 0.0
    is_stopping: bool = False


@dataclass(slots=True)
class ModelConsumer:
    """A consumer that takes `seconds_per_item` for an item. `left`: seconds of work that it may do now; below zero it
    has an item of `hand` in hand."""

    name: str
    seconds_per_item: float
    incarnation: int
    link: Link
    slices: dict[int, HeldSlice] = field(default_factory=dict)
    inbox: deque[msg.ToClient] = field(default_factory=deque)
    left: float = 0.0
    hand: int = -1
    busy: float = 0.0
    beats: int = 0
    next_beat: float = 0.0
    measured_at: float = 0.0
    has_left: bool = False
    items: int = 0


class GroupWorld:
    """A group of one cluster. `rates`: items per second of each slice; `sessions`: whether there is a mediator."""

    def __init__(self, rates: Sequence[float], balancing: str, seed: int, *, step: float = 0.02) -> None:
        rng = random.Random(f"{seed}/phases")
        self.now, self.step, self.epoch, self.name = 0.0, step, EPOCH, HEAD
        self.streams = [SliceStream(rate, rng.random()) for rate in rates]
        self.consumers: dict[str, ModelConsumer] = {}
        self.counters: Counter[str] = Counter()
        self.owners = OwnershipTable()
        self.log = SimpleNamespace(first=1, last=0)
        self.durable_places = SimpleNamespace(unix_now=0.0)  # it keeps nothing
        self.covers = SimpleNamespace(change=lambda *_: None)  # it has no neighbours to ask
        self.is_starting = False
        self.publishers = SimpleNamespace(links=list)
        self.startup = SimpleNamespace(missing=set(), reported=lambda _: None)
        self.reporter = SimpleNamespace(mediators={MEDIATOR: 0.0})
        self.mediator_fence = SimpleNamespace(epoch=1, raise_to=lambda _: None)
        self.said: list[Any] = []
        self.woken: dict[str, None] = {}
        """Consumers that have been sent something since they were last looked at."""
        self.requests: dict[str, s.SessionRequest] = {}
        self._joined = 0
        host = cast(Any, self)
        times = GroupTimes.of(PLACE_LEASE_SECONDS, 1.0)
        self.journal, self.publishers = None, SimpleNamespace(links=list)
        self.group_lags = GroupLags(host)
        self.group_links = GroupLinks(host, cast(Any, None), times.beat, times.lease)
        self.groups = GroupTable(host, times)
        declarations = GroupDeclarations(host, self.groups, "east")
        self.asked = GroupRequests(host, self.groups, declarations)
        self.commands = SliceCommands(host, self.groups, MediatorCommands(host, lambda _: []))
        self.engine = s.MediatorEngine(1)
        self.groups.tick()
        definition = msg.GroupDefinition("", len(rates), "Modulo", "n", balancing=balancing)
        declarations.declare([Declared("east", GROUP, definition)])

    # -- what the head's parts ask of it

    def say(self, link: Link, record: msg.ToClient) -> None:
        cast(Any, link).inbox.append(record)
        self.woken[cast(Any, link).identity] = None

    def say_control(self, _: object, *said: Any) -> None:
        self.said += said

    def end_place(self, subscriber: str) -> None:
        """Places of slices are with their streams."""

    # -- consumers

    def join(self, name: str, seconds_per_item: float) -> ModelConsumer:
        """A consumer begins."""
        self._joined += 1
        inbox: deque[msg.ToClient] = deque()
        link = cast(Link, SimpleNamespace(identity=name, inbox=inbox, grant=ALL_PERMISSIONS))
        made = ModelConsumer(name, seconds_per_item, self._joined, link, inbox=inbox, next_beat=self.now)
        made.measured_at = self.now
        self.consumers[name] = made
        self.asked.on_join(link, msg.GroupJoin(GROUP, name, self._joined, None))
        return made

    def leave(self, name: str) -> None:
        """It gives all, then ends."""
        self.asked.on_leave(self.consumers[name].link, msg.GroupLeave(GROUP))

    @property
    def group(self) -> Any:
        return self.groups.by_name[GROUP]

    def held(self) -> dict[str, int]:
        """How many slices each consumer has."""
        return {name: len(each.slices) for name, each in sorted(self.consumers.items()) if not each.has_left}

    def costs(self) -> dict[str, float]:
        """The work of each consumer, in seconds a second, by the rates of its slices."""
        return {
            name: each.seconds_per_item * sum(self.streams[number].rate for number in each.slices)
            for name, each in sorted(self.consumers.items()) if not each.has_left
        }  # fmt: skip

    # -- sessions

    def ask(self, name: str, **slices: Any) -> None:
        """A user makes a session."""
        self._create(name, {
            "scope": "Local", "source": {"name": "east"}, "action": "MoveSlices", "mode": "Execute",
            "slices": {"group": GROUP, **slices},
        })  # fmt: skip

    def sessions(self) -> list[s.Session]:
        """All sessions, in the order in which they were asked for."""
        return sorted(self.engine.sessions.values(), key=lambda one: (one.requested_at, one.name))

    def _create(self, name: str, spec: Mapping[str, Any]) -> None:
        if name not in self.requests:
            self.requests[name] = s.SessionRequest(name, name, 1, spec_of(spec))
            self._handle(s.SessionUpserted(self.requests[name]))

    def _handle(self, event: s.Event) -> None:
        for effect in self.engine.handle(event, WALL_SECONDS + self.now):
            if isinstance(effect, s.CreateSession):
                self._create(effect.name, effect.spec)
            elif isinstance(effect, s.SendMessage) and isinstance(effect.message, msg.SliceCommand):
                self.commands.on_command(cast(Any, MEDIATOR), effect.message)
            elif isinstance(effect, s.SendMessage) and isinstance(effect.message, msg.SliceQuery):
                self.commands.on_query(cast(Any, MEDIATOR), effect.message)

    # -- time

    def run(self, seconds: float) -> None:
        """Let time pass."""
        for _ in range(round(seconds / self.step)):
            self.now += self.step
            for consumer in list(self.consumers.values()):
                if not consumer.has_left:
                    self._turn(consumer)
            self._exchange()
            if self.now % ENGINE_SECONDS < self.step:
                self._handle(s.FleetObserved(s.FleetView(heads={HEAD: s.HeadView(HEAD, "east", EPOCH)})))

    def _exchange(self) -> None:
        """Records take no time: the head, consumers and the mediator answer each other until none has more to say."""
        for _ in range(EXCHANGES_AT_MOST):
            self.groups.tick()
            self.commands.tick()
            said, self.said = self.said, []
            woken, self.woken = self.woken, {}
            if not said and not woken:
                return
            for name in woken:
                self._answer(self.consumers[name])
            for record in said:
                self._handle(s.HeadMessage(HEAD, record))
        raise RuntimeError("the head, its consumers and the mediator do not come to rest")

    def _turn(self, consumer: ModelConsumer) -> None:
        self._work(consumer)
        self._answer(consumer)
        if self.now >= consumer.next_beat:
            self._beat(consumer)

    def _answer(self, consumer: ModelConsumer) -> None:
        """Hear what came, and release slices that are to go, but for one with an item in hand."""
        while consumer.inbox:
            self._hear(consumer, consumer.inbox.popleft())
        for number in [number for number, held in consumer.slices.items() if held.is_stopping]:
            if consumer.left >= 0.0 or consumer.hand != number:
                self._release(consumer, number)

    def _hear(self, consumer: ModelConsumer, record: msg.ToClient) -> None:
        if isinstance(record, msg.SliceAssigned):
            begin = 0 if record.token is None else record.token[2]
            consumer.slices[record.number] = HeldSlice(record.epoch, begin)
        elif isinstance(record, msg.SliceRevoked) and record.number in consumer.slices:
            consumer.slices[record.number].is_stopping = True
        elif isinstance(record, msg.GroupLeft):
            consumer.has_left = True

    def _work(self, consumer: ModelConsumer) -> None:
        """Items of one slice after another, as many as there is time for; the last may be finished later."""
        consumer.left = min(consumer.left + self.step, self.step)
        if consumer.left <= 0.0:
            consumer.busy += self.step
            return
        for number in [*consumer.slices]:
            held = consumer.slices[number]
            waiting = 0 if held.is_stopping else self.streams[number].arrived(self.now) - held.at
            if waiting <= 0:
                continue
            many = min(waiting, int(consumer.left / consumer.seconds_per_item) + 1)
            self.streams[number].worked(held.at, held.at + many)
            took = many * consumer.seconds_per_item
            held.at, held.done, held.busy = held.at + many, held.done + many, held.busy + took
            consumer.items += many
            consumer.left -= took
            consumer.slices[number] = consumer.slices.pop(number)  # its next turn is behind the others
            if consumer.left <= 0.0:
                consumer.hand = number
                break
        consumer.busy += self.step - max(0.0, consumer.left)

    def _place(self, consumer: ModelConsumer, number: int, *, is_released: bool = False) -> msg.SlicePlace:
        held = consumer.slices[number]
        return msg.SlicePlace(number, held.epoch, (HEAD, EPOCH, held.at), [], is_released)

    def _release(self, consumer: ModelConsumer, number: int) -> None:
        place = self._place(consumer, number, is_released=True)
        del consumer.slices[number]
        self.asked.on_released(consumer.link, msg.SliceReleased(GROUP, place))

    def _beat(self, consumer: ModelConsumer) -> None:
        consumer.beats += 1
        consumer.next_beat = self.now + self.groups.times.beat
        load = self._load(consumer) if consumer.beats % REPORT_BEATS == 0 else None
        places = [self._place(consumer, number) for number in sorted(consumer.slices)]
        self.asked.on_beat(consumer.link, msg.GroupBeat(GROUP, consumer.beats, places, load))

    def _load(self, consumer: ModelConsumer) -> msg.MemberLoad:
        seconds = max(self.now - consumer.measured_at, self.step)
        slices = []
        for number, held in sorted(consumer.slices.items()):
            each = held.busy / held.done if held.done else 0.0
            backlog = max(0, self.streams[number].arrived(self.now) - held.at)
            slices.append(msg.SliceReport(number, held.done / seconds, each, backlog))
            held.done, held.busy = 0, 0.0
        cpu, consumer.busy, consumer.measured_at = min(1.0, consumer.busy / seconds), 0.0, self.now
        return msg.MemberLoad(seconds, cpu, 0.1, slices)

    # -- what came of it

    def items(self) -> dict[str, int]:
        """Items: worked on once, lost, worked on twice, and waiting."""
        return {
            "worked_on": sum(each.expected for each in self.streams),
            "lost": sum(each.lost for each in self.streams),
            "repeated": sum(each.repeated for each in self.streams),
            "waiting": sum(max(0, each.arrived(self.now) - each.expected) for each in self.streams),
        }
