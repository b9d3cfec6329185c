"""Changes allowed while a fleet runs: edges come and go, policies change; the rest of a running broker stays.

Each refusal names the changed field, so that a user knows that the change did not happen.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from plimsoll.core.spec import head_tree
from plimsoll.core.spec.brokers import declared_brokers
from plimsoll.core.spec.field_info import camel_case
from plimsoll.core.spec.kinds import AnySpec, BrokerClusterSpec, ChannelSpec
from plimsoll.core.spec.problems import Path, ResourceProblem
from plimsoll.core.spec.resources import Resource, Resources
from plimsoll.core.spec.types.cluster import HeadSpec

REMEDY = "Take the change back; or stop the fleet with `plimsoll down`, and start it with the changed files."


def refused_changes(running: Resources, wanted: Resources) -> Iterator[ResourceProblem]:
    """The parts of the wanted resources that would require running brokers to stop."""
    yield from _fleet(running, wanted)
    yield from _clusters(running, wanted)
    yield from _brokers(running, wanted)
    yield from _feeds(running, wanted)
    yield from _channels(running, wanted)


def _fleet(running: Resources, wanted: Resources) -> Iterator[ResourceProblem]:
    old, new = running.fleet, wanted.fleet
    if old.name != new.name:
        yield _refusal(new, ("metadata", "name"), f"the running fleet is called {old.name}")
    if old.spec.security.plain != new.spec.security.plain:
        yield _refusal(new, ("spec", "security", "plain"), "this cannot change while the fleet runs")
    for field in ("telemetry", "time_scale_percent"):
        if getattr(old.spec, field) != getattr(new.spec, field):
            yield _refusal(new, ("spec", camel_case(field)), "this cannot change while the fleet runs")
    if old.spec.datasets.ledgers != new.spec.datasets.ledgers and running.channels:
        yield _refusal(new, ("spec", "datasets", "ledgers"), "channels have their ledgers there")
    for field in ("subscribers", "publishers", "timing", "log_size"):
        if getattr(old.spec.defaults, field) != getattr(new.spec.defaults, field):
            yield _refusal(new, ("spec", "defaults", camel_case(field)), "this cannot change while the fleet runs")


def _groups(old: Resource[BrokerClusterSpec], new: Resource[BrokerClusterSpec]) -> Iterator[ResourceProblem]:
    """Slices of a group are known to members and publications under way: a group stays as it is, or goes."""
    before = {group.name: group for group in old.spec.consumer_groups}
    for index, group in enumerate(new.spec.consumer_groups):
        known = before.get(group.name)
        for field in ("filter", "slices") if known is not None else ():
            if getattr(known, field) != getattr(group, field):
                path: Path = ("spec", "consumerGroups", index, field)
                yield _refusal(new, path, "this cannot change; make a group of another name")


def _clusters(running: Resources, wanted: Resources) -> Iterator[ResourceProblem]:
    before, after = head_tree.neighbors_by_cluster(running.clusters), head_tree.neighbors_by_cluster(wanted.clusters)
    for name, old in sorted(running.clusters.items()):
        new = wanted.clusters.get(name)
        if new is None:
            if before[name]:
                found = f"this cluster is linked to {', '.join(before[name])}"
                yield _refusal(old, ("metadata", "name"), f"{found}, which cannot change while the fleet runs")
            continue
        if before[name] != after[name] and all(other in wanted.clusters for other in before[name]):
            found = f"neighbors were {_listed(before[name])} and would be {_listed(after[name])}"
            yield _refusal(new, ("spec", "neighbors"), f"{found}; links of running heads cannot change")
        yield from _groups(old, new)
        if _kept(old.spec.head) != _kept(new.spec.head):
            yield _refusal(new, ("spec", "head"), "the head cannot change while it runs")
        if old.spec.listeners.bind_address != new.spec.listeners.bind_address:
            yield _refusal(new, ("spec", "listeners", "bindAddress"), "this cannot change while brokers listen on it")
        staying = {place.name for place in declared_brokers(running)} & {
            place.name for place in declared_brokers(wanted)
        }
        yield from _listeners(staying, old, new)


def _kept(head: HeadSpec) -> HeadSpec:
    """What a head is started with: a cordon, a standby, and what it waits for, it takes while it runs."""
    return replace(head, cordoned_epoch=0, standby=0, confirm="Both")


def _listeners(
    staying: set[str], old: Resource[BrokerClusterSpec], new: Resource[BrokerClusterSpec]
) -> Iterator[ResourceProblem]:
    before = {item.name: item for item in old.spec.listeners.brokers}
    after = {item.name: item for item in new.spec.listeners.brokers}
    for broker in sorted(staying & (before.keys() | after.keys())):
        if before.get(broker) != after.get(broker):
            found = f"the listener of {broker} cannot change while it runs"
            yield _refusal(new, ("spec", "listeners", "brokers"), found)


def _brokers(running: Resources, wanted: Resources) -> Iterator[ResourceProblem]:
    before = {place.name: place for place in declared_brokers(running)}
    changed: set[str] = set()
    for place in declared_brokers(wanted):
        old = before.get(place.name)
        if old is None or place.role == "head":
            pass
        elif old.cluster != place.cluster:
            found = f"{place.name} belongs to cluster {old.cluster} and cannot change to {place.cluster} while it runs"
            yield _refusal(place.owner, place.path, found)
        elif old.profile != place.profile:
            found = f"{place.name} runs with profile {old.profile} and cannot change to {place.profile}"
            yield _refusal(place.owner, place.path, found)
        elif old.location != place.location:
            yield _refusal(place.owner, place.path, f"the location of {place.name} cannot change while it runs")
        if old is not None and running.profiles[old.profile].spec != wanted.profiles[place.profile].spec:
            changed.add(place.profile if old.profile == place.profile else "")
    for name in sorted(changed - {""}):
        users = _listed([place.name for place in before.values() if place.profile == name])
        yield _refusal(wanted.profiles[name], ("spec",), f"{users} run with this profile; it cannot change meanwhile")


def _feeds(running: Resources, wanted: Resources) -> Iterator[ResourceProblem]:
    for name, old in sorted(running.feeds.items()):
        new = wanted.feeds.get(name)
        if new is None or new.spec.path != old.spec.path:
            continue
        for field in ("subscription", "schema"):
            if getattr(old.spec, field) != getattr(new.spec, field):
                found = "this cannot change for a dataset that was begun"
                yield new.problem(("spec", field), found, "Take the change back, or write another `path` with it.")


def _channels(running: Resources, wanted: Resources) -> Iterator[ResourceProblem]:
    for name, old in sorted(running.channels.items()):
        new = wanted.channels.get(name)
        if new is not None and _streamed(new) != _streamed(old):
            found = f"the places of Channel/{name} in its feeds are kept under these names"
            yield new.problem(("spec", "feeds"), found, "Take the change back, or give the channel another name.")


def _streamed(channel: Resource[ChannelSpec]) -> set[str]:
    return {each.feed for each in channel.spec.feeds if each.rows == "New"}


def _refusal(owner: Resource[AnySpec], path: Path, found: str) -> ResourceProblem:
    return owner.problem(path, found, REMEDY)


def _listed(names: tuple[str, ...] | list[str]) -> str:
    return ", ".join(names) if names else "none"
