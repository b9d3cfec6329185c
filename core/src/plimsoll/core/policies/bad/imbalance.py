"""The indicator of imbalance: cov, the standard deviation of the brokers' loads over their mean."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Imbalance:
    """`mean`: mu; `cov`: sigma / mu, 0 where no broker has any load."""

    mean: float
    cov: float

    @classmethod
    def of(cls, loads: Iterable[float]) -> Imbalance:
        """Of the loads of all brokers."""
        some = list(loads)
        mean = sum(some) / len(some) if some else 0.0
        if not mean:
            return cls(0.0, 0.0)
        return cls(mean, math.sqrt(sum((load - mean) ** 2 for load in some) / len(some)) / mean)
