"""What all policies have in common: parameters, an order of targets, and the way from a choice of rows to a plan."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from plimsoll.core.policies.model.broker_pair import BrokerPair
from plimsoll.core.policies.model.load import BrokerLoad
from plimsoll.core.policies.model.parameters import BalancingParameters, Scope
from plimsoll.core.policies.model.plan import BrokerAction, OffloadPlan
from plimsoll.core.policies.model.plan_builder import PlanBuilder, PlanEnd
from plimsoll.core.policies.model.profile import SubscriptionProfile
from plimsoll.core.spec.types.policy import PolicyType


@dataclass(frozen=True)
class BalancingPolicy(ABC):
    """Decides which brokers to ask and what should move. `name`: as in specifications and stored plans."""

    name: ClassVar[PolicyType]

    parameters: BalancingParameters = BalancingParameters()  # noqa: RUF009  # a frozen value
    scope: Scope = "Local"

    def ranked(
        self, own: BrokerLoad, actions: Sequence[BrokerAction], others: Mapping[str, BrokerLoad]
    ) -> tuple[BrokerAction, ...]:
        """The broker-action list in the order in which brokers are asked.

        Unless a policy says otherwise it is that of detection: the largest difference first. PADRES 2006, 3.2.
        """
        return tuple(actions)

    @abstractmethod
    def plan(
        self,
        source: BrokerLoad,
        target: BrokerLoad,
        profile: SubscriptionProfile,
        action: BrokerAction,
        staying: Mapping[str, str] | None = None,
        most: int | None = None,
        others: Iterable[BrokerLoad] = (),
    ) -> OffloadPlan:
        """What should move from the source to the target for an action.

        `staying` names subscribers that may not move, each with the reason. `most` limits how many may move. `others`
        are the loads of the remaining brokers, which the move should not take these two further away from.
        """


@dataclass(frozen=True)
class RowChoosingPolicy(BalancingPolicy):
    """A policy that chooses rows of a pair of brokers one by one, and predicts the pair after each choice."""

    def plan(
        self,
        source: BrokerLoad,
        target: BrokerLoad,
        profile: SubscriptionProfile,
        action: BrokerAction,
        staying: Mapping[str, str] | None = None,
        most: int | None = None,
        others: Iterable[BrokerLoad] = (),
    ) -> OffloadPlan:
        trigger, near = self.parameters.trigger(self.scope), list(others)

        def begin() -> PlanBuilder:
            pair = BrokerPair(source, target, profile, self.parameters, trigger, staying or {}, most, near)
            return PlanBuilder(pair, action)

        draft = begin()
        return self.refined(draft.plan(self.choose(draft)), begin)

    def refined(self, made: OffloadPlan, begin: Callable[[], PlanBuilder]) -> OffloadPlan:
        """A plan that does as much as this one; `begin` makes an empty draft of the same pair."""
        return made

    @abstractmethod
    def choose(self, draft: PlanBuilder) -> PlanEnd:
        """Choose rows of the draft's pair, and say why no more are chosen."""
