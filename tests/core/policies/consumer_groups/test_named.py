"""Policies by name, and how many moves a session may have."""

from __future__ import annotations

from typing import get_args

from plimsoll.core.policies.consumer_groups.cost_balancing import CostBalancing
from plimsoll.core.policies.consumer_groups.named import BALANCING, MOVES_AT_MOST, session_policy
from plimsoll.core.policies.consumer_groups.pairing import Pairing
from plimsoll.core.spec.types.consumer_groups import GroupBalancing


def test_every_name_of_a_specification_has_a_policy():
    assert set(BALANCING) == set(get_args(GroupBalancing))


def test_a_larger_group_has_more_moves_in_a_session_up_to_a_bound():
    assert session_policy("Rates", 3) == CostBalancing()
    assert session_policy("Rates", 100) == CostBalancing(moves_at_most=100)
    assert session_policy("Rates", 10_000) == CostBalancing(moves_at_most=MOVES_AT_MOST)
    assert session_policy("Pairing", 100) == Pairing(sessions_at_most=50)
    assert session_policy("None", 100) is None
