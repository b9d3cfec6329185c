"""The graph of heads: neighbouring clusters, and the cycles that it must not have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from plimsoll.core.spec.kinds import BrokerClusterSpec
from plimsoll.core.spec.problems import Path
from plimsoll.core.spec.resources import Resource

Clusters = Mapping[str, Resource[BrokerClusterSpec]]


def neighbors_by_cluster(clusters: Clusters) -> dict[str, tuple[str, ...]]:
    """Each cluster's neighbors, sorted; a link that one side names counts for both."""
    linked: dict[str, set[str]] = {name: set() for name in clusters}
    for name, cluster in clusters.items():
        for neighbor in cluster.spec.neighbors:
            linked[name].add(neighbor.name)
            linked[neighbor.name].add(name)
    return {name: tuple(sorted(others)) for name, others in sorted(linked.items())}


def head_tree_cycles(
    clusters: Clusters, order: Sequence[str] | None = None
) -> Iterator[tuple[tuple[str, ...], Resource[BrokerClusterSpec], Path]]:
    """Each link that closes a cycle: the cycle's clusters in order, and where the link is written.

    `order`: the names of all clusters. Links of an earlier one are taken first, so the later one closes the cycle.
    """
    forest: dict[str, list[str]] = {name: [] for name in clusters}
    seen: set[frozenset[str]] = set()
    for name in sorted(clusters) if order is None else order:
        cluster = clusters[name]
        for index, neighbor in enumerate(cluster.spec.neighbors):
            link = frozenset((name, neighbor.name))
            if link in seen:  # named by both sides
                continue
            seen.add(link)
            way = _path_between(forest, neighbor.name, name)
            if way is not None:
                yield way, cluster, ("spec", "neighbors", index, "name")
            else:
                forest[name].append(neighbor.name)
                forest[neighbor.name].append(name)


def _path_between(forest: Mapping[str, list[str]], start: str, end: str) -> tuple[str, ...] | None:
    """The only path between two clusters of a forest, if there is one."""
    ways: list[tuple[str, ...]] = [(start,)]
    while ways:
        way = ways.pop()
        if way[-1] == end:
            return way
        previous = way[-2] if len(way) > 1 else None
        ways.extend((*way, step) for step in forest[way[-1]] if step != previous)
    return None


def linked_clusters(clusters: Clusters, name: str) -> frozenset[str]:
    """The clusters to whose heads links lead from that of this one, itself included."""
    found, ahead = {name}, [name]
    while ahead:
        one = ahead.pop()
        named = {each.name for each in clusters[one].spec.neighbors} if one in clusters else set()
        named |= {other for other, item in clusters.items() if any(each.name == one for each in item.spec.neighbors)}
        news = (named & clusters.keys()) - found
        found |= news
        ahead.extend(sorted(news))
    return frozenset(found)
