"""Consumer groups under random attack, judged by what applications were given and told: docs/groups.md holds."""

from __future__ import annotations

import pytest
from tests.core.group_attack import Attack
from tests.core.group_judge import judge


@pytest.mark.parametrize("seed", range(8))
def test_what_the_page_promises_holds_under_attack(seed: int) -> None:
    assert judge(Attack(seed).run()) == []


@pytest.mark.sweep
@pytest.mark.timeout(900)
@pytest.mark.parametrize("first", range(8, 408, 25))
def test_what_the_page_promises_holds_under_hundreds_of_attacks(first: int) -> None:
    assert {seed: found for seed in range(first, first + 25) if (found := judge(Attack(seed).run()))} == {}
