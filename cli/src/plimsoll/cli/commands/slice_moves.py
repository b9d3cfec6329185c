"""rebalance --group and drain --group: sessions that move slices of a consumer group between its consumers."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

from plimsoll.cli.backend import FleetReader
from plimsoll.cli.commands import session_requests
from plimsoll.cli.exit_codes import BAD_INPUT, NOT_FOUND, CommandError
from plimsoll.core.spec.problems import nearest_word


def rebalance(options: argparse.Namespace) -> int:
    """Move slices: those that are named, all of a consumer, or as the policy of the group plans it."""
    if options.publishers or options.subscribers is not None or options.share is not None:
        raise CommandError(BAD_INPUT, "--group moves slices: use --slices, --from CONSUMER and --to CONSUMER")
    if options.target is not None and options.source is None and not options.slices:
        raise CommandError(
            BAD_INPUT, "--to names the consumer that takes slices: say which slices with --slices or --from"
        )
    if options.target is not None and options.source == options.target:
        raise CommandError(BAD_INPUT, f"--from and --to are both {options.source}: name two consumers")
    named = {"giver": options.source, "taker": options.target, "numbers": options.slices}
    return _create(options, "slices", {key: value for key, value in named.items() if value})


def drain(options: argparse.Namespace) -> int:
    """Take all slices from a consumer; it gets none until a session names it as a taker."""
    return _create(options, "drain", {"giver": options.edge})


def _create(options: argparse.Namespace, what: str, slices: dict[str, Any]) -> int:
    place = session_requests.running_backend(options)
    if options.handover != "auto":
        raise CommandError(BAD_INPUT, "--handover is for subscribers: slices move in one way only")
    spec = {
        "scope": "Local", "source": {"name": _cluster(options.group, place)}, "action": "MoveSlices",
        "slices": {"group": options.group, **slices}, **session_requests.common_spec(options, ()),
    }  # fmt: skip
    options.source = options.group.replace(".", "-")
    return session_requests.create_session(place, options, what, spec)


def _cluster(group: str, place: FleetReader) -> str:
    """The cluster that has this group, declared or made by its members."""
    found = dict(_groups(place))
    if group not in found:
        close = nearest_word(group, sorted(found))
        hint = f"Groups: {', '.join(sorted(found)) or 'none'}." if not close else f'Did you mean "{close}"?'
        raise CommandError(NOT_FOUND, f'no consumer group "{group}" in {place.title}. {hint}')
    return found[group]


def _groups(place: FleetReader) -> Iterator[tuple[str, str]]:
    for item in place.objects("BrokerCluster"):
        known = [*item.get("status", {}).get("consumerGroups", ()), *item["spec"].get("consumerGroups", ())]
        for group in known:
            yield group["name"], item["metadata"]["name"]
