"""Commands that move subscribers: rebalance, drain, shuffle, cordon, uncordon, approve, stop.

They write the objects that YAML would, and wait for what becomes of them.
"""

from __future__ import annotations

import argparse
import re
import secrets
from collections.abc import Callable
from typing import Any, TypeVar

from plimsoll.cli import places
from plimsoll.cli.codes import BAD_INPUT, CONFLICT, NOT_FOUND, OK, CommandError
from plimsoll.cli.following import follow
from plimsoll.cli.output import complain, say
from plimsoll.cli.places import Place
from plimsoll.core.spec.problems import nearest
from plimsoll.core.spec.quantities import Duration
from plimsoll.local.store import MissingError, Object
from plimsoll.mediator import views
from plimsoll.mediator.asking import NotAskableError
from plimsoll.mediator.sessions import KIND

T = TypeVar("T")


def rebalance(options: argparse.Namespace) -> int:
    """Move subscribers from one edge to others."""
    place = _running(options)
    edges = _edges(place)
    parties = [name for name in (options.source, options.target) if name is not None]
    for name in parties:
        _known(name, edges, place)
    if options.source == options.target:
        raise CommandError(BAD_INPUT, f"--from and --to are both {options.source}: name two edges")
    if options.target is not None:
        _can_take(edges[options.target], options.target)
    clusters = {edges[name]["spec"]["clusterRef"]["name"] for name in parties}
    spec: dict[str, Any] = {
        "scope": "Local" if len(clusters) == 1 else "Global",
        "source": {"name": options.source},
        **({} if options.target is None else {"target": {"name": options.target}}),
        **_selected(options, place, clusters),
        **_common(options, edges),
    }
    return _begin(place, options, "rebalance", spec)


def drain(options: argparse.Namespace) -> int:
    """Move all subscribers of an edge elsewhere, and keep newcomers away from it afterwards."""
    place = _running(options)
    edges = _edges(place)
    _known(options.edge, edges, place)
    if len(edges) == 1:
        raise CommandError(CONFLICT, f"{options.edge} is the only edge of {place.title}: there is nowhere to go")
    spec = {"scope": "Global", "source": {"name": options.edge}, "action": "Drain", **_common(options, edges)}
    if not options.dry_run and place.cordon(options.edge, cordoned=True):
        _note(options, f"edgebroker/{options.edge} cordoned")
    options.source = options.edge
    return _begin(place, options, "drain", spec)


def shuffle(options: argparse.Namespace) -> int:
    """Plan for all edges of a cluster at once, or of two, and carry it out."""
    place = _running(options)
    clusters = {item["metadata"]["name"] for item in place.objects("BrokerCluster")}
    named = [name for name in (options.cluster, options.other) if name is not None]
    known = views.policies(place.objects("BrokerCluster", "BrokerFleet"))
    for name in named:
        if name not in clusters:
            close = nearest(name, sorted(clusters))
            hint = f'Did you mean "{close}"?' if close else f"Clusters: {', '.join(sorted(clusters))}."
            raise CommandError(NOT_FOUND, f'no cluster "{name}" in {place.title}. {hint}')
        if name not in known:
            raise CommandError(CONFLICT, f"cluster {name} has no policy: its edges keep nothing to tell loads from")
    if options.cluster == options.other:
        raise CommandError(BAD_INPUT, f"both are {options.cluster}: name two clusters, or one")
    spec: dict[str, Any] = {
        "scope": "Local" if options.other is None else "Global",
        "source": {"name": options.cluster},
        **({} if options.other is None else {"target": {"name": options.other}}),
        "action": "Shuffle",
        **_common(options, _edges(place)),
    }
    if options.moves is not None:
        spec["limits"] = {"maxMoves": options.moves}
    options.source = options.cluster
    return _begin(place, options, "shuffle", spec)


def cordon(options: argparse.Namespace) -> int:
    """Keep newcomers away from an edge; those who are there stay."""
    return _cordon(options, cordoned=True)


def uncordon(options: argparse.Namespace) -> int:
    """Let an edge take newcomers again."""
    return _cordon(options, cordoned=False)


def approve(options: argparse.Namespace) -> int:
    """Let the plan of a session run."""
    place = _running(options)
    approved = _asked(place, options.session, lambda: place.approve(options.session, options.hash or ""))
    _note(options, f"plan {approved} of {options.session} approved")
    return follow(place, options.session, options.output, approved=True) if options.wait else OK


def stop(options: argparse.Namespace) -> int:
    """Let a session begin nothing more."""
    place = _running(options)
    _asked(place, options.session, lambda: place.stop(options.session))
    say(f"loadbalancingsession/{options.session} stops: nothing more begins, and what is behind its cut ends")
    return OK


# ---------------------------------------------------------------- what they share


def _selected(options: argparse.Namespace, place: Place, clusters: set[str]) -> dict[str, Any]:
    """How many move; without a number the policy of the edge's cluster chooses, if it has one."""
    if options.share is not None:
        return {"select": {"sharePercent": options.share}}
    if options.subscribers is not None:
        return {"select": {"count": options.subscribers}}
    known = views.policies(place.objects("BrokerCluster", "BrokerFleet"))
    why = f"cluster {min(clusters)} has no policy that could choose" if min(clusters) not in known else ""
    if len(clusters) > 1:
        why = "between clusters no policy chooses yet"
    if why:
        raise CommandError(BAD_INPUT, f"{why}: say --subscribers N or --share P%")
    return {}


def _begin(place: Place, options: argparse.Namespace, what: str, spec: dict[str, Any]) -> int:
    name = options.name or f"{what}-{options.source[:40].rstrip('-')}-{secrets.token_hex(3)}"
    place.begin(name, spec)
    _note(options, f"loadbalancingsession/{name} created")
    return follow(place, name, options.output) if options.wait else OK


def _note(options: argparse.Namespace, text: str) -> None:
    """Beside the output that a program reads, if one does."""
    (say if options.output == "table" else complain)(text)


def _running(options: argparse.Namespace) -> Place:
    place = places.choose(options)
    if why := place.why_not_running():
        raise CommandError(NOT_FOUND, why)
    return place


def _edges(place: Place) -> dict[str, Object]:
    return {item["metadata"]["name"]: item for item in place.objects("EdgeBroker")}


def _known(name: str, edges: dict[str, Object], place: Place) -> None:
    if name not in edges:
        close = nearest(name, list(edges))
        hint = f'Did you mean "{close}"?' if close else f"Edges: {', '.join(sorted(edges))}."
        raise CommandError(NOT_FOUND, f'no edge "{name}" in {place.title}. {hint}')


def _can_take(edge: Object, name: str) -> None:
    if "deletionTimestamp" in edge["metadata"]:
        raise CommandError(CONFLICT, f"{name} is leaving the fleet and takes nobody")
    if edge["spec"].get("cordoned", False):
        raise CommandError(CONFLICT, f"{name} is cordoned and takes nobody: `plimsoll uncordon {name}` changes that")


def _common(options: argparse.Namespace, edges: dict[str, Object]) -> dict[str, Any]:
    """What rebalance and drain have in common; an excluded name that is an edge's means the edge."""
    spec: dict[str, Any] = {"mode": "DryRun" if options.dry_run else "Execute"}
    if options.handover != "auto":
        spec["handover"] = options.handover.capitalize()
    if options.approve != "automatic":
        spec["approval"] = {"policy": options.approve.capitalize()}
    if options.deadline is not None:
        spec["deadline"] = options.deadline
    brokers = [name for name in options.exclude if name in edges]
    subscribers = [name for name in options.exclude if name not in edges]
    exclusions = {"brokers": brokers, "subscribers": subscribers}
    if options.exclude:
        spec["exclusions"] = {key: names for key, names in exclusions.items() if names}
    return spec


def _asked(place: Place, name: str, ask: Callable[[], T]) -> T:
    try:
        return ask()
    except NotAskableError as error:
        raise CommandError(CONFLICT, str(error)) from error
    except MissingError as error:
        close = nearest(name, [item["metadata"]["name"] for item in place.objects(KIND)])
        hint = f' Did you mean "{close}"?' if close else " `plimsoll get lbs` lists them."
        raise CommandError(NOT_FOUND, f'no session "{name}" in {place.title}.{hint}') from error


def _cordon(options: argparse.Namespace, *, cordoned: bool) -> int:
    place = places.choose(options)
    _known(options.edge, _edges(place), place)
    changed = place.cordon(options.edge, cordoned=cordoned)
    say(f"edgebroker/{options.edge} {'' if changed else 'already '}{'cordoned' if cordoned else 'uncordoned'}")
    return OK


# ---------------------------------------------------------------- arguments


def share(text: str) -> int:
    """`30%` as 30."""
    if (match := re.fullmatch(r"(\d{1,3})%", text)) is None or not 1 <= int(match[1]) <= 100:
        raise argparse.ArgumentTypeError(f"{text!r} is not a share: write a whole percentage from 1% to 100%, as 30%")
    return int(match[1])


def count(text: str) -> int:
    """How many subscribers."""
    if not re.fullmatch(r"\d{1,9}", text) or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of subscribers: write 1 or more")
    return int(text)


def duration(text: str) -> str:
    """A duration that is more than nothing, as it was written."""
    try:
        if Duration.parse(text).seconds > 0:
            return text
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} {error}") from error
    raise argparse.ArgumentTypeError(f"{text!r} is no time at all")


def names(text: str) -> list[str]:
    """`x,y` as a list."""
    return [name for name in (part.strip() for part in text.split(",")) if name]
