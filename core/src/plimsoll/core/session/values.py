"""What a mediator is told: what is asked for, what the fleet looks like, and how it should go about its work.

All values are frozen, and come from a shell; a time is in seconds since 1970, a duration in seconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from plimsoll.core.policies import LeastLoaded, Placer
from plimsoll.core.spec.clusters import MaintenanceWindow
from plimsoll.core.spec.kinds import LoadBalancingSessionSpec, PolicySpec
from plimsoll.core.spec.quantities import Duration


@dataclass(frozen=True)
class Request:
    """A LoadBalancingSession object as it is stored now.

    `parent` is the uid of the session that owns it, or empty. `deleting`: its deletion has been asked for, and waits
    until the session has ended.
    """

    name: str
    uid: str
    generation: int
    spec: LoadBalancingSessionSpec
    parent: str = ""
    deleting: bool = False


@dataclass(frozen=True)
class HeadView:
    """A head. `reachable`: it answers, and knows what its edges and neighbours hold. `epoch`: its last known one."""

    name: str
    cluster: str
    epoch: int
    reachable: bool = True
    report: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class EdgeView:
    """An edge. `report` is its last load report, empty if there is none that is fresh; `report_age_seconds`: how long
    before this view it came.

    `ready`: it is up and joined to its head. `leaving`: it is on its way out, and takes nobody.
    `output_bytes_per_second` is its bandwidth, None if it is not limited.
    """

    name: str
    cluster: str
    head: str
    ready: bool = True
    cordoned: bool = False
    leaving: bool = False
    subscribers: int = 0
    report: Mapping[str, Any] = field(default_factory=dict)
    output_bytes_per_second: float | None = None
    report_age_seconds: float = 0.0


@dataclass(frozen=True)
class Overview:
    """How the clusters of a fleet are looked at: every so many seconds.

    `loads`: what each carries, as the fields of a load report, by whoever aggregates it for the whole fleet; without
    them what heads say of their clusters counts. `source`: whose numbers they are, in a word.
    """

    seconds: float
    loads: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    source: str = "heads"


@dataclass(frozen=True)
class View:
    """The fleet as the shell knows it, by name; `policies` are those of clusters that have one.

    `neighbors`: the clusters whose heads are linked. `overview`: how clusters are balanced with one another; None: they
    are not. `windows`: when a cluster may be balanced without being asked to; always, where there are none.
    """

    heads: Mapping[str, HeadView] = field(default_factory=dict)
    edges: Mapping[str, EdgeView] = field(default_factory=dict)
    policies: Mapping[str, PolicySpec] = field(default_factory=dict)
    neighbors: Mapping[str, frozenset[str]] = field(default_factory=dict)
    overview: Overview | None = None
    windows: Mapping[str, tuple[MaintenanceWindow, ...]] = field(default_factory=dict)

    def policy_of(self, edge: str) -> PolicySpec | None:
        """The policy of an edge's cluster."""
        known = self.edges.get(edge)
        return self.policies.get(known.cluster) if known is not None else None


@dataclass(frozen=True)
class Timings:
    """How long things may take, and how often they are said, in seconds.

    `gather`: how long a batch waits for the last of its members to attach, once the first has. `settle`: from the last
    move to the measurement. `answer`: how long an edge that is asked for its state may take. `busy`: for how long an
    edge believes that it takes part in a session, unless it is told so again.
    """

    repeat: float = 0.5
    ask: float = 1.0
    save: float = 1.0
    negotiate: float = 15.0
    sample: float = 15.0
    prepare: float = 10.0
    gather: float = 2.0
    cut: float = 5.0
    drain: float = 30.0
    resolve: float = 15.0
    settle: float = 3.0
    retry: float = 5.0
    answer: float = 3.0
    busy: float = 15.0
    view: float = 15.0

    def scaled(self, factor: float) -> Timings:
        return replace(self, **{item.name: getattr(self, item.name) * factor for item in fields(self)})


@dataclass(frozen=True)
class Settings:
    """How a mediator works.

    `max_sessions`: pairs of brokers between which subscribers move at one time, in the whole fleet. By `replay` goes
    what would take the source longer than `drain_limit_seconds`, if the head's log lasts `log_margin` times as long as
    the predicted catch-up. `drain_rounds`: how often a drain looks who is left, with pauses
    that double: who is away keeps a place for its lease, and then is no longer there.
    """

    timings: Timings = Timings()
    time_factor: float = 1.0
    max_sessions: int = 5
    sessions_per_broker: int = 1
    drain_limit_seconds: float = 2.0
    log_margin: float = 2.0
    drain_rounds: int = 12
    placer: Placer = LeastLoaded()  # noqa: RUF009  a frozen value

    @property
    def scaled(self) -> Timings:
        """The timings on this fleet's clock."""
        return self.timings.scaled(self.time_factor)

    def seconds(self, duration: Duration) -> float:
        """A duration of a specification on this fleet's clock."""
        return duration.seconds * self.time_factor
