"""Clusters, their edges, listeners and maintenance windows, and the hardware of brokers."""

# ruff: noqa: RUF009  quantities and durations are immutable values, safe as defaults

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from plimsoll.core.spec.about import NAME, About, NamedReference, named
from plimsoll.core.spec.cron import CRON, Schedule
from plimsoll.core.spec.policy import PolicySpec
from plimsoll.core.spec.quantities import Duration, Quantity

PORT = About("", low=0, high=65535)
HOST = r"[A-Za-z0-9]([-A-Za-z0-9.]*[A-Za-z0-9])?|\[?[0-9a-fA-F:]+\]?"
LABEL = r"([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?"
LABEL_VALUE = r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?"


@dataclass(frozen=True, kw_only=True)
class ListenerSpec:
    """Where one broker listens, and what clients are told to dial."""

    name: Annotated[str, named("The broker's name.")]
    data_port: Annotated[int, About("Port of the data socket; 0 takes any free one.", low=PORT.low, high=PORT.high)] = 0
    control_port: Annotated[
        int, About("Port of the control socket; 0 takes any free one.", low=PORT.low, high=PORT.high)
    ] = 0
    advertised_host: Annotated[
        str,
        About(
            "Host that clients dial; empty: the bound one.",
            pattern=HOST + "|",
            form="a host name or address",
            max_length=253,
        ),
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
            max_length=253,
        ),
    ] = ""
    brokers: Annotated[
        tuple[ListenerSpec, ...],
        About("Brokers with ports or advertised addresses of their own.", key="name", max_items=1000),
    ] = ()


@dataclass(frozen=True, kw_only=True)
class MaintenanceWindow:
    """A time in which balancing may move subscribers."""

    name: Annotated[str, named("The window's name.")]
    schedule: Annotated[
        str,
        About(
            "When it opens, as five cron fields in UTC.",
            pattern=CRON,
            form="five cron fields, as '0 2 * * 6' for Saturdays at 02:00",
            check=Schedule.parse,
            max_length=256,
        ),
    ]
    duration: Annotated[Duration, About("How long it stays open.", low=60, high=31 * 86_400)]


@dataclass(frozen=True, kw_only=True)
class HeadSpec:
    """The head of a cluster; its broker is called `CLUSTER-head`."""

    profile: Annotated[str, named("Its hardware.", refers="HardwareProfile")]
    log_size: Annotated[Quantity | None, About("Its log; absent: the fleet's default.", unit="bytes", above=0)] = None


@dataclass(frozen=True, kw_only=True)
class EdgeGroup:
    """Edges of one kind of hardware; each becomes an EdgeBroker."""

    name: Annotated[str, named("Name of the edge, or of the group whose edges are called NAME-0, NAME-1, ...")]
    profile: Annotated[str, named("Their hardware.", refers="HardwareProfile")]
    replicas: Annotated[
        int | None,
        About("How many edges, called NAME-0 onwards; absent: a single one, called NAME.", low=0, high=1000),
    ] = None


@dataclass(frozen=True, kw_only=True)
class ScaleSpec:
    """How many edges a group has, whatever the group says: what `kubectl scale` and autoscalers write."""

    group: Annotated[
        str, About("The group; empty: the first that has `replicas`.", pattern=NAME + "|",
                   form="the name of a group", max_length=63)
    ] = ""  # fmt: skip
    replicas: Annotated[int, About("How many edges the group has.", low=0, high=1000)]


@dataclass(frozen=True, kw_only=True)
class BrokerClusterSpec:
    """One head and its edges, and the heads that it is linked to."""

    head: Annotated[HeadSpec, About("The broker that publishers connect to.")]
    edges: Annotated[
        tuple[EdgeGroup, ...], About("The brokers that subscribers connect to.", key="name", max_items=256)
    ] = ()
    scale: Annotated[
        ScaleSpec | None,
        About(
            "Overrides the replicas of one group: for `kubectl scale`, which writes it, and for autoscalers, which want"
            " it to be there; absent: as edges say."
        ),
    ] = None
    neighbors: Annotated[
        tuple[NamedReference, ...],
        About("Clusters whose heads are linked to this one; named on either side or both. All together form a tree.",
              key="name", refers="BrokerCluster", max_items=256),
    ] = ()  # fmt: skip
    listeners: Annotated[ListenersSpec, About("Ports and advertised addresses.")] = ListenersSpec()
    policy: Annotated[PolicySpec | None, About("Balancing policy; absent: the fleet's.")] = None
    maintenance_windows: Annotated[
        tuple[MaintenanceWindow, ...],
        About(
            "When balancing that brokers and the detector ask for may move subscribers; none: always. Drains and what"
            " people ask for do not wait for one.",
            key="name",
            max_items=32,
        ),
    ] = ()


@dataclass(frozen=True, kw_only=True)
class EdgeBrokerSpec:
    """One edge: made by its cluster, or by hand to add other hardware."""

    cluster_ref: Annotated[NamedReference, About("The cluster that it belongs to; immutable.", refers="BrokerCluster")]
    profile: Annotated[str, named("Its hardware.", refers="HardwareProfile")]
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
class NodeLabel:
    """A label that a node must have."""

    name: Annotated[
        str,
        About("The label's key.", pattern=LABEL, form="a label's key, as node.kubernetes.io/instance-type",
              max_length=317),
    ]  # fmt: skip
    value: Annotated[
        str, About("The label's value.", pattern=LABEL_VALUE + "|", form="a label's value", max_length=63)
    ] = ""


@dataclass(frozen=True, kw_only=True)
class HardwareProfileSpec:
    """What a broker may use."""

    cpu: Annotated[Quantity, About("Processor time.", unit="cores", above=0)] = Quantity.parse("1")
    memory: Annotated[Quantity, About("Memory.", unit="bytes", low=32 * 1024 * 1024)] = Quantity.parse("256Mi")
    bandwidth: Annotated[BandwidthSpec, About("What its network carries.")] = BandwidthSpec()
    node_selector: Annotated[
        tuple[NodeLabel, ...],
        About("Labels of the nodes that its brokers run on. Kubernetes only.", key="name", max_items=64),
    ] = ()
    emulation: Annotated[EmulationSpec | None, About("Slower hardware than this, for experiments.")] = None
