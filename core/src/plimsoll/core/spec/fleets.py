"""What holds in a whole fleet: security, defaults, telemetry, pods, balancing between clusters."""

# ruff: noqa: RUF009  quantities and durations are immutable values, safe as defaults

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from plimsoll.core.spec.about import About, named
from plimsoll.core.spec.policy import PolicySpec
from plimsoll.core.spec.quantities import Duration, Quantity

WhenSlow = Literal["Block", "DropOldest", "Disconnect"]
ClientRole = Literal["Publish", "Subscribe"]
SparkLauncher = Literal["None", "Process", "Kubernetes", "SparkOperator", "SparkApplication"]
VolumeAccess = Literal["ReadWriteOnce", "ReadWriteMany"]

IMAGE = r"[A-Za-z0-9][-A-Za-z0-9._/:@]*"


@dataclass(frozen=True, kw_only=True)
class PodsSpec:
    """Pods of brokers; on one machine, where brokers are processes, nothing acts on it."""

    image: Annotated[
        str, About("Image of brokers; empty: the operator's default. Kubernetes only.", pattern=IMAGE + "|",
                   form="an image, as registry/name:tag", max_length=512)
    ] = ""  # fmt: skip
    lost_node_after: Annotated[
        Duration,
        About("A pod leaves a node that is not ready or unreachable for so long. Kubernetes only.", low=0, high=3600),
    ] = Duration.parse("10s")


@dataclass(frozen=True, kw_only=True)
class ClientSpec:
    """An identity of applications: its key pair is in the Secret `plimsoll-client-NAME`."""

    name: Annotated[str, named("The identity's name.")]
    roles: Annotated[
        tuple[ClientRole, ...], About("What it may do; both if nothing is said, nothing if empty.", max_items=2)
    ] = (
        "Publish",
        "Subscribe",
    )
    publications_per_second: Annotated[
        Quantity | None,
        About("Quota of publications, of all its connections to a broker together; absent: none.",
              unit="publications/s", above=0),
    ] = None  # fmt: skip
    bytes_per_second: Annotated[
        Quantity | None,
        About("Quota of published bytes, of all its connections to a broker together; absent: none.", unit="bytes/s",
              above=0),
    ] = None  # fmt: skip
    max_subscriptions: Annotated[
        int | None,
        About("Subscriptions of each of its subscribers; absent: the fleet's bound.", low=1, high=1_000_000),
    ] = None


@dataclass(frozen=True, kw_only=True)
class SecuritySpec:
    """How links are protected."""

    plain: Annotated[
        bool, About("Plain TCP without keys instead of CURVE: anyone who reaches a port may publish, read and command.")
    ] = False
    clients: Annotated[
        tuple[ClientSpec, ...],
        About("Identities of applications, for whom keys are made. Kubernetes only: on one machine the command line"
              " makes keys.", key="name", max_items=256),
    ] = ()  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class SubscriberDefaults:
    """Bounds of one subscriber."""

    queue_size: Annotated[Quantity, About("What may wait for one subscriber at its edge.", unit="bytes", above=0)] = (
        Quantity.parse("1Mi")
    )
    when_slow: Annotated[
        WhenSlow,
        About("What a full queue does: Block fetches the rest from the log later, for at most blockFor; DropOldest and"
              " Block's end tell of a gap; Disconnect is final."),
    ] = "Block"  # fmt: skip
    block_for: Annotated[Duration, About("How long Block may last before a gap.", above=0)] = Duration.parse("30s")
    max_subscriptions: Annotated[int, About("Subscriptions of one subscriber.", low=1, high=1_000_000)] = 10_000


@dataclass(frozen=True, kw_only=True)
class PublisherDefaults:
    """Bounds of one publisher."""

    window: Annotated[int, About("Publications that may await their acceptance.", low=1, high=1_000_000)] = 1024
    max_publication_size: Annotated[
        Quantity, About("The largest publication.", unit="bytes", above=0, high=256 * 1024)
    ] = Quantity.parse("256Ki")
    publications_per_second: Annotated[
        Quantity | None, About("Quota of publications; absent: none.", unit="publications/s", above=0)
    ] = None
    bytes_per_second: Annotated[Quantity | None, About("Quota of bytes; absent: none.", unit="bytes/s", above=0)] = None
    confirm_within: Annotated[
        Duration, About("How long `confirm: edges` waits for edges before it names them unconfirmed.", above=0)
    ] = Duration.parse("10s")


@dataclass(frozen=True, kw_only=True)
class TimingDefaults:
    """Heartbeats and leases."""

    reattach_within: Annotated[
        Duration, About("How long a head keeps what a subscriber that went away will ask for.", above=0)
    ] = Duration.parse("30s")
    heartbeat: Annotated[Duration, About("Interval of heartbeats on an idle link.", above=0)] = Duration.parse("1s")
    dead_after: Annotated[Duration, About("A peer unheard of for so long is gone.", above=0)] = Duration.parse("10s")
    progress: Annotated[Duration, About("Interval at which idle subscribers learn the stream's position.", above=0)] = (
        Duration.parse("250ms")
    )


@dataclass(frozen=True, kw_only=True)
class FleetDefaults:
    """What holds in every cluster that does not say otherwise."""

    policy: Annotated[PolicySpec | None, About("Balancing policy; absent: nothing is balanced.")] = None
    subscribers: Annotated[SubscriberDefaults, About("Bounds of one subscriber.")] = SubscriberDefaults()
    publishers: Annotated[PublisherDefaults, About("Bounds of one publisher.")] = PublisherDefaults()
    timing: Annotated[TimingDefaults, About("Heartbeats and leases.")] = TimingDefaults()
    log_size: Annotated[
        Quantity | None,
        About(
            "The log of a head; absent: a quarter of its memory, or what re-attaching needs if that is more.",
            unit="bytes",
            above=0,
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class CollectorsSpec:
    """Collectors of telemetry: pods, or processes, that hear load reports and store them."""

    replicas: Annotated[int, About("How many collectors; 0: nothing is stored.", low=0, high=100)] = 0
    interval: Annotated[Duration, About("How often what was collected is written.", low=1, high=3600)] = Duration.parse(
        "10s"
    )
    retain: Annotated[Duration, About("How long it is kept.", above=0)] = Duration.parse("168h")
    volume_claim: Annotated[
        str, About("On Kubernetes, the PersistentVolumeClaim for the files; empty: they go with their pod.",
                   pattern="[a-z0-9]([a-z0-9.-]*[a-z0-9])?|", form="the name of a claim", max_length=253)
    ] = ""  # fmt: skip
    volume_access: Annotated[
        VolumeAccess, About("How nodes may use the claim: one alone, so that Spark's pods are placed beside the"
                            " collectors, or many. Kubernetes only."),
    ] = "ReadWriteOnce"  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class SparkSpec:
    """Spark jobs over telemetry."""

    launcher: Annotated[
        SparkLauncher,
        About("How the jobs are started: not at all; in the collector's own pod (Process); as pods by Spark itself"
              " (Kubernetes); or as an object of the operator of Kubeflow (SparkOperator) or of Apache"
              " (SparkApplication). On one machine all but None are a process beside the collector."),
    ] = "Kubernetes"  # fmt: skip
    executors: Annotated[int, About("How many executors; a process has two cores and none.", low=1, high=1000)] = 2
    image: Annotated[
        str, About("Image of driver and executors; empty: the operator's default.", pattern=IMAGE + "|",
                   form="an image, as registry/name:tag", max_length=512)
    ] = ""  # fmt: skip
    trigger: Annotated[Duration, About("Interval of micro-batches.", low=1, high=3600)] = Duration.parse("5s")


@dataclass(frozen=True, kw_only=True)
class TelemetrySpec:
    """What brokers report, and how often."""

    report_interval: Annotated[Duration, About("Interval of a broker's load reports.", low=1, high=300)] = (
        Duration.parse("1s")
    )
    collectors: Annotated[CollectorsSpec, About("Who stores load reports as Parquet.")] = CollectorsSpec()
    spark: Annotated[SparkSpec | None, About("Spark jobs over what collectors stored; absent: none.")] = None

    @property
    def launcher(self) -> SparkLauncher:
        """How Spark jobs are started."""
        return self.spark.launcher if self.spark is not None else "None"


@dataclass(frozen=True, kw_only=True)
class GlobalBalancingSpec:
    """Balancing between neighboring clusters, by the averages of each."""

    enabled: Annotated[bool, About("Whether clusters whose averages differ by the policy's trigger are balanced.")] = (
        False
    )
    interval: Annotated[
        Duration, About("How often averages of clusters are compared; they are taken over as long.", low=1, high=3600)
    ] = Duration.parse("30s")


@dataclass(frozen=True, kw_only=True)
class BrokerFleetSpec:
    """A connected set of clusters: one namespace, one security domain."""

    security: Annotated[SecuritySpec, About("How links are protected.")] = SecuritySpec()
    defaults: Annotated[FleetDefaults, About("What holds in every cluster that does not say otherwise.")] = (
        FleetDefaults()
    )
    telemetry: Annotated[TelemetrySpec, About("What brokers report, and how often.")] = TelemetrySpec()
    global_balancing: Annotated[GlobalBalancingSpec, About("Balancing between neighboring clusters.")] = (
        GlobalBalancingSpec()
    )
    pods: Annotated[PodsSpec, About("Pods of brokers. Kubernetes only.")] = PodsSpec()
    time_scale_percent: Annotated[
        int,
        About("One factor on every duration and rate of the brokers, for experiments: 200 is half as fast.",
              unit="percent", low=1, high=10_000),
    ] = 100  # fmt: skip
