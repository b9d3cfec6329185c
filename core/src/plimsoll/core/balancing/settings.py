"""What a broker goes by: the parameters of its cluster's policy, on this fleet's clock."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from plimsoll.core.policies.parameters import Parameters
from plimsoll.core.spec.kinds import PolicySpec
from plimsoll.core.spec.parsing import block


def parameters(policy: Mapping[str, Any] | None, time_factor: float) -> Parameters | None:
    """Of a policy as in the custom resources; None where nothing is balanced.

    Raises:
        InvalidResourcesError: it cannot be read.

    """
    if policy is None:
        return None
    block(PolicySpec, policy)
    return Parameters().scaled(time_factor)
