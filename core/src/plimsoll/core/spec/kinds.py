"""The five kinds of `plimsoll.dev/v1alpha1` as frozen values; schemas are generated from these fields.

Kubernetes' conventions hold: camelCase in YAML, no floating-point numbers, quantities and durations as strings, lists
of named objects instead of maps, a union as `type` and one block of that name. What Kubernetes and a single machine
treat differently says so in its description.
"""

# ruff: noqa: RUF009  quantities and durations are immutable values, safe as defaults

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from plimsoll.core.spec.about import NAME, About
from plimsoll.core.spec.policy import PolicySpec as PolicySpec
from plimsoll.core.spec.quantities import Duration, Quantity

GROUP = "plimsoll.dev"
VERSION = "v1alpha1"
API_VERSION = f"{GROUP}/{VERSION}"

WhenSlow = Literal["Block", "DropOldest", "Disconnect"]

PORT = About("", low=0, high=65535)
HOST = r"[A-Za-z0-9]([-A-Za-z0-9.]*[A-Za-z0-9])?|\[?[0-9a-fA-F:]+\]?"
CRON = r"(?:[-0-9*/,A-Za-z]+ ){4}[-0-9*/,A-Za-z]+"


def _name(text: str, refers: str = "") -> About:
    form = "lower-case letters, digits and '-', at most 63"
    return About(text, pattern=NAME, form=form, max_length=63, refers=refers)


# ---------------------------------------------------------------- shared blocks


@dataclass(frozen=True, kw_only=True)
class ListenerSpec:
    """Where one broker listens, and what clients are told to dial."""

    name: Annotated[str, _name("The broker's name.")]
    data_port: Annotated[int, About("Port of the data socket; 0 takes any free one.", low=PORT.low, high=PORT.high)] = 0
    control_port: Annotated[
        int, About("Port of the control socket; 0 takes any free one.", low=PORT.low, high=PORT.high)
    ] = 0
    advertised_host: Annotated[
        str, About("Host that clients dial; empty: the bound one.", pattern=HOST + "|", form="a host name or address")
    ] = ""
    advertised_port: Annotated[
        int, About("Port that clients dial; 0: the bound one.", low=PORT.low, high=PORT.high)
    ] = 0


@dataclass(frozen=True, kw_only=True)
class ListenersSpec:
    """Where a cluster's brokers listen."""

    bind_address: Annotated[
        str,
        About(
            "Address that sockets bind; empty: 127.0.0.1 on one machine, every interface in a pod.",
            pattern=HOST + r"|\*|",
            form="an address of this machine, or *",
        ),
    ] = ""
    brokers: Annotated[
        tuple[ListenerSpec, ...], About("Brokers with ports or advertised addresses of their own.", key="name")
    ] = ()


@dataclass(frozen=True, kw_only=True)
class MaintenanceWindow:
    """A time in which balancing may move subscribers."""

    name: Annotated[str, _name("The window's name.")]
    schedule: Annotated[
        str, About("When it opens, as five cron fields in UTC.", pattern=CRON, form="five cron fields, as '0 2 * * 6'")
    ]
    duration: Annotated[Duration, About("How long it stays open.", above=0)]


@dataclass(frozen=True, kw_only=True)
class NamedReference:
    """A reference to an object of the same namespace."""

    name: Annotated[str, _name("The object's name.")]


# ---------------------------------------------------------------- BrokerFleet


@dataclass(frozen=True, kw_only=True)
class SecuritySpec:
    """How links are protected."""

    plain: Annotated[
        bool, About("Plain TCP without keys instead of CURVE: anyone who reaches a port may publish, read and command.")
    ] = False


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
class TelemetrySpec:
    """What brokers report, and how often."""

    report_interval: Annotated[Duration, About("Interval of a broker's load reports.", low=1, high=300)] = (
        Duration.parse("1s")
    )


@dataclass(frozen=True, kw_only=True)
class BrokerFleetSpec:
    """A connected set of clusters: one namespace, one security domain."""

    security: Annotated[SecuritySpec, About("How links are protected.")] = SecuritySpec()
    defaults: Annotated[FleetDefaults, About("What holds in every cluster that does not say otherwise.")] = (
        FleetDefaults()
    )
    telemetry: Annotated[TelemetrySpec, About("What brokers report, and how often.")] = TelemetrySpec()
    time_scale_percent: Annotated[
        int,
        About("One factor on every duration and rate of the brokers, for experiments: 200 is half as fast.",
              unit="percent", low=1, high=10_000),
    ] = 100  # fmt: skip


# ---------------------------------------------------------------- BrokerCluster


@dataclass(frozen=True, kw_only=True)
class HeadSpec:
    """The head of a cluster; its broker is called `CLUSTER-head`."""

    profile: Annotated[str, _name("Its hardware.", refers="HardwareProfile")]
    log_size: Annotated[Quantity | None, About("Its log; absent: the fleet's default.", unit="bytes", above=0)] = None


@dataclass(frozen=True, kw_only=True)
class EdgeGroup:
    """Edges of one kind of hardware; each becomes an EdgeBroker."""

    name: Annotated[str, _name("Name of the edge, or of the group whose edges are called NAME-0, NAME-1, ...")]
    profile: Annotated[str, _name("Their hardware.", refers="HardwareProfile")]
    replicas: Annotated[
        int | None,
        About("How many edges, called NAME-0 onwards; absent: a single one, called NAME.", low=0, high=1000),
    ] = None


@dataclass(frozen=True, kw_only=True)
class BrokerClusterSpec:
    """One head and its edges, and the heads that it is linked to."""

    head: Annotated[HeadSpec, About("The broker that publishers connect to.")]
    edges: Annotated[tuple[EdgeGroup, ...], About("The brokers that subscribers connect to.", key="name")] = ()
    neighbors: Annotated[
        tuple[NamedReference, ...],
        About("Clusters whose heads are linked to this one; named on either side or both. All together form a tree.",
              key="name", refers="BrokerCluster"),
    ] = ()  # fmt: skip
    listeners: Annotated[ListenersSpec, About("Ports and advertised addresses.")] = ListenersSpec()
    policy: Annotated[PolicySpec | None, About("Balancing policy; absent: the fleet's.")] = None
    maintenance_windows: Annotated[
        tuple[MaintenanceWindow, ...], About("When balancing may move subscribers; none: always.", key="name")
    ] = ()


# ---------------------------------------------------------------- EdgeBroker, HardwareProfile


@dataclass(frozen=True, kw_only=True)
class EdgeBrokerSpec:
    """One edge: made by its cluster, or by hand to add other hardware."""

    cluster_ref: Annotated[NamedReference, About("The cluster that it belongs to; immutable.", refers="BrokerCluster")]
    profile: Annotated[str, _name("Its hardware.", refers="HardwareProfile")]
    cordoned: Annotated[bool, About("Newcomers are placed elsewhere; those who are here stay.")] = False


@dataclass(frozen=True, kw_only=True)
class BandwidthSpec:
    """What a broker's network carries; a token bucket in the broker keeps to it."""

    input_bytes_per_second: Annotated[
        Quantity | None, About("Into the broker; absent: unlimited.", unit="bytes/s", above=0)
    ] = None
    output_bytes_per_second: Annotated[
        Quantity | None, About("Out of the broker; absent: unlimited.", unit="bytes/s", above=0)
    ] = None


@dataclass(frozen=True, kw_only=True)
class EmulationSpec:
    """Hardware that is not there: a publication occupies the broker for `base + subscriptions x perSubscription`."""

    base: Annotated[Duration, About("Time of a publication.")] = Duration.parse("0s")
    per_subscription: Annotated[Duration, About("Time of a publication for each subscription of the broker.")] = (
        Duration.parse("0s")
    )


@dataclass(frozen=True, kw_only=True)
class HardwareProfileSpec:
    """What a broker may use."""

    cpu: Annotated[Quantity, About("Processor time.", unit="cores", above=0)] = Quantity.parse("1")
    memory: Annotated[Quantity, About("Memory.", unit="bytes", low=32 * 1024 * 1024)] = Quantity.parse("256Mi")
    bandwidth: Annotated[BandwidthSpec, About("What its network carries.")] = BandwidthSpec()
    emulation: Annotated[EmulationSpec | None, About("Slower hardware than this, for experiments.")] = None


# ---------------------------------------------------------------- LoadBalancingSession


@dataclass(frozen=True, kw_only=True)
class ApprovalSpec:
    """Who lets a plan run."""

    policy: Annotated[
        Literal["Automatic", "Manual"], About("Manual waits in `Planned` until planHash names the plan.")
    ] = "Automatic"
    plan_hash: Annotated[
        str, About("The plan that is approved: exactly this one runs, or none.", pattern="[0-9a-f]*", form="hex digits")
    ] = ""
    within: Annotated[Duration, About("A plan that nobody approves in this time is rejected.", above=0)] = (
        Duration.parse("24h")
    )


@dataclass(frozen=True, kw_only=True)
class SelectSpec:
    """How many move, or who: one of the three."""

    count: Annotated[int | None, About("So many subscribers, the first by name.", low=1)] = None
    share_percent: Annotated[
        int | None, About("This share of the source's subscribers.", unit="percent", low=1, high=100)
    ] = None
    names: Annotated[tuple[str, ...], About("These subscribers.", max_length=256)] = ()


@dataclass(frozen=True, kw_only=True)
class CandidateSpec:
    """An edge that could take, and what of the source's load it could be balanced with."""

    name: Annotated[str, _name("The edge.")]
    metric: Annotated[
        Literal["Input", "Output", "Match"],
        About("What is to be balanced: input or output utilisation, or matching delay."),
    ]
    difference: Annotated[
        Quantity, About("How far the two are apart: a difference of utilisations, or of delays by `normalization`.")
    ] = Quantity.parse("0")
    overloaded: Annotated[
        tuple[str, ...],
        About(
            "What of the source wants relief.", pattern="Input|Output|Cpu|Memory", form="Input, Output, Cpu or Memory"
        ),
    ] = ()


@dataclass(frozen=True, kw_only=True)
class TriggerSpec:
    """Which broker wanted this session, and why; absent where people did."""

    broker: Annotated[str, _name("The edge.")]
    reason: Annotated[str, About("What it found.")] = ""


@dataclass(frozen=True, kw_only=True)
class SessionLimits:
    """How much a session may do."""

    max_moves: Annotated[int | None, About("Subscribers moved at most; absent: as planned.", low=1)] = None
    max_in_flight: Annotated[int, About("Subscribers between two brokers at one time.", low=1, high=100_000)] = 256
    move_interval: Annotated[
        Duration, About("A subscriber that was moved less long ago stays where it is, but for a drain.")
    ] = Duration.parse("30s")
    queue_for: Annotated[
        Duration, About("How long it may wait for other sessions of its brokers before it is rejected.", above=0)
    ] = Duration.parse("1h")


@dataclass(frozen=True, kw_only=True)
class SessionExclusions:
    """What a session leaves alone."""

    subscribers: Annotated[tuple[str, ...], About("Subscribers that stay where they are.", max_length=256)] = ()
    brokers: Annotated[tuple[str, ...], _name("Brokers that neither give nor take.")] = ()


@dataclass(frozen=True, kw_only=True)
class LoadBalancingSessionSpec:
    """One act of balancing: between edges of a cluster (Local), or between clusters (Global)."""

    scope: Annotated[
        Literal["Local", "Global"],
        About("Local names EdgeBrokers of one cluster; Global names BrokerClusters, or EdgeBrokers of two of them."),
    ]
    source: Annotated[NamedReference | None, About("Who gives; absent: the policy chooses.")] = None
    target: Annotated[NamedReference | None, About("Who takes; absent: the policy chooses.")] = None
    action: Annotated[
        Literal["Rebalance", "Drain", "Shuffle"],
        About("Rebalance moves what `select` says, or as the policy says; Drain everything from the source;"
              " Shuffle places all anew."),
    ] = "Rebalance"  # fmt: skip
    select: Annotated[SelectSpec | None, About("What Rebalance moves; absent: as the policy says.")] = None
    candidates: Annotated[
        tuple[CandidateSpec, ...],
        About("Edges to be asked one after the other, where a policy chooses who moves; absent: all that carry less"
              " than the source."),
    ] = ()  # fmt: skip
    trigger: Annotated[TriggerSpec | None, About("Which broker wanted this; absent where people did.")] = None
    mode: Annotated[
        Literal["DryRun", "Execute", "Simulate"], About("DryRun ends with a plan; Simulate predicts its effect too.")
    ] = "DryRun"
    handover: Annotated[
        Literal["Auto", "Drain", "Replay"],
        About("Drain: the source delivers what it has. Replay, within a cluster: the head's log has it. Auto: Replay"
              " where the source would take long."),
    ] = "Auto"  # fmt: skip
    approval: Annotated[ApprovalSpec, About("Who lets the plan run.")] = ApprovalSpec()
    limits: Annotated[SessionLimits, About("How much it may do.")] = SessionLimits()
    exclusions: Annotated[SessionExclusions, About("What it leaves alone.")] = SessionExclusions()
    stop: Annotated[bool, About("Begin nothing more: what is before its cut is undone, what is behind it ends.")] = (
        False
    )
    retries: Annotated[
        int, About("How often it is tried again after an attempt that failed or was rolled back.", low=0, high=100)
    ] = 0
    deadline: Annotated[Duration, About("When an attempt must have ended, from its start.", above=0)] = Duration.parse(
        "10m"
    )
    ttl: Annotated[Duration, About("How long the object is kept after its end.", above=0)] = Duration.parse("168h")


AnySpec = BrokerFleetSpec | BrokerClusterSpec | EdgeBrokerSpec | HardwareProfileSpec | LoadBalancingSessionSpec


@dataclass(frozen=True)
class Kind:
    """How a kind is called."""

    name: str
    plural: str
    short: str
    spec: type


KINDS = {
    kind.name: kind
    for kind in (
        Kind("BrokerFleet", "brokerfleets", "bf", BrokerFleetSpec),
        Kind("BrokerCluster", "brokerclusters", "bc", BrokerClusterSpec),
        Kind("EdgeBroker", "edgebrokers", "eb", EdgeBrokerSpec),
        Kind("HardwareProfile", "hardwareprofiles", "hwp", HardwareProfileSpec),
        Kind("LoadBalancingSession", "loadbalancingsessions", "lbs", LoadBalancingSessionSpec),
    )
}


def kind_named(word: str) -> Kind | None:
    """The kind that a person means: by its name, plural or short name, whatever the case."""
    folded = word.casefold()
    return next((k for k in KINDS.values() if folded in (k.name.casefold(), k.plural, k.short)), None)
