"""What the status of brokers, clusters, fleets and profiles holds, field by field: schemas are made from it.

An API server drops what is not here. Nothing is required, as a status grows with what is known; amounts are whole
numbers with their unit in the name.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from plimsoll.core.spec.about import About


@dataclass(frozen=True, kw_only=True)
class ConditionStatus:
    """One observation, as Kubernetes' conventions have it."""

    type: Annotated[str, About("What was asked.")]
    status: Annotated[Literal["True", "False", "Unknown"], About("The answer.")]
    reason: Annotated[str, About("Why, in one word; docs/reasons.md has each with its remedy.")]
    message: Annotated[str, About("Why, in a sentence.")]
    observed_generation: Annotated[int, About("The generation of the specification that it holds for.")]
    last_transition_time: Annotated[str, About("When the answer last changed.", format="date-time")]


CONDITIONS = About("What was observed, and why.", key="type")
GENERATION = About("The generation of the specification that this status is about.")


@dataclass(frozen=True, kw_only=True)
class LoadStatus:
    """The last load report of a broker, averaged over the interval of reports."""

    input_utilization_percent: Annotated[int, About("Arrival rate x matching delay.", unit="percent")]
    output_utilization_percent: Annotated[int, About("Bytes per second by bandwidth.", unit="percent")]
    match_delay_microseconds: Annotated[int, About("Time to match a publication.", unit="microseconds")]
    publications_per_second: Annotated[int, About("Publications that come in.", unit="publications/s")]
    deliveries_per_second: Annotated[int, About("Deliveries that go out.", unit="deliveries/s")]
    output_bytes_per_second: Annotated[int, About("Bytes that go out.", unit="bytes/s")]
    input_queue_delay_milliseconds: Annotated[
        int, About("How long publications wait to be matched.", unit="milliseconds")
    ]
    output_queue_delay_milliseconds: Annotated[int, About("How long deliveries wait to go out.", unit="milliseconds")]
    input_queue_messages: Annotated[int, About("Publications that wait to be matched.")]
    output_queue_messages: Annotated[int, About("Deliveries that wait to go out.")]
    output_queue_bytes: Annotated[int, About("Bytes that wait to go out.", unit="bytes")]
    cpu_percent: Annotated[int, About("Processor time by what the profile allows.", unit="percent")]
    memory_percent: Annotated[int, About("Memory by what the profile allows.", unit="percent")]
    subscriptions: Annotated[int, About("Subscriptions that it matches against.")]


@dataclass(frozen=True, kw_only=True)
class EndpointsStatus:
    """How a broker is reached."""

    data: Annotated[str, About("Where clients and other brokers connect.")]
    control: Annotated[str, About("Where the mediator connects.")]
    public_key: Annotated[str, About("Its CURVE key; empty without CURVE.")]


@dataclass(frozen=True, kw_only=True)
class BrokerStatus:
    """What is said of any broker."""

    state: Annotated[
        str, About("Its own word for whether it takes part in balancing: OK, BUSY, STABILIZING or N/A.")
    ]  # fmt: skip
    profile: Annotated[str, About("The hardware that it runs with.", refers="HardwareProfile")]
    endpoints: Annotated[EndpointsStatus, About("How it is reached.")]
    restarts: Annotated[int, About("How often it was started again.")]
    last_end: Annotated[str, About("How it ended last.")]
    pid: Annotated[int, About("Its process; on one machine only.")]
    pod: Annotated[str, About("Its pod; on Kubernetes only.")]
    node: Annotated[str, About("The node of its pod; on Kubernetes only.")]
    subscribers: Annotated[int, About("Subscribers that it serves.")]
    load: Annotated[LoadStatus, About("Its last load report.")]


@dataclass(frozen=True, kw_only=True)
class EdgeStatus(BrokerStatus):
    """What was observed of an edge."""

    observed_generation: Annotated[int, GENERATION]
    conditions: Annotated[tuple[ConditionStatus, ...], CONDITIONS]


@dataclass(frozen=True, kw_only=True)
class HeadStatus(BrokerStatus):
    """What was observed of the head of a cluster."""

    name: Annotated[str, About("The broker.")]


@dataclass(frozen=True, kw_only=True)
class CountStatus:
    """How many brokers there are."""

    desired: Annotated[int, About("How many there should be.")]
    ready: Annotated[int, About("How many answer and are joined to their peers.")]


@dataclass(frozen=True, kw_only=True)
class LastSessionStatus:
    """The session that ended last."""

    name: Annotated[str, About("The session.", refers="LoadBalancingSession")]
    phase: Annotated[str, About("How it ended.")]
    reason: Annotated[str, About("Why, in one word.")]
    moved: Annotated[int, About("Subscribers that it moved.")]
    ended_at: Annotated[str, About("When.", format="date-time")]


@dataclass(frozen=True, kw_only=True)
class ClusterStatus:
    """What was observed of a cluster."""

    observed_generation: Annotated[int, GENERATION]
    conditions: Annotated[tuple[ConditionStatus, ...], CONDITIONS]
    head: Annotated[HeadStatus, About("Its head.")]
    endpoint: Annotated[str, About("Where publishers connect.")]
    edges: Annotated[CountStatus, About("Its edges.")]
    replicas: Annotated[int, About("Edges of the group that scaling means.")]
    selector: Annotated[str, About("Labels of the pods of that group, for autoscalers.")]
    subscribers: Annotated[int, About("Subscribers that its edges serve.")]
    load: Annotated[LoadStatus, About("The average of its edges' loads.")]
    imbalance_percent: Annotated[
        int, About("How far its edges are apart: the largest difference of a utilisation.", unit="percent")
    ]
    last_session: Annotated[LastSessionStatus, About("The session of its edges that ended last.")]
    next_window: Annotated[
        str, About("When the next maintenance window opens; absent while one is open, or without any.",
                   format="date-time")
    ]  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class ProcessStatus:
    """A process or pod beside the brokers."""

    pid: Annotated[int, About("Its process; on one machine only.")]
    pod: Annotated[str, About("Its pod; on Kubernetes only.")]
    restarts: Annotated[int, About("How often it was started again.")]
    last_end: Annotated[str, About("How it ended last.")]


@dataclass(frozen=True, kw_only=True)
class CollectorStatus:
    """One collector of telemetry."""

    name: Annotated[str, About("Its name.")]
    http: Annotated[str, About("Where it serves snapshots, as HOST:PORT; absent while it does not.")]
    pid: Annotated[int, About("Its process; on one machine only.")]
    restarts: Annotated[int, About("How often it was started again.")]
    last_end: Annotated[str, About("How it ended last.")]


@dataclass(frozen=True, kw_only=True)
class SparkStatus:
    """The live job on Spark, judged by its snapshot."""

    launcher: Annotated[Literal["Process", "Kubernetes", "SparkOperator", "SparkApplication"], About("How it runs.")]
    state: Annotated[
        Literal["Missing", "Starting", "Fresh", "Incomplete", "Late", "Dead"],
        About("Whether it does its work: Missing, nothing can be started; Dead, it is about to be started anew."),
    ]
    message: Annotated[str, About("Why, in a sentence.")]
    driver: Annotated[str, About("The pod of its driver; on Kubernetes only.")]
    pid: Annotated[int, About("Its process; on one machine only.")]
    restarts: Annotated[int, About("How often it was started again by whoever judges it.")]
    last_end: Annotated[str, About("How it ended last; on one machine only.")]


@dataclass(frozen=True, kw_only=True)
class TelemetryStatus:
    """What becomes of load reports, and what is known by them."""

    folder: Annotated[str, About("Where the files are; on one machine only.")]
    collectors: Annotated[tuple[CollectorStatus, ...], About("Who collects.", key="name")]
    source: Annotated[Literal["Spark", "Fold"], About("Which snapshot can be decided by.")]
    reason: Annotated[str, About("Why it is not Spark's, as `Fault: sentence`; empty where it is.")]
    snapshot_age_seconds: Annotated[int, About("Since the end of its window; absent for the fold.", unit="seconds")]
    brokers_seen: Annotated[int, About("Brokers that it has heard of lately.")]
    brokers_expected: Annotated[int, About("Brokers that it should have heard of.")]
    spark: Annotated[SparkStatus, About("The live job; absent where none is asked for.")]


@dataclass(frozen=True, kw_only=True)
class FleetStatus:
    """What was observed of a fleet."""

    observed_generation: Annotated[int, GENERATION]
    conditions: Annotated[tuple[ConditionStatus, ...], CONDITIONS]
    clusters: Annotated[int, About("Its clusters.")]
    brokers: Annotated[CountStatus, About("Its brokers, heads and edges.")]
    subscribers: Annotated[int, About("Subscribers that it serves.")]
    security: Annotated[Literal["Curve", "Plain"], About("How its links are protected.")]
    supervisor: Annotated[ProcessStatus, About("Who keeps its brokers running; on one machine only.")]
    mediator: Annotated[ProcessStatus, About("Who carries out its sessions.")]
    mediator_epoch: Annotated[int, About("The life of its mediator: heads obey the highest, and no other.")]
    draining: Annotated[tuple[str, ...], About("Edges that are being drained, and take no newcomers.")]
    telemetry: Annotated[TelemetryStatus, About("Collectors and the snapshot; absent without collectors.")]


@dataclass(frozen=True, kw_only=True)
class CalibratedStatus:
    """What brokers have measured of their hardware."""

    brokers: Annotated[int, About("Brokers that have measured it.")]
    publication_nanoseconds: Annotated[int, About("What a publication takes without matches.", unit="nanoseconds")]
    match_nanoseconds: Annotated[int, About("What each match of it takes.", unit="nanoseconds")]
    error_percent: Annotated[
        int, About("How far that is from what was measured last, where it is farthest.", unit="percent")
    ]


@dataclass(frozen=True, kw_only=True)
class ProfileStatus:
    """What was observed of a profile."""

    observed_generation: Annotated[int, GENERATION]
    conditions: Annotated[tuple[ConditionStatus, ...], CONDITIONS]
    brokers: Annotated[int, About("Brokers that run with it.")]
    calibrated: Annotated[CalibratedStatus, About("What they have measured: the average.")]
