"""The PADRES policy: detection with its parameters, and the offload algorithm of the metric to balance."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from plimsoll.core.policies.balancing_policy import RowChoosingPolicy
from plimsoll.core.policies.model.load import BrokerLoad, Resource
from plimsoll.core.policies.model.plan import BrokerAction, OffloadPlan
from plimsoll.core.policies.model.plan_builder import PlanBuilder, PlanEnd
from plimsoll.core.policies.padres import input_offload as by_input
from plimsoll.core.policies.padres import match_offload, output_offload
from plimsoll.core.policies.padres.fewest_moves import FEW, with_fewest_moves
from plimsoll.core.policies.padres.report_cards import OffloadGoal
from plimsoll.core.spec.types.policy import PolicyType

ALGORITHMS = {"input": by_input.offload, "match": match_offload.offload, "output": output_offload.offload}
RELIEVED_BY_MATCH: tuple[Resource, ...] = ("cpu", "input", "memory")  # PADRES 2006, 5.2

ALIKE = 6
"""The decimals in which two differences are equal, as those from idle edges are: they come of sums of rates."""


@dataclass(frozen=True)
class Padres(RowChoosingPolicy):
    """PADRES 2006, section 5."""

    name: ClassVar[PolicyType] = "Padres"

    def ranked(
        self, own: BrokerLoad, actions: Sequence[BrokerAction], others: Mapping[str, BrokerLoad]
    ) -> tuple[BrokerAction, ...]:
        """The largest difference first; of equal ones that of the strongest target, if few subscribers could go.

        It takes more of them before it has to give, and each is a large part of all. Where there are many, as in 6.2,
        it would take most of them at once, and outputs would end further apart. While more are joining, as since a
        report that has none, they are not few for long.
        """
        if self.parameters.rules == "Paper" or not 0 < own.subscribers <= FEW or own.growth > 0.0:
            return tuple(actions)
        return tuple(sorted(actions, key=lambda each: (-round(each.difference, ALIKE), -others[each.target].capacity)))

    def choose(self, draft: PlanBuilder) -> PlanEnd:
        """Run the algorithm of the metric."""
        action = draft.action
        end = ALGORITHMS[action.metric](draft, goal_of(action))
        if action.metric == "input" and "input" in action.overloaded and end.kind != "Limit":
            end = with_match_relief(draft, end)
        return end

    def refined(self, made: OffloadPlan, begin: Callable[[], PlanBuilder]) -> OffloadPlan:
        """By our rules, the fewest moves that do as much, if few are possible."""
        if self.parameters.rules == "Paper":
            return made
        return with_fewest_moves(made, begin, goal_of(made.action))


def with_match_relief(draft: PlanBuilder, end: PlanEnd) -> PlanEnd:
    """If the input algorithm does next to nothing for an overload, let the match algorithm relieve it at once.

    Input utilisation is arrival rate x matching delay (PADRES 2006, 3.2), and 5.2 relieves it by the delay. Otherwise
    subscribers that take no input with them would stay, and the input algorithm would be tried again and again.
    """
    pair = draft.pair
    gained = pair.source.input_utilization - pair.now.source.input_utilization
    if gained > pair.limit("input") or "input" not in pair.parameters.thresholds.above_lower(pair.now.source):
        return end
    return match_offload.offload(draft, OffloadGoal("match", ("input",), exempt=True))


def goal_of(action: BrokerAction) -> OffloadGoal:
    """The goal of an action: balance, or relief if the match algorithm is called for an overload."""
    is_relief = action.metric == "match" and any(each in RELIEVED_BY_MATCH for each in action.overloaded)
    return OffloadGoal(action.metric, RELIEVED_BY_MATCH if is_relief else (), exempt=bool(action.overloaded))
