"""The mediator of the model: the product's session engine, objects in memory, and a view from load reports."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, assert_never

from plimsoll.core import session as s
from plimsoll.core.config import BrokerConfig
from plimsoll.core.protocol import messages as msg
from plimsoll.core.session.context.cluster_memories import stored_memory
from plimsoll.core.spec.types.policy import PolicySpec
from plimsoll.simulator.mediators.session_mediator import specification

NAME = "mediator"
EPOCH = 1
REPORTS_MISSED = 3


@dataclass(frozen=True, slots=True)
class MediatorPauses:
    """Seconds between two rounds of the engine: while nothing is to do, and while sessions run; and between two views
    of the fleet.
    """

    idle: float = 1.0
    busy: float = 0.25
    view: float = 1.0


class MediatorWorld(Protocol):
    """What the mediator needs of its world."""

    @property
    def now(self) -> float: ...
    def at(self, at: float, action: Any, /, *args: object) -> None: ...
    def say(self, sender: str, receiver: str, /, *said: Any) -> None: ...
    def prepared(self, head: str, session: str, /) -> None:
        """A hand-over is commanded: this head decides it."""


@dataclass(slots=True)
class ModelSession:
    """A session object: the request as it was parsed, the fields that it was made from, and its last stored state."""

    request: s.SessionRequest
    fields: Mapping[str, Any]
    session: s.Session | None = None


@dataclass(slots=True)
class _LastReport:
    at: float
    content: Mapping[str, Any] = field(default_factory=dict)


class QueueingMediator:
    """`objects`: the sessions, those that have ended too; `on_report` sees every load report."""

    def __init__(
        self,
        world: MediatorWorld,
        configs: Mapping[str, BrokerConfig],
        policies: Mapping[str, PolicySpec],
        time_factor: float,
        on_report: Callable[[Mapping[str, Any], float], object],
        global_seconds: float | None = None,
        pauses: MediatorPauses = MediatorPauses(),  # a frozen value
    ) -> None:
        self.pauses = pauses
        self.world, self.configs, self.policies, self.time_factor = world, configs, policies, time_factor
        self.engine = s.MediatorEngine(EPOCH, [], s.EngineSettings(time_factor=time_factor))
        self.objects: dict[str, ModelSession] = {}
        self.events: list[tuple[float, s.EmitEvent]] = []
        self.on_report, self.global_seconds = on_report, global_seconds
        self._reports: dict[str, _LastReport] = {}
        self._neighbors = {
            config.cluster: frozenset(configs[peer.name].cluster for peer in config.neighbors)
            for config in configs.values() if config.role == "head"
        }  # fmt: skip
        self.memories: dict[str, Mapping[str, Any]] = {}
        self._view_at = 0.0

    # -- objects

    def create(self, name: str, fields: Mapping[str, Any], parent: str = "") -> None:
        """Make a session object, unless there is one of this name."""
        if all(one.request.name != name for one in self.objects.values()):
            request = s.SessionRequest(name, f"uid-{name}", 1, specification(fields), parent)
            self.objects[request.uid] = ModelSession(request, fields)
            self._handle(s.SessionUpserted(request))

    def moved(self) -> int:
        """Subscribers that sessions have moved: a parent's children count, and by lookup it has none of their own."""
        ended = (one.session for one in self.objects.values() if one.session is not None)
        return sum(
            one.counts()["moved"] for one in ended
            if not one.is_parent or (one.plan is not None and one.plan.handover == "lookup")
        )  # fmt: skip

    # -- time and messages

    def tick(self) -> None:
        """One round; plans the next."""
        now = self.world.now
        if now >= self._view_at:
            self._view_at = now + self.pauses.view * self.time_factor
            for name, config in self.configs.items():
                if config.role == "head":
                    self.world.say(NAME, name, msg.Identify(NAME, "mediator", EPOCH))
            self._handle(s.FleetObserved(self._view()))
        self._handle(s.Tick())
        pause = self.pauses.busy if self.engine.is_busy else self.pauses.idle
        self.world.at(now + pause * self.time_factor, self.tick)

    def on_control(self, sender: str, record: msg.ControlRecord) -> None:
        """Take a record of a head."""
        if isinstance(record, msg.LoadUpdate):
            name = str(record.report["broker"])
            self._reports[name] = _LastReport(self.world.now, record.report)
            self.on_report(record.report, self.world.now)
        elif isinstance(
            record,
            msg.Outcome | msg.SubscriberPage | msg.ReservationReply | msg.Trigger | msg.ProfileReply | msg.CoverReply,
        ):
            self._handle(s.HeadMessage(sender, record))

    def _view(self) -> s.FleetView:
        heads, edges, never = {}, {}, _LastReport(float("-inf"))
        for name, config in self.configs.items():
            last = self._reports.get(name, never)
            age = self.world.now - last.at
            is_fresh = age <= REPORTS_MISSED * config.limits.report_seconds * config.time_factor
            report = last.content if is_fresh else {}
            if config.role == "head":
                heads[name] = s.HeadView(name, config.cluster, last.content.get("epoch", 0), is_fresh, report)
            else:
                edges[name] = s.EdgeView(
                    name, config.cluster, config.head_name, ready=is_fresh, subscribers=report.get("subscribers", 0),
                    report=report, output_bytes_per_second=config.hardware.output_bytes_per_second,
                    report_age_seconds=age,
                )  # fmt: skip
        overview = None if self.global_seconds is None else s.ClusterComparison(self.global_seconds)
        return s.FleetView(heads, edges, self.policies, self._neighbors, overview, memories=dict(self.memories))

    def _handle(self, event: s.Event) -> None:
        for effect in self.engine.handle(event, self.world.now):
            match effect:
                case s.SaveSession():
                    self.objects[effect.session.uid].session = effect.session
                case s.SaveMemory():
                    self.memories[effect.cluster] = stored_memory(effect.policy, effect.memory)
                case s.SendMessage():
                    if isinstance(effect.message, msg.Command) and effect.message.step == "prepare":
                        self.world.prepared(effect.head, effect.message.session)
                    self.world.say(NAME, effect.head, effect.message)
                case s.CreateSession():
                    self.create(effect.name, effect.spec, effect.parent)
                case s.DeleteSession():
                    self._handle(s.SessionDeleted(effect.uid))
                case s.EmitEvent():
                    self.events.append((self.world.now, effect))
                case s.Deposed():
                    raise RuntimeError(f"a head obeys a mediator of epoch {effect.epoch}, and here is only this one")
                case _:
                    assert_never(effect)
