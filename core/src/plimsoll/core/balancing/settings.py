"""What a broker goes by: the policy of its cluster as its configuration has it, and what keeps publications for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from plimsoll.core.policies.press import Press
from plimsoll.core.policies.ring import Ring
from plimsoll.core.spec.parsing import block
from plimsoll.core.spec.policy import EstimationSpec, PolicySpec, PressParameters, RingParameters


def policy_of(content: Mapping[str, Any] | None) -> PolicySpec | None:
    """A policy from what stands in the custom resources; None where nothing is balanced.

    Raises:
        InvalidResourcesError: it cannot be read.

    """
    return None if content is None else block(PolicySpec, content)


def ring(spec: EstimationSpec, time_factor: float, now: float) -> Ring:
    """What keeps the last publications of each publisher, from now on."""
    own = spec.ring or RingParameters()
    return Ring(own.samples, own.rate_over.seconds * time_factor, now)


def press(spec: EstimationSpec, time_factor: float, now: float) -> Press:
    """What takes the next publications."""
    own = spec.press or PressParameters()
    return Press(own.samples, own.timeout.seconds * time_factor, now)
