"""What was due to whom, in plain Python: from what was published, and from what people asked for while they were where.

A report is due to a person if it was published while the person asked for it and was there: from a second after the
subscription was acknowledged, by which the channel knows it, until the person left. It is allowed as long as the person
had the subscription at some time between the report and the delivery. All else is wrong.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from plimsoll.demo.emergency.plan import BY_NAME, CityPlan, Report, near

KNOWN_SECONDS: Final = 1.0
SHOWN: Final = 10


@dataclass(frozen=True)
class HeldSubscription:
    """A subscription of a person, in seconds of the run: asked for, acknowledged, left, withdrawn."""

    person: str
    channel: str
    values: Mapping[str, int]
    asked: float
    acknowledged: float
    left: float
    withdrawn: float

    @property
    def key(self) -> tuple[str, tuple[tuple[str, int], ...]]:
        return self.channel, tuple(sorted(self.values.items()))


@dataclass(frozen=True)
class Received:
    """A result that came to a person, at a second of the run. `report`: the number of the report that it is about."""

    person: str
    channel: str
    values: Mapping[str, int]
    batch: int
    row: int
    report: int
    text: str
    shelters: str
    at: float

    @property
    def key(self) -> tuple[str, tuple[tuple[str, int], ...]]:
        return self.channel, tuple(sorted(self.values.items()))


@dataclass(frozen=True)
class EmergencyVerdict:
    """`lost`: of the missing ones those whose result was published. `examples`: of what is wrong, in words."""

    due: int
    delivered: int
    missing: int
    wrong: int
    lost: int
    duplicated: int
    reordered: int
    unasked: int
    gaps: int
    examples: tuple[str, ...]

    @property
    def passed(self) -> bool:
        bad = (self.missing, self.wrong, self.lost, self.duplicated, self.reordered, self.unasked, self.gaps)
        return self.due > 0 and not any(bad)


def concerns(channel: str, values: Mapping[str, int], report: Report) -> bool:
    """Whether a report is a result of a channel for these parameters."""
    found = BY_NAME[channel]
    if "event" in values and report.event != values["event"]:
        return False
    if found.reach == "Anywhere":
        return True
    where = values["area"] if "area" in values else values["location"]
    return report.area in (near(where) if found.reach == "Near" else (where,))


def shelters_near(plan: CityPlan, area: int) -> str:
    """The shelters in an area and around it, as results list them."""
    around = near(area)
    return ",".join(sorted(f"shelter-{number:03}" for number, at in enumerate(plan.shelters) if at in around))


def judge(
    plan: CityPlan,
    published: Mapping[int, float],
    held: Sequence[HeldSubscription],
    received: Sequence[Received],
    observed: Iterable[Received],
    gaps: int,
) -> EmergencyVerdict:
    """`published`: the second of each report that was accepted. `observed`: all results that were published."""
    reports = {each.number: each for each in plan.reports if each.number in published}
    seen = {(each.key, each.report) for each in observed}
    due = _due(reports, published, held)
    got = Counter((each.person, each.key, each.report) for each in received)
    missing = due - got.keys()
    lost = {(person, key, report) for person, key, report in missing if (key, report) in seen}
    by_person = held_by(held)
    wrong = [each for each in received if not _is_right(plan, reports, published, by_person, each)]
    asked = {each.key for each in held}
    examples = [f"missing: {each}" for each in sorted(missing)[:SHOWN]] + [f"wrong: {each}" for each in wrong[:SHOWN]]
    return EmergencyVerdict(
        due=len(due), delivered=len(received), missing=len(missing), wrong=len(wrong), lost=len(lost),
        duplicated=sum(count - 1 for count in got.values()), reordered=_reordered(received),
        unasked=sum(key not in asked for key, _ in seen), gaps=gaps, examples=tuple(examples),
    )  # fmt: skip


Due = tuple[str, tuple[str, tuple[tuple[str, int], ...]], int]


def _due(reports: Mapping[int, Report], published: Mapping[int, float], held: Iterable[HeldSubscription]) -> set[Due]:
    found: set[Due] = set()
    for each in held:
        for number, report in reports.items():
            is_there = each.acknowledged + KNOWN_SECONDS <= published[number] <= each.left
            if is_there and concerns(each.channel, each.values, report):
                found.add((each.person, each.key, number))
    return found


def held_by(held: Iterable[HeldSubscription]) -> dict[tuple[str, object], list[HeldSubscription]]:
    """Subscriptions by person and parameters."""
    found: dict[tuple[str, object], list[HeldSubscription]] = {}
    for each in held:
        found.setdefault((each.person, each.key), []).append(each)
    return found


def _is_right(
    plan: CityPlan, reports: Mapping[int, Report], published: Mapping[int, float],
    by_person: Mapping[tuple[str, object], list[HeldSubscription]], one: Received,
) -> bool:  # fmt: skip
    report = reports.get(one.report)
    if report is None or not concerns(one.channel, one.values, report) or one.text != report.text:
        return False
    if BY_NAME[one.channel].shelters:
        where = one.values["area"] if "area" in one.values else one.values["location"]
        if one.shelters != shelters_near(plan, where):
            return False
    some = by_person.get((one.person, one.key), [])
    return any(each.asked <= one.at and each.withdrawn >= published[one.report] for each in some)


def _reordered(received: Iterable[Received]) -> int:
    """Results behind a later one of the same channel, for a person."""
    last: dict[tuple[str, str], tuple[int, int]] = {}
    found = 0
    for each in received:
        place = (each.batch, each.row)
        before = last.get((each.person, each.channel), (0, 0))
        found += place < before
        last[each.person, each.channel] = max(place, before)
    return found
