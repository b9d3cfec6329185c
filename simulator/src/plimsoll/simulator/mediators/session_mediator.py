"""Balancing sessions, driven by the session engine of the product: its shell in virtual time, over a store in memory.

The shell does what the local supervisor and the operator do: it keeps the session objects, stores the engine's records,
builds the fleet view from load reports alone, carries effects out in order, and starts each engine from the store.
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
from plimsoll.core.session.context.cluster_memories import stored_memory
from plimsoll.core.session.session_plan import SessionPlan
from plimsoll.core.spec import SourceDocument
from plimsoll.core.spec.brokers import head_name
from plimsoll.core.spec.kinds import LoadBalancingSessionSpec
from plimsoll.core.spec.parser import parse_block, parse_each
from plimsoll.core.spec.types.policy import PolicySpec
from plimsoll.core.transport.link import LinkLimits, Peer
from plimsoll.core.transport.overlay_node import OverlayNode
from plimsoll.core.verify import observations as seen
from plimsoll.core.verify.session_checker import SessionChecker
from plimsoll.simulator.mediators.head_replacement import HeadReplacement
from plimsoll.simulator.world.brokers import FleetShape, SimulatedFleet, control_endpoint
from plimsoll.simulator.world.consumers import GROUP
from plimsoll.simulator.world.workload import TOPIC_ATTRIBUTE

TIME_FACTOR = 0.1
"""The engine's default timings are for real fleets; runs last seconds, so it works ten times as fast."""

TICK_SECONDS = 0.05
VIEW_SECONDS = 0.2
FRESH_SECONDS = 1.5
COMPARED_SECONDS = 60.0
"""The interval at which clusters are compared, where they are; policies of whole clusters do not wait for it."""

SLACK_SECONDS = 3.0
"""How late the end of a session may be stored: no mediator may be running when its deadline passes."""

ObservationSink = Callable[[seen.Observation], None]


@dataclass(frozen=True, slots=True)
class PlannedSessionMix:
    """How many sessions are requested. All shares are probabilities per session."""

    sessions: int = 0
    across: float = 0.3
    drain: float = 0.25
    replay: float = 0.25
    stop: float = 0.15
    shuffle: float = 0.0
    publishers: float = 0.0
    """Sessions that move publishers between heads."""
    slices: float = 0.0
    """Sessions that move slices of the consumer group of the first cluster."""
    replace: bool = False
    """Whether heads that are drained are cordoned, and then replaced; of publishers there are drains only."""


@dataclass(frozen=True, slots=True)
class PulsarShape:
    """Policy Pulsar with limits so small that a short run splits bundles, sheds some, and unloads both halves."""

    unload: str = "Transfer"
    initial: int = 2
    most: int = 8
    topics: int = 2

    def to_spec(self, interval: str) -> dict[str, Any]:
        return {
            "topicAttribute": TOPIC_ATTRIBUTE, "interval": interval, "unload": self.unload,
            "bundles": {"initial": self.initial, "maximum": self.most},
            "split": {"maxTopics": self.topics},
            "shedding": {"threshold": "50m", "history": "0"},
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class HeadShape:
    """What heads may carry, out, in bytes per second: the first one, and each of the others.

    `lower` and `higher` are the thresholds, as ratios. They are low, so that no head has to hold back what it sends.
    """

    first: float = 100_000.0
    others: float = 1_000_000.0
    lower: float = 0.015
    higher: float = 0.02

    def to_spec(self) -> dict[str, Any]:
        return {"headUplink": {"lower": f"{self.lower:g}", "higher": f"{self.higher:g}"}}


@dataclass(frozen=True, slots=True)
class DeadlineShape:
    """A policy that defends deadlines, with `lower` and `higher` as the thresholds of matching, as ratios.

    They are low, so that a short run has overloaded edges. `latency_seconds`: what all topics require. `heads`: what
    heads may carry, if publishers are to leave overloaded ones. `is_across`: topics may go to neighbouring clusters.
    """

    lower: float = 0.025
    higher: float = 0.03
    latency_seconds: float = 0.5
    is_across: bool = False
    heads: HeadShape | None = None

    def to_spec(self, interval: str) -> dict[str, Any]:
        thresholds = {"matching": {"lower": f"{self.lower:g}", "higher": f"{self.higher:g}"}}
        return {
            "topicAttribute": TOPIC_ATTRIBUTE, "interval": interval,
            "thresholds": thresholds if self.heads is None else {**thresholds, **self.heads.to_spec()},
            "publishers": "Stay" if self.heads is None else "Move",
            "defaultLatency": f"{round(1000 * self.latency_seconds)}ms",
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class SimulatedPolicy:
    """A balancing policy in seconds of a run: how often edges check their load, and how long they stabilise."""

    type: str = "Padres"
    check_seconds: float = 0.8
    stabilize_seconds: float = 1.6
    pulsar: PulsarShape | None = None
    deadlines: DeadlineShape | None = None

    @property
    def unload(self) -> str:
        """How bundles leave an edge; empty under a policy without bundles."""
        return "" if self.pulsar is None else self.pulsar.unload

    def to_spec(self, time_factor: float = 1.0) -> dict[str, Any]:
        """The policy as in a custom resource, for a machine that multiplies its durations by `time_factor`."""

        def duration(seconds: float) -> str:
            return f"{round(1000 * seconds / time_factor)}ms"

        own: dict[str, Any] = {}
        if self.pulsar is not None:
            own["pulsar"] = self.pulsar.to_spec(duration(self.check_seconds))
        if self.deadlines is not None:
            own["delaySensitive"] = self.deadlines.to_spec(duration(self.check_seconds))
        return {
            "type": self.type,
            "detection": {
                "interval": duration(self.check_seconds), "reportsValidFor": duration(4 * self.check_seconds),
                "stabilizeFor": duration(self.stabilize_seconds), "normalization": duration(0.1),
            },
            **own,
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class PlannedSession:
    """A session object that a user creates at a time, and perhaps stops later."""

    number: int
    at: float
    fields: Mapping[str, Any]
    stop_at: float

    @property
    def label(self) -> str:
        return f"ask{self.number}"


def draw_sessions(
    mix: PlannedSessionMix, shape: FleetShape, rng: random.Random, start: float, seconds: float
) -> list[PlannedSession]:
    """All sessions that a run requests, in time order."""
    times = sorted(start + rng.uniform(0.0, seconds) for _ in range(mix.sessions))
    return [_draw_session(mix, shape, rng, number, at) for number, at in enumerate(times)]


def _draw_session(
    mix: PlannedSessionMix, shape: FleetShape, rng: random.Random, number: int, at: float
) -> PlannedSession:
    heads = shape.heads()
    head = rng.choice(heads)
    if mix.shuffle and rng.random() < mix.shuffle:
        return _draw_shuffle(mix, heads, rng, number, at)
    if mix.publishers and rng.random() < mix.publishers:
        return _draw_publisher_session(mix, heads, rng, number, at)
    if mix.slices and rng.random() < mix.slices:
        return _draw_slice_session(mix, heads[0], rng, number, at)
    across = len(heads) > 1 and rng.random() < mix.across
    target_head = rng.choice([each for each in heads if each != head]) if across else head
    source = rng.choice(shape.edges_of(head))
    target = rng.choice([each for each in shape.edges_of(target_head) if each != source])
    limits = {"maxInFlight": rng.randint(1, 4), "moveInterval": "0s", "queueFor": "40s"}
    fields: dict[str, Any] = {
        "scope": "Global" if across else "Local", "source": {"name": source}, "mode": "Execute", "limits": limits,
        "deadline": f"{rng.choice([10, 40, 60])}s", "retries": rng.choice([0, 0, 1, 2]),
        "handover": "Replay" if not across and rng.random() < mix.replay else rng.choice(["Auto", "Drain"]),
    }  # fmt: skip
    if not across and rng.random() < mix.drain:
        fields["action"] = "Drain"
    else:
        fields["target"] = {"name": target}
        fields["select"] = rng.choice([{"count": rng.randint(1, 4)}, {"sharePercent": 50}])
    stops = rng.random() < mix.stop
    return PlannedSession(number, at, fields, at + rng.uniform(0.0, 1.0) if stops else float("inf"))


def _draw_shuffle(
    mix: PlannedSessionMix, heads: Sequence[str], rng: random.Random, number: int, at: float
) -> PlannedSession:
    """A shuffle of one cluster or of two; a cluster has the name of its head."""
    one, *others = rng.sample(list(heads), len(heads))
    across = bool(others) and rng.random() < mix.across
    limits: dict[str, Any] = {"maxInFlight": rng.randint(1, 4), "moveInterval": "0s", "queueFor": "40s"}
    if rng.random() < 0.3:
        limits["maxMoves"] = rng.randint(1, 4)
    fields: dict[str, Any] = {
        "scope": "Global" if across else "Local", "source": {"name": one}, "action": "Shuffle", "mode": "Execute",
        "limits": limits, "deadline": f"{rng.choice([20, 60, 90])}s", "retries": rng.choice([0, 1, 2]),
        **({"target": {"name": others[0]}} if across else {}),
    }  # fmt: skip
    stops = rng.random() < mix.stop
    return PlannedSession(number, at, fields, at + rng.uniform(0.0, 2.0) if stops else float("inf"))


def _draw_slice_session(
    mix: PlannedSessionMix, head: str, rng: random.Random, number: int, at: float
) -> PlannedSession:
    """Slices of the group, by its policy or from consumer to consumer; some have gone by then, or are not there yet."""
    giver, taker = rng.sample([f"g{i}" for i in range(4)], 2)
    slices: dict[str, Any] = rng.choice(
        [{}, {"giver": giver}, {"giver": giver, "taker": taker}, {"taker": taker, "numbers": [rng.randrange(5)]}]
    )
    fields: dict[str, Any] = {
        "scope": "Local", "source": {"name": head}, "action": "MoveSlices", "slices": {"group": GROUP, **slices},
        "mode": "Execute", "limits": {"maxInFlight": rng.randint(1, 4), "moveInterval": "0s", "queueFor": "40s"},
        "deadline": f"{rng.choice([10, 40, 60])}s", "retries": rng.choice([0, 1]),
    }  # fmt: skip
    stops = rng.random() < mix.stop
    return PlannedSession(number, at, fields, at + rng.uniform(0.0, 1.0) if stops else float("inf"))


def _draw_publisher_session(
    mix: PlannedSessionMix, heads: Sequence[str], rng: random.Random, number: int, at: float
) -> PlannedSession:
    """Some or all publishers of one head, to another one or to those that accept least."""
    source, target = rng.sample(list(heads), 2)
    fields: dict[str, Any] = {
        "scope": "Global", "source": {"name": source}, "action": "MovePublishers", "mode": "Execute",
        "limits": {"maxInFlight": rng.randint(1, 4), "queueFor": "40s"}, "deadline": f"{rng.choice([10, 40, 60])}s",
        "retries": rng.choice([0, 1]), **({"target": {"name": target}} if rng.random() < 0.6 else {}),
    }  # fmt: skip
    if mix.replace:
        fields["select"] = {"sharePercent": 100}
    elif rng.random() < 0.8:
        fields["select"] = rng.choice([{"count": 1}, {"sharePercent": 50}, {"sharePercent": 100}])
    stops = rng.random() < mix.stop
    return PlannedSession(number, at, fields, at + rng.uniform(0.0, 1.0) if stops else float("inf"))


def specification(fields: Mapping[str, Any]) -> LoadBalancingSessionSpec:
    """Parse a specification from its fields, as a shell parses the YAML.

    Raises:
        ValueError: naming the problems.

    """
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
    raise ValueError(f"not a session specification: {problems}; found {fields}")


@dataclass(slots=True)
class SimulatedObject:
    """A session object, and the record that the mediator has stored with it."""

    request: s.SessionRequest
    fields: Mapping[str, Any]
    stop_at: float = float("inf")
    record: Mapping[str, Any] | None = None


@dataclass(slots=True)
class HandoverProgress:
    """A hand-over as heads report it: the plan that was commanded, its state, and the outcomes of its members."""

    plan: msg.HandoverPlan
    state: str = ""
    members: tuple[tuple[str, str], ...] = ()


class SessionBackend:
    """The backend of session mediators: the objects with their records, and the hand-overs of all mediators."""

    def __init__(
        self,
        fleet: SimulatedFleet,
        planned: Sequence[PlannedSession],
        observe: ObservationSink,
        policy: SimulatedPolicy | None = None,
        replacement: HeadReplacement | None = None,
    ) -> None:
        self.fleet, self.observe, self.replacement = fleet, observe, replacement
        self.policy = None if policy is None else parse_block(PolicySpec, policy.to_spec(TIME_FACTOR))
        self.is_across = policy is not None and policy.deadlines is not None and policy.deadlines.is_across
        self.epoch = 0
        self.objects: dict[str, SimulatedObject] = {}
        self.handovers: dict[str, HandoverProgress] = {}
        self.memories: dict[str, dict[str, Any]] = {}
        """What policies remember of clusters, as in their status."""
        self.checker = SessionChecker(SLACK_SECONDS)
        self.now = 0.0
        self._planned = list(planned)

    def mediator(self, name: str, rng: random.Random) -> SessionMediator:
        self.epoch += 1
        return SessionMediator(name, self.epoch, self, rng)

    def memory_of(self, cluster: str) -> Mapping[str, Any]:
        """What the store holds of the policy of a cluster."""
        found = self.memories.get(cluster, {}).get("memory", {})
        return found if isinstance(found, Mapping) else {}

    def sessions(self) -> list[s.Session]:
        return [s.decode(one.record) for one in self.objects.values() if one.record is not None]

    def plans(self) -> list[SessionPlan]:
        """The plans of all sessions that users or the policy have asked for, without their children's."""
        found = (session for session in self.sessions() if session.kind == "rebalance")
        return [session.plan for session in found if session.plan is not None]

    def apply_due_requests(self, now: float) -> None:
        """Create the objects that are planned by `now`, and stop those that are to be stopped."""
        self.now = now
        while self._planned and self._planned[0].at <= now:
            planned = self._planned.pop(0)
            self.create(planned.label, planned.fields, stop_at=planned.stop_at)
        for one in self.objects.values():
            if one.stop_at <= now:
                one.stop_at = float("inf")
                spec = specification({**one.fields, "stop": True})
                one.request = replace(one.request, generation=one.request.generation + 1, spec=spec)

    def create(self, name: str, fields: Mapping[str, Any], parent: str = "", stop_at: float = float("inf")) -> None:
        """Create an object, unless there is one of this name."""
        if all(one.request.name != name for one in self.objects.values()):
            request = s.SessionRequest(name, f"uid-{name}", 1, specification(fields), parent)
            self.objects[request.uid] = SimulatedObject(request, fields, stop_at)
            if self.replacement is not None:
                self.replacement.requested(request.spec)

    # -- effects and replies

    def save(self, session: s.Session) -> None:
        if session.uid in self.objects:
            self.objects[session.uid].record = s.encode(session)
            self.checker.add(s.observed_session(session, self.now))
            if self.replacement is not None:
                self.replacement.saved(session)

    def on_command(self, command: msg.Command) -> None:
        plan = command.plan
        if plan is not None and command.session not in self.handovers:
            self.handovers[command.session] = HandoverProgress(plan)
            self.observe(
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
        self.observe(seen.HandoverResultObserved(outcome.session, outcome.state, members, self.now))

    # -- the end

    def is_settled(self) -> bool:
        sessions = self.sessions()
        return not self._planned and len(sessions) == len(self.objects) and all(one.is_over for one in sessions)

    def leftovers(self) -> Iterator[str]:
        for one in self.sessions():
            if not one.is_over:
                yield f"session that has not ended: {one.name} in phase {one.phase}, {one.reason}: {one.message}"
        for violation in self.checker.judge(self.now):
            yield str(violation)

    def counts(self) -> dict[str, int]:
        count: Counter[str] = Counter(one.phase.lower() for one in self.sessions() if one.is_over)
        for handover in self.handovers.values():
            count[handover.state or "failed"] += 1
            count.update(outcome for _, outcome in handover.members)
        return dict(sorted(count.items()))


@dataclass(slots=True)
class LastLoadReport:
    """The last load report of a broker, and when it came."""

    at: float
    report: dict[str, Any] = field(default_factory=dict)


class SessionMediator(OverlayNode):
    """One mediator: the session engine in its shell."""

    def __init__(self, name: str, epoch: int, backend: SessionBackend, rng: random.Random) -> None:
        super().__init__(Info(name, "client", epoch), LinkLimits(), lambda: rng.getrandbits(32), max_frame_bytes=10**6)
        self.backend = backend
        self.engine = s.MediatorEngine(epoch, backend.sessions(), s.EngineSettings(time_factor=TIME_FACTOR))
        self.epoch = epoch
        self._reports: dict[str, LastLoadReport] = {}
        self._generations: dict[str, int] = {}
        self._tick_at = self._view_at = 0.0
        for head in backend.fleet.shape.heads():
            self.dial_control(head, control_endpoint(head))
            self.say_control(head, msg.Identify(name, "mediator", epoch))

    def wake_at(self) -> float:
        return self._tick_at

    def on_tick(self) -> None:
        if self.now < self._tick_at:
            return
        self._tick_at = self.now + TICK_SECONDS
        self.backend.apply_due_requests(self.now)
        for uid, one in list(self.backend.objects.items()):
            if self._generations.get(uid) != one.request.generation:
                self._generations[uid] = one.request.generation
                self._handle(s.SessionUpserted(one.request))
        if self.now >= self._view_at:
            self._view_at = self.now + VIEW_SECONDS
            for head in self.backend.fleet.shape.heads():
                self.say_control(head, msg.Identify(self.info.name, "mediator", self.epoch))
            view = self._view()
            self._tell_members(view)
            self._handle(s.FleetObserved(view))
        self._handle(s.Tick())

    def _tell_members(self, view: s.FleetView) -> None:
        """Tell each head whether it takes new publishers, as shells do."""
        if (replacement := self.backend.replacement) is not None:
            epochs = {head.name: head.epoch for head in view.heads.values() if head.reachable}
            for head in view.heads:
                self.say_control(head, replacement.members(head, epochs))

    def on_control(self, peer: Peer, record: msg.ControlRecord) -> None:
        self.backend.now = self.now
        if isinstance(record, msg.LoadUpdate):
            self._reports[str(record.report["broker"])] = LastLoadReport(self.now, dict(record.report))
        elif isinstance(
            record,
            msg.Outcome
            | msg.SubscriberPage
            | msg.ReservationReply
            | msg.Trigger
            | msg.ProfileReply
            | msg.CoverReply
            | msg.PublisherOutcome
            | msg.PublisherListPage
            | msg.SliceOutcome
            | msg.SlicePage
            | msg.GroupTrigger,
        ):
            if isinstance(record, msg.Outcome):
                self.backend.on_outcome(record)
            self._handle(s.HeadMessage(str(peer), record))

    def _view(self) -> s.FleetView:
        """The fleet according to recent load reports; a broker without one is not ready."""
        fresh = {name: one.report for name, one in self._reports.items() if self.now - one.at < FRESH_SECONDS}
        heads, edges = {}, {}
        for name, broker in self.backend.fleet.brokers.items():
            report, head = fresh.get(name, {}), broker.config.head_name
            if broker.is_head:
                epoch, replacement = report.get("epoch", 0), self.backend.replacement
                is_cordoned = replacement is not None and replacement.is_cordoned(name, epoch)
                age = self.now - self._reports[name].at if name in fresh else 0.0
                heads[name] = s.HeadView(
                    name, name, epoch, name in fresh, report, broker.config.data, "", is_cordoned, age
                )
            else:
                edges[name] = s.EdgeView(
                    name,
                    head,
                    head,
                    ready=name in fresh,
                    subscribers=report.get("subscribers", 0),
                    report=report,
                    report_age_seconds=self.now - self._reports[name].at if name in fresh else 0.0,
                )
        policy = self.backend.policy
        policies = {} if policy is None else dict.fromkeys(self.backend.fleet.shape.heads(), policy)
        neighbors: dict[str, set[str]] = {head: set() for head in self.backend.fleet.shape.heads()}
        for one, other in self.backend.fleet.links:
            neighbors[one].add(other)
            neighbors[other].add(one)
        linked = {head: frozenset(others) for head, others in neighbors.items()}
        compared = s.ClusterComparison(COMPARED_SECONDS) if self.backend.is_across else None
        return s.FleetView(heads, edges, policies, linked, compared, memories=dict(self.backend.memories))

    def _head(self, name: str) -> str:
        """A head by its name. In a simulated fleet a cluster has the name of its head, without a suffix of its own."""
        heads = self.backend.fleet.shape.heads()
        return next((head for head in heads if name == head_name(head)), name)

    def _handle(self, event: s.Event) -> None:
        """Pass an event to the engine, and carry out its effects in order."""
        if self.engine.is_deposed or self.epoch != self.backend.epoch:
            return  # the store refuses writes of all but the latest mediator
        for effect in self.engine.handle(event, self.now):
            if isinstance(effect, s.SaveSession):
                self.backend.save(effect.session)
            elif isinstance(effect, s.SaveMemory):
                self.backend.memories[effect.cluster] = stored_memory(effect.policy, effect.memory)
            elif isinstance(effect, s.SendMessage):
                if isinstance(effect.message, msg.Command):
                    self.backend.on_command(effect.message)
                self.say_control(self._head(effect.head), effect.message)
            elif isinstance(effect, s.CreateSession):
                self.backend.create(effect.name, effect.spec, effect.parent)
            elif isinstance(effect, s.DeleteSession):
                del self.backend.objects[effect.uid]
                self.backend.checker.forget(effect.uid)
                self._handle(s.SessionDeleted(effect.uid))
