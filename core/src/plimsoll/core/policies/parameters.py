"""What PADRES load balancing goes by, with the paper's defaults. Ratios are plain numbers, durations seconds.

All durations scale together, and N_f is one of them: an experiment at half the speed has delays twice as long.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from plimsoll.core.policies.fleet import Thresholds

Scope = Literal["Local", "Global"]


@dataclass(frozen=True, slots=True)
class Trigger:
    """By how much two brokers must differ: in a utilisation, and in matching delays by N_f."""

    ratio: float = 0.1
    delay: float = 0.1


@dataclass(frozen=True, slots=True)
class Parameters:
    """PADRES 2006, 3.2 and 5.1.

    `fresh_seconds`: an older load report counts for nothing. `patience`: stabilising ends after so many times its
    duration though load goes on changing; what came to nothing is tried again after as long; and who is between its
    overload thresholds for as long gives as others do.
    """

    thresholds: Thresholds = Thresholds()  # noqa: RUF009  a frozen value
    local_trigger: Trigger = Trigger()
    global_trigger: Trigger = Trigger(0.15, 0.15)
    normalization_seconds: float = 0.1
    stabilize_seconds: float = 30.0
    stabilize_change: float = 0.05
    balance_threshold: float = 0.005
    detection_seconds: float = 5.0
    fresh_seconds: float = 15.0
    patience: float = 4.0

    def trigger(self, scope: Scope) -> Trigger:
        """By how much brokers may differ, within a cluster or between clusters."""
        return self.local_trigger if scope == "Local" else self.global_trigger

    def scaled(self, factor: float) -> Parameters:
        """With all durations this many times as long."""
        names = ("normalization_seconds", "stabilize_seconds", "detection_seconds", "fresh_seconds")
        return replace(self, **{name: getattr(self, name) * factor for name in names})
