"""Consumer groups under random attack, judged by what applications were given and told: docs/groups.md holds."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.core.group_attack import Attack
from tests.core.group_judge import judge
from tests.core.head.groups import test_rules as rules


@pytest.mark.sampled(2)
@pytest.mark.parametrize("seed", range(8))
def test_what_the_page_promises_holds_under_attack(seed: int) -> None:
    assert judge(Attack(seed).run()) == []


@pytest.mark.sampled(without=("released_with_items_in_hand", "a_restarted_head_does_not_wait"))
@pytest.mark.parametrize(
    ("rule", "seed"),
    [
        (rules.assigned_before_it_is_released, 0),
        (rules.released_with_items_in_hand, 0),
        (rules.nothing_is_marked, 2),
        (rules.a_member_without_answers_goes_on, 18),
        (rules.a_restarted_head_does_not_wait, 0),
    ],
    ids=lambda each: getattr(each, "__name__", each),
)
def test_the_judge_notices_each_broken_rule(
    rule: Callable[[pytest.MonkeyPatch], None], seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rule(monkeypatch)
    assert judge(Attack(seed).run()) != []


@pytest.mark.sweep
@pytest.mark.timeout(900)
@pytest.mark.parametrize("first", range(8, 408, 25))
def test_what_the_page_promises_holds_under_hundreds_of_attacks(first: int) -> None:
    assert {seed: found for seed in range(first, first + 25) if (found := judge(Attack(seed).run()))} == {}
