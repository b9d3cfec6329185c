"""Commands about bundles of topics: list them, split them, and unload them from their edges."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from typing import Any

from plimsoll.cli import backend
from plimsoll.cli.backend import FleetReader
from plimsoll.cli.commands import session_requests, status_items
from plimsoll.cli.exit_codes import BAD_INPUT, CONFLICT, NOT_FOUND, OK, CommandError
from plimsoll.cli.output import objects_text, print_lines
from plimsoll.core.spec.problems import nearest_word
from plimsoll.mediator.bundle_objects import bundle_objects

WORDS = ("bundles", "bundle", "bdl")
"""What `plimsoll get` calls them."""

TITLES = ("BUNDLE", "CLUSTER", "EDGE", "TOPICS", "SESSIONS", "IN/S", "OUT/S", "BYTES/S")


def get_bundles(options: argparse.Namespace) -> int:
    """Show the bundles of all clusters, or one of them, by their ranges."""
    place: FleetReader = backend.choose_backend(options)
    found = [item for item in _all_bundles(place) if options.name in (None, item["name"], item["object"])]
    status_items.check_named(options, place, "bundle", found)
    if options.output in ("json", "yaml"):
        is_single = options.name is not None and len(found) == 1
        print_lines(objects_text([item["whole"] for item in found], options.output, single=is_single))
    else:
        status_items.print_items(options.output, found, TITLES, _row, lambda: _empty(place))
    return OK


def _empty(place: FleetReader) -> str:
    """Why there are no bundles."""
    is_used = any(_has_bundles(place, item) for item in place.objects("BrokerCluster"))
    unknown, unused = "they are not known yet, ask again in some seconds", "they come with `policy: {type: Pulsar}`"
    return f"no bundles in {place.title}: {unknown if is_used else unused}"


def _all_bundles(place: FleetReader) -> Iterator[dict[str, Any]]:
    for cluster in sorted(place.displayed(place.objects("BrokerCluster")), key=lambda item: item["metadata"]["name"]):
        rows = cluster.get("status", {}).get("bundles", ())
        for row, whole in zip(rows, bundle_objects(cluster, rows, at_most=len(rows)), strict=True):
            yield {"cluster": cluster["metadata"]["name"], "object": whole["metadata"]["name"], "whole": whole, **row}


def _has_bundles(place: FleetReader, cluster: Mapping[str, Any]) -> bool:
    """Whether a cluster has bundles, known or not: its head may not have reported them yet, as after a restart."""
    if "bundles" in cluster.get("status", {}):
        return True
    defaults = (item["spec"].get("defaults", {}).get("policy") for item in place.objects("BrokerFleet"))
    policy = cluster["spec"].get("policy") or next(defaults, None)
    return policy is not None and policy.get("type") == "Pulsar"


def _row(item: Mapping[str, Any]) -> list[str]:
    names = ("topics", "sessions", "publicationsPerSecond", "deliveriesPerSecond", "bytesPerSecond")
    numbers = [str(item.get(name, "-")) for name in names]
    return [item["name"], item["cluster"], item.get("edge", "-"), *numbers]


def split(options: argparse.Namespace) -> int:
    """Split bundles of a cluster in two."""
    return _about_bundles(options, "Split", "split", {})


def unload(options: argparse.Namespace) -> int:
    """Move bundles from their edges, to an edge that is named or that the policy chooses."""
    target = {} if options.target is None else {"target": {"name": options.target}}
    return _about_bundles(options, "Unload", "unload", target)


def _about_bundles(options: argparse.Namespace, action: str, what: str, more: Mapping[str, Any]) -> int:
    place = session_requests.running_backend(options)
    clusters = {item["metadata"]["name"]: item for item in place.objects("BrokerCluster")}
    if options.cluster not in clusters:
        close = nearest_word(options.cluster, sorted(clusters))
        hint = f'Did you mean "{close}"?' if close else f"Clusters: {', '.join(sorted(clusters))}."
        raise CommandError(NOT_FOUND, f'no cluster "{options.cluster}" in {place.title}. {hint}')
    status = clusters[options.cluster].get("status", {})
    known = [item["name"] for item in status.get("bundles", ())]
    if not known:
        if _has_bundles(place, clusters[options.cluster]):
            raise CommandError(CONFLICT, f"bundles of {options.cluster} are not known yet: ask again in some seconds")
        raise CommandError(CONFLICT, f"cluster {options.cluster} has no bundles: they come with `policy.type: Pulsar`")
    for name in options.bundles:
        if name not in known:
            raise CommandError(
                BAD_INPUT, f'"{name}" is not a bundle of {options.cluster}; `plimsoll get bundles` lists them'
            )
    spec = {
        "scope": "Local", "source": {"name": options.cluster}, **more, "action": action,
        "select": {"bundles": list(dict.fromkeys(options.bundles))},
        "mode": "DryRun" if options.dry_run else "Execute",
    }  # fmt: skip
    options.source = options.cluster
    return session_requests.create_session(place, options, what, spec)
