"""The policy in a broker's configuration, and the traffic estimators that it asks for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from plimsoll.core.profiling.press import PressEstimator
from plimsoll.core.profiling.ring import RingEstimator
from plimsoll.core.spec.parser import parse_block
from plimsoll.core.spec.types.policy import EstimationSpec, PolicySpec, PressParameters, RingParameters


def policy_of(content: Mapping[str, Any] | None) -> PolicySpec | None:
    """Parse a policy as the custom resource has it; None where nothing is balanced.

    Raises:
        InvalidResourcesError: a field is missing, unknown or out of bounds.

    """
    return None if content is None else parse_block(PolicySpec, content)


def ring(spec: EstimationSpec, time_factor: float, now: float) -> RingEstimator:
    """An estimator that keeps the last publications of each publisher, from now on."""
    own = spec.ring or RingParameters()
    return RingEstimator(own.samples, own.rate_over.seconds * time_factor, now)


def press(
    spec: EstimationSpec, time_factor: float, now: float, counted: tuple[float, float] = (0.0, 0.0)
) -> PressEstimator:
    """An estimator that takes the next publications only. `counted`: those of the last reports, and their seconds."""
    own = spec.press or PressParameters()
    return PressEstimator(own.samples, own.timeout.seconds * time_factor, now, counted)
