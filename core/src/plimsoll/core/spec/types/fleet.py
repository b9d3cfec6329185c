"""Settings of a whole fleet: security, defaults, telemetry, pods, balancing between clusters."""

# ruff: noqa: RUF009  # quantities and durations are immutable values, safe as defaults

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from plimsoll.core.spec.field_info import FieldInfo, image_field, name_field
from plimsoll.core.spec.quantities import Duration, Quantity
from plimsoll.core.spec.types.feed import STORE_PLACE, STORE_PLACE_FORM
from plimsoll.core.spec.types.policy import PolicySpec

WhenSlow = Literal["Block", "DropOldest", "Disconnect"]
ClientRole = Literal["Publish", "Subscribe", "Group", "Read"]
ChannelLauncher = Literal["Process", "Kubernetes", "SparkOperator", "SparkApplication"]
SparkLauncher = Literal["None", ChannelLauncher]
VolumeAccess = Literal["ReadWriteOnce", "ReadWriteMany"]

NAME_PREFIX = r"[!-+.-~-]+"

ExecutorCount = Annotated[int, FieldInfo("How many executors; a process has two cores and none.", low=1, high=1000)]


@dataclass(frozen=True, kw_only=True)
class PodsSpec:
    """Pods of brokers; without effect on one machine, where brokers are processes."""

    image: Annotated[str, image_field("Image of the brokers; empty: the operator's default. Kubernetes only.")] = ""
    lost_node_after: Annotated[
        Duration,
        FieldInfo(
            "How long a node may be unreachable or not ready before its pods are moved. Kubernetes only.",
            low=0,
            high=3600,
        ),
    ] = Duration.parse("10s")


@dataclass(frozen=True, kw_only=True)
class ClientSpec:
    """An identity of applications: on Kubernetes its key pair is in the Secret `plimsoll-client-NAME`."""

    name: Annotated[str, name_field("The identity's name.")]
    roles: Annotated[
        tuple[ClientRole, ...],
        FieldInfo("What it may do; Group: make consumer groups; Read: read feeds. Absent: all; empty: nothing.",
                  max_items=4),
    ] = ("Publish", "Subscribe", "Group", "Read")  # fmt: skip
    publications_per_second: Annotated[
        Quantity | None,
        FieldInfo("Quota of publications, for all its connections to one broker together; absent: none.",
              unit="publications/s", above=0),
    ] = None  # fmt: skip
    bytes_per_second: Annotated[
        Quantity | None,
        FieldInfo(
            "Quota of published bytes, for all its connections to one broker together; absent: none.",
            unit="bytes/s",
            above=0,
        ),
    ] = None
    max_subscriptions: Annotated[
        int | None,
        FieldInfo(
            "Highest number of subscriptions of each of its subscribers; absent: the fleet's limit.",
            low=1,
            high=1_000_000,
        ),
    ] = None
    max_durable_subscribers: Annotated[
        int | None,
        FieldInfo("Highest number of its subscribers whose place one head keeps while they are away for long; absent:"
              " the fleet's limit.", low=1, high=100_000),
    ] = None  # fmt: skip
    max_held_back: Annotated[
        Quantity | None,
        FieldInfo("Highest size of the log that one of them may be behind while it is away; beyond it its place ends."
              " Absent: no limit but the log.", unit="bytes", above=0),
    ] = None  # fmt: skip
    max_consumer_groups: Annotated[
        int | None,
        FieldInfo("Highest number of consumer groups at one head that it has made, with the role Group. Absent: 32.",
                  low=1, high=1_000),
    ] = None  # fmt: skip
    name_prefixes: Annotated[
        tuple[str, ...],
        FieldInfo(
            "Prefixes of names of subscribers and publishers that belong to this identity; others with the same prefix "
            "share it. Absent: an identity owns the names that it has used first.",
            pattern=NAME_PREFIX,
            form="visible ASCII characters without a comma, at most 100",
            max_length=100,
            max_items=100,
        ),
    ] = ()
    channels: Annotated[
        tuple[str, ...] | None,
        FieldInfo(
            "Channels to which it may subscribe; its other subscriptions get no results of channels. Absent: all.",
            pattern="[a-z0-9]([-a-z0-9]*[a-z0-9])?", form="the name of a channel", max_length=63, max_items=100,
        ),
    ] = None  # fmt: skip
    feeds: Annotated[
        tuple[str, ...] | None,
        FieldInfo(
            "Feeds that it may read, if it has the role Read. Absent: all feeds, or none if `channels` is given.",
            pattern="[a-z0-9]([-a-z0-9]*[a-z0-9])?", form="the name of a feed", max_length=63, max_items=100,
        ),
    ] = None  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class SecuritySpec:
    """How links are protected."""

    plain: Annotated[
        bool,
        FieldInfo(
            "Plain TCP without keys instead of CURVE: anyone who can reach a port may publish, read and send commands."
        ),
    ] = False
    clients: Annotated[
        tuple[ClientSpec, ...],
        FieldInfo("Identities of applications, for which keys are created; `plimsoll client-config NAME` prints them."
              " On one machine you also have a key of your own, which may do everything, except that names that begin"
              " with `recorder.` or `channel.` are reserved.", key="name", max_items=256),
    ] = ()  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class SubscriberDefaults:
    """Limits of a subscriber."""

    queue_size: Annotated[
        Quantity, FieldInfo("Limit of the queue of one subscriber at its edge.", unit="bytes", above=0)
    ] = Quantity.parse("1Mi")
    when_slow: Annotated[
        WhenSlow,
        FieldInfo(
            "What happens when the queue is full: Block fetches the rest from the log later, for at most blockFor, and"
            " then reports a gap; DropOldest reports a gap at once; Disconnect ends the subscriber."
        ),
    ] = "Block"
    block_for: Annotated[Duration, FieldInfo("How long Block may last before it ends in a gap.", above=0)] = (
        Duration.parse("30s")
    )
    max_subscriptions: Annotated[
        int, FieldInfo("Highest number of subscriptions of one subscriber.", low=1, high=1_000_000)
    ] = 10_000
    max_durable: Annotated[
        int,
        FieldInfo("Highest number of subscribers of one identity whose place a head keeps while they are away.",
                  low=1, high=100_000),
    ] = 1_000  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class PublisherDefaults:
    """Limits of a publisher."""

    window: Annotated[int, FieldInfo("Publications in flight: sent and not accepted yet.", low=1, high=1_000_000)] = (
        1024
    )
    max_publication_size: Annotated[
        Quantity, FieldInfo("Largest size of a publication.", unit="bytes", above=0, high=256 * 1024)
    ] = Quantity.parse("256Ki")
    publications_per_second: Annotated[
        Quantity | None, FieldInfo("Quota of publications; absent: none.", unit="publications/s", above=0)
    ] = None
    bytes_per_second: Annotated[
        Quantity | None, FieldInfo("Quota of bytes; absent: none.", unit="bytes/s", above=0)
    ] = None
    confirm_within: Annotated[
        Duration, FieldInfo("How long `confirm: edges` waits before it reports edges as unconfirmed.", above=0)
    ] = Duration.parse("10s")


@dataclass(frozen=True, kw_only=True)
class TimingDefaults:
    """Heartbeats and leases."""

    reattach_within: Annotated[
        Duration, FieldInfo("How long a head keeps publications for a subscriber that is disconnected.", above=0)
    ] = Duration.parse("30s")
    longest_lease: Annotated[
        Duration,
        FieldInfo("The longest time for which a subscriber may ask a head to keep its place while it is away.", above=0,
                  high=90 * 86_400),
    ] = Duration.parse("168h")  # fmt: skip
    heartbeat: Annotated[Duration, FieldInfo("Interval of heartbeats on an idle link.", above=0)] = Duration.parse("1s")
    dead_after: Annotated[Duration, FieldInfo("A peer that sent nothing for this long counts as gone.", above=0)] = (
        Duration.parse("10s")
    )
    progress: Annotated[
        Duration, FieldInfo("Interval at which idle subscribers are sent the position of the stream.", above=0)
    ] = Duration.parse("250ms")


@dataclass(frozen=True, kw_only=True)
class FleetDefaults:
    """Defaults for all clusters."""

    policy: Annotated[PolicySpec | None, FieldInfo("Balancing policy; absent: no balancing.")] = None
    subscribers: Annotated[SubscriberDefaults, FieldInfo("Limits of a subscriber.")] = SubscriberDefaults()
    publishers: Annotated[PublisherDefaults, FieldInfo("Limits of a publisher.")] = PublisherDefaults()
    timing: Annotated[TimingDefaults, FieldInfo("Heartbeats and leases.")] = TimingDefaults()
    log_size: Annotated[
        Quantity | None,
        FieldInfo(
            "Size of a head's log; absent: by its memory, or more if re-attaching needs it.",
            unit="bytes",
            above=0,
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class CollectorsSpec:
    """Collectors of telemetry: pods, or processes, that receive load reports and store them."""

    replicas: Annotated[int, FieldInfo("Number of collectors; 0: load reports are not stored.", low=0, high=100)] = 0
    interval: Annotated[Duration, FieldInfo("Interval at which collected reports are written.", low=1, high=3600)] = (
        Duration.parse("10s")
    )
    retain: Annotated[Duration, FieldInfo("How long files are kept.", above=0)] = Duration.parse("168h")
    volume_claim: Annotated[
        str, FieldInfo("On Kubernetes, the PersistentVolumeClaim for the files; empty: they go with their pod.",
                   pattern="[a-z0-9]([a-z0-9.-]*[a-z0-9])?|", form="the name of a claim", max_length=253)
    ] = ""  # fmt: skip
    volume_access: Annotated[
        VolumeAccess, FieldInfo("How nodes may use the claim: one alone, so that Spark's pods are placed beside the"
                            " collectors, or many. Kubernetes only."),
    ] = "ReadWriteOnce"  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class SparkSpec:
    """Spark jobs over telemetry."""

    launcher: Annotated[
        SparkLauncher,
        FieldInfo("How the jobs are started: not at all; in the collector's own pod (Process); as pods by Spark itself"
              " (Kubernetes); or as an object of the operator of Kubeflow (SparkOperator) or of Apache"
              " (SparkApplication). On one machine all but None are a process beside the collector."),
    ] = "Kubernetes"  # fmt: skip
    executors: ExecutorCount = 2
    image: Annotated[str, image_field("Image of driver and executors; empty: the operator's default.")] = ""
    trigger: Annotated[Duration, FieldInfo("Interval of micro-batches.", low=1, high=3600)] = Duration.parse("5s")


@dataclass(frozen=True, kw_only=True)
class TelemetrySpec:
    """Load reports and their storage."""

    report_interval: Annotated[Duration, FieldInfo("Interval of a broker's load reports.", low=1, high=300)] = (
        Duration.parse("1s")
    )
    collectors: Annotated[CollectorsSpec, FieldInfo("Collectors, which store load reports as Parquet.")] = (
        CollectorsSpec()
    )
    spark: Annotated[SparkSpec | None, FieldInfo("Spark jobs over the stored reports; absent: none.")] = None

    @property
    def launcher(self) -> SparkLauncher:
        """How Spark jobs are started."""
        return self.spark.launcher if self.spark is not None else "None"


@dataclass(frozen=True, kw_only=True)
class ChannelSparkSpec:
    """Spark for the channels of a fleet."""

    launcher: Annotated[
        ChannelLauncher,
        FieldInfo("How the driver of channels starts Spark: in its own pod (Process); with executors in pods that it"
              " makes itself (Kubernetes); or as an object of the operator of Kubeflow (SparkOperator) or of Apache"
              " (SparkApplication). Executors need `volumeClaim`. On one machine each of them is a process beside the"
              " fleet."),
    ] = "Process"  # fmt: skip
    executors: ExecutorCount = 2
    image: Annotated[
        str,
        image_field("Image of driver and executors; empty: that of `telemetry.spark`, or the operator's default."
                " Kubernetes only."),
    ] = ""  # fmt: skip
    standby_driver: Annotated[
        bool,
        FieldInfo("Whether a second driver waits, with Spark started, and takes over at once when the driver ends. It"
              " takes as much memory again. One machine only: on Kubernetes it is refused."),
    ] = False  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class DatasetsSpec:
    """Where pods keep the datasets of feeds and the ledgers of channels; on one machine the fleet's folder has them."""

    ledgers: Annotated[
        str, FieldInfo("A place in an object store for the ledgers of channels; empty: in `channels/` of the volume, or"
                       " of the folder of the fleet.",
                       pattern=STORE_PLACE + "|", form=f"a place such as {STORE_PLACE_FORM}", max_length=4096)
    ] = ""  # fmt: skip
    volume_claim: Annotated[
        str, FieldInfo("The PersistentVolumeClaim for both; empty: only feeds whose `path` is in an object store are"
                       " recorded, and channels run only with `ledgers`. Kubernetes only.",
                       pattern="[a-z0-9]([a-z0-9.-]*[a-z0-9])?|", form="the name of a claim", max_length=253)
    ] = ""  # fmt: skip
    volume_access: Annotated[
        VolumeAccess, FieldInfo("How nodes may use the claim: one alone, so that all these pods are placed on it, or"
                                " many. Kubernetes only."),
    ] = "ReadWriteOnce"  # fmt: skip
    store_secret: Annotated[
        str, FieldInfo("The Secret with address and credentials of the object store, for feeds, tables and ledgers:"
                       " AWS_ENDPOINT_URL, AWS_REGION, AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY. Kubernetes only.",
                       pattern="[a-z0-9]([a-z0-9.-]*[a-z0-9])?|", form="the name of a Secret", max_length=253)
    ] = ""  # fmt: skip
    spark: Annotated[ChannelSparkSpec, FieldInfo("Spark for the fleet's channels.")] = ChannelSparkSpec()


@dataclass(frozen=True, kw_only=True)
class GlobalBalancingSpec:
    """Balancing between neighboring clusters, by the averages of each."""

    enabled: Annotated[
        bool, FieldInfo("Whether to balance clusters whose averages differ by more than the policy's trigger.")
    ] = False
    interval: Annotated[
        Duration,
        FieldInfo(
            "Interval at which clusters are compared, and over which their loads are averaged.", low=1, high=3600
        ),
    ] = Duration.parse("30s")


@dataclass(frozen=True, kw_only=True)
class BrokerFleetSpec:
    """A connected set of clusters: one namespace, one security domain."""

    security: Annotated[SecuritySpec, FieldInfo("How links are protected.")] = SecuritySpec()
    defaults: Annotated[FleetDefaults, FieldInfo("Defaults for all clusters.")] = FleetDefaults()
    telemetry: Annotated[TelemetrySpec, FieldInfo("Load reports and their storage.")] = TelemetrySpec()
    global_balancing: Annotated[GlobalBalancingSpec, FieldInfo("Balancing between neighboring clusters.")] = (
        GlobalBalancingSpec()
    )
    datasets: Annotated[DatasetsSpec, FieldInfo("Where pods keep what feeds and channels record. Kubernetes only.")] = (
        DatasetsSpec()
    )
    pods: Annotated[PodsSpec, FieldInfo("Pods of brokers. Kubernetes only.")] = PodsSpec()
    time_scale_percent: Annotated[
        int,
        FieldInfo("Scales all durations and rates of the brokers, for experiments: 200 is half as fast.",
              unit="percent", low=1, high=10_000),
    ] = 100  # fmt: skip
