"""From resources to the configuration of each broker process (`BrokerConfig`), in starting order: heads first.

Pure: the caller provides addresses and keys. `wanted_ports` lists the ports that it must find first.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from plimsoll.core.config import (
    BrokerConfig,
    BrokerHardware,
    BrokerLimits,
    DeclaredGroup,
    DiskLog,
    HardwareEmulation,
    HeadStandby,
    LinkSecurity,
    PeerBroker,
    SlowPolicy,
)
from plimsoll.core.spec import head_tree
from plimsoll.core.spec.brokers import DeclaredBroker, declared_brokers, head_name
from plimsoll.core.spec.kinds import HardwareProfileSpec, ListenerSpec, PolicySpec, WhenSlow
from plimsoll.core.spec.quantities import Quantity
from plimsoll.core.spec.resources import Resources, to_mapping
from plimsoll.core.spec.validation import consistency

_SLOW: dict[WhenSlow, SlowPolicy] = {"Block": "block", "DropOldest": "drop-oldest", "Disconnect": "disconnect"}


@dataclass(frozen=True)
class WantedPorts:
    """The ports that a broker wants on an address; 0 means any free one."""

    bind_address: str
    data_port: int
    control_port: int


@dataclass(frozen=True)
class BrokerEndpoints:
    """Where a broker's two sockets listen, as ZeroMQ endpoints, and its CURVE key and files (empty without CURVE).

    `reach_data` and `reach_control` are the endpoints that others dial if these differ, as for a socket on every
    interface.
    """

    data: str
    control: str
    public_key: str = ""
    secret_key_file: str = ""
    authorized_keys_file: str = ""
    reach_data: str = ""
    reach_control: str = ""
    log_directory: str = ""
    """Where a head keeps its log, if its cluster asks for a disk."""
    standby_control: str = ""
    """Where this process of a head listens for a mediator while it follows the other one."""


def wanted_ports(resources: Resources) -> dict[str, WantedPorts]:
    """The ports that each broker of the fleet wants; an empty address stands for the caller's default."""
    return {
        place.name: WantedPorts(
            bind_address=resources.clusters[place.cluster].spec.listeners.bind_address,
            data_port=_listener(resources, place).data_port,
            control_port=_listener(resources, place).control_port,
        )
        for place in declared_brokers(resources)
    }


def broker_configs(resources: Resources, addresses: Mapping[str, BrokerEndpoints]) -> tuple[BrokerConfig, ...]:
    """The configuration of every broker, in starting order."""
    return tuple(_config(resources, place, addresses) for place in declared_brokers(resources))


def log_bytes(resources: Resources, cluster: str) -> int:
    """The size of a head's log: as specified, else by its memory, or more if re-attaching needs more."""
    given, _, _ = consistency.log_setting(resources, resources.clusters[cluster])
    if given is not None:
        return given.whole
    profile = resources.profiles[resources.clusters[cluster].spec.head.profile].spec
    by_memory = consistency.default_log(profile.memory.value)
    return int(max(by_memory, consistency.log_needed(resources, resources.clusters[cluster]) or 0))


def carried_bytes_per_second(resources: Resources, cluster: str) -> float:
    """The input rate up to which a head's log outlasts twice the re-attach deadline."""
    return log_bytes(resources, cluster) / (2 * resources.fleet.spec.defaults.timing.reattach_within.seconds)


def _config(resources: Resources, place: DeclaredBroker, addresses: Mapping[str, BrokerEndpoints]) -> BrokerConfig:
    fleet, own = resources.fleet.spec, addresses[place.name]
    return BrokerConfig(
        name=place.name,
        role=place.role,
        cluster=place.cluster,
        fleet=resources.fleet.name,
        data=own.data,
        control=own.control,
        advertised_data=_advertised(_listener(resources, place), own),
        head=_peer(head_name(place.cluster), addresses) if place.role == "edge" else None,
        edges=_edges(resources, place) if place.role == "head" else (),
        neighbors=_neighbors(resources, place, addresses) if place.role == "head" else (),
        hardware=_hardware(resources.profiles[place.profile].spec),
        limits=_limits(resources, place),
        security=LinkSecurity(
            plain=fleet.security.plain,
            secret_key_file=own.secret_key_file,
            authorized_keys_file=own.authorized_keys_file,
        ),
        time_factor=fleet.time_scale_percent / 100,
        policy=_policy(resources, place),
        location=_location(place),
        groups=declared_groups(resources) if place.role == "head" else (),
        disk_log=_disk_log(resources, place, own),
        standby=_standby(resources, place, addresses),
    )


def _standby(
    resources: Resources, place: DeclaredBroker, addresses: Mapping[str, BrokerEndpoints]
) -> HeadStandby | None:
    """Of a head with a standby; which of the two processes leads, and in which term, its shell says."""
    if place.role != "head" or not resources.clusters[place.cluster].spec.head.standby:
        return None
    return HeadStandby(head=_peer(place.name, addresses), control=addresses[place.name].standby_control)


def _disk_log(resources: Resources, place: DeclaredBroker, own: BrokerEndpoints) -> DiskLog | None:
    head = resources.clusters[place.cluster].spec.head
    if place.role != "head" or head.log.disk is None:
        return None
    return DiskLog(
        directory=own.log_directory, size_bytes=head.log.disk.size.whole, sync=head.log.sync,
        may_lag=head.confirm == "Either",
    )  # fmt: skip


def policy_of(resources: Resources, cluster: str) -> PolicySpec | None:
    """The balancing policy of a cluster: its own, or else the fleet's."""
    return resources.clusters[cluster].spec.policy or resources.fleet.spec.defaults.policy


def _policy(resources: Resources, place: DeclaredBroker) -> dict[str, Any] | None:
    policy = policy_of(resources, place.cluster)
    return None if policy is None else to_mapping(policy)


def policy_text(resources: Resources, cluster: str) -> str:
    """The policy of a cluster as it is sent to brokers that run: as JSON, empty if it has none."""
    policy = policy_of(resources, cluster) if cluster in resources.clusters else None
    return "" if policy is None else json.dumps(to_mapping(policy), sort_keys=True)


def declared_groups(resources: Resources) -> tuple[DeclaredGroup, ...]:
    """The consumer groups of all clusters: each head stamps what is published there for all of them."""
    found = []
    for cluster, resource in sorted(resources.clusters.items()):
        for group in resource.spec.consumer_groups:
            low, high = (0.0 if each is None else float(each.value) for each in (group.slices.low, group.slices.high))
            found.append(
                DeclaredGroup(
                    cluster=cluster, name=group.name, filter=group.filter, count=group.slices.count,
                    function=group.slices.function, by=group.slices.by, low=low, high=high,
                    unassigned=group.slices.unassigned, balancing=group.balancing, in_session=group.in_session,
                    head=head_name(cluster),
                )
            )  # fmt: skip
    return tuple(found)


def _location(place: DeclaredBroker) -> tuple[float, float] | None:
    return None if place.location is None else (float(place.location.east.value), float(place.location.north.value))


def _listener(resources: Resources, place: DeclaredBroker) -> ListenerSpec:
    listeners = resources.clusters[place.cluster].spec.listeners.brokers
    return next((item for item in listeners if item.name == place.name), ListenerSpec(name=place.name))


def _advertised(listener: ListenerSpec, own: BrokerEndpoints) -> str:
    if not listener.advertised_host and not listener.advertised_port:
        return own.reach_data
    host, _, port = (own.reach_data or own.data).removeprefix("tcp://").rpartition(":")
    return f"tcp://{listener.advertised_host or host}:{listener.advertised_port or port}"


def _peer(name: str, addresses: Mapping[str, BrokerEndpoints]) -> PeerBroker:
    address = addresses[name]
    data, control = address.reach_data or address.data, address.reach_control or address.control
    return PeerBroker(name=name, data=data, control=control, public_key=address.public_key)


def _edges(resources: Resources, place: DeclaredBroker) -> tuple[str, ...]:
    return tuple(
        other.name for other in declared_brokers(resources) if (other.role, other.cluster) == ("edge", place.cluster)
    )


def _neighbors(
    resources: Resources, place: DeclaredBroker, addresses: Mapping[str, BrokerEndpoints]
) -> tuple[PeerBroker, ...]:
    linked = head_tree.neighbors_by_cluster(resources.clusters)[place.cluster]
    return tuple(_peer(head_name(cluster), addresses) for cluster in linked)


def _hardware(profile: HardwareProfileSpec) -> BrokerHardware:
    emulation = profile.emulation
    return BrokerHardware(
        output_bytes_per_second=_rate(profile.bandwidth.output_bytes_per_second),
        output_burst_seconds=profile.bandwidth.burst.seconds,
        input_bytes_per_second=_rate(profile.bandwidth.input_bytes_per_second),
        memory_bytes=profile.memory.whole,
        cpu_millicores=profile.cpu.milli,
        emulation=None
        if emulation is None
        else HardwareEmulation(
            base_seconds=emulation.base.seconds,
            per_subscription_seconds=emulation.per_subscription.seconds,
        ),
    )


def _rate(quantity: Quantity | None) -> float | None:
    return None if quantity is None else float(quantity.value)


def _limits(resources: Resources, place: DeclaredBroker) -> BrokerLimits:
    fleet = resources.fleet.spec
    defaults = fleet.defaults
    subscribers, publishers, timing = defaults.subscribers, defaults.publishers, defaults.timing
    return BrokerLimits(
        max_publication_bytes=publishers.max_publication_size.whole,
        log_bytes=log_bytes(resources, place.cluster),
        queue_bytes=subscribers.queue_size.whole,
        slow_policy=_SLOW[subscribers.when_slow],
        block_seconds=subscribers.block_for.seconds,
        max_subscriptions_per_subscriber=subscribers.max_subscriptions,
        publisher_window=publishers.window,
        publisher_rate_per_second=_rate(publishers.publications_per_second),
        publisher_bytes_per_second=_rate(publishers.bytes_per_second),
        confirm_seconds=publishers.confirm_within.seconds,
        max_durable_subscribers=subscribers.max_durable,
        lease_seconds=timing.reattach_within.seconds,
        longest_lease_seconds=timing.longest_lease.seconds,
        heartbeat_seconds=timing.heartbeat.seconds,
        dead_seconds=timing.dead_after.seconds,
        progress_seconds=timing.progress.seconds,
        report_seconds=fleet.telemetry.report_interval.seconds,
    )
