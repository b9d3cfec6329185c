"""A world for the mediator: heads that keep to the contract of commands, a network that does not, a store, and a shell.

Heads are scripted: they have the states and refusals of real ones, and a seeded choice decides the outcome of each
member. The shell carries out effects in order and can die between any two of them. Everything runs in virtual time.
"""

from __future__ import annotations

import heapq
import random
from dataclasses import dataclass, field, replace
from typing import Any

from plimsoll.core.protocol import messages as msg
from plimsoll.core.session import (
    CreateSession,
    DeleteSession,
    Deposed,
    EdgeView,
    EmitEvent,
    EngineSettings,
    FleetObserved,
    FleetView,
    HeadMessage,
    HeadView,
    MediatorEngine,
    SaveSession,
    SendMessage,
    Session,
    SessionDeleted,
    SessionRequest,
    SessionUpserted,
    Tick,
    decode,
    encode,
    observed_session,
)
from plimsoll.core.spec import Resource, SourceDocument
from plimsoll.core.spec.kinds import LoadBalancingSessionSpec
from plimsoll.core.spec.parser import parse_each
from plimsoll.core.spec.resources import to_mapping
from plimsoll.core.verify.session_checker import SessionChecker

OPEN = ("preparing", "attached", "cutting")
OUTCOMES = ("moved", "stayed", "away", "gone", "returned", "detached", "unknown")
UNANSWERED_SHARE = 0.1
"""Share of the members that are undone whose source does not say whether it serves them."""
STEP = 0.1


def spec_of(**fields: Any) -> LoadBalancingSessionSpec:
    """A specification from its fields as in YAML."""
    content = {
        "apiVersion": "plimsoll.dev/v1alpha1", "kind": "LoadBalancingSession", "metadata": {"name": "s"},
        "spec": fields,
    }  # fmt: skip
    [resource], problems = parse_each([SourceDocument(content)])
    assert not problems, problems
    assert isinstance(resource, Resource)
    assert isinstance(resource.spec, LoadBalancingSessionSpec)
    return resource.spec


@dataclass(frozen=True)
class Faults:
    """Probabilities: of a message, of a step of the world, of an effect, of a member's next step."""

    loss: float = 0.0
    repeat: float = 0.0
    delay: float = 0.0
    mediator_dies: float = 0.0
    head_restarts: float = 0.0
    leaves: float = 0.0
    speed: float = 0.5
    heal_at: float = float("inf")


@dataclass
class Handover:
    plan: msg.HandoverPlan
    members: dict[str, str]
    decides_at: float
    state: str = "preparing"
    drains_until: float = float("inf")
    reason: str = ""


class Head:
    """One head, and the subscribers of its edges: `serves` is shared with the world, and is the true state."""

    def __init__(self, name: str, world: World) -> None:
        self.name, self.world = name, world
        self.epoch = 10
        self.starting_until = 0.0
        self.mediator = 0
        self.handovers: dict[str, Handover] = {}

    @property
    def is_starting(self) -> bool:
        return self.world.now < self.starting_until

    def restart(self) -> None:
        """A subscriber that was between two edges ends up at one of them."""
        for one in self.handovers.values():
            for x, state in one.members.items():
                if state == "cut" and self.world.draw.random() < 0.5:
                    self.world.move(x, one.plan.target)
        self.handovers.clear()
        self.epoch += 1
        self.starting_until = self.world.now + self.world.draw.uniform(0.2, 3.0)

    def on(self, record: Any) -> msg.Outcome | msg.SubscriberPage | None:
        if isinstance(record, msg.ListSubscribers):
            names = sorted(x for x in self.world.serves[record.edge] if x > record.after)
            page = names[: self.world.page]
            return msg.SubscriberPage(record.id, record.edge, self.epoch, page, len(names) > len(page))
        why = self._refusal(record)
        if why:
            return msg.Outcome(record.session, self.mediator, self.epoch, "failed", [], why)
        self.mediator = max(self.mediator, record.mediator)
        if record.step == "prepare":
            self._prepare(record.session, record.plan)
        elif record.step == "cut":
            self._cut(record.session)
        elif record.step == "abort":
            self._abort(record.session)
        return self.outcome(record.session)

    def _refusal(self, command: msg.Command) -> str:
        if command.mediator < self.mediator:
            return "mediator-epoch: another has spoken"
        if self.is_starting:
            return "starting: wait"
        if command.head_epoch != self.epoch and command.step != "ask":
            return "head-epoch: another"
        if command.step == "prepare" and command.session not in self.handovers and self.world.refuses:
            return "full: too many sessions"
        return ""

    def outcome(self, session: str) -> msg.Outcome:
        one = self.handovers.get(session)
        if one is None:
            return msg.Outcome(session, self.mediator, self.epoch, "unknown", [])
        members = list(one.members.items())
        return msg.Outcome(session, self.mediator, self.epoch, one.state, members, one.reason)  # type: ignore[arg-type]  # words of the protocol, kept as text here

    def _prepare(self, session: str, plan: msg.HandoverPlan) -> None:
        if session in self.handovers:
            return
        busy = {x for one in self.handovers.values() for x, state in one.members.items() if state in (*OPEN, "cut")}
        there = self.world.serves[plan.source]
        members = {x: "gone" if x not in there else "aborting" if x in busy else "preparing" for x in plan.members}
        self.handovers[session] = Handover(plan, members, self.world.now + plan.prepare_seconds)
        self._settle(self.handovers[session])

    def _cut(self, session: str) -> None:
        one = self.handovers.get(session)
        if one is not None and one.state == "ready":
            self._set(one, ("preparing",), "aborting")
            self._set(one, ("attached",), "cutting")
            one.state = "cutting"
            self._settle(one)

    def _abort(self, session: str) -> None:
        one = self.handovers.get(session)
        if one is None:
            plan = msg.HandoverPlan("", "", "", [], False, 0.0, 0.0)
            self.handovers[session] = Handover(plan, {}, 0.0, "aborted", reason="tombstone")
            return
        self._set(one, OPEN, "aborting")
        self._settle(one)

    def _set(self, one: Handover, states: tuple[str, ...], state: str) -> None:
        for x in [x for x, was in one.members.items() if was in states]:
            one.members[x] = state

    def _settle(self, one: Handover) -> None:
        if one.state not in ("done", "aborted") and all(state in OUTCOMES for state in one.members.values()):
            one.state = "done" if one.state == "cut" else "aborted"
            one.reason = one.reason or ("no subscriber could be moved" if one.state == "aborted" else "")

    def tick(self) -> list[msg.Outcome]:
        """Every member may take a step; changes are reported."""
        if self.is_starting:
            return []
        said = []
        for session, one in self.handovers.items():
            before = (one.state, dict(one.members))
            if one.state not in ("done", "aborted"):
                self._go_on(one)
            if (one.state, one.members) != before:
                said.append(self.outcome(session))
        return said

    def _go_on(self, one: Handover) -> None:
        world, faults = self.world, self.world.faults
        if world.now >= one.decides_at:
            self._set(one, OPEN, "aborting")
        for x, state in list(one.members.items()):
            if state == "aborting":
                one.members[x] = "unknown" if world.draw.random() < UNANSWERED_SHARE else "stayed"
                continue
            if world.draw.random() > faults.speed:
                continue
            if x in world.silent and (state == "cut" or (state == "preparing" and not one.plan.replay)):
                continue
            if state == "preparing":
                one.members[x] = "away" if world.draw.random() < faults.leaves else "attached"
            elif state == "cutting":
                one.members[x] = "cut"
            elif state == "cut" and world.draw.random() < faults.leaves:
                one.members[x] = "returned"
            elif state == "cut":
                one.members[x] = "moved"
                world.move(x, one.plan.target)
        if one.state == "preparing" and "attached" in one.members.values():
            one.state = "ready"
        if one.state == "cutting" and "cut" in one.members.values():
            one.state, one.drains_until = "cut", world.now + one.plan.drain_seconds
        if world.now >= one.drains_until:
            # By replay the source has closed its attachment at the cut, and a lease is as long as a drain.
            world.serves[one.plan.source] -= {x for x, state in one.members.items() if state == "cut"}
            self._set(one, ("cut",), "detached")
        self._settle(one)


@dataclass
class Stored:
    request: SessionRequest
    record: dict[str, Any] | None = None


@dataclass
class World:
    """Two clusters, east (a, b, c) and west (w, v), and a mediator. `dies_at`: the effect before which it dies."""

    seed: int = 0
    faults: Faults = Faults()
    settings: EngineSettings = field(default_factory=EngineSettings)
    page: int = 7
    refuses: bool = False
    dies_at: int = 0

    def __post_init__(self) -> None:
        self.draw = random.Random(self.seed)
        self.now = 1_000_000.0
        self.epoch = 0
        self.store: dict[str, Stored] = {}
        self.serves: dict[str, set[str]] = {edge: set() for edge in "abcwv"}
        self.heads = {name: Head(name, self) for name in ("east-head", "west-head")}
        self.head_of = dict.fromkeys("abc", "east-head") | dict.fromkeys("wv", "west-head")
        self.cordoned: set[str] = set()
        self.down: set[str] = set()
        self.silent: set[str] = set()
        """Subscribers whose clients read what they are sent and never answer."""
        self.reports: dict[str, dict[str, Any]] = {}
        self.told: list[EmitEvent] = []
        self.sent: list[SendMessage] = []
        self.saves: list[tuple[float, Session]] = []
        self.deposed: list[int] = []
        self.forgotten: list[str] = []
        self._wire: list[tuple[float, int, str, Any]] = []
        self._order = self._uids = self.effects = 0
        self._next_view = 0.0
        self.checker = SessionChecker(2 * STEP)
        self.start()

    # -- people

    def fill(self, edge: str, count: int, prefix: str = "") -> list[str]:
        names = [f"{prefix or edge}{number:03}" for number in range(count)]
        self.serves[edge] |= set(names)
        return names

    def move(self, x: str, edge: str) -> None:
        for others in self.serves.values():
            others.discard(x)
        self.serves[edge].add(x)

    def ask(self, name: str, parent: Any = "", **fields: Any) -> str:
        """Create an object; returns its uid."""
        self._uids += 1
        uid = f"uid-{self._uids}"
        fields = {"scope": "Local", "mode": "Execute", **fields}
        for party in ("source", "target"):
            if isinstance(fields.get(party), str):
                fields[party] = {"name": fields[party]}
        self.store[uid] = Stored(SessionRequest(name, uid, 1, spec_of(**fields), parent))
        self.handle(SessionUpserted(self.store[uid].request))
        return uid

    def change(self, uid: str, **fields: Any) -> None:
        """Change fields of a specification."""
        old = self.store[uid].request
        new = replace(old, generation=old.generation + 1, spec=spec_of(**{**to_mapping(old.spec), **fields}))
        self.store[uid].request = new
        self.handle(SessionUpserted(new))

    def session(self, uid: str) -> Session:
        """As it is stored."""
        return decode(self.store[uid].record)

    def named(self, name: str) -> Session:
        return next(self.session(uid) for uid, one in self.store.items() if one.request.name == name)

    # -- the shell

    def start(self) -> None:
        """A new life of the mediator, from what is stored."""
        self.epoch += 1
        known = [decode(one.record) for one in self.store.values() if one.record is not None]
        self.mediator = MediatorEngine(self.epoch, known, self.settings)
        self._next_view = 0.0
        for one in list(self.store.values()):
            self.handle(SessionUpserted(one.request))

    def handle(self, event: Any) -> None:
        mediator = self.mediator
        for effect in mediator.handle(event, self.now):
            if mediator is not self.mediator:
                return
            self.effects += 1
            if self.effects == self.dies_at or self._hits(self.faults.mediator_dies):
                self.start()
                return
            self._carry_out(effect)

    def _carry_out(self, effect: Any) -> None:
        if isinstance(effect, SaveSession):
            if effect.session.uid in self.store:
                self.store[effect.session.uid].record = encode(effect.session)
                self.saves.append((self.now, effect.session))
                self.check_stored(effect.session)
        elif isinstance(effect, SendMessage):
            self.check_send(effect)
            self.sent.append(effect)
            self._post("to", (effect.head, effect.message))
        elif isinstance(effect, CreateSession):
            self._create(effect)
        elif isinstance(effect, DeleteSession):
            self.forgotten.append(effect.name)
            self.delete(effect.uid)
        elif isinstance(effect, Deposed):
            self.deposed.append(effect.epoch)
        else:
            self.told.append(effect)

    def _create(self, effect: CreateSession) -> None:
        is_there = effect.parent in self.store or not effect.parent
        if is_there and all(one.request.name != effect.name for one in self.store.values()):
            self.ask(effect.name, effect.parent, **effect.spec)

    def delete(self, uid: str) -> None:
        del self.store[uid]
        self.checker.forget(uid)
        self.handle(SessionDeleted(uid))

    # -- the laws that hold at every moment

    def check_send(self, effect: SendMessage) -> None:
        """Every command follows from a stored state."""
        command = effect.message
        if not isinstance(command, msg.Command):
            return
        assert command.mediator == self.epoch
        stored = [self.session(uid) for uid, one in self.store.items() if one.record is not None]
        found = [batch for session in stored for batch in session.batches if batch.id == command.session]
        if not found:
            assert command.step == "abort", f"{command} was never stored"
            return
        [batch] = found
        assert command.step in ("ask", batch.intent), f"{command} while {batch.intent} is stored"
        assert command.step == "ask" or batch.ended_at is None

    def check_stored(self, session: Session) -> None:
        """The checker of sessions, and the limit of the fleet."""
        self.checker.add(observed_session(session, self.now))
        assert not self.checker.violations, self.checker.violations
        stored = (self.session(uid) for uid, one in self.store.items() if one.record is not None)
        running = [one.name for one in stored if one.is_running and not one.is_parent]
        assert len(running) <= self.settings.max_sessions, running

    # -- time

    def _hits(self, probability: float) -> bool:
        return self.now < self.faults.heal_at and self.draw.random() < probability

    def _post(self, way: str, what: Any) -> None:
        for _ in range(2 if self._hits(self.faults.repeat) else 1):
            if not self._hits(self.faults.loss):
                delay = self.draw.uniform(0.0, self.faults.delay) if self.now < self.faults.heal_at else 0.0
                self._order += 1
                heapq.heappush(self._wire, (self.now + 0.01 + delay, self._order, way, what))

    def view(self) -> FleetView:
        heads = {
            name: HeadView(
                name, name.removesuffix("-head"), head.epoch, not head.is_starting, self.reports.get(name, {})
            )
            for name, head in self.heads.items()
        }
        edges = {
            edge: EdgeView(
                edge, head.removesuffix("-head"), head, ready=edge not in self.down,
                cordoned=edge in self.cordoned, subscribers=len(self.serves[edge]),
                report=self.reports.get(edge, {}),
            )
            for edge, head in self.head_of.items()
        }  # fmt: skip
        return FleetView(heads, edges)

    def step(self) -> None:
        self.now += STEP
        while self._wire and self._wire[0][0] <= self.now:
            _, _, way, what = heapq.heappop(self._wire)
            head, record = what
            if way == "to":
                if (answer := self.heads[head].on(record)) is not None:
                    self._post("from", (head, answer))
            else:
                self.handle(HeadMessage(head, record))
        for name, head in self.heads.items():
            if self._hits(self.faults.head_restarts):
                head.restart()
            for outcome in head.tick():
                self._post("from", (name, outcome))
        if self.now >= self._next_view:
            self._next_view = self.now + 1.0
            self.handle(FleetObserved(self.view()))
        self.handle(Tick())
        assert not self.checker.judge(self.now), self.checker.violations

    def run(self, seconds: float) -> None:
        end = self.now + seconds
        while self.now < end:
            self.step()

    def until(self, is_so: Any, seconds: float = 200.0) -> None:
        """Step until a condition holds; fails if it does not hold in time."""
        end = self.now + seconds
        while not is_so():
            assert self.now < end, {s.name: (s.phase, s.reason, s.message) for s in self.mediator.sessions.values()}
            self.step()

    def until_over(self, *uids: str, seconds: float = 200.0) -> None:
        self.until(lambda: all(self.mediator.sessions[uid].is_over for uid in uids), seconds)
