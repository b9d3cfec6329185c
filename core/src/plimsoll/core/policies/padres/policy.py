"""The policy: detection by its parameters, and the offload algorithm of the metric that was found wanting."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from plimsoll.core.policies.draft import Draft, End
from plimsoll.core.policies.fleet import BrokerLoad, Resource
from plimsoll.core.policies.padres import input as by_input
from plimsoll.core.policies.padres import match, output
from plimsoll.core.policies.padres.cards import Goal
from plimsoll.core.policies.pair import Pair
from plimsoll.core.policies.parameters import Parameters, Scope
from plimsoll.core.policies.profile import Profile
from plimsoll.core.policies.steps import Action, Plan

ALGORITHMS = {"input": by_input.offload, "match": match.offload, "output": output.offload}
RELIEVED_BY_MATCH: tuple[Resource, ...] = ("cpu", "input", "memory")  # PADRES 2006, 5.2


@dataclass(frozen=True)
class Padres:
    """PADRES 2006, section 5."""

    parameters: Parameters = Parameters()  # noqa: RUF009  a frozen value
    scope: Scope = "Local"

    def ranked(
        self, own: BrokerLoad, actions: Sequence[Action], others: Mapping[str, BrokerLoad]
    ) -> tuple[Action, ...]:
        """As detection lists them: the largest difference first. PADRES 2006, 3.2."""
        return tuple(actions)

    def plan(
        self,
        source: BrokerLoad,
        target: BrokerLoad,
        profile: Profile,
        action: Action,
        staying: Mapping[str, str] | None = None,
        most: int | None = None,
        others: Iterable[BrokerLoad] = (),
    ) -> Plan:
        """What should move from the source to the target by this action.

        `staying` names subscribers that may not move, each with the reason; `most` is how many may move; `others`
        are the loads of the other brokers that these two should not be brought further apart from.
        """
        trigger = self.parameters.trigger(self.scope)
        pair = Pair(source, target, profile, self.parameters, trigger, staying or {}, most, others)
        draft = Draft(pair, action)
        end = ALGORITHMS[action.metric](draft, goal_of(action))
        if action.metric == "input" and "input" in action.overloaded and end.kind != "Limit":
            end = relieved(draft, end)
        return draft.plan(end)


def relieved(draft: Draft, end: End) -> End:
    """Where the input algorithm does next to nothing for an overload, the match algorithm relieves it at once.

    Input utilisation is arrival rate x matching delay (PADRES 2006, 3.2), and 5.2 relieves it by the delay. What takes
    no input with it would else weigh as much as ever, and the input algorithm would be asked again and again.
    """
    pair = draft.pair
    gained = pair.source.input_utilization - pair.now.source.input_utilization
    if gained > pair.limit("input") or "input" not in pair.parameters.thresholds.above_lower(pair.now.source):
        return end
    return match.offload(draft, Goal("match", ("input",), exempt=True))


def goal_of(action: Action) -> Goal:
    """What an action is after: balance, or relief where the match algorithm was called for an overload."""
    is_relief = action.metric == "match" and any(each in RELIEVED_BY_MATCH for each in action.overloaded)
    return Goal(action.metric, RELIEVED_BY_MATCH if is_relief else (), exempt=bool(action.overloaded))
