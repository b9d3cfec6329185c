"""Consistency between the objects of one fleet: names, references, the tree of heads, logs, ports.

Each check is a generator of problems and judges one thing; `check_resources` runs them in such an order that no check
fails because of a fault that another one reports.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import fields
from fractions import Fraction
from typing import Final

from plimsoll.core.config import COMPILE_MIN_MEMORY_BYTES, COMPILER_BYTES, PROCESS_BYTES
from plimsoll.core.spec import brokers, head_tree
from plimsoll.core.spec.dataset_identities import RECORDER_PREFIX, reserved_prefix
from plimsoll.core.spec.field_info import BROKER_NAME, BROKER_NAME_LENGTH, camel_case
from plimsoll.core.spec.kinds import AnySpec, BrokerClusterSpec, LoadBalancingSessionSpec
from plimsoll.core.spec.problems import Path, ResourceProblem, suggestion
from plimsoll.core.spec.quantities import Quantity, bytes_text, seconds_text
from plimsoll.core.spec.resources import Resource, Resources
from plimsoll.core.spec.types.consumer_groups import FUNCTIONS_BY_ATTRIBUTE, GroupSlicesSpec
from plimsoll.core.spec.types.feed import RESERVED_COLUMNS
from plimsoll.core.spec.types.policy import FLEET_WIDE_TYPES, DeadlineThresholds, PolicySpec
from plimsoll.core.spec.validation.channels import check_channels, store_problems

SMALLEST_LOG_BYTES = 2**20
LEAST_DISK_LOG = 8 * 1024 * 1024
LOG_SHARE = 2  # a head's log may take at most 1/LOG_SHARE of its memory
DEFAULT_LOG_SHARE = 4  # and takes 1/DEFAULT_LOG_SHARE by default
ROOM_SHARE = Fraction(3, 4)  # and no more than this of what the process leaves of it
DEFAULT_ROOM_SHARE = Fraction(1, 2)  # and by default this


BUNDLE_ACTIONS: Final = ("Unload", "Split")
"""Actions of sessions that are about bundles of topics."""


def largest_log(memory_bytes: Fraction) -> Fraction:
    """The largest log of a head with so much memory. Without room for the compiled loop of matching it runs without."""
    return max(min(memory_bytes / LOG_SHARE, ROOM_SHARE * (memory_bytes - PROCESS_BYTES)), Fraction(SMALLEST_LOG_BYTES))


def default_log(memory_bytes: Fraction) -> Fraction:
    """The log of a head with so much memory, unless re-attaching needs more: a quarter of it, or half of the room."""
    room = memory_bytes - PROCESS_BYTES
    if memory_bytes >= COMPILE_MIN_MEMORY_BYTES:
        room -= COMPILER_BYTES
    return max(min(memory_bytes / DEFAULT_LOG_SHARE, DEFAULT_ROOM_SHARE * room), Fraction(SMALLEST_LOG_BYTES))


def check_unique(objects: Iterable[Resource[AnySpec]]) -> Iterator[ResourceProblem]:
    """One object per kind and name, one fleet, one namespace."""
    seen: dict[tuple[str, str], Resource[AnySpec]] = {}
    first_fleet: Resource[AnySpec] | None = None
    namespace: Resource[AnySpec] | None = None
    for item in objects:
        first = seen.setdefault((item.kind, item.name), item)
        if first is not item:
            where = f"{first.document.file}:{first.document.line_of(('metadata', 'name')) or '?'}"
            yield item.problem(("metadata", "name"), f"this object is already defined at {where}", "Remove one.")
        elif item.kind == "BrokerFleet":
            if first_fleet is not None:
                found = f"a second fleet beside BrokerFleet/{first_fleet.name}"
                yield item.problem(("metadata", "name"), found, "Run each fleet by itself.")
            first_fleet = first_fleet or item
        if item.namespace:
            namespace = namespace or item
            if item.namespace != namespace.namespace:
                found = f'"{item.namespace}", while {namespace.subject} is in "{namespace.namespace}"'
                yield item.problem(("metadata", "namespace"), found, "A fleet is one namespace: name the same one.")


def check_resources(resources: Resources) -> Iterator[ResourceProblem]:
    """All checks between objects."""
    problems = [
        *check_timing(resources),
        *check_policies(resources),
        *check_consumer_groups(resources),
        *check_references(resources),
        *_scales(resources),
        *_sessions(resources),
        *check_feeds(resources),
        *check_channels(resources),
        *check_name_prefixes(resources),
    ]
    if not problems:
        problems = [*check_names(resources), *_tree(resources), *_logs(resources), *check_listeners(resources)]
        problems += [each for each, _ in check_client_names(resources)]
    yield from problems


def check_timing(resources: Resources) -> Iterator[ResourceProblem]:
    """An idle peer sends a heartbeat before it counts as gone."""
    timing = resources.fleet.spec.defaults.timing
    if timing.heartbeat.value >= timing.dead_after.value:
        found = f"{timing.heartbeat} is not below deadAfter {timing.dead_after}: idle peers would count as gone"
        path: Path = ("spec", "defaults", "timing", "heartbeat")
        yield resources.fleet.problem(path, found, "Lower it, or raise `deadAfter`.")


def check_feeds(resources: Resources) -> Iterator[ResourceProblem]:
    """Columns that no attribute can have, schemas without a column, and two feeds of one folder."""
    paths: dict[str, str] = {}
    for name, feed in sorted(resources.feeds.items()):
        columns = feed.spec.schema.columns if feed.spec.schema is not None else ()
        if feed.spec.schema is not None and not columns:
            remedy = "Name the attributes, or leave `schema` out: then it is inferred."
            yield feed.problem(("spec", "schema", "columns"), "this list is empty", remedy)
        for index, column in enumerate(columns):
            if column.name in RESERVED_COLUMNS:
                path: Path = ("spec", "schema", "columns", index, "name")
                yield feed.problem(path, f'every feed has a column "{column.name}" of its own', "Remove it.")
        yield from store_problems(feed, ("spec", "path"), feed.spec.path)
        place = feed.spec.path.rstrip("/") or f"feeds/{name}"
        if (other := paths.setdefault(place, name)) != name:
            yield feed.problem(("spec", "path"), f"Feed/{other} is recorded there, too", "Write another path.")


def check_policies(resources: Resources) -> Iterator[ResourceProblem]:
    """Thresholds and parameters of the policies of the fleet and of each cluster."""
    yield from _policy(resources.fleet, resources.fleet.spec.defaults.policy, ("spec", "defaults", "policy"))
    for cluster in resources.clusters.values():
        yield from _policy(cluster, cluster.spec.policy, ("spec", "policy"))


def _policy(owner: Resource[AnySpec], policy: PolicySpec | None, path: Path) -> Iterator[ResourceProblem]:
    if policy is None:
        return
    overload = policy.detection.overload
    for name, limits in ((each.name, getattr(overload, each.name)) for each in fields(overload)):
        if limits.lower > limits.higher:
            found = f"{limits.lower} is above `higher`, which is {limits.higher}"
            yield owner.problem((*path, "detection", "overload", name, "lower"), found, "Lower it, or raise `higher`.")
    detection = policy.detection
    if detection.reports_valid_for is not None and detection.reports_valid_for.value < detection.interval.value:
        early = "reports would expire between checks"
        found = f"{detection.reports_valid_for} is below `interval`, which is {detection.interval}: {early}"
        remedy = "Raise it, remove it, or lower `interval`."
        yield owner.problem((*path, "detection", "reportsValidFor"), found, remedy)
    estimation = policy.estimation
    if (estimation.ring if estimation.type == "Press" else estimation.press) is not None:
        other = "ring" if estimation.type == "Press" else "press"
        remedy = f"Move them into `{estimation.type.lower()}:`, or change `type`."
        found = f"parameters of another estimation than {estimation.type}"
        yield owner.problem((*path, "estimation", other), found, remedy)
    own = policy.type[:1].lower() + policy.type[1:]
    if policy.bad is not None and policy.bad.alpha > policy.bad.gamma:
        found = f"{policy.bad.alpha} is above `gamma`, which is {policy.bad.gamma}"
        yield owner.problem((*path, "bad", "alpha"), found, "Lower it, or raise `gamma`.")
    for name, block in (("Pulsar", "pulsar"), ("DelaySensitive", "delay_sensitive")):
        if policy.type == name and getattr(policy, block) is None:
            found, remedy = (
                f"{name} needs to know what a topic is",
                f"Write `{camel_case(block)}: {{topicAttribute: NAME}}`.",
            )
            yield owner.problem((*path, camel_case(block)), found, remedy)
    if policy.delay_sensitive is not None:
        yield from _deadlines(owner, policy.delay_sensitive.thresholds, (*path, "delaySensitive", "thresholds"))
    if policy.pulsar is not None and policy.pulsar.bundles.initial > policy.pulsar.bundles.maximum:
        found = f"{policy.pulsar.bundles.initial} is above `maximum`, which is {policy.pulsar.bundles.maximum}"
        yield owner.problem((*path, "pulsar", "bundles", "initial"), found, "Lower it, or raise `maximum`.")
    for name in ("padres", "random", "least_loaded", "greedy", "bad", "pulsar", "delay_sensitive"):
        if getattr(policy, name) is not None and camel_case(name) != own:
            found = f"parameters of another policy than {policy.type}"
            yield owner.problem((*path, camel_case(name)), found, f"Move them into `{own}:`, or change `type`.")


def check_consumer_groups(resources: Resources) -> Iterator[ResourceProblem]:
    """Consumer groups: a name is one group's in the fleet, and a function has what it reads."""
    clusters: dict[str, str] = {}
    for cluster in resources.clusters.values():
        for index, group in enumerate(cluster.spec.consumer_groups):
            path: Path = ("spec", "consumerGroups", index)
            first = clusters.setdefault(group.name, cluster.name)
            if first != cluster.name:
                found = f"cluster {first} has a group of this name, and a stamp names its group alone"
                yield cluster.problem((*path, "name"), found, "Call one of them otherwise.")
            yield from _slices(cluster, group.slices, (*path, "slices"))


def _slices(cluster: Resource[AnySpec], slices: GroupSlicesSpec, path: Path) -> Iterator[ResourceProblem]:
    reads = slices.function in FUNCTIONS_BY_ATTRIBUTE
    if reads and not slices.by:
        found = f"{slices.function} needs to know which attribute it reads"
        yield cluster.problem((*path, "by"), found, "Write `by: ATTRIBUTE`.")
    if slices.by and not reads:
        yield cluster.problem((*path, "by"), f"{slices.function} reads no attribute", "Remove `by`.")
    bounds = slices.low is not None, slices.high is not None
    if slices.function == "Range" and not all(bounds):
        yield cluster.problem((*path, "function"), "a Range has two ends", "Write `low` and `high`.")
    elif slices.function != "Range" and any(bounds):
        found = f"a bound of a Range, and the function is {slices.function}"
        yield cluster.problem(
            (*path, "low" if bounds[0] else "high"), found, "Remove them, or write `function: Range`."
        )
    elif slices.low is not None and slices.high is not None and slices.low.value >= slices.high.value:
        yield cluster.problem((*path, "low"), f"{slices.low} is not below `high`, {slices.high}", "Lower it.")


def _deadlines(owner: Resource[AnySpec], thresholds: DeadlineThresholds, path: Path) -> Iterator[ResourceProblem]:
    for name in ("downlink", "matching", "head_downlink", "head_uplink"):
        limits = getattr(thresholds, name)
        if None not in (limits.lower, limits.higher) and limits.lower > limits.higher:
            found = f"{limits.lower} is above `higher`, which is {limits.higher}"
            yield owner.problem((*path, camel_case(name), "lower"), found, "Lower it, or raise `higher`.")


def check_references(resources: Resources) -> Iterator[ResourceProblem]:
    """Profiles, neighbours and clusters that objects name; the path of a problem is that of the name."""
    path: Path
    for cluster in resources.clusters.values():
        yield from _profile(resources, cluster, cluster.spec.head.profile, ("spec", "head", "profile"))
        for index, group in enumerate(cluster.spec.edges):
            yield from _profile(resources, cluster, group.profile, ("spec", "edges", index, "profile"))
        for index, neighbor in enumerate(cluster.spec.neighbors):
            path = ("spec", "neighbors", index, "name")
            if neighbor.name == cluster.name:
                yield cluster.problem(path, "a cluster cannot be its own neighbor", "Remove this item.")
            else:
                yield from _reference(cluster, neighbor.name, "BrokerCluster", list(resources.clusters), path)
    for edge in resources.edges.values():
        yield from _profile(resources, edge, edge.spec.profile, ("spec", "profile"))
        path = ("spec", "clusterRef", "name")
        yield from _reference(edge, edge.spec.cluster_ref.name, "BrokerCluster", list(resources.clusters), path)


def _scales(resources: Resources) -> Iterator[ResourceProblem]:
    for cluster in resources.clusters.values():
        yield from check_scale(cluster)


def check_scale(cluster: Resource[BrokerClusterSpec]) -> Iterator[ResourceProblem]:
    """`scale` needs a group with `replicas`."""
    scale = cluster.spec.scale
    if scale is None or brokers.scaled_group(cluster.spec) is not None:
        return
    countable = [group.name for group in cluster.spec.edges if group.replicas is not None]
    if not countable:
        found, remedy = "there is no group to scale", "Give one of `edges` its `replicas`, or remove `scale`."
        yield cluster.problem(("spec", "scale"), found, remedy)
    else:
        found = f'no group "{scale.group}" has `replicas`'
        yield cluster.problem(("spec", "scale", "group"), found, suggestion(scale.group, countable, "group"))


def _profile(resources: Resources, owner: Resource[AnySpec], name: str, path: Path) -> Iterator[ResourceProblem]:
    yield from _reference(owner, name, "HardwareProfile", list(resources.profiles), path)


def _reference(
    owner: Resource[AnySpec], name: str, kind: str, known: list[str], path: Path
) -> Iterator[ResourceProblem]:
    if name not in known:
        yield owner.problem(path, f'there is no {kind} "{name}"', suggestion(name, known, kind))


def _sessions(resources: Resources) -> Iterator[ResourceProblem]:
    for session in resources.sessions.values():
        yield from _session(resources, session)


def _session(resources: Resources, session: Resource[LoadBalancingSessionSpec]) -> Iterator[ResourceProblem]:
    spec = session.spec
    edges = {edge.name: edge.spec.cluster_ref.name for edge in brokers.edge_brokers(resources)}
    places = edges if spec.scope == "Local" else {**edges, **{name: name for name in resources.clusters}}
    kind = "EdgeBroker" if spec.scope == "Local" else "BrokerCluster or EdgeBroker"
    if spec.action in ("Shuffle", "Split", "MovePublishers", "MoveSlices"):
        places, kind = {name: name for name in resources.clusters}, "BrokerCluster"
    elif spec.action == "Unload" or _plans_for_cluster(resources, spec):
        places, kind = {**edges, **{name: name for name in resources.clusters}}, "BrokerCluster or EdgeBroker"
    for role, party in (("source", spec.source), ("target", spec.target)):
        if party is not None:
            path: Path = ("spec", role, "name")
            if spec.action == "Unload" and role == "target":
                yield from _reference(session, party.name, "EdgeBroker", list(edges), path)
            else:
                yield from _reference(session, party.name, kind, list(places), path)
            if party.name in spec.exclusions.brokers:
                yield session.problem(path, f"{party.name} is in exclusions.brokers", "Take it out of one of the two.")
    if spec.source is not None and spec.target is not None:
        if spec.source == spec.target:
            yield session.problem(("spec", "target", "name"), "target is source", "Name another one, or none.")
        elif (
            spec.action not in ("Shuffle", "Unload")
            and spec.scope == "Local"
            and edges.get(spec.source.name) != edges.get(spec.target.name)
        ):
            found = "source and target are in different clusters"
            yield session.problem(("spec", "target", "name"), found, "Use `scope: Global`.")
    if spec.action == "Drain" and spec.source is None:
        yield session.problem(("spec", "source"), "this field is missing", "Say what to drain.")
    if spec.action == "MovePublishers" and spec.source is None:
        yield session.problem(("spec", "source"), "this field is missing", "Name the cluster that publishers leave.")
    if spec.action == "MovePublishers" and spec.scope == "Local":
        found = "publishers move between clusters, from head to head"
        yield session.problem(("spec", "scope"), found, "Use `scope: Global`.")
    yield from _shuffle(session)
    yield from _moved_slices(session)
    yield from _selection(session)


def _plans_for_cluster(resources: Resources, spec: LoadBalancingSessionSpec) -> bool:
    """Whether a session lets the policy of a cluster plan for all of its edges."""
    if spec.source is None or spec.source.name not in resources.clusters:
        return False
    policy = resources.clusters[spec.source.name].spec.policy or resources.fleet.spec.defaults.policy
    is_alone = spec.target is None or (spec.scope == "Global" and spec.target.name in resources.clusters)
    is_whole = spec.action == "Rebalance" and is_alone and spec.select is None
    return is_whole and policy is not None and policy.type in FLEET_WIDE_TYPES


def _shuffle(session: Resource[LoadBalancingSessionSpec]) -> Iterator[ResourceProblem]:
    spec = session.spec
    if spec.action == "Shuffle" and spec.source is None:
        yield session.problem(("spec", "source"), "this field is missing", "Say which cluster to shuffle.")
    if spec.action == "Shuffle" and (spec.target is not None) != (spec.scope == "Global"):
        found = (
            "a Local shuffle is of one cluster" if spec.target is not None else "a Global shuffle is of two clusters"
        )
        remedy = "Remove it, or use `scope: Global`." if spec.target is not None else "Name the other, or use Local."
        yield session.problem(("spec", "target"), found, remedy)


def _moved_slices(session: Resource[LoadBalancingSessionSpec]) -> Iterator[ResourceProblem]:
    spec = session.spec
    if (spec.action == "MoveSlices") != (spec.slices is not None):
        found = "this field is missing" if spec.slices is None else f"{spec.action} does not move slices"
        remedy = "Write `slices: {group: NAME}`." if spec.slices is None else "Remove it, or use `action: MoveSlices`."
        yield session.problem(("spec", "slices"), found, remedy)
    if spec.action != "MoveSlices":
        return
    if spec.source is None:
        yield session.problem(("spec", "source"), "this field is missing", "Name the cluster of the consumer group.")
    if spec.target is not None or spec.scope != "Local":
        found = "slices move between consumers of one cluster"
        yield session.problem(("spec", "target"), found, "Remove it, use `scope: Local`, and write `slices.taker`.")
    if spec.slices is None:
        return
    if spec.slices.taker and not (spec.slices.giver or spec.slices.numbers):
        found = "no slices are named for the taker"
        yield session.problem(("spec", "slices", "taker"), found, "Write `giver` or `numbers`.")
    if spec.slices.taker and spec.slices.taker == spec.slices.giver:
        yield session.problem(("spec", "slices", "taker"), "taker is giver", "Name another one, or none.")


def _bundles(session: Resource[LoadBalancingSessionSpec], others: int) -> Iterator[ResourceProblem]:
    spec = session.spec
    if spec.action not in BUNDLE_ACTIONS:
        remedy = "Remove it, or use `action: Unload` or `action: Split`."
        yield session.problem(("spec", "select", "bundles"), f"{spec.action} does not move bundles", remedy)
    elif others or spec.select is None or not spec.select.bundles:
        remedy = "Write `bundles`, and nothing else."
        yield session.problem(("spec", "select"), f"{spec.action} is of bundles", remedy)


def _selection(session: Resource[LoadBalancingSessionSpec]) -> Iterator[ResourceProblem]:
    spec = session.spec
    path: Path = ("spec", "select")
    if spec.action in BUNDLE_ACTIONS and spec.select is None:
        yield session.problem(path, "this field is missing", "Name the bundles: `select: {bundles: [RANGE]}`.")
    if spec.action in BUNDLE_ACTIONS and spec.source is None:
        yield session.problem(("spec", "source"), "this field is missing", "Name the cluster of the bundles.")
    if spec.select is not None:
        given = [spec.select.count is not None, spec.select.share_percent is not None, bool(spec.select.names)]
        if spec.action in BUNDLE_ACTIONS or spec.select.bundles:
            yield from _bundles(session, sum(given))
            return
        if sum(given) != 1:
            found = "nothing is selected" if not any(given) else "more than one way to select"
            yield session.problem(path, found, "Write one of `count`, `sharePercent` and `names`.")
        if spec.action not in ("Rebalance", "MovePublishers"):
            remedy = "Remove it, or use `action: Rebalance`."
            yield session.problem(path, f"{spec.action} selects by itself", remedy)
    if spec.handover == "Replay" and spec.scope == "Global":
        remedy = "Use `handover: Auto`."
        yield session.problem(("spec", "handover"), "replay works within a cluster only", remedy)


def check_names(resources: Resources) -> Iterator[ResourceProblem]:
    """Broker names are unique in the fleet: they name objects of one namespace, and identities on the wire.

    On Kubernetes they name Services and StatefulSets, too, and so are short and begin with a letter.
    """
    counts = Counter(place.name for place in brokers.declared_brokers(resources))
    for place in brokers.declared_brokers(resources):
        if len(place.name) > BROKER_NAME_LENGTH:
            found = f'its broker would be called "{place.name}", which has {len(place.name)} characters'
            remedy = f"Use a shorter name: brokers' names have at most {BROKER_NAME_LENGTH}."
            yield place.owner.problem(place.path, found, remedy)
        elif not re.fullmatch(BROKER_NAME, place.name):
            found = f'its broker would be called "{place.name}", which does not begin with a letter'
            yield place.owner.problem(place.path, found, "Begin the name with a letter, as Services on Kubernetes do.")
        elif counts[place.name] > 1:
            found = f'the broker name "{place.name}" is used {counts[place.name]} times in this fleet'
            yield place.owner.problem(place.path, found, "Give each edge or group of the fleet a name of its own.")


def check_client_names(resources: Resources) -> Iterator[tuple[ResourceProblem, brokers.DeclaredBroker]]:
    """A client has the name of no broker: a name is one identity. With each problem the broker of this name."""
    places = {place.name: place for place in brokers.declared_brokers(resources)}
    for index, client in enumerate(resources.fleet.spec.security.clients):
        if (place := places.get(client.name)) is not None:
            path: Path = ("spec", "security", "clients", index, "name")
            found = f'a broker of this fleet is called "{client.name}", too'
            yield resources.fleet.problem(path, found, "Give the client another name."), place


def check_name_prefixes(resources: Resources) -> Iterator[ResourceProblem]:
    """No client shares the names of recorders and channels: it could end them, or publish results in their place."""
    for index, client in enumerate(resources.fleet.spec.security.clients):
        for number, prefix in enumerate(client.name_prefixes):
            if reserved := reserved_prefix(prefix):
                path: Path = ("spec", "security", "clients", index, "namePrefixes", number)
                users = "recorders of feeds" if reserved == RECORDER_PREFIX else "the driver of channels"
                found = f'names that begin with "{reserved}" are those of {users}'
                yield resources.fleet.problem(path, found, "Choose another prefix.")


def _tree(resources: Resources) -> Iterator[ResourceProblem]:
    for ring, owner, path in head_tree.head_tree_cycles(resources.clusters):
        shown = " - ".join((*ring, ring[0]))
        yield owner.problem(path, f"this closes a cycle of heads: {shown}", "Remove one link: heads must form a tree.")


def _logs(resources: Resources) -> Iterator[ResourceProblem]:
    for cluster in resources.clusters.values():
        yield from check_log(resources, cluster)


def check_log(resources: Resources, cluster: Resource[BrokerClusterSpec]) -> Iterator[ResourceProblem]:
    """The log of a head holds at least 2 x re-attach deadline x input rate, and leaves room for the rest."""
    profile = resources.profiles[cluster.spec.head.profile]
    given, owner, path = log_setting(resources, cluster)
    most = largest_log(profile.spec.memory.value)
    needed = log_needed(resources, cluster)
    yield from _log_fields(cluster)
    if given is not None and given.value > most:
        found = f"a log of {given} leaves too little of the {profile.spec.memory} of profile {profile.name}"
        yield owner.problem(path, found, f"Write at most {bytes_text(most)}, or give the profile more memory.")
    elif needed is not None and needed > (most if given is None else given.value):
        yield _small_log(resources, cluster, needed)


def _log_fields(cluster: Resource[BrokerClusterSpec]) -> Iterator[ResourceProblem]:
    """Fields of a head's log that contradict each other."""
    head = cluster.spec.head
    if head.log.memory is not None and head.log_size is not None:
        found = "log.memory and logSize both say how large the log in memory is"
        yield cluster.problem(("spec", "head", "logSize"), found, "Remove logSize.")
    if head.log.disk is None and head.log.sync != "Always":
        found = "there is nothing to sync without a disk"
        yield cluster.problem(("spec", "head", "log", "sync"), found, "Remove it, or add `disk`.")
    if head.confirm != "Both" and (head.log.disk is None or not head.standby):
        found = "there is no choice without both a standby and a disk"
        yield cluster.problem(("spec", "head", "confirm"), found, "Remove it, or add `standby` and `log.disk`.")
    if head.log.disk is not None and head.log.disk.size.value < LEAST_DISK_LOG:
        found = f"a log of {head.log.disk.size} is too small to be divided into segments"
        remedy = f"Write at least {bytes_text(Fraction(LEAST_DISK_LOG))}."
        yield cluster.problem(("spec", "head", "log", "disk", "size"), found, remedy)


def _small_log(resources: Resources, cluster: Resource[BrokerClusterSpec], needed: Fraction) -> ResourceProblem:
    given, owner, path = log_setting(resources, cluster)
    profile = resources.profiles[cluster.spec.head.profile]
    spec, most = profile.spec, largest_log(profile.spec.memory.value)
    deadline = resources.fleet.spec.defaults.timing.reattach_within
    rate = spec.bandwidth.input_bytes_per_second
    have = f"its log has {given}" if given is not None else f"the {spec.memory} of profile {profile.name} allow"
    have += "" if given is not None else f" {bytes_text(most)}"
    room = most if given is None else given.value
    found = (
        f"{cluster.subject}: the head needs a log of {bytes_text(needed)} = 2 x reattachWithin {deadline} x "
        f"inputBytesPerSecond {rate}, but {have}"
    )
    first = f"Raise memory to {bytes_text(needed * LOG_SHARE * Fraction(21, 20))}"
    if needed <= most:
        first = f"Raise logSize to {bytes_text(needed * Fraction(21, 20))}"
    remedy = (
        f"{first}, lower inputBytesPerSecond to {int(room / (2 * deadline.value))}, "
        f"or lower the fleet's timing.reattachWithin to {seconds_text(room * deadline.value / needed)}."
    )
    return owner.problem(path, found, remedy)


def log_setting(
    resources: Resources, cluster: Resource[BrokerClusterSpec]
) -> tuple[Quantity | None, Resource[AnySpec], Path]:
    """The specified log size, if any, and where it is written."""
    if cluster.spec.head.log.memory is not None:
        return cluster.spec.head.log.memory, cluster, ("spec", "head", "log", "memory")
    if cluster.spec.head.log_size is not None:
        return cluster.spec.head.log_size, cluster, ("spec", "head", "logSize")
    default = resources.fleet.spec.defaults.log_size
    if default is not None:
        return default, resources.fleet, ("spec", "defaults", "logSize")
    return None, cluster, ("spec", "head", "profile")


def log_needed(resources: Resources, cluster: Resource[BrokerClusterSpec]) -> Fraction | None:
    """Bytes of log that re-attaching needs at the head's input bandwidth; None if that is unlimited."""
    rate = resources.profiles[cluster.spec.head.profile].spec.bandwidth.input_bytes_per_second
    return None if rate is None else 2 * resources.fleet.spec.defaults.timing.reattach_within.value * rate.value


def check_listeners(resources: Resources) -> Iterator[ResourceProblem]:
    """Listeners are of brokers of their cluster, and no port is used twice; the later cluster has the fault."""
    used: dict[tuple[str, int], str] = {}
    members = brokers.cluster_brokers(resources)
    for cluster in resources.clusters.values():
        listeners = cluster.spec.listeners
        for index, listener in enumerate(listeners.brokers):
            path: Path = ("spec", "listeners", "brokers", index)
            known = members[cluster.name]
            if listener.name not in known and not _may_come(cluster.spec, listener.name):
                found = f'cluster {cluster.name} has no broker "{listener.name}"'
                yield cluster.problem((*path, "name"), found, suggestion(listener.name, known, "broker"))
            for port, key in ((listener.data_port, "dataPort"), (listener.control_port, "controlPort")):
                taken = f"{listener.name}'s {key}"
                first = used.setdefault((listeners.bind_address, port), taken) if port else taken
                if first != taken:
                    found = f"port {port} is already {first}"
                    yield cluster.problem((*path, key), found, "Choose another, or 0 for any free one.")


def _may_come(cluster: BrokerClusterSpec, name: str) -> bool:
    """Whether scaling a group of edges may have made, or may make, an edge of this name."""
    groups = {each.name for each in cluster.edges if each.replicas is not None}
    group, _, index = name.rpartition("-")
    return group in groups and index.isascii() and index.isdecimal()
