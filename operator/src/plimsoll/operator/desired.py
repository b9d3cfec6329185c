"""The objects that a fleet should consist of: a pure function of its resources, its keys, and who owns what.

What belongs to an edge is owned by its EdgeBroker, what belongs to a head or a cluster by the BrokerCluster, the rest
by the BrokerFleet: so it goes with its owner, even while no operator runs.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import msgspec

from plimsoll.core.config import BrokerConfig, Role
from plimsoll.core.spec import Address, Resources, edge_brokers, places, plan, wanted_ports
from plimsoll.core.spec.brokers import Place
from plimsoll.core.spec.clusters import ListenerSpec
from plimsoll.core.spec.fleets import ClientSpec
from plimsoll.core.spec.planning import WantedPorts
from plimsoll.operator import authorized, collectors, names, network, pods, spark
from plimsoll.operator.keys import Keys, encoded
from plimsoll.operator.names import Object
from plimsoll.operator.objects import Ref, asked_for, digest, owner, pulled_with, uid
from plimsoll.operator.settings import Settings


@dataclass(frozen=True)
class DesiredBroker:
    """One broker: what it is told, and its objects in the order of writing."""

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
class Desired:
    """A fleet as it should be. `brokers`: those whose owners exist; heads come first."""

    namespace: str
    resources: Resources
    brokers: Mapping[str, DesiredBroker] = field(default_factory=dict)
    edges: tuple[Object, ...] = ()
    shared: tuple[Object, ...] = ()
    authorized_hash: str = ""

    @property
    def fleet(self) -> str:
        return self.resources.fleet.name

    @cached_property
    def places(self) -> Mapping[str, Place]:
        """All brokers that are asked for, whether or not they can be made yet."""
        return {place.name: place for place in places(self.resources)}

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
class Known:
    """What desired objects depend on, beside the resources.

    `live`: fleet, clusters and EdgeBrokers as stored. `keys`: of brokers, of the mediator, and of clients by the name
    of their Secret. `still`: brokers that are not asked for any more and have not left yet.
    """

    namespace: str
    live: Mapping[Ref, Object]
    keys: Mapping[str, Keys]
    still: Mapping[str, Role] = field(default_factory=dict)


def desire(resources: Resources, known: Known, settings: Settings) -> Desired:
    """The fleet as it should be."""
    held = _holders(resources, known)
    lines = "" if held is None else authorized.text(held)
    addresses = {name: _address(resources, name, ports, known) for name, ports in wanted_ports(resources).items()}
    configs = {config.name: config for config in plan(resources, addresses)}
    brokers = {
        place.name: _broker(resources, place, configs[place.name], known, settings)
        for place in places(resources)
        if _owner(place, known) is not None and (_plain(resources) or _key(place.name, known))
    }
    return Desired(
        namespace=known.namespace,
        resources=resources,
        brokers=brokers,
        edges=tuple(_edges(resources, known)),
        shared=_asked(_shared(resources, known, configs.values(), lines, settings), settings),
        authorized_hash=digest(lines) if lines else "",
    )


def identities(resources: Resources, live: Mapping[Ref, Object]) -> Iterator[tuple[str, Object, dict[str, str]]]:
    """Who needs a pair of keys: the name of its Secret, the object that owns that, and its labels."""
    if _plain(resources):
        return
    fleet = live.get(("BrokerFleet", resources.fleet.name))
    if fleet is not None:
        yield names.MEDIATOR_KEYS, fleet, names.fleet_labels(resources.fleet.name)
        if resources.fleet.spec.telemetry.collectors.replicas:
            yield names.COLLECTOR_KEYS, fleet, names.fleet_labels(resources.fleet.name)
        for client in resources.fleet.spec.security.clients:
            labels = {**names.fleet_labels(resources.fleet.name), names.CLIENT: client.name}
            yield names.client_keys(client.name), fleet, labels
    for place in places(resources):
        found = live.get(_owner_ref(place))
        if found is not None:
            labels = names.broker_labels(resources.fleet.name, place.cluster, place.name, place.role)
            yield names.keys_of(place.name), found, labels


# -- brokers


def _broker(
    resources: Resources, place: Place, config: BrokerConfig, known: Known, settings: Settings
) -> DesiredBroker:
    spec = resources.fleet.spec.pods
    config = msgspec.structs.replace(config, http=f"tcp://0.0.0.0:{names.HTTP_PORT}")
    profile = resources.profiles[place.profile].spec
    wanted = pods.Wanted(
        config=config,
        profile=profile,
        image=spec.image or settings.broker_image,
        public_key=_key(place.name, known),
        group=_group(resources, place),
        lost_node_after_seconds=spec.lost_node_after.seconds,
    )
    live = _owner(place, known)
    metadata = {"namespace": known.namespace, "ownerReferences": [owner(live)] if live is not None else []}
    external = network.external_service(config, _listener(resources, place), metadata)
    items = [
        pods.config_map(wanted, metadata),
        network.service(config, metadata),
        *([external] if external is not None else []),
        pods.stateful_set(wanted, metadata),
    ]
    asked = _asked(items, settings)
    return DesiredBroker(config, place.profile, wanted.public_key, pods.restart_hash(wanted), asked)


def _asked(items: Iterable[Object], settings: Settings) -> tuple[Object, ...]:
    return tuple(asked_for(pulled_with(item, settings.pull_secrets)) for item in items)


def _address(resources: Resources, name: str, ports: WantedPorts, known: Known) -> Address:
    bind = ports.bind_address or "*"
    data, control = ports.data_port or names.DATA_PORT, ports.control_port or names.CONTROL_PORT
    host = names.host_of(name, known.namespace)
    files = (f"{names.KEYS_FOLDER}/{names.SECRET_FILE}", f"{names.AUTHORIZED_FOLDER}/{names.AUTHORIZED_FILE}")
    secret, allowed = ("", "") if _plain(resources) else files
    return Address(
        data=f"tcp://{bind}:{data}",
        control=f"tcp://{bind}:{control}",
        public_key=_key(name, known),
        secret_key_file=secret,
        authorized_keys_file=allowed,
        reach_data=f"tcp://{host}:{data}",
        reach_control=f"tcp://{host}:{control}",
    )


def _listener(resources: Resources, place: Place) -> ListenerSpec:
    listeners = resources.clusters[place.cluster].spec.listeners.brokers
    return next((item for item in listeners if item.name == place.name), ListenerSpec(name=place.name))


def _group(resources: Resources, place: Place) -> str:
    """The group of an edge that its cluster makes; empty for others."""
    if place.role == "head" or place.owner.kind != "BrokerCluster":
        return ""
    named = {group.name for group in resources.clusters[place.cluster].spec.edges}
    return place.name if place.name in named else place.name.rpartition("-")[0]


def _edges(resources: Resources, known: Known) -> Iterator[Object]:
    """EdgeBrokers that clusters make; one that is being deleted cannot be made anew before it has gone."""
    for edge in edge_brokers(resources):
        cluster = known.live.get(("BrokerCluster", edge.spec.cluster_ref.name))
        live = known.live.get(("EdgeBroker", edge.name))
        if edge.owner is None or cluster is None or (live is not None and "deletionTimestamp" in live["metadata"]):
            continue
        written = edge.mapping()  # without `cordoned`, which is its users' to set
        labels = {**edge.labels, "app.kubernetes.io/managed-by": names.MANAGER, names.FLEET: resources.fleet.name}
        metadata = {
            "name": edge.name,
            "namespace": known.namespace,
            "labels": labels,
            "finalizers": [names.FINALIZER],
            "ownerReferences": [owner(cluster)],
        }
        yield asked_for({**written, "metadata": metadata})


def _owner_ref(place: Place) -> Ref:
    return ("BrokerCluster", place.cluster) if place.role == "head" else ("EdgeBroker", place.name)


def _owner(place: Place, known: Known) -> Object | None:
    found = known.live.get(_owner_ref(place))
    return found if found is not None and uid(found) and "deletionTimestamp" not in found["metadata"] else None


# -- what all share


def _shared(
    resources: Resources, known: Known, configs: Iterable[BrokerConfig], lines: str, settings: Settings
) -> Iterator[Object]:
    fleet = known.live.get(("BrokerFleet", resources.fleet.name))
    if fleet is None:
        return
    metadata: Object = {"namespace": known.namespace, "ownerReferences": [owner(fleet)]}
    if lines:
        labels = names.fleet_labels(resources.fleet.name)
        yield {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {**metadata, "name": names.AUTHORIZED_KEYS, "labels": labels},
            "data": {names.AUTHORIZED_FILE: lines},
        }
    told = list(configs)
    ports = frozenset((pods.port_of(config.data), pods.port_of(config.control)) for config in told)
    if told:
        yield network.network_policy(resources.fleet.name, ports, metadata)
    for name in sorted(resources.clusters):
        cluster = known.live.get(("BrokerCluster", name))
        if cluster is not None and uid(cluster):
            owned = {"namespace": known.namespace, "ownerReferences": [owner(cluster)]}
            at_most = 0 if settings.read_nodes else 1
            yield network.disruption_budget(resources.fleet.name, name, at_most=at_most, metadata=owned)
    if told and (_plain(resources) or names.COLLECTOR_KEYS in known.keys):
        keyed = [(config, _key(config.name, known)) for config in told]
        beside = spark.sidecar(resources, settings, metadata)
        yield from collectors.objects(resources, keyed, settings.collector_image, metadata, beside)
        yield from spark.objects(resources, settings, metadata)
    heads = {config.cluster: config for config in told if config.role == "head"}
    for client in resources.fleet.spec.security.clients:
        if not _plain(resources) and names.client_keys(client.name) in known.keys:
            yield _client(resources, client, heads, known, metadata)


def _client(
    resources: Resources, client: ClientSpec, heads: Mapping[str, BrokerConfig], known: Known, metadata: Object
) -> Object:
    """Where a client finds the heads, beside its keys, which nobody writes a second time."""
    found = {
        cluster: {"endpoint": config.advertised, "publicKey": _key(config.name, known)}
        for cluster, config in sorted(heads.items())
    }
    labels = {**names.fleet_labels(resources.fleet.name), names.CLIENT: client.name}
    keys = {f"{config.name}.key": _keys_now(config.name, known) for _, config in sorted(heads.items())}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {**metadata, "name": names.client_keys(client.name), "labels": labels},
        "type": "Opaque",
        "data": {
            "heads.json": encoded(json.dumps(found, indent=2) + "\n"),
            **{file: encoded("".join(f"{key}\n" for key in keys_now)) for file, keys_now in keys.items()},
        },
    }


# -- keys


def _plain(resources: Resources) -> bool:
    return resources.fleet.spec.security.plain


def _key(broker: str, known: Known) -> str:
    found = known.keys.get(names.keys_of(broker))
    return found.public if found is not None else ""


def _keys_now(broker: str, known: Known) -> list[str]:
    """The keys under which a broker answers: the one in force, and the one that follows while it is replaced."""
    found = known.keys.get(names.keys_of(broker))
    return [] if found is None else [found.public, *([found.next] if found.next else [])]


def _holders(resources: Resources, known: Known) -> list[authorized.Holder] | None:
    """Everybody with a key: those who should run, and those who still do and talk to their head until the end."""
    if _plain(resources):
        return None
    roles: dict[str, Role] = {**known.still, **{place.name: place.role for place in places(resources)}}
    found: list[authorized.Holder] = []
    for name, role in roles.items():
        if (held := known.keys.get(names.keys_of(name))) is not None:
            found.append(authorized.Holder(name, role, held.publics))
    if (held := known.keys.get(names.MEDIATOR_KEYS)) is not None:
        found.append(authorized.Holder(names.MEDIATOR, "mediator", held.publics))
    if (held := known.keys.get(names.COLLECTOR_KEYS)) is not None:
        found.append(authorized.Holder(names.COLLECTOR, "collector", held.publics))
    for client in resources.fleet.spec.security.clients:
        if (held := known.keys.get(names.client_keys(client.name))) is not None:
            found.append(authorized.Holder(client.name, "client", held.publics, client))
    return found
