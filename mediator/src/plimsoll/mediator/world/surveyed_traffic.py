"""Publishers and subscribers of a World from a survey: real publications, real subscriptions, measured rates."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from plimsoll.core import predicates
from plimsoll.core.matching import Index
from plimsoll.core.predicates import Attributes
from plimsoll.mediator.world.traffic_survey import SurveyedPublisher, TrafficSurvey

CONTENTS_PER_PUBLISHER = 200
CONTENTS_AT_MOST = 40_000
"""Of all publishers; a file has at most 200,000 values."""

Entry = dict[str, Any]


@dataclass(frozen=True, slots=True)
class WorldTraffic:
    """Entries of `publishers` and `subscribers`; sentences on what was measured and what is assumed."""

    publishers: list[Entry]
    subscribers: list[Entry]
    notes: list[str]


def surveyed_traffic(survey: TrafficSurvey, clusters: Mapping[str, str], edges: Mapping[str, str]) -> WorldTraffic:
    """The traffic of the clusters. `clusters`: theirs by head; `edges`: the cluster of each of their edges.

    Publications at heads outside of them come to the first cluster, as far as anything there asks for them.
    """
    subscribers, notes = _subscribers(survey, edges)
    wanted = _index(texts for edge in edges for texts in survey.subscribers.get(edge, {}).values())
    publishers: list[tuple[str, SurveyedPublisher]] = []
    for head, found in survey.heads.items():
        if head in clusters:
            publishers += ((clusters[head], each) for each in found.publishers)
        else:
            here = min(clusters.values())
            publishers += ((here, kept) for each in found.publishers if (kept := _wanted_part(each, wanted)))
    share = max(1, min(CONTENTS_PER_PUBLISHER, CONTENTS_AT_MOST // max(len(publishers), 1)))
    entries = [
        entry for name, cluster, each in _named(publishers)
        if each.per_second > 0 and (entry := _publisher(name, cluster, each, share))
    ]  # fmt: skip
    for head, found in survey.heads.items():
        part = "a sample of those in its log" if found.is_sampled else "all in its log"
        where = "" if head in clusters else ", of which this file has those that are asked for here"
        notes.append(
            f"measured: {found.publications:,} publications of {len(found.publishers):,} publishers in "
            f"{found.seconds:.1f} s at {head} ({part}){where}"
        )
    notes.append(f"assumed: each publisher goes on at this rate, evenly, and repeats its last {share} publications")
    return WorldTraffic(entries, subscribers, notes)


def _named(publishers: Iterable[tuple[str, SurveyedPublisher]]) -> Iterator[tuple[str, str, SurveyedPublisher]]:
    """Each with a name that no other has: the same one may publish at several heads."""
    used: set[str] = set()
    for cluster, each in publishers:
        name, number = each.name, 1
        while name in used:
            number += 1
            name = f"{each.name} at {cluster} ({number})"
        used.add(name)
        yield name, cluster, each


def _publisher(name: str, cluster: str, each: SurveyedPublisher, share: int) -> Entry | None:
    contents = _plain_contents(each.contents)[-share:]
    if not contents:
        return None
    found = {
        "name": name, "cluster": cluster, "rates": [{"perSecond": rate_text(each.per_second)}],
        "publications": [json.dumps(content, ensure_ascii=False, allow_nan=False) for content in contents],
    }  # fmt: skip
    return {**found, "payload": each.payload_bytes} if each.payload_bytes else found


def rate_text(per_second: float) -> str:
    """A rate to four digits."""
    digits = max(0, 3 - math.floor(math.log10(per_second))) if per_second > 0 else 0
    return f"{per_second:.{min(digits, 9)}f}"


def _wanted_part(each: SurveyedPublisher, wanted: Index) -> SurveyedPublisher | None:
    contents = tuple(content for content in each.contents if wanted.match(content))
    if not contents:
        return None
    rate = each.per_second * len(contents) / len(each.contents)
    return SurveyedPublisher(each.name, rate, contents, each.payload_bytes)


def _index(lists: Iterable[Sequence[str]]) -> Index:
    found: Index = Index(compiled=False)
    for number, text in enumerate(sorted({text for texts in lists for text in texts})):
        found.add(number, predicates.parse(text))
    return found


def _subscribers(survey: TrafficSurvey, edges: Mapping[str, str]) -> tuple[list[Entry], list[str]]:
    groups = defaultdict[tuple[str, tuple[str, ...]], list[str]](list)
    seen: set[str] = set()
    twice = 0
    for edge in sorted(edges):
        for name, texts in survey.subscribers.get(edge, {}).items():
            if name in seen:  # it was moved during the survey
                twice += 1
                continue
            seen.add(name)
            groups[edge, texts].append(name)
    prefixes = {edge: _group_prefix(edge, seen) for edge in edges}
    found = []
    for number, ((edge, texts), members) in enumerate(sorted(groups.items())):
        entry: Entry = {"name": members[0]}
        if len(members) > 1:
            entry = {"name": f"{prefixes[edge]}-{number}", "count": len(members)}
        found.append(entry | {"cluster": edges[edge], "edge": edge, "subscriptions": list(texts)})
    total = sum(len(texts) * len(members) for (_, texts), members in groups.items())
    notes = [
        f"measured: {len(seen):,} subscribers with {total:,} subscriptions, each at the edge that serves it now; "
        "those with equal lists at one edge are one entry"
    ]
    if twice:
        notes.append(f"assumed: {twice:,} subscribers that were being moved are at the first of their edges by name")
    return found, notes


def _group_prefix(edge: str, names: set[str]) -> str:
    """How the names of an edge's groups begin: no subscriber's name begins so."""
    found = f"{edge}-list"
    while any(name.startswith(found) for name in names):
        found += "s"
    return found


def _plain_contents(contents: Iterable[Attributes]) -> list[Attributes]:
    """Without those that JSON cannot say: numbers that are not finite."""
    return [
        each for each in contents
        if all(not isinstance(value, float) or math.isfinite(value) for value in each.values())
    ]  # fmt: skip
