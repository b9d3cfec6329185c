"""Commands that move publishers from the head of a cluster to those of others."""

from __future__ import annotations

import argparse
from typing import Any

from plimsoll.cli.backend import FleetBackend, FleetReader
from plimsoll.cli.commands import session_requests
from plimsoll.cli.exit_codes import BAD_INPUT, CONFLICT, NOT_FOUND, CommandError
from plimsoll.core.spec import head_name
from plimsoll.core.spec.problems import nearest_word

ALL = 100
"""Percent."""


def rebalance(options: argparse.Namespace) -> int:
    """Move publishers between heads: a share of those of one, or as few as it takes to even out what heads accept."""
    place = session_requests.running_backend(options)
    heads = _heads(place)
    source = _cluster(options.source, heads, place)
    if options.subscribers is not None:
        raise CommandError(BAD_INPUT, "--subscribers is of subscribers: use --share, or let the heads be evened out")
    target = None if options.target is None else _cluster(options.target, heads, place)
    if target == source:
        raise CommandError(BAD_INPUT, f"--from and --to are both {source}: name two clusters")
    named = {} if target is None else {"target": {"name": target}}
    select = {} if options.share is None else {"select": {"sharePercent": options.share}}
    return _create(place, options, "publishers", source, {**named, **select})


def is_head(name: str, place: FleetReader) -> bool:
    """Whether this is the name of a head."""
    return name in _heads(place)


def require_other_head(source: str, place: FleetReader) -> None:
    """Raise `CommandError` if no other head could take publishers."""
    if len(place.objects("BrokerCluster")) == 1:
        raise CommandError(CONFLICT, f"{source} is the only cluster of {place.title}: there is no other head")


def drain(options: argparse.Namespace) -> int:
    """Move all publishers from a head and keep new ones away, so that it can be replaced without an unknown one."""
    place = session_requests.running_backend(options)
    select = {"select": {"sharePercent": ALL}}
    cordon = "" if options.dry_run else options.edge
    return _create(place, options, "drain", _cluster(options.edge, _heads(place), place), select, cordon=cordon)


def _create(
    place: FleetBackend, options: argparse.Namespace, what: str, source: str, more: dict[str, Any], *, cordon: str = ""
) -> int:
    clusters = [item["metadata"]["name"] for item in place.objects("BrokerCluster")]
    require_other_head(source, place)
    if options.handover != "auto":
        raise CommandError(BAD_INPUT, "--handover is of subscribers: publishers move in one way")
    common = session_requests.common_spec(options, clusters)
    options.source = source
    spec = {"scope": "Global", "source": {"name": source}, "action": "MovePublishers", **more, **common}
    return session_requests.create_session(place, options, what, spec, cordon=cordon)


def _heads(place: FleetReader) -> dict[str, str]:
    """The cluster of each head."""
    names = (item["metadata"]["name"] for item in place.objects("BrokerCluster"))
    return {head_name(name): name for name in names}


def _cluster(name: str, heads: dict[str, str], place: FleetBackend) -> str:
    """The cluster of this name, or of the head of this name."""
    clusters = sorted(heads.values())
    if name in clusters:
        return name
    if name not in heads:
        close = nearest_word(name, [*clusters, *heads])
        hint = f'Did you mean "{close}"?' if close else f"Heads: {', '.join(sorted(heads))}."
        raise CommandError(NOT_FOUND, f'no cluster or head "{name}" in {place.title}. {hint}')
    return heads[name]
