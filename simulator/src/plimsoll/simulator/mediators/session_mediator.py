"""Sessions of balancing, driven by the mediator of the product: its shell in virtual time, over a store in memory.

The shell does what the local supervisor and the operator do. It keeps the objects and what the mediator wants stored,
sees the fleet through load reports alone, carries effects out in order, and starts each mediator from what is stored.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from plimsoll.core import session as s
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol.wire import Info
from plimsoll.core.spec import SourceDocument
from plimsoll.core.spec.kinds import LoadBalancingSessionSpec
from plimsoll.core.spec.parser import parse_block, parse_each
from plimsoll.core.spec.types.policy import PolicySpec
from plimsoll.core.transport.link import LinkLimits, Peer
from plimsoll.core.transport.overlay_node import OverlayNode
from plimsoll.core.verify import observations as seen
from plimsoll.core.verify.session_checker import SessionChecker
from plimsoll.simulator.world.brokers import FleetShape, SimulatedFleet, control_endpoint

TIME_FACTOR = 0.1
"""The mediator's timings are for fleets of people; runs are short."""

TICK_SECONDS = 0.05
VIEW_SECONDS = 0.2
FRESH_SECONDS = 1.5
SLACK_SECONDS = 3.0
"""A mediator may be dead for so long when a deadline passes."""

ObservationSink = Callable[[seen.Observation], None]


@dataclass(frozen=True, slots=True)
class PlannedSessionMix:
    """How many sessions are asked for. Shares are chances between 0 and 1 per session."""

    sessions: int = 0
    across: float = 0.3
    drain: float = 0.25
    replay: float = 0.25
    stop: float = 0.15
    shuffle: float = 0.0


@dataclass(frozen=True, slots=True)
class SimulatedPolicy:
    """A balancing policy in seconds of a run: how often edges look, and how long they stabilise."""

    type: str = "Padres"
    look: float = 0.8
    stabilize: float = 1.6

    def to_spec(self, time_factor: float = 1.0) -> dict[str, Any]:
        """As in the custom resources, for those on whose clock a second is so long."""

        def duration(seconds: float) -> str:
            return f"{round(1000 * seconds / time_factor)}ms"

        return {
            "type": self.type,
            "detection": {
                "interval": duration(self.look), "reportsValidFor": duration(4 * self.look),
                "stabilizeFor": duration(self.stabilize), "normalization": duration(0.1),
            },
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class PlannedSession:
    """At a time, somebody makes an object; perhaps it is told to stop later."""

    number: int
    at: float
    fields: Mapping[str, Any]
    stop_at: float

    @property
    def label(self) -> str:
        return f"ask{self.number}"


def draw_sessions(
    asking: PlannedSessionMix, shape: FleetShape, draw: random.Random, start: float, seconds: float
) -> list[PlannedSession]:
    """All sessions that a run asks for, in time order."""
    times = sorted(start + draw.uniform(0.0, seconds) for _ in range(asking.sessions))
    return [_draw_session(asking, shape, draw, number, at) for number, at in enumerate(times)]


def _draw_session(
    asking: PlannedSessionMix, shape: FleetShape, draw: random.Random, number: int, at: float
) -> PlannedSession:
    heads = shape.heads()
    head = draw.choice(heads)
    if asking.shuffle and draw.random() < asking.shuffle:
        return _draw_shuffle(asking, heads, draw, number, at)
    across = len(heads) > 1 and draw.random() < asking.across
    target_head = draw.choice([each for each in heads if each != head]) if across else head
    source = draw.choice(shape.edges_of(head))
    target = draw.choice([each for each in shape.edges_of(target_head) if each != source])
    limits = {"maxInFlight": draw.randint(1, 4), "moveInterval": "0s", "queueFor": "40s"}
    fields: dict[str, Any] = {
        "scope": "Global" if across else "Local", "source": {"name": source}, "mode": "Execute", "limits": limits,
        "deadline": f"{draw.choice([10, 40, 60])}s", "retries": draw.choice([0, 0, 1, 2]),
        "handover": "Replay" if not across and draw.random() < asking.replay else draw.choice(["Auto", "Drain"]),
    }  # fmt: skip
    if not across and draw.random() < asking.drain:
        fields["action"] = "Drain"
    else:
        fields["target"] = {"name": target}
        fields["select"] = draw.choice([{"count": draw.randint(1, 4)}, {"sharePercent": 50}])
    stops = draw.random() < asking.stop
    return PlannedSession(number, at, fields, at + draw.uniform(0.0, 1.0) if stops else float("inf"))


def _draw_shuffle(
    asking: PlannedSessionMix, heads: Sequence[str], draw: random.Random, number: int, at: float
) -> PlannedSession:
    """Of a cluster, or of two; clusters are called like their heads."""
    one, *others = draw.sample(list(heads), len(heads))
    across = bool(others) and draw.random() < asking.across
    limits: dict[str, Any] = {"maxInFlight": draw.randint(1, 4), "moveInterval": "0s", "queueFor": "40s"}
    if draw.random() < 0.3:
        limits["maxMoves"] = draw.randint(1, 4)
    fields: dict[str, Any] = {
        "scope": "Global" if across else "Local", "source": {"name": one}, "action": "Shuffle", "mode": "Execute",
        "limits": limits, "deadline": f"{draw.choice([20, 60, 90])}s", "retries": draw.choice([0, 1, 2]),
        **({"target": {"name": others[0]}} if across else {}),
    }  # fmt: skip
    stops = draw.random() < asking.stop
    return PlannedSession(number, at, fields, at + draw.uniform(0.0, 2.0) if stops else float("inf"))


def specification(fields: Mapping[str, Any]) -> LoadBalancingSessionSpec:
    """A specification from its fields as in YAML."""
    content = {
        "apiVersion": "plimsoll.dev/v1alpha1",
        "kind": "LoadBalancingSession",
        "metadata": {"name": "s"},
        "spec": dict(fields),
    }
    resources, problems = parse_each([SourceDocument(content)])
    for resource in resources:
        if not problems and isinstance(resource.spec, LoadBalancingSessionSpec):
            return resource.spec
    raise ValueError(f"no specification of a session: {problems}; found {fields}")


@dataclass(slots=True)
class SimulatedObject:
    """An object, and what the mediator has stored with it."""

    request: s.SessionRequest
    fields: Mapping[str, Any]
    stop_at: float = float("inf")
    record: Mapping[str, Any] | None = None


@dataclass(slots=True)
class HandoverProgress:
    """A hand-over as it looks from outside: what was commanded, and what heads say of it."""

    plan: msg.HandoverPlan
    state: str = ""
    members: tuple[tuple[str, str], ...] = ()


class SessionBackend:
    """The office: objects, the store, and what was commanded in all lives."""

    def __init__(
        self,
        fleet: SimulatedFleet,
        asked: Sequence[PlannedSession],
        see: ObservationSink,
        policy: SimulatedPolicy | None = None,
    ) -> None:
        self.fleet, self.see = fleet, see
        self.policy = None if policy is None else parse_block(PolicySpec, policy.to_spec(TIME_FACTOR))
        self.epoch = 0
        self.objects: dict[str, SimulatedObject] = {}
        self.handovers: dict[str, HandoverProgress] = {}
        self.checker = SessionChecker(SLACK_SECONDS)
        self.now = 0.0
        self._asked = list(asked)

    def mediator(self, name: str, draw: random.Random) -> SessionMediator:
        self.epoch += 1
        return SessionMediator(name, self.epoch, self, draw)

    def sessions(self) -> list[s.Session]:
        return [s.decode(one.record) for one in self.objects.values() if one.record is not None]

    def apply_due_requests(self, now: float) -> None:
        """What people have done by now: made objects, and told some to stop."""
        self.now = now
        while self._asked and self._asked[0].at <= now:
            ask = self._asked.pop(0)
            self.make(ask.label, ask.fields, stop_at=ask.stop_at)
        for one in self.objects.values():
            if one.stop_at <= now:
                one.stop_at = float("inf")
                spec = specification({**one.fields, "stop": True})
                one.request = replace(one.request, generation=one.request.generation + 1, spec=spec)

    def make(self, name: str, fields: Mapping[str, Any], parent: str = "", stop_at: float = float("inf")) -> None:
        """Make an object, unless there is one of this name."""
        if all(one.request.name != name for one in self.objects.values()):
            request = s.SessionRequest(name, f"uid-{name}", 1, specification(fields), parent)
            self.objects[request.uid] = SimulatedObject(request, fields, stop_at)

    # -- what is stored and said

    def save(self, session: s.Session) -> None:
        if session.uid in self.objects:
            self.objects[session.uid].record = s.encode(session)
            self.checker.add(s.observed_session(session, self.now))

    def on_command(self, command: msg.Command) -> None:
        plan = command.plan
        if plan is not None and command.session not in self.handovers:
            self.handovers[command.session] = HandoverProgress(plan)
            self.see(
                seen.HandoverStartObserved(
                    command.session, plan.source, plan.target, plan.members, plan.replay, plan.drain_seconds, self.now
                )
            )

    def on_outcome(self, outcome: msg.Outcome) -> None:
        one = self.handovers.get(outcome.session)
        members = tuple(sorted(outcome.members))
        if (
            one is None
            or outcome.state not in ("done", "aborted")
            or (one.state, one.members) == (outcome.state, members)
        ):
            return
        one.state, one.members = outcome.state, members
        self.see(seen.HandoverResultObserved(outcome.session, outcome.state, members, self.now))

    # -- the end

    def is_settled(self) -> bool:
        sessions = self.sessions()
        return not self._asked and len(sessions) == len(self.objects) and all(one.is_over for one in sessions)

    def leftovers(self) -> Iterator[str]:
        for one in self.sessions():
            if not one.is_over:
                yield f"session that has not ended: {one.name} in {one.phase}, {one.reason} {one.message}"
        for violation in self.checker.judge(self.now):
            yield str(violation)

    def counts(self) -> dict[str, int]:
        count: Counter[str] = Counter(one.phase.lower() for one in self.sessions() if one.is_over)
        for told in self.handovers.values():
            count[told.state or "failed"] += 1
            count.update(outcome for _, outcome in told.members)
        return dict(sorted(count.items()))


@dataclass(slots=True)
class LastLoadReport:
    """The last load report of a broker."""

    at: float
    report: dict[str, Any] = field(default_factory=dict)


class SessionMediator(OverlayNode):
    """One life of the mediator, in its shell."""

    def __init__(self, name: str, epoch: int, office: SessionBackend, draw: random.Random) -> None:
        super().__init__(Info(name, "client", epoch), LinkLimits(), lambda: draw.getrandbits(32), max_frame_bytes=10**6)
        self.office = office
        self.mediator = s.MediatorEngine(epoch, office.sessions(), s.EngineSettings(time_factor=TIME_FACTOR))
        self.epoch = epoch
        self._heard: dict[str, LastLoadReport] = {}
        self._generations: dict[str, int] = {}
        self._tick_at = self._view_at = 0.0
        for head in office.fleet.shape.heads():
            self.dial_control(head, control_endpoint(head))
            self.say_control(head, msg.Identify(name, "mediator", epoch))

    def wake_at(self) -> float:
        return self._tick_at

    def on_tick(self) -> None:
        if self.now < self._tick_at:
            return
        self._tick_at = self.now + TICK_SECONDS
        self.office.apply_due_requests(self.now)
        for uid, one in list(self.office.objects.items()):
            if self._generations.get(uid) != one.request.generation:
                self._generations[uid] = one.request.generation
                self._handle(s.SessionUpserted(one.request))
        if self.now >= self._view_at:
            self._view_at = self.now + VIEW_SECONDS
            for head in self.office.fleet.shape.heads():
                self.say_control(head, msg.Identify(self.info.name, "mediator", self.epoch))
            self._handle(s.FleetObserved(self._view()))
        self._handle(s.Tick())

    def on_control(self, peer: Peer, record: msg.ControlRecord) -> None:
        self.office.now = self.now
        if isinstance(record, msg.LoadUpdate):
            self._heard[str(record.report["broker"])] = LastLoadReport(self.now, dict(record.report))
        elif isinstance(
            record,
            msg.Outcome | msg.SubscriberPage | msg.ReservationReply | msg.Trigger | msg.ProfileReply | msg.CoverReply,
        ):
            if isinstance(record, msg.Outcome):
                self.office.on_outcome(record)
            self._handle(s.HeadMessage(str(peer), record))

    def _view(self) -> s.FleetView:
        """What load reports say of the fleet; who has not reported lately is not there."""
        fresh = {name: one.report for name, one in self._heard.items() if self.now - one.at < FRESH_SECONDS}
        heads, edges = {}, {}
        for name, broker in self.office.fleet.brokers.items():
            report, head = fresh.get(name, {}), broker.config.head_name
            if broker.is_head:
                heads[name] = s.HeadView(name, name, report.get("epoch", 0), name in fresh, report)
            else:
                edges[name] = s.EdgeView(
                    name,
                    head,
                    head,
                    ready=name in fresh,
                    subscribers=report.get("subscribers", 0),
                    report=report,
                    report_age_seconds=self.now - self._heard[name].at if name in fresh else 0.0,
                )
        policy = self.office.policy
        return s.FleetView(
            heads, edges, {} if policy is None else dict.fromkeys(self.office.fleet.shape.heads(), policy)
        )

    def _handle(self, event: s.Event) -> None:
        """Carry out what the mediator wants, in order."""
        if self.mediator.is_deposed or self.epoch != self.office.epoch:
            return  # the store takes nothing from the older of two
        for effect in self.mediator.handle(event, self.now):
            if isinstance(effect, s.SaveSession):
                self.office.save(effect.session)
            elif isinstance(effect, s.SendMessage):
                if isinstance(effect.message, msg.Command):
                    self.office.on_command(effect.message)
                self.say_control(effect.head, effect.message)
            elif isinstance(effect, s.CreateSession):
                self.office.make(effect.name, effect.spec, effect.parent)
            elif isinstance(effect, s.DeleteSession):
                del self.office.objects[effect.uid]
                self.office.checker.forget(effect.uid)
                self._handle(s.SessionDeleted(effect.uid))
