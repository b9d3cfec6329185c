"""The objects that a fleet should consist of: a pure function of its resources, its keys and the stored owners.

Objects of a broker or a cluster are owned by the BrokerCluster, the rest by the BrokerFleet: so each is
garbage-collected with its owner, even while no operator runs. An EdgeBroker owns nothing, as its pod outlives it until
its subscribers have been moved.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import msgspec

from plimsoll.client.connection_file import FEEDS, HEADS, addresses_by_name
from plimsoll.core import config as configuration
from plimsoll.core.config import BrokerConfig, Role
from plimsoll.core.head.standby.leadership import stored_leadership
from plimsoll.core.spec import BrokerEndpoints, Resources, broker_configs, declared_brokers, edge_brokers, wanted_ports
from plimsoll.core.spec.broker_config import WantedPorts
from plimsoll.core.spec.brokers import DeclaredBroker
from plimsoll.core.spec.types.cluster import ListenerSpec
from plimsoll.core.spec.types.fleet import ClientSpec
from plimsoll.core.spec.usable import UsableFleet
from plimsoll.mediator import authorized_keys
from plimsoll.mediator.known_log import KnownLog, known_log
from plimsoll.operator import names
from plimsoll.operator.names import Object
from plimsoll.operator.objects import channel_driver, collectors, dataset_pods, network, pods, recorders, spark_jobs
from plimsoll.operator.objects.manifest import Ref, digest, owner, pulled_with, uid, with_desired_hash
from plimsoll.operator.pairs.ending import has_second_pod, with_ending_pairs
from plimsoll.operator.reconcile.accepted import accepted_map
from plimsoll.operator.reconcile.observed import is_ready
from plimsoll.operator.security.keys import StoredKeys, base64_text
from plimsoll.operator.settings import OperatorSettings


@dataclass(frozen=True)
class DesiredBroker:
    """One broker: its configuration, and its objects in the order of writing."""

    config: BrokerConfig
    profile: str
    public_key: str
    restart_hash: str
    objects: tuple[Object, ...]

    @property
    def name(self) -> str:
        return self.config.name

    @property
    def role(self) -> Role:
        return self.config.role

    @property
    def cluster(self) -> str:
        return self.config.cluster


@dataclass(frozen=True)
class DesiredFleet:
    """A fleet as it should be. `brokers`: those whose owners exist, heads first. `usable`: of what it is made.

    `applications`: objects for operators of Spark, whose kinds are not watched.
    """

    namespace: str
    resources: Resources
    brokers: Mapping[str, DesiredBroker] = field(default_factory=dict)
    edges: tuple[Object, ...] = ()
    shared: tuple[Object, ...] = ()
    applications: tuple[Object, ...] = ()
    authorized_hash: str = ""
    readers_hash: str = ""
    usable: UsableFleet = field(default_factory=lambda: UsableFleet(None))

    @property
    def fleet(self) -> str:
        return self.resources.fleet.name

    @cached_property
    def places(self) -> Mapping[str, DeclaredBroker]:
        """All desired brokers, whether or not they can be created yet."""
        return {place.name: place for place in declared_brokers(self.resources)}

    @property
    def names(self) -> frozenset[str]:
        """Their names."""
        return frozenset(self.places)

    def objects(self) -> Iterator[Object]:
        """All objects but pods and secrets of brokers."""
        yield from self.shared
        for broker in self.brokers.values():
            yield from broker.objects


@dataclass(frozen=True, kw_only=True)
class DesiredInputs:
    """The inputs of desired objects, beside the resources.

    `stored`: fleet, clusters and EdgeBrokers as stored. `keys`: of brokers, of the mediator, and of clients by the name
    of their Secret. `lingering`: brokers that are no longer desired and still exist. `remembered`: the public keys that
    brokers accept now, for a Secret that cannot be read. `usable`: what the resources are made of.
    """

    namespace: str
    stored: Mapping[Ref, Object]
    keys: Mapping[str, StoredKeys]
    lingering: Mapping[str, Role] = field(default_factory=dict)
    remembered: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    usable: UsableFleet = field(default_factory=lambda: UsableFleet(None))


def desired_fleet(asked: Resources, known: DesiredInputs, settings: OperatorSettings) -> DesiredFleet:
    """The fleet as it should be."""
    resources = with_ending_pairs(asked, known.stored)
    held = _key_holders(resources, known)
    lines = "" if held is None else authorized_keys.authorized_keys_text(held)
    has_recorders = bool(dataset_pods.recorded_feeds(resources))
    readers = "" if held is None or not has_recorders else authorized_keys.feed_readers_text(held)
    addresses = {name: _address(resources, name, ports, known) for name, ports in wanted_ports(resources).items()}
    configs = {config.name: config for config in broker_configs(resources, addresses)}
    brokers = {
        place.name: _desired_broker(resources, place, configs[place.name], known, settings, _pods(asked, place, known))
        for place in declared_brokers(resources)
        if _owner(place, known) is not None and (_is_plain(resources) or _public_key(place.name, known))
    }
    shared = _with_hash(_shared_objects(resources, known, configs.values(), (lines, readers), settings), settings)
    return DesiredFleet(
        namespace=known.namespace,
        resources=resources,
        brokers=brokers,
        edges=tuple(_edge_objects(resources, known)),
        shared=tuple(item for item in shared if item["kind"] != spark_jobs.APPLICATION_KIND),
        applications=tuple(item for item in shared if item["kind"] == spark_jobs.APPLICATION_KIND),
        authorized_hash=digest(lines) if lines else "",
        readers_hash=digest(readers) if readers else "",
        usable=known.usable,
    )


def key_identities(resources: Resources, live: Mapping[Ref, Object]) -> Iterator[tuple[str, Object, dict[str, str]]]:
    """The identities that need a key pair: the name of the Secret, the object that it is for, and its labels."""
    if _is_plain(resources):
        return
    fleet = live.get(("BrokerFleet", resources.fleet.name))
    if fleet is not None:
        yield names.MEDIATOR_KEYS, fleet, names.fleet_labels(resources.fleet.name)
        if resources.fleet.spec.telemetry.collectors.replicas:
            yield names.COLLECTOR_KEYS, fleet, names.fleet_labels(resources.fleet.name)
        for secret, client in _clients(resources):
            yield secret, fleet, {**names.fleet_labels(resources.fleet.name), names.CLIENT: client.name}
        if dataset_pods.runs_channels(resources):
            yield names.PARAMETER_KEYS, fleet, names.fleet_labels(resources.fleet.name)
    for place in declared_brokers(resources):
        found = live.get(_owner_ref(place))
        if found is not None:
            labels = names.broker_labels(resources.fleet.name, place.cluster, place.name, place.role)
            yield names.keys_of(place.name), found, labels


def key_owner(subject: Object, live: Mapping[Ref, Object]) -> Object:
    """The owner of the Secret of an identity: of an edge its cluster, since its pod may outlive the EdgeBroker."""
    if subject["kind"] != "EdgeBroker":
        return subject
    return live.get(("BrokerCluster", subject["spec"]["clusterRef"]["name"]), subject)


# -- brokers


def _pods(asked: Resources, place: DeclaredBroker, known: DesiredInputs) -> int:
    return 2 if place.role == "head" and has_second_pod(asked, place.cluster, known.stored) else 1


def _desired_broker(
    resources: Resources,
    place: DeclaredBroker,
    config: BrokerConfig,
    known: DesiredInputs,
    settings: OperatorSettings,
    pod_count: int,
) -> DesiredBroker:
    spec = resources.fleet.spec.pods
    config = msgspec.structs.replace(config, http=f"tcp://0.0.0.0:{names.HTTP_PORT}")
    if config.standby is not None:  # a container starts again by itself, so each asks which of the two it is
        config = msgspec.structs.replace(config, standby=msgspec.structs.replace(config.standby, waits=True))
    live = known.stored.get(("BrokerCluster", place.cluster))
    if config.disk_log is not None:
        log = _known_log(place, known)
        disk = msgspec.structs.replace(config.disk_log, known_epoch=log.epoch, known_position=log.position)
        config = msgspec.structs.replace(config, disk_log=disk)
    profile = resources.profiles[place.profile].spec
    wanted = pods.BrokerPodSpec(
        config=config,
        profile=profile,
        image=spec.image or settings.broker_image,
        public_key=_public_key(place.name, known),
        log_disk=resources.clusters[place.cluster].spec.head.log.disk if place.role == "head" else None,
        group=_group(resources, place),
        pods=pod_count,
        lost_node_after_seconds=spec.lost_node_after.seconds,
    )
    metadata = {"namespace": known.namespace, "ownerReferences": [owner(live)] if live is not None else []}
    leader = stored_leadership((live or {}).get("status", {})).leader
    external = network.external_service(config, _listener(resources, place), metadata, leader)
    items = [
        pods.config_map(wanted, metadata),
        network.service(config, metadata, leader),
        *([external] if external is not None else []),
        *([network.pair_budget(config, metadata)] if config.standby is not None else []),
        pods.stateful_set(wanted, metadata),
    ]
    asked = _with_hash(items, settings)
    return DesiredBroker(config, place.profile, wanted.public_key, pods.restart_hash(wanted), asked)


def _known_log(place: DeclaredBroker, known: DesiredInputs) -> KnownLog:
    """As the status says while none of its pods is ready, which read it when they start; else as it is written."""
    held = [known.stored.get(("Pod", names.pod_of(place.name, number))) for number in (0, 1)]
    stored = known.stored.get(("ConfigMap", names.config_of(place.name)))
    if not any(map(is_ready, held)) or stored is None:
        return known_log(known.stored.get(("BrokerCluster", place.cluster), {}))
    try:
        disk = configuration.decode(str(stored["data"][names.CONFIG_FILE])).disk_log
    except (KeyError, TypeError, msgspec.MsgspecError):
        return KnownLog()  # of another version, or changed by another client: it is written again
    return KnownLog() if disk is None else KnownLog(disk.known_epoch, disk.known_position)


def _with_hash(items: Iterable[Object], settings: OperatorSettings) -> tuple[Object, ...]:
    return tuple(with_desired_hash(pulled_with(item, settings.pull_secrets)) for item in items)


def _address(resources: Resources, name: str, ports: WantedPorts, known: DesiredInputs) -> BrokerEndpoints:
    bind = ports.bind_address or "*"
    data, control = ports.data_port or names.DATA_PORT, ports.control_port or names.CONTROL_PORT
    host = names.host_of(name, known.namespace)
    files = (f"{names.KEYS_FOLDER}/{names.SECRET_FILE}", f"{names.AUTHORIZED_FOLDER}/{names.AUTHORIZED_FILE}")
    secret, allowed = ("", "") if _is_plain(resources) else files
    return BrokerEndpoints(
        data=f"tcp://{bind}:{data}",
        control=f"tcp://{bind}:{control}",
        public_key=_public_key(name, known),
        secret_key_file=secret,
        authorized_keys_file=allowed,
        reach_data=f"tcp://{host}:{data}",
        reach_control=f"tcp://{host}:{control}",
        # A folder of its own: file systems put others, such as lost+found, beside it.
        log_directory=f"{names.LOG_FOLDER}/{name}",
        standby_control=f"tcp://{bind}:{names.PAIR_PORT}",
    )


def _listener(resources: Resources, place: DeclaredBroker) -> ListenerSpec:
    listeners = resources.clusters[place.cluster].spec.listeners.brokers
    return next((item for item in listeners if item.name == place.name), ListenerSpec(name=place.name))


def _group(resources: Resources, place: DeclaredBroker) -> str:
    """The group of an edge that its cluster makes; empty for others."""
    if place.role == "head" or place.owner.kind != "BrokerCluster":
        return ""
    named = {group.name for group in resources.clusters[place.cluster].spec.edges}
    return place.name if place.name in named else place.name.rpartition("-")[0]


def _edge_objects(resources: Resources, known: DesiredInputs) -> Iterator[Object]:
    """The EdgeBrokers of clusters, without those being deleted: they cannot be created again before they are gone."""
    for edge in edge_brokers(resources):
        cluster = known.stored.get(("BrokerCluster", edge.spec.cluster_ref.name))
        live = known.stored.get(("EdgeBroker", edge.name))
        if edge.owner is None or cluster is None or (live is not None and "deletionTimestamp" in live["metadata"]):
            continue
        written = edge.mapping()  # without `cordoned`, which is its users' to set
        labels = {**edge.labels, "app.kubernetes.io/managed-by": names.MANAGER, names.FLEET: resources.fleet.name}
        metadata = {
            "name": edge.name,
            "namespace": known.namespace,
            "labels": labels,
            "ownerReferences": [owner(cluster)],
        }
        yield with_desired_hash({**written, "metadata": metadata})


def _owner_ref(place: DeclaredBroker) -> Ref:
    return ("BrokerCluster", place.cluster) if place.role == "head" else ("EdgeBroker", place.name)


def _owner(place: DeclaredBroker, known: DesiredInputs) -> Object | None:
    found = known.stored.get(_owner_ref(place))
    return found if found is not None and uid(found) and "deletionTimestamp" not in found["metadata"] else None


# -- shared objects


def _shared_objects(
    resources: Resources,
    known: DesiredInputs,
    configs: Iterable[BrokerConfig],
    keys: tuple[str, str],
    settings: OperatorSettings,
) -> Iterator[Object]:
    """`keys`: the files of authorized keys, for brokers and for recorders; empty: none."""
    lines, readers = keys
    fleet = known.stored.get(("BrokerFleet", resources.fleet.name))
    if fleet is None:
        return
    metadata: Object = {"namespace": known.namespace, "ownerReferences": [owner(fleet)]}
    if lines:
        labels = names.fleet_labels(resources.fleet.name)
        yield {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {**metadata, "name": names.AUTHORIZED_KEYS, "labels": labels},
            "data": {names.AUTHORIZED_FILE: lines, **({names.READERS_FILE: readers} if readers else {})},
        }
    if known.usable.used:
        yield accepted_map(known.usable.used, metadata, resources.fleet.name)
    told = list(configs)
    ports = frozenset((pods.port_of(config.data), pods.port_of(config.control)) for config in told)
    if told:
        has_pairs = any(config.standby is not None for config in told)
        yield network.network_policy(resources.fleet.name, ports, metadata, has_pairs=has_pairs)
    for name in sorted(resources.clusters):
        cluster = known.stored.get(("BrokerCluster", name))
        if cluster is not None and uid(cluster):
            owned = {"namespace": known.namespace, "ownerReferences": [owner(cluster)]}
            at_most = 0 if settings.read_nodes else 1
            yield network.disruption_budget(resources.fleet.name, name, at_most=at_most, metadata=owned)
    if told and (_is_plain(resources) or names.COLLECTOR_KEYS in known.keys):
        keyed = [(config, _public_key(config.name, known)) for config in told]
        beside = spark_jobs.spark_sidecar(resources, settings, metadata)
        yield from collectors.collector_objects(resources, keyed, settings.collector_image, metadata, beside)
        yield from spark_jobs.spark_objects(resources, settings, metadata)
    heads = {config.cluster: config for config in told if config.role == "head"}
    for secret, client in _clients(resources):
        if not _is_plain(resources) and secret in known.keys:
            yield _client_config_map(resources, (secret, client), heads, known, metadata)
    if told:
        yield from _dataset_objects(resources, told, heads, known, settings, metadata)


def _clients(resources: Resources) -> Iterator[tuple[str, ClientSpec]]:
    """The identities of applications, and of the fleet's own pods that act as ones, by the name of their Secret."""
    for client in resources.fleet.spec.security.clients:
        yield names.client_keys(client.name), client
    yield from dataset_pods.identities(resources)


def _dataset_objects(
    resources: Resources,
    told: Sequence[BrokerConfig],
    heads: Mapping[str, BrokerConfig],
    known: DesiredInputs,
    settings: OperatorSettings,
    metadata: Object,
) -> Iterator[Object]:
    """The objects of recorders and of the driver of channels; with keys only once they have theirs."""
    secrets = {secret for secret, _ in dataset_pods.identities(resources)}
    secrets |= {names.PARAMETER_KEYS} if dataset_pods.runs_channels(resources) else set()
    if not secrets or (not _is_plain(resources) and not secrets <= known.keys.keys()):
        return
    store = resources.fleet.spec.datasets.store_secret
    yield network.dataset_policy(resources.fleet.name, dataset_pods.HTTP_PORT, told, metadata, store=bool(store))
    if dataset_pods.recorded_feeds(resources):
        yield network.feed_policy(resources.fleet.name, dataset_pods.FEED_PORT, metadata)
    yield from recorders.recorder_objects(resources, heads, settings.collector_image, metadata)
    keyed = {config.name: (config, _public_key(config.name, known)) for config in told}
    control = known.keys.get(names.PARAMETER_KEYS)
    yield from channel_driver.driver_objects(
        resources, keyed, settings, metadata, control.public if control is not None else ""
    )


def _client_config_map(
    resources: Resources,
    identity: tuple[str, ClientSpec],
    heads: Mapping[str, BrokerConfig],
    known: DesiredInputs,
    metadata: Object,
) -> Object:
    """The addresses of heads, and of the recorders that the client may read from, beside the keys in its Secret."""
    found = {
        cluster: {"endpoint": config.advertised, "publicKey": _public_key(config.name, known)}
        for cluster, config in sorted(heads.items())
    }
    secret, client = identity
    labels = {**names.fleet_labels(resources.fleet.name), names.CLIENT: client.name}
    recorder = known.keys.get(names.RECORDER_KEYS)
    feeds = recorders.feeds_of(resources, client, recorder.public, known.namespace) if recorder is not None else {}
    served = {FEEDS: base64_text(json.dumps(addresses_by_name(feeds), indent=2) + "\n")} if feeds else {}
    keys = {f"{config.name}.key": _accepted_keys(config.name, known) for _, config in sorted(heads.items())}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {**metadata, "name": secret, "labels": labels},
        "type": "Opaque",
        "data": {
            HEADS: base64_text(json.dumps(found, indent=2) + "\n"),
            **served,
            **{file: base64_text("".join(f"{key}\n" for key in keys_now)) for file, keys_now in keys.items()},
        },
    }


# -- keys


def _is_plain(resources: Resources) -> bool:
    return resources.fleet.spec.security.plain


def _public_key(broker: str, known: DesiredInputs) -> str:
    found = known.keys.get(names.keys_of(broker))
    return found.public if found is not None else ""


def _accepted_keys(broker: str, known: DesiredInputs) -> list[str]:
    """The keys that a broker may answer with: the one in force, and during a replacement the next one."""
    found = known.keys.get(names.keys_of(broker))
    return [] if found is None else [found.public, *([found.next] if found.next else [])]


def _key_holders(resources: Resources, known: DesiredInputs) -> list[authorized_keys.KeyHolder] | None:
    """All identities with a key; brokers that still run keep theirs, since they need their head until they exit."""
    if _is_plain(resources):
        return None
    roles: dict[str, Role] = {**known.lingering, **{place.name: place.role for place in declared_brokers(resources)}}
    holders: list[tuple[str, str, authorized_keys.KeyHolderRole, ClientSpec | None]] = [
        *((names.keys_of(name), name, role, None) for name, role in roles.items()),
        (names.MEDIATOR_KEYS, names.MEDIATOR, "mediator", None),
        (names.COLLECTOR_KEYS, names.COLLECTOR, "collector", None),
        (names.PARAMETER_KEYS, names.PARAMETERS, "collector", None),
        *((secret, one.name, "client", one) for secret, one in _clients(resources)),
    ]
    found: list[authorized_keys.KeyHolder] = []
    for secret, name, role, client in holders:
        held = known.keys.get(secret)
        publics = known.remembered.get(secret, ()) if held is None else held.publics
        if publics:
            found.append(authorized_keys.KeyHolder(name, role, publics, client))
    return found
