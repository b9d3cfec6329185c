"""The policies of consumer groups by the name that a definition gives them."""

from __future__ import annotations

from typing import Final

from plimsoll.core.policies.consumer_groups.cost_balancing import CostBalancing
from plimsoll.core.policies.consumer_groups.model import SlicePolicy
from plimsoll.core.policies.consumer_groups.pairing import Pairing

BALANCING: Final[dict[str, SlicePolicy | None]] = {"Rates": CostBalancing(), "Pairing": Pairing(), "None": None}
