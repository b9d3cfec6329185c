"""The oracle: what is due, what is allowed, and each fault found that a fleet or a channel could have."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from plimsoll.demo.emergency.oracle import EmergencyVerdict, HeldSubscription, Received, judge, shelters_near
from plimsoll.demo.emergency.plan import CityPlan, EmergencyScenario, Report

NEVER = float("inf")
REPORTS = (
    Report(0, 10.0, 3, 5, "a"), Report(1, 20.0, 3, 0, "b"), Report(2, 21.0, 3, 15, "c"), Report(3, 30.0, 4, 5, "d"),
)  # fmt: skip
PLAN = CityPlan(EmergencyScenario(), (), REPORTS, (5, 0, 15))
PUBLISHED = {each.number: each.at_seconds for each in REPORTS}
HELD = (HeldSubscription("p", "shelter-near", {"event": 3, "area": 5}, 1.0, 2.0, 25.0, 40.0),
        HeldSubscription("p", "type", {"event": 4}, 1.0, 2.0, NEVER, NEVER))  # fmt: skip


def result(number: int, row: int = 1, **changed: object) -> Received:
    near = Received("p", "shelter-near", {"event": 3, "area": 5}, number + 1, row, number, REPORTS[number].text,
                    "shelter-000,shelter-001", 35.0)  # fmt: skip
    return replace(near, **changed)  # type: ignore[arg-type]  # fields of it


TYPE = result(3, channel="type", values={"event": 4}, shelters="")
GOOD = [result(0), result(1), TYPE]


def verdict(
    received: list[Received], held: tuple[HeldSubscription, ...] = HELD, observed: list[Received] | None = None
) -> EmergencyVerdict:
    return judge(PLAN, PUBLISHED, held, received, GOOD if observed is None else observed, 0)


def test_what_is_due_came():
    found = verdict(GOOD)
    assert found.passed
    assert (found.due, found.delivered) == (3, 3)
    assert shelters_near(PLAN, 5) == "shelter-000,shelter-001"


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (lambda good: good[1:], "missing"),
        (lambda good: good[1:], "lost"),
        (lambda good: [*good, good[0]], "duplicated"),
        (lambda good: [good[1], good[0], good[2]], "reordered"),
        (lambda good: [*good, result(2)], "wrong"),
        (lambda good: [replace(good[0], text="x"), *good[1:]], "wrong"),
        (lambda good: [replace(good[0], shelters="shelter-000"), *good[1:]], "wrong"),
        (lambda good: [*good, result(0, values={"event": 3, "area": 6})], "wrong"),
        (lambda good: [*good, replace(good[0], person="q")], "wrong"),
        (lambda good: [*good, replace(good[2], report=9)], "wrong"),
    ],
)
def test_each_fault_is_found(change: Callable[[list[Received]], list[Received]], field: str):
    found = verdict(change(list(GOOD)))
    assert getattr(found, field) == 1
    assert not found.passed


def test_what_was_not_published_is_missing_and_not_lost():
    found = verdict(GOOD[1:], observed=GOOD[1:])
    assert (found.missing, found.lost) == (1, 0)


def test_a_result_without_a_subscription_is_found():
    assert verdict(GOOD, observed=[*GOOD, result(0, values={"event": 3, "area": 6})]).unasked == 1


def test_around_a_change_a_result_is_allowed_and_not_due():
    late = (replace(HELD[0], acknowledged=9.5), HELD[1])
    assert verdict(GOOD, late).passed
    assert verdict(GOOD[1:], late, GOOD[1:]).passed
    left = (replace(HELD[0], left=15.0), HELD[1])
    assert (verdict(GOOD, left).due, verdict(GOOD, left).wrong) == (2, 0)
    withdrawn = (replace(HELD[0], left=15.0, withdrawn=18.0), HELD[1])
    assert verdict(GOOD, withdrawn).wrong == 1


def test_a_run_in_which_nothing_was_due_has_shown_nothing():
    assert not judge(PLAN, PUBLISHED, [], [], [], 0).passed
