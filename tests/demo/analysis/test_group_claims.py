"""What a run with a group claims is computed from journals and looks, and what was not seen is not held."""

from __future__ import annotations

from dataclasses import replace

from plimsoll.core.verify.slice_laws import GivenItem, judge_slices
from plimsoll.demo.analysis.group_claims import (
    FAST,
    LATE,
    SLOW,
    GroupFigures,
    GroupLook,
    GroupSteps,
    judged_claims,
)

TIMES = GroupSteps.of(100.0)


def look(at: float, **slices: int) -> GroupLook:
    return GroupLook(at, slices, {}, 0, 0)


def items() -> list[GivenItem]:
    """A hundred from 28 s on: sixty of the fast one."""
    names = [FAST if n % 10 < 6 else SLOW for n in range(100)]
    return [GivenItem(n % 10, "p", n + 1, name, 28 + 0.1 * n, 28.05 + 0.1 * n) for n, name in enumerate(names)]


def figures() -> GroupFigures:
    looks = [
        look(39.0, fast=6, slow=4), look(61.0, fast=8, slow=2), look(63.0, fast=7, slow=2, late=1),
        look(66.0, fast=5, slow=2, late=3), look(76.0, fast=5, late=5), look(86.0, fast=5), look(91.0, fast=10),
    ]  # fmt: skip
    given = items()
    return GroupFigures(judge_slices(given, {"p": range(1, 101)}), given, looks, TIMES, 10, 75.5)


def test_a_run_as_it_should_be_holds_all_claims():
    claims = judged_claims(figures())
    assert [one.claim for one in claims if not one.held] == []
    assert [one.value for one in claims] == [0, 0, 0, 0, 0.6, 2, 4.0, 0.5, 6.0]


def test_what_was_not_seen_holds_no_claim():
    empty = GroupFigures(judge_slices([], {}), [], [], TIMES, 10, None)
    claims = judged_claims(empty)
    assert [one.value for one in claims[4:]] == [None] * 5
    assert not any(one.held for one in claims[4:])


def test_each_claim_can_fail():
    found = figures()
    kept = [each if each.at != 61.0 else look(61.0, fast=6, slow=4) for each in found.looks]
    broken = {
        "items lost": replace(found, verdict=judge_slices(found.given, {"p": range(1, 102)})),
        "share of the items": replace(found, given=[each for each in found.given if each.consumer == FAST]),
        "slices left": replace(found, looks=kept),
        "newcomer": replace(found, looks=[each for each in found.looks if each.slices.get(LATE, 0) < 3]),
        "leaving": replace(found, left_at=90.0),
        "killed": replace(found, looks=[*found.looks[:-1], look(99.0, fast=10)]),
    }
    for text, one in broken.items():
        assert [claim.held for claim in judged_claims(one) if text in claim.claim] == [False], text
