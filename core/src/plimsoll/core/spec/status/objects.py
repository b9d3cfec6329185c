"""The status of brokers, clusters, fleets and profiles, field by field; the schemas are generated from it.

An API server drops fields that are not listed here. No field is required, as a status grows with what is known.
Amounts are whole numbers, with their unit in the name.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from plimsoll.core.spec.field_info import FieldInfo

MOST_MEDIATOR_EPOCH = 2**31 - 1
"""The number of a query has the epoch of its mediator in front, in 63 bits together."""
MOST_TERM = 2**53 - 1
"""The largest whole number that every reader of JSON has."""


@dataclass(frozen=True, kw_only=True)
class ConditionStatus:
    """A condition, by the conventions of Kubernetes."""

    type: Annotated[str, FieldInfo("The type of the condition.")]
    status: Annotated[Literal["True", "False", "Unknown"], FieldInfo("Whether it holds.")]
    reason: Annotated[str, FieldInfo("Why, in one word; docs/reasons.md lists all with their remedies.")]
    message: Annotated[str, FieldInfo("Why, in a sentence.")]
    observed_generation: Annotated[int, FieldInfo("The generation of the spec that it was observed for.")]
    last_transition_time: Annotated[str, FieldInfo("When the status last changed.", format="date-time")]


CONDITIONS = FieldInfo("The conditions, each with its reason.", key="type")
GENERATION = FieldInfo("The generation of the spec that this status is about.")


@dataclass(frozen=True, kw_only=True)
class LoadStatus:
    """The last load report of a broker, averaged over the interval of reports."""

    input_utilization_percent: Annotated[int, FieldInfo("Arrival rate x matching delay.", unit="percent")]
    output_utilization_percent: Annotated[int, FieldInfo("Bytes per second / bandwidth.", unit="percent")]
    downlink_utilization_percent: Annotated[int, FieldInfo("Bytes that come in / the input bandwidth.", unit="percent")]
    match_delay_microseconds: Annotated[int, FieldInfo("Time to match a publication.", unit="microseconds")]
    publications_per_second: Annotated[int, FieldInfo("Incoming publications.", unit="publications/s")]
    deliveries_per_second: Annotated[int, FieldInfo("Outgoing deliveries.", unit="deliveries/s")]
    output_bytes_per_second: Annotated[int, FieldInfo("Outgoing bytes.", unit="bytes/s")]
    input_queue_delay_milliseconds: Annotated[
        int, FieldInfo("How long publications wait for matching.", unit="milliseconds")
    ]
    output_queue_delay_milliseconds: Annotated[
        int, FieldInfo("How long deliveries wait to be sent.", unit="milliseconds")
    ]
    input_queue_messages: Annotated[int, FieldInfo("Publications waiting for matching.")]
    output_queue_messages: Annotated[int, FieldInfo("Deliveries waiting to be sent.")]
    output_queue_bytes: Annotated[int, FieldInfo("Bytes waiting to be sent.", unit="bytes")]
    cpu_percent: Annotated[int, FieldInfo("CPU time / the profile's limit.", unit="percent")]
    memory_percent: Annotated[int, FieldInfo("Memory / the profile's limit.", unit="percent")]
    subscriptions: Annotated[int, FieldInfo("Subscriptions that are matched.")]


@dataclass(frozen=True, kw_only=True)
class EndpointsStatus:
    """The addresses of a broker."""

    data: Annotated[str, FieldInfo("Where clients and other brokers connect.")]
    control: Annotated[str, FieldInfo("Where the mediator connects.")]
    public_key: Annotated[str, FieldInfo("Its public CURVE key; empty without CURVE.")]


@dataclass(frozen=True, kw_only=True)
class BrokerStatus:
    """What the status of each broker has."""

    state: Annotated[
        str, FieldInfo("Whether it can take part in balancing: OK, BUSY, STABILIZING or N/A.")
    ]  # fmt: skip
    profile: Annotated[str, FieldInfo("Its hardware profile.", refers="HardwareProfile")]
    endpoints: Annotated[EndpointsStatus, FieldInfo("Its addresses.")]
    restarts: Annotated[int, FieldInfo("Number of restarts.")]
    last_end: Annotated[str, FieldInfo("How it last ended.")]
    pid: Annotated[int, FieldInfo("Its process; on one machine only.")]
    pod: Annotated[str, FieldInfo("Its pod; on Kubernetes only.")]
    node: Annotated[str, FieldInfo("The node of its pod; on Kubernetes only.")]
    subscribers: Annotated[int, FieldInfo("Number of its subscribers.")]
    load: Annotated[LoadStatus, FieldInfo("Its last load report.")]


@dataclass(frozen=True, kw_only=True)
class EdgeStatus(BrokerStatus):
    """The status of an edge."""

    observed_generation: Annotated[int, GENERATION]
    conditions: Annotated[tuple[ConditionStatus, ...], CONDITIONS]


@dataclass(frozen=True, kw_only=True)
class HeadStatus(BrokerStatus):
    """The status of the head of a cluster."""

    name: Annotated[str, FieldInfo("The broker.")]
    epoch: Annotated[int, FieldInfo("The epoch of its present process; 0 before its first load report.", low=0)]
    ready: Annotated[bool, FieldInfo("Whether it answers and is connected to its edges and neighbours.")]
    log_epoch: Annotated[int, FieldInfo("The epoch of `logPosition`; absent of a log in memory.", low=0)]
    log_position: Annotated[
        int,
        FieldInfo("As far as its log is known to be safe on its disk; one that starts with less has lost some.", low=0),
    ]


@dataclass(frozen=True, kw_only=True)
class CountStatus:
    """A number of brokers."""

    desired: Annotated[int, FieldInfo("The desired number.")]
    ready: Annotated[int, FieldInfo("The number that answer and are connected to their peers.")]


@dataclass(frozen=True, kw_only=True)
class LastSessionStatus:
    """The last session that ended."""

    name: Annotated[str, FieldInfo("The session.", refers="LoadBalancingSession")]
    phase: Annotated[str, FieldInfo("How it ended.")]
    reason: Annotated[str, FieldInfo("Why, in one word.")]
    moved: Annotated[int, FieldInfo("Number of subscribers that it moved.")]
    ended_at: Annotated[str, FieldInfo("When it ended.", format="date-time")]


@dataclass(frozen=True, kw_only=True)
class BundleLoadStatus:
    """Where a bundle of topics is, and what it brings."""

    edge: Annotated[
        str, FieldInfo("The edge that owns it; absent: none, until a subscriber asks for one of its topics.")
    ]
    topics: Annotated[int, FieldInfo("Topics with subscribers.")]
    sessions: Annotated[int, FieldInfo("Subscribers of its topics, by topic.")]
    publications_per_second: Annotated[int, FieldInfo("Incoming publications.", unit="publications/s")]
    deliveries_per_second: Annotated[int, FieldInfo("Outgoing deliveries.", unit="deliveries/s")]
    bytes_per_second: Annotated[int, FieldInfo("Incoming and outgoing bytes.", unit="bytes/s")]


@dataclass(frozen=True, kw_only=True)
class ConsumerStatus:
    """A member of a consumer group, as it reports itself."""

    name: Annotated[str, FieldInfo("Its name.")]
    slices: Annotated[int, FieldInfo("Slices that it has.")]
    lag: Annotated[int, FieldInfo("Items of its slices in the log that it has not acknowledged.")]
    backlog: Annotated[int, FieldInfo("Items that it has been sent and has not finished.")]
    items_per_second: Annotated[int, FieldInfo("Items that it finishes.", unit="items/s")]
    microseconds_per_item: Annotated[int, FieldInfo("Time of an item in the application.", unit="microseconds")]
    cpu_percent: Annotated[int, FieldInfo("Of one processor.", unit="percent")]
    memory_percent: Annotated[int, FieldInfo("Of the memory that its process may have.", unit="percent")]


@dataclass(frozen=True, kw_only=True)
class AwaySubscriberStatus:
    """A subscriber that is away, and whose place its head keeps for it."""

    name: Annotated[str, FieldInfo("Its name.")]
    identity: Annotated[str, FieldInfo("Whose it is.")]
    away_seconds: Annotated[int, FieldInfo("For how long it has been away.", unit="seconds")]
    lease_seconds: Annotated[int, FieldInfo("For how long its place is kept.", unit="seconds")]
    behind: Annotated[int, FieldInfo("Publications that have been logged since.")]
    held_bytes: Annotated[int, FieldInfo("Bytes of the log since then, as far as the log has them.", unit="bytes")]
    missed: Annotated[int, FieldInfo("Publications since then that the log has no more: it gets a gap for these.")]
    subscriptions: Annotated[int, FieldInfo("Number of its subscriptions.")]


@dataclass(frozen=True, kw_only=True)
class ConsumerGroupStatus:
    """A consumer group."""

    name: Annotated[str, FieldInfo("The group.")]
    slices: Annotated[int, FieldInfo("Its slices.")]
    slices_without_consumer: Annotated[int, FieldInfo("Those that no consumer has.")]
    members: Annotated[int, FieldInfo("Number of its consumers.")]
    lag: Annotated[
        int,
        FieldInfo("Items in the log behind the last acknowledgement of their slice, with a consumer or without."),
    ]
    backlog: Annotated[int, FieldInfo("Items that consumers have been sent and have not finished.")]
    busy_percent: Annotated[
        int,
        FieldInfo("Work of its consumers, in the time of one: 250 keeps two and a half busy.", unit="percent"),
    ]
    items_per_second: Annotated[int, FieldInfo("Items that consumers finish.", unit="items/s")]
    consumers: Annotated[
        tuple[ConsumerStatus, ...],
        FieldInfo("Its consumers; of more than 200 those with most slices.", key="name", max_items=200),
    ]


@dataclass(frozen=True, kw_only=True)
class BundleStatus(BundleLoadStatus):
    """A bundle of topics: a range of the hashes of topics."""

    name: Annotated[str, FieldInfo("Its range, which is its name.")]


@dataclass(frozen=True, kw_only=True)
class TopicStatus:
    """A topic under a policy that defends deadlines."""

    hash: Annotated[str, FieldInfo("Its hash, in hexadecimal digits.")]
    name: Annotated[str, FieldInfo("Its value, shortened.")]
    edge: Annotated[str, FieldInfo("The edge that owns it.")]
    subscribers: Annotated[int, FieldInfo("Its subscribers.")]
    publications_per_second: Annotated[int, FieldInfo("Incoming publications.", unit="publications/s")]
    deliveries_per_second: Annotated[int, FieldInfo("Outgoing deliveries.", unit="deliveries/s")]
    depth: Annotated[int, FieldInfo("Messages that wait for the subscriber with the least time left.")]
    latency_milliseconds: Annotated[
        int, FieldInfo("What its messages take: links, brokers, and the wait in that queue.", unit="ms")
    ]
    late: Annotated[int, FieldInfo("Deliveries of the last report interval that came later than required.")]
    required_milliseconds: Annotated[
        int, FieldInfo("Within which that subscriber wants its messages; absent: it does not say.", unit="ms")
    ]
    depth_threshold: Annotated[
        int, FieldInfo("The depth above which the deadline is in danger; below 0 no queue is short enough.")
    ]
    reason: Annotated[str, FieldInfo("Why its deadline cannot be kept, or is not at stake; absent: it can be kept.")]
    message: Annotated[str, FieldInfo("The reason as a sentence.")]


@dataclass(frozen=True, kw_only=True)
class LeadershipStatus:
    """Which of the two processes of a head leads; changed by compare-and-set alone (docs/durability.md)."""

    term: Annotated[int, FieldInfo("How many times one of the two has been made the head.", low=0, high=MOST_TERM)]
    leader: Annotated[int, FieldInfo("The process that leads, 0 or 1.", low=0, high=1)]
    standby: Annotated[int, FieldInfo("The incarnation of the other one, if it is in sync; 0: it is not.", low=0)]
    sync: Annotated[int, FieldInfo("Number of the period in sync, counted within the term.", low=0, high=MOST_TERM)]
    ended: Annotated[int, FieldInfo("Number of the last such period that has ended.", low=0, high=MOST_TERM)]
    leads: Annotated[
        int, FieldInfo("The incarnation that the term was given to; 0: whichever was started for it.", low=0)
    ]


@dataclass(frozen=True, kw_only=True)
class StandbyStatus:
    """The process that does not lead."""

    process: Annotated[int, FieldInfo("Which of the two it is, 0 or 1.")]
    in_sync: Annotated[bool, FieldInfo("Whether it has all of the head's log, and may lead at any moment.")]
    behind_bytes: Annotated[int, FieldInfo("How much of the log it has not stored yet.", unit="bytes")]
    pod: Annotated[str, FieldInfo("Its pod; on Kubernetes only.")]
    node: Annotated[str, FieldInfo("The node of its pod.")]


@dataclass(frozen=True, kw_only=True)
class ClusterStatus:
    """The status of a cluster."""

    observed_generation: Annotated[int, GENERATION]
    conditions: Annotated[tuple[ConditionStatus, ...], CONDITIONS]
    head: Annotated[HeadStatus, FieldInfo("Its head.")]
    endpoint: Annotated[str, FieldInfo("Where publishers connect.")]
    edges: Annotated[CountStatus, FieldInfo("Its edges.")]
    replicas: Annotated[int, FieldInfo("Number of edges in the group that is scaled.")]
    selector: Annotated[str, FieldInfo("Label selector of the pods of that group, for autoscalers.")]
    subscribers: Annotated[int, FieldInfo("Number of subscribers of its edges.")]
    load: Annotated[LoadStatus, FieldInfo("The average of its edges' loads.")]
    imbalance_percent: Annotated[
        int, FieldInfo("The largest difference of a utilisation between two edges.", unit="percent")
    ]
    last_session: Annotated[LastSessionStatus, FieldInfo("The last session of its edges that ended.")]
    bundles: Annotated[
        tuple[BundleStatus, ...],
        FieldInfo("Its bundles of topics, in the order of their ranges, under a policy that has them.", key="name",
                  max_items=1024),
    ]  # fmt: skip
    consumer_groups: Annotated[
        tuple[ConsumerGroupStatus, ...],
        FieldInfo("Its consumer groups, by name.", key="name", max_items=1000),
    ]
    away_subscribers: Annotated[
        tuple[AwaySubscriberStatus, ...],
        FieldInfo("Subscribers that are away and whose place its head keeps, those that are farthest behind.",
                  key="name", max_items=100),
    ]  # fmt: skip
    topics: Annotated[
        tuple[TopicStatus, ...],
        FieldInfo("Its topics, those nearest to their deadline first, under a policy that defends deadlines.",
                  key="hash", max_items=256),
    ]  # fmt: skip
    policy_memory: Annotated[
        Any,
        FieldInfo("What its policy remembers between two looks, if that plans for the whole cluster. Its fields are the"
                  " policy's own: Bad has `cov`, `mean` and `highest` of the loads F, and `looks` in a row that were"
                  " too uneven; Pulsar has `boundaries` and `version` of the bundles, and the `usage` of edges."),
    ]  # fmt: skip
    leadership: Annotated[LeadershipStatus, FieldInfo("Of a head with a standby: which process leads.")]
    standby: Annotated[StandbyStatus, FieldInfo("Of a head with a standby: the process that follows.")]
    next_window: Annotated[
        str, FieldInfo("When the next maintenance window opens; absent while one is open, or without any.",
                   format="date-time")
    ]  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class ProcessStatus:
    """A process or pod beside the brokers."""

    pid: Annotated[int, FieldInfo("Its process; on one machine only.")]
    pod: Annotated[str, FieldInfo("Its pod; on Kubernetes only.")]
    restarts: Annotated[int, FieldInfo("Number of restarts.")]
    last_end: Annotated[str, FieldInfo("How it last ended.")]


@dataclass(frozen=True, kw_only=True)
class CollectorStatus:
    """One collector of telemetry."""

    name: Annotated[str, FieldInfo("Its name.")]
    http: Annotated[str, FieldInfo("Address of its snapshots, as HOST:PORT; absent while it has none.")]
    pid: Annotated[int, FieldInfo("Its process; on one machine only.")]
    restarts: Annotated[int, FieldInfo("Number of restarts.")]
    last_end: Annotated[str, FieldInfo("How it last ended.")]


@dataclass(frozen=True, kw_only=True)
class SparkStatus:
    """The live job on Spark, judged by its snapshot."""

    launcher: Annotated[
        Literal["Process", "Kubernetes", "SparkOperator", "SparkApplication"], FieldInfo("How it runs.")
    ]
    state: Annotated[
        Literal["Missing", "Starting", "Fresh", "Incomplete", "Late", "Dead"],
        FieldInfo("State of the job: with Missing it cannot be started; with Dead it is about to be restarted."),
    ]
    message: Annotated[str, FieldInfo("Why, in a sentence.")]
    driver: Annotated[str, FieldInfo("The pod of its driver; on Kubernetes only.")]
    pid: Annotated[int, FieldInfo("Its process; on one machine only.")]
    restarts: Annotated[int, FieldInfo("Number of restarts.")]
    last_end: Annotated[str, FieldInfo("How it last ended; on one machine only.")]


@dataclass(frozen=True, kw_only=True)
class TelemetryStatus:
    """The collectors, and the snapshot that is used."""

    folder: Annotated[str, FieldInfo("Where the files are; on one machine only.")]
    collectors: Annotated[tuple[CollectorStatus, ...], FieldInfo("The collectors.", key="name")]
    source: Annotated[Literal["Spark", "Fold"], FieldInfo("The source of the snapshot that is used.")]
    reason: Annotated[str, FieldInfo("Why the snapshot is not Spark's, as `Fault: sentence`; empty if it is.")]
    snapshot_age_seconds: Annotated[
        int, FieldInfo("Time since the end of its window; absent for Fold.", unit="seconds")
    ]
    brokers_seen: Annotated[int, FieldInfo("Brokers with recent reports.")]
    brokers_expected: Annotated[int, FieldInfo("Brokers that should report.")]
    spark: Annotated[SparkStatus, FieldInfo("The live job; absent if there is none.")]


@dataclass(frozen=True, kw_only=True)
class FleetStatus:
    """The status of a fleet."""

    observed_generation: Annotated[int, GENERATION]
    conditions: Annotated[tuple[ConditionStatus, ...], CONDITIONS]
    clusters: Annotated[int, FieldInfo("Its clusters.")]
    brokers: Annotated[CountStatus, FieldInfo("Its brokers, heads and edges.")]
    subscribers: Annotated[int, FieldInfo("Number of its subscribers.")]
    security: Annotated[Literal["Curve", "Plain"], FieldInfo("How its links are protected.")]
    supervisor: Annotated[ProcessStatus, FieldInfo("The supervisor of its brokers; on one machine only.")]
    mediator: Annotated[ProcessStatus, FieldInfo("The mediator, which runs its sessions.")]
    mediator_epoch: Annotated[
        int, FieldInfo("The epoch of its mediator: heads obey the highest only.", low=0, high=MOST_MEDIATOR_EPOCH)
    ]
    draining: Annotated[tuple[str, ...], FieldInfo("Edges that are being drained, and take no new subscribers.")]
    telemetry: Annotated[TelemetryStatus, FieldInfo("Collectors and the snapshot; absent without collectors.")]


@dataclass(frozen=True, kw_only=True)
class CalibratedStatus:
    """Measurements of brokers with a profile."""

    brokers: Annotated[int, FieldInfo("Number of brokers with measurements.")]
    publication_nanoseconds: Annotated[int, FieldInfo("Time per publication without matches.", unit="nanoseconds")]
    match_nanoseconds: Annotated[int, FieldInfo("Time per match.", unit="nanoseconds")]
    error_percent: Annotated[int, FieldInfo("The largest deviation from the last measurements.", unit="percent")]


@dataclass(frozen=True, kw_only=True)
class ProfileStatus:
    """The status of a profile."""

    observed_generation: Annotated[int, GENERATION]
    conditions: Annotated[tuple[ConditionStatus, ...], CONDITIONS]
    brokers: Annotated[int, FieldInfo("Number of brokers with this profile.")]
    calibrated: Annotated[CalibratedStatus, FieldInfo("The average of their measurements.")]


@dataclass(frozen=True, kw_only=True)
class ChannelStatus:
    """The status of a channel, as its driver says each second; counts are since its first batch.

    rowsIn = rowsUsed + lateRows + invalidRows.
    """

    observed_generation: Annotated[int, GENERATION]
    conditions: Annotated[tuple[ConditionStatus, ...], CONDITIONS]
    subscriptions: Annotated[int, FieldInfo("Distinct parameters that are subscribed to.")]
    open_subscriptions: Annotated[
        int, FieldInfo("Distinct subscriptions that leave a parameter open: they get what others ask for.")
    ]
    invalid_subscriptions: Annotated[
        int, FieldInfo("Distinct subscriptions with a value of another type than that of its parameter.")
    ]
    batch: Annotated[int, FieldInfo("Number of its last batch.")]
    batch_at: Annotated[str, FieldInfo("When that was committed.", format="date-time")]
    batch_milliseconds: Annotated[int, FieldInfo("How long its query took in that batch.", unit="milliseconds")]
    late_milliseconds: Annotated[
        int, FieldInfo("How late that began, from the beginning of its period; Repetitive only.", unit="milliseconds")
    ]
    rows_in: Annotated[int, FieldInfo("Rows of feeds, dead letters included, that its batches have consumed.")]
    rows_used: Annotated[int, FieldInfo("Rows that its query has seen, or that came without a subscription.")]
    late_rows: Annotated[int, FieldInfo("Rows that retention had deleted before a batch could read them.")]
    invalid_rows: Annotated[int, FieldInfo("Dead letters of its feeds.")]
    results: Annotated[int, FieldInfo("Results that its batches have committed.")]
    accepted_results: Annotated[int, FieldInfo("Results that a head has accepted, each once.")]
    unknown_results: Annotated[
        int, FieldInfo("Results without an answer of a head that has lost its memory; they are not sent again.")
    ]
    refused_results: Annotated[int, FieldInfo("Results that a head has refused, such as those that are too large.")]
    unasked_results: Annotated[
        int, FieldInfo("Rows of its query for parameters that no subscription asks for; they are not published.")
    ]
    invalid_results: Annotated[
        int, FieldInfo("Rows of its query without a value for a parameter, or with a value that no attribute can have.")
    ]
    pid: Annotated[int, FieldInfo("The process of its driver; on one machine only.")]
    pod: Annotated[str, FieldInfo("The pod of its driver; on Kubernetes only.")]
    restarts: Annotated[int, FieldInfo("Number of restarts of its driver.")]
    last_end: Annotated[str, FieldInfo("How its driver last ended.")]


@dataclass(frozen=True, kw_only=True)
class FeedStatus:
    """The status of a feed, as its recorder says after each commit; counts are since the beginning of the dataset."""

    observed_generation: Annotated[int, GENERATION]
    conditions: Annotated[tuple[ConditionStatus, ...], CONDITIONS]
    path: Annotated[str, FieldInfo("Folder of its dataset.")]
    received: Annotated[int, FieldInfo("Publications received: rows and dead letters.")]
    rows: Annotated[int, FieldInfo("Publications that fit the schema.")]
    dead_letters: Annotated[int, FieldInfo("Publications that did not fit.")]
    expired_rows: Annotated[int, FieldInfo("Rows and dead letters that retention has deleted.")]
    gaps: Annotated[int, FieldInfo("Gaps that the fleet has reported: publications that were missed.")]
    files: Annotated[int, FieldInfo("Number of its files.")]
    size_bytes: Annotated[int, FieldInfo("Size of its files.", unit="bytes")]
    commits: Annotated[int, FieldInfo("Number of the last commit.")]
    committed_at: Annotated[str, FieldInfo("When that was made.", format="date-time")]
    endpoint: Annotated[str, FieldInfo("Where its recorder serves the dataset to applications.")]
    pid: Annotated[int, FieldInfo("The process of its recorder; on one machine only.")]
    pod: Annotated[str, FieldInfo("The pod of its recorder; on Kubernetes only.")]
    restarts: Annotated[int, FieldInfo("Number of restarts of its recorder.")]
    last_end: Annotated[str, FieldInfo("How its recorder last ended.")]
