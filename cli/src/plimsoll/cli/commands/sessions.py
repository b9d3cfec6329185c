"""Commands that move subscribers: rebalance, drain, shuffle, cordon, uncordon, approve, stop.

They write the same objects as `plimsoll apply` would, and wait for the result.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any, TypeVar

from plimsoll.cli import backend
from plimsoll.cli.backend import FleetReader
from plimsoll.cli.commands import publishers, slice_moves
from plimsoll.cli.commands.session_requests import common_spec, create_session, print_note, running_backend
from plimsoll.cli.exit_codes import BAD_INPUT, CONFLICT, NOT_FOUND, OK, CommandError
from plimsoll.cli.output import print_line
from plimsoll.cli.session_wait import wait_for_session
from plimsoll.core.policies.registry import is_fleet_wide
from plimsoll.core.spec.problems import nearest_word
from plimsoll.local.storage.object_store import Object, ObjectMissingError
from plimsoll.mediator import fleet_view
from plimsoll.mediator.session_objects import SESSION_KIND
from plimsoll.mediator.spec_edits import EditRefusedError

T = TypeVar("T")


def rebalance(options: argparse.Namespace) -> int:
    """Move subscribers from one edge to others, or as the policy of a whole cluster plans it."""
    if options.group is not None:
        return slice_moves.rebalance(options)
    if options.source is None:
        raise CommandError(BAD_INPUT, "say what moves: --from EDGE for subscribers, --group GROUP for slices")
    if options.slices:
        raise CommandError(BAD_INPUT, "--slices needs a consumer group: name it with --group")
    if options.publishers:
        return publishers.rebalance(options)
    place = running_backend(options)
    edges = _edges(place)
    if _plans_for_cluster(options, place):
        named = {"scope": "Local", "source": {"name": options.source}, "action": "Rebalance"}
        return create_session(place, options, "rebalance", {**named, **common_spec(options, edges)})
    parties = [name for name in (options.source, options.target) if name is not None]
    for name in parties:
        _require_edge(name, edges, place)
    if options.source == options.target:
        raise CommandError(BAD_INPUT, f"--from and --to are both {options.source}: name two edges")
    if options.target is not None:
        _require_accepting_edge(edges[options.target], options.target)
    clusters = {edges[name]["spec"]["clusterRef"]["name"] for name in parties}
    spec: dict[str, Any] = {
        "scope": "Local" if len(clusters) == 1 else "Global",
        "source": {"name": options.source},
        **({} if options.target is None else {"target": {"name": options.target}}),
        **_selection(options, place, clusters),
        **common_spec(options, edges),
    }
    return create_session(place, options, "rebalance", spec)


def _plans_for_cluster(options: argparse.Namespace, place: FleetReader) -> bool:
    """Whether only a cluster is named, and its policy plans for all of its edges at once."""
    policy = fleet_view.cluster_policies(place.objects("BrokerCluster", "BrokerFleet")).get(options.source)
    is_alone = options.target is None and options.share is None and options.subscribers is None
    return is_alone and policy is not None and is_fleet_wide(policy) and options.source not in _edges(place)


def drain(options: argparse.Namespace) -> int:
    """Move all subscribers of an edge to other edges, and keep new ones away; or all publishers of a head to others.

    With a group all slices of a consumer.
    """
    if options.group is not None:
        return slice_moves.drain(options)
    place = running_backend(options)
    if publishers.is_head(options.edge, place):
        return publishers.drain(options)
    edges = _edges(place)
    _require_edge(options.edge, edges, place)
    if len(edges) == 1:
        raise CommandError(CONFLICT, f"{options.edge} is the only edge of {place.title}: there is no other edge")
    spec = {"scope": "Global", "source": {"name": options.edge}, "action": "Drain", **common_spec(options, edges)}
    options.source = options.edge
    return create_session(place, options, "drain", spec, cordon="" if options.dry_run else options.edge)


def shuffle(options: argparse.Namespace) -> int:
    """Plan for all edges of a cluster at once, or of two, and carry it out."""
    place = running_backend(options)
    clusters = {item["metadata"]["name"] for item in place.objects("BrokerCluster")}
    named = [name for name in (options.cluster, options.other) if name is not None]
    known = fleet_view.cluster_policies(place.objects("BrokerCluster", "BrokerFleet"))
    for name in named:
        if name not in clusters:
            close = nearest_word(name, sorted(clusters))
            hint = f'Did you mean "{close}"?' if close else f"Clusters: {', '.join(sorted(clusters))}."
            raise CommandError(NOT_FOUND, f'no cluster "{name}" in {place.title}. {hint}')
        if name not in known:
            raise CommandError(CONFLICT, f"cluster {name} has no policy, so its edges keep no profiles to plan from")
    if options.cluster == options.other:
        raise CommandError(BAD_INPUT, f"both clusters are {options.cluster}: name two different clusters, or one")
    spec: dict[str, Any] = {
        "scope": "Local" if options.other is None else "Global",
        "source": {"name": options.cluster},
        **({} if options.other is None else {"target": {"name": options.other}}),
        "action": "Shuffle",
        **common_spec(options, _edges(place)),
    }
    if options.moves is not None:
        spec["limits"] = {"maxMoves": options.moves}
    options.source = options.cluster
    return create_session(place, options, "shuffle", spec)


def cordon(options: argparse.Namespace) -> int:
    """Keep new subscribers away from an edge, or new publishers from a head until it is replaced; present ones stay."""
    return _set_cordoned(options, cordoned=True)


def uncordon(options: argparse.Namespace) -> int:
    """Let an edge take new subscribers again, or a head new publishers."""
    return _set_cordoned(options, cordoned=False)


def approve(options: argparse.Namespace) -> int:
    """Let the plan of a session run."""
    place = running_backend(options)
    approved = _edit_session(place, options.session, lambda: place.approve_session(options.session, options.hash or ""))
    print_note(options, f"plan {approved} of {options.session} approved")
    return wait_for_session(place, options.session, options.output, approved=True) if options.wait else OK


def stop(options: argparse.Namespace) -> int:
    """Stop a session after its current batch."""
    place = running_backend(options)
    _edit_session(place, options.session, lambda: place.stop_session(options.session))
    print_line(f"loadbalancingsession/{options.session} is stopping: it finishes the current batch and starts no other")
    return OK


# ---------------------------------------------------------------- shared parts


def _selection(options: argparse.Namespace, place: FleetReader, clusters: set[str]) -> dict[str, Any]:
    """How many move; without a number the policy of the edge's cluster chooses, if it has one."""
    if options.share is not None:
        return {"select": {"sharePercent": options.share}}
    if options.subscribers is not None:
        return {"select": {"count": options.subscribers}}
    known = fleet_view.cluster_policies(place.objects("BrokerCluster", "BrokerFleet"))
    why = f"cluster {min(clusters)} has no policy to choose subscribers" if min(clusters) not in known else ""
    if not why and is_fleet_wide(known[min(clusters)]):
        why = f"policy {known[min(clusters)].type} plans for all edges of {min(clusters)}: name the cluster with --from"
    if len(clusters) > 1:
        why = "a policy does not choose subscribers across clusters"
    if why:
        raise CommandError(BAD_INPUT, f"{why}; use --subscribers N or --share P%")
    return {}


def _edges(place: FleetReader) -> dict[str, Object]:
    return {item["metadata"]["name"]: item for item in place.objects("EdgeBroker")}


def _require_edge(name: str, edges: dict[str, Object], place: FleetReader) -> None:
    if name not in edges:
        close = nearest_word(name, list(edges))
        hint = f'Did you mean "{close}"?' if close else f"Edges: {', '.join(sorted(edges))}."
        raise CommandError(NOT_FOUND, f'no edge "{name}" in {place.title}. {hint}')


def _require_accepting_edge(edge: Object, name: str) -> None:
    if "deletionTimestamp" in edge["metadata"]:
        raise CommandError(CONFLICT, f"{name} is leaving the fleet and takes no subscribers")
    if edge["spec"].get("cordoned", False):
        raise CommandError(CONFLICT, f"{name} is cordoned and takes no subscribers: run `plimsoll uncordon {name}`")


def _edit_session(place: FleetReader, name: str, ask: Callable[[], T]) -> T:
    try:
        return ask()
    except EditRefusedError as error:
        raise CommandError(CONFLICT, str(error)) from error
    except ObjectMissingError as error:
        close = nearest_word(name, [item["metadata"]["name"] for item in place.objects(SESSION_KIND)])
        hint = f' Did you mean "{close}"?' if close else " `plimsoll get lbs` lists them."
        raise CommandError(NOT_FOUND, f'no session "{name}" in {place.title}.{hint}') from error


def _set_cordoned(options: argparse.Namespace, *, cordoned: bool) -> int:
    place = backend.choose_backend(options)
    kind = "head" if publishers.is_head(options.edge, place) else "edgebroker"
    if kind == "edgebroker":
        _require_edge(options.edge, _edges(place), place)
    elif cordoned:
        publishers.require_other_head(options.edge, place)
    try:
        changed = place.set_cordoned(options.edge, cordoned=cordoned)
    except EditRefusedError as error:
        raise CommandError(CONFLICT, str(error)) from error
    print_line(f"{kind}/{options.edge} {'' if changed else 'already '}{'cordoned' if cordoned else 'uncordoned'}")
    return OK
