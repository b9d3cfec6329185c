"""The parameters of PADRES load balancing, with the paper's defaults. Ratios are plain numbers, durations seconds.

All durations scale together, N_f included: an experiment at half the speed has delays twice as long.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from plimsoll.core.policies.model.load import ResourceThresholds

Scope = Literal["Local", "Global"]

DecisionRules = Literal["Plimsoll", "Paper"]
"""Whose rules decide what may move, where ours differ from the letter of the paper: docs/padres.md has the list."""


HANDOVER_SECONDS = 1.0
"""What a hand-over takes, about."""


@dataclass(frozen=True, slots=True)
class ImbalanceTrigger:
    """How far two brokers must differ: `ratio` for utilisations, `delay` for matching delays normalised by N_f."""

    ratio: float = 0.1
    delay: float = 0.1


@dataclass(frozen=True, slots=True)
class BalancingParameters:
    """PADRES 2006, 3.2 and 5.1.

    `fresh_seconds`: older load reports are ignored. `patience` is a multiple of `stabilize_seconds`: after that time
    stabilising ends even if the load still changes, a slight change is reason enough to try a futile action again, and
    a broker that has stayed between its overload thresholds gives load away like any other.
    """

    thresholds: ResourceThresholds = ResourceThresholds()  # noqa: RUF009  # a frozen value
    local_trigger: ImbalanceTrigger = ImbalanceTrigger()
    global_trigger: ImbalanceTrigger = ImbalanceTrigger(0.15, 0.15)
    normalization_seconds: float = 0.1
    stabilize_seconds: float = 30.0
    stabilize_change: float = 0.05
    balance_threshold: float = 0.005
    detection_seconds: float = 5.0
    fresh_seconds: float = 15.0
    patience: float = 4.0
    rules: DecisionRules = "Plimsoll"

    @property
    def relief_seconds(self) -> float:
        """From the plan of one session until another one can have relieved the same broker."""
        return 2.0 * HANDOVER_SECONDS + self.stabilize_seconds + self.detection_seconds

    def trigger(self, scope: Scope) -> ImbalanceTrigger:
        """How far brokers may differ, within a cluster or between clusters."""
        return self.local_trigger if scope == "Local" else self.global_trigger

    def scaled(self, factor: float) -> BalancingParameters:
        """These parameters with all durations multiplied by `factor`."""
        names = ("normalization_seconds", "stabilize_seconds", "detection_seconds", "fresh_seconds")
        return replace(self, **{name: getattr(self, name) * factor for name in names})
