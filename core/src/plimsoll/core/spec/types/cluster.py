"""Clusters, their edges, listeners and maintenance windows, and the hardware of brokers."""

# ruff: noqa: RUF009  # quantities and durations are immutable values, safe as defaults

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from plimsoll.core.spec.cron import CRON, CronSchedule
from plimsoll.core.spec.field_info import LABEL, NAME, FieldInfo, NamedReference, broker_field, name_field
from plimsoll.core.spec.quantities import Duration, Quantity
from plimsoll.core.spec.types.affinity import LABEL_VALUE, AffinitySpec
from plimsoll.core.spec.types.consumer_groups import ConsumerGroupSpec
from plimsoll.core.spec.types.policy import PolicySpec

PORT = FieldInfo("", low=0, high=65535)
HOST = r"[A-Za-z0-9]([-A-Za-z0-9.]*[A-Za-z0-9])?|\[?[0-9a-fA-F:]+\]?"
LATEST_EPOCH = 9_200_000_000_000_000_000
"""API servers read bounds as floating-point numbers, which this one is exactly. Epochs reach it in two centuries."""

SUBDOMAIN = r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?"
LogSync = Literal["Always", "Interval"]
LogConfirm = Literal["Both", "Either"]
TaintEffect = Literal["Any", "NoSchedule", "PreferNoSchedule", "NoExecute"]


@dataclass(frozen=True, kw_only=True)
class ListenerSpec:
    """Ports of one broker, and the address that clients connect to."""

    name: Annotated[str, name_field("The broker's name.")]
    data_port: Annotated[
        int, FieldInfo("Port of the data socket; 0 for any free one.", low=PORT.low, high=PORT.high)
    ] = 0
    control_port: Annotated[
        int, FieldInfo("Port of the control socket; 0 for any free one.", low=PORT.low, high=PORT.high)
    ] = 0
    advertised_host: Annotated[
        str,
        FieldInfo(
            "Host that clients connect to; empty: the bound one.",
            pattern=HOST + "|",
            form="a host name or address",
            max_length=253,
        ),
    ] = ""
    advertised_port: Annotated[
        int, FieldInfo("Port that clients connect to; 0: the bound one.", low=PORT.low, high=PORT.high)
    ] = 0


@dataclass(frozen=True, kw_only=True)
class ListenersSpec:
    """Where a cluster's brokers listen."""

    bind_address: Annotated[
        str,
        FieldInfo(
            "Address that sockets bind; empty: 127.0.0.1 on one machine, every interface in a pod.",
            pattern=HOST + r"|\*|",
            form="an address of this machine, or *",
            max_length=253,
        ),
    ] = ""
    brokers: Annotated[
        tuple[ListenerSpec, ...],
        FieldInfo("Brokers with their own ports or advertised addresses.", key="name", max_items=1000),
    ] = ()


@dataclass(frozen=True, kw_only=True)
class MaintenanceWindow:
    """A recurring period in which automatic balancing may move subscribers."""

    name: Annotated[str, name_field("The window's name.")]
    schedule: Annotated[
        str,
        FieldInfo(
            "When it opens, as five cron fields in UTC.",
            pattern=CRON,
            form="five cron fields, as '0 2 * * 6' for Saturdays at 02:00",
            check=CronSchedule.parse,
            max_length=256,
        ),
    ]
    duration: Annotated[Duration, FieldInfo("How long it stays open.", low=60, high=31 * 86_400)]


@dataclass(frozen=True, kw_only=True)
class LogDiskSpec:
    """The disk of a head's log. Locally it is a folder of the fleet's, on Kubernetes a claim of the head's own."""

    size: Annotated[Quantity, FieldInfo("Bytes of log that it keeps; then the oldest go.", unit="bytes", above=0)]
    storage_class: Annotated[
        str,
        FieldInfo("Storage class of the claim; empty: the default one. Kubernetes only.", pattern=SUBDOMAIN + "|",
                  form="the name of a StorageClass", max_length=253),
    ] = ""  # fmt: skip
    retain: Annotated[
        bool, FieldInfo("Whether the claim stays when the cluster is deleted. Kubernetes only; local folders stay.")
    ] = True


@dataclass(frozen=True, kw_only=True)
class HeadLogSpec:
    """Where a head keeps its log: docs/durability.md."""

    memory: Annotated[
        Quantity | None,
        FieldInfo("Size of the part in memory; absent: `logSize`, or the fleet's default.", unit="bytes", above=0),
    ] = None
    disk: Annotated[LogDiskSpec | None, FieldInfo("Keep it on a disk as well; absent: in memory only.")] = None
    sync: Annotated[
        LogSync,
        FieldInfo("Syncs of the disk. `Always`: nothing leaves the head before it is safe; `Interval`: every 100 ms."),
    ] = "Always"


@dataclass(frozen=True, kw_only=True)
class HeadSpec:
    """The head of a cluster; its broker is called `CLUSTER-head`."""

    profile: Annotated[str, name_field("Its hardware profile.", refers="HardwareProfile")]
    log_size: Annotated[
        Quantity | None, FieldInfo("Size of its log; absent: the fleet's default.", unit="bytes", above=0)
    ] = None
    log: Annotated[HeadLogSpec, FieldInfo("Where it keeps its log.")] = HeadLogSpec()
    standby: Annotated[
        int,
        FieldInfo("Processes that follow its log, of which one takes its place when it ends: 0 or 1. Nothing leaves the"
                  " head before a standby that has caught up has it.", low=0, high=1),
    ] = 0  # fmt: skip
    confirm: Annotated[
        LogConfirm,
        FieldInfo("With a standby and a disk. `Both`: the disk is waited for, too, as `log.sync` says; `Either`: only"
                  " while no standby has caught up."),
    ] = "Both"  # fmt: skip
    cordoned_epoch: Annotated[
        int,
        FieldInfo("A head whose epoch is at most this takes no new publishers; the one that replaces it does. Written"
                  " by `plimsoll drain HEAD` and `plimsoll cordon HEAD`.", low=0, high=LATEST_EPOCH),
    ] = 0  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class LocationSpec:
    """Coordinates on a plane, in any unit that clients and edges of a fleet share.

    No field is named `y`: YAML 1.1, which API servers read, takes a bare `y` for true.
    """

    east: Annotated[Quantity, FieldInfo("The first coordinate.", low=-(10**9), high=10**9)]
    north: Annotated[Quantity, FieldInfo("The second coordinate.", low=-(10**9), high=10**9)]


@dataclass(frozen=True, kw_only=True)
class EdgeGroup:
    """Edges with the same hardware profile; each becomes an EdgeBroker."""

    name: Annotated[str, broker_field("Name of the edge, or of the group of edges NAME-0, NAME-1, ...")]
    profile: Annotated[str, name_field("Their hardware profile.", refers="HardwareProfile")]
    replicas: Annotated[
        int | None,
        FieldInfo("Number of edges, called NAME-0, NAME-1, ...; absent: a single edge called NAME.", low=0, high=1000),
    ] = None
    location: Annotated[
        LocationSpec | None, FieldInfo("Where they are, for placement by distance; absent: not known.")
    ] = None


@dataclass(frozen=True, kw_only=True)
class ScaleSpec:
    """Overrides the number of edges of a group, as `kubectl scale` and autoscalers do."""

    group: Annotated[
        str, FieldInfo("The group; empty: the first one with `replicas`.", pattern=NAME + "|",
                   form="the name of a group", max_length=63)
    ] = ""  # fmt: skip
    replicas: Annotated[int, FieldInfo("Number of edges in the group.", low=0, high=1000)]


@dataclass(frozen=True, kw_only=True)
class BrokerClusterSpec:
    """One head and its edges, and the heads that it is linked to."""

    head: Annotated[HeadSpec, FieldInfo("The broker that publishers connect to.")]
    edges: Annotated[
        tuple[EdgeGroup, ...], FieldInfo("The brokers that subscribers connect to.", key="name", max_items=256)
    ] = ()
    scale: Annotated[
        ScaleSpec | None,
        FieldInfo(
            "Overrides the replicas of one group; written by `kubectl scale` and by autoscalers. Absent: as in `edges`."
        ),
    ] = None
    neighbors: Annotated[
        tuple[NamedReference, ...],
        FieldInfo(
            "Clusters whose heads are linked to this one; either side may name the other. All links form a tree.",
            key="name",
            refers="BrokerCluster",
            max_items=256,
        ),
    ] = ()
    listeners: Annotated[ListenersSpec, FieldInfo("Ports and advertised addresses.")] = ListenersSpec()
    policy: Annotated[PolicySpec | None, FieldInfo("Balancing policy; absent: the fleet's.")] = None
    maintenance_windows: Annotated[
        tuple[MaintenanceWindow, ...],
        FieldInfo(
            "When automatic balancing may move subscribers; empty: always. Drains and sessions that users create do"
            " not wait for a window.",
            key="name",
            max_items=32,
        ),
    ] = ()
    consumer_groups: Annotated[
        tuple[ConsumerGroupSpec, ...],
        FieldInfo("Groups of consumers that share a stream by slices. Consumers join at this cluster's head.",
                  key="name", max_items=64),
    ] = ()  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class EdgeBrokerSpec:
    """One edge: created by its cluster, or by a user to add other hardware."""

    cluster_ref: Annotated[NamedReference, FieldInfo("The cluster of the edge; immutable.", refers="BrokerCluster")]
    profile: Annotated[str, name_field("Its hardware profile.", refers="HardwareProfile")]
    cordoned: Annotated[bool, FieldInfo("New subscribers are placed on other edges; present ones stay.")] = False
    location: Annotated[
        LocationSpec | None, FieldInfo("Where it is, for placement by distance; absent: not known.")
    ] = None


@dataclass(frozen=True, kw_only=True)
class BandwidthSpec:
    """Network bandwidth of a broker, which the broker enforces with a token bucket."""

    input_bytes_per_second: Annotated[
        Quantity | None, FieldInfo("Into the broker; absent: unlimited.", unit="bytes/s", above=0)
    ] = None
    output_bytes_per_second: Annotated[
        Quantity | None, FieldInfo("Out of the broker; absent: unlimited.", unit="bytes/s", above=0)
    ] = None
    burst: Annotated[
        Duration,
        FieldInfo("Unused output bandwidth that the broker saves up. A link saves none; less than 10 ms needs a machine"
                  " with a processor to spare.", above=0, high=1),
    ] = Duration.parse("50ms")  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class EmulationSpec:
    """Emulated hardware: a publication occupies the broker for `base + subscriptions x perSubscription`."""

    base: Annotated[Duration, FieldInfo("Fixed time per publication.")] = Duration.parse("0s")
    per_subscription: Annotated[Duration, FieldInfo("Additional time per subscription of the broker.")] = (
        Duration.parse("0s")
    )


@dataclass(frozen=True, kw_only=True)
class NodeLabel:
    """A label that a node must have."""

    name: Annotated[
        str,
        FieldInfo("The label's key.", pattern=LABEL, form="a label's key, as node.kubernetes.io/instance-type",
              max_length=317),
    ]  # fmt: skip
    value: Annotated[
        str, FieldInfo("The label's value.", pattern=LABEL_VALUE + "|", form="a label's value", max_length=63)
    ] = ""


@dataclass(frozen=True, kw_only=True)
class NodeToleration:
    """A taint that a node may have."""

    name: Annotated[
        str, FieldInfo("The taint's key.", pattern=LABEL, form="a taint's key, as dedicated", max_length=317)
    ]
    value: Annotated[
        str, FieldInfo("The taint's value; empty: any.", pattern=LABEL_VALUE + "|", form="a taint's value",
                       max_length=63)
    ] = ""  # fmt: skip
    effect: Annotated[TaintEffect, FieldInfo("The taint's effect.")] = "Any"


@dataclass(frozen=True, kw_only=True)
class HardwareProfileSpec:
    """Hardware limits of a broker."""

    cpu: Annotated[Quantity, FieldInfo("CPU limit.", unit="cores", above=0)] = Quantity.parse("1")
    memory: Annotated[Quantity, FieldInfo("Memory limit.", unit="bytes", low=32 * 1024 * 1024)] = Quantity.parse(
        "256Mi"
    )
    bandwidth: Annotated[BandwidthSpec, FieldInfo("Network bandwidth.")] = BandwidthSpec()
    node_selector: Annotated[
        tuple[NodeLabel, ...],
        FieldInfo("Labels that the nodes of its brokers must have. Kubernetes only.", key="name", max_items=64),
    ] = ()
    tolerations: Annotated[
        tuple[NodeToleration, ...],
        FieldInfo("Taints that the nodes of its brokers may have. Kubernetes only.", key="name", max_items=64),
    ] = ()
    affinity: Annotated[
        AffinitySpec | None,
        FieldInfo("Nodes and pods that its brokers' pods are near to or away from, with the fields of a pod's"
                  " `affinity`. Kubernetes only.", is_of_kubernetes=True),
    ] = None  # fmt: skip
    priority_class_name: Annotated[
        str, FieldInfo("Priority class of its brokers' pods; empty: the cluster's default. Kubernetes only.",
                       pattern=SUBDOMAIN + "|", form="the name of a PriorityClass", max_length=253)
    ] = ""  # fmt: skip
    emulation: Annotated[EmulationSpec | None, FieldInfo("Emulates slower hardware, for experiments.")] = None
