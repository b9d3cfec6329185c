"""The policies of consumer groups by the name that a definition gives them."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from plimsoll.core.policies.consumer_groups.cost_balancing import CostBalancing
from plimsoll.core.policies.consumer_groups.model import SlicePolicy
from plimsoll.core.policies.consumer_groups.pairing import Pairing

BALANCING: Final[dict[str, SlicePolicy | None]] = {"Rates": CostBalancing(), "Pairing": Pairing(), "None": None}


MOVES_AT_MOST: Final = 256
"""Of a session: each pair of consumers is a command, which is stored before it is sent."""


def session_policy(name: str, consumers: int) -> SlicePolicy | None:
    """The policy that a session plans by, with more moves in larger groups; None for `None`.

    A head, which must not stop its stream for long, looks only whether there is a move.
    """
    policy, most = BALANCING.get(name), min(consumers, MOVES_AT_MOST)
    if isinstance(policy, CostBalancing):
        return replace(policy, moves_at_most=max(policy.moves_at_most, most))
    if isinstance(policy, Pairing):
        return replace(policy, sessions_at_most=max(policy.sessions_at_most, most // 2))
    return policy
