"""Random balancing: any subscribers, to any broker that carries less.

A baseline: it takes subscribers one at a time as drawn, as long as the metric is not balanced and the target would not
be overloaded. Of what a subscriber costs it knows only whether it would make matters worse.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from plimsoll.core.policies.draft import Draft, End
from plimsoll.core.policies.fleet import BrokerLoad
from plimsoll.core.policies.pair import Pair
from plimsoll.core.policies.parameters import Parameters, Scope
from plimsoll.core.policies.profile import Profile
from plimsoll.core.policies.steps import Action, Plan, Rejection


@dataclass(frozen=True)
class Random:
    """Whoever is drawn. Equal seeds and load reports draw alike."""

    parameters: Parameters = Parameters()  # noqa: RUF009  a frozen value
    scope: Scope = "Local"
    seed: int = 1

    def ranked(
        self, own: BrokerLoad, actions: Sequence[Action], others: Mapping[str, BrokerLoad]
    ) -> tuple[Action, ...]:
        """Targets as drawn."""
        return tuple(sorted(actions, key=lambda action: self._drawn(own, f"{action.target}/{action.metric}")))

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
        """Subscribers as drawn, until the metric is balanced."""
        trigger = self.parameters.trigger(self.scope)
        pair = Pair(source, target, profile, self.parameters, trigger, staying or {}, most, others)
        draft = Draft(pair, action)
        return draft.plan(self._drafted(draft, source))

    def _drafted(self, draft: Draft, source: BrokerLoad) -> End:
        pair, metric = draft.pair, draft.action.metric
        rows = dict(draft.left)
        drawn = sorted(
            ((name, key) for key in rows for name in pair.movable[key]), key=lambda each: self._drawn(source, each[0])
        )
        for name, key in drawn:
            if pair.difference(metric) <= pair.parameters.balance_threshold:
                return End("Balanced", f"{metric} differs by {pair.difference(metric):+.4f}")
            if not pair.room:
                return End("Limit", "as many move as the session's limit allows")
            at, before = pair.prospect(rows[key], 1), pair.difference(metric)
            if over := pair.parameters.thresholds.above_lower(at.target):
                why = f"would bring {pair.target.name} above its lower overload threshold: {', '.join(over)}"
                draft.reject(Rejection("WouldOverload", key, 1, why), for_good=False)
            elif abs(after := pair.difference(metric, at)) >= before or pair.higher(metric, at) >= pair.higher(metric):
                why = f"would not bring the two closer in {metric}: {before:+.4f} -> {after:+.4f}"
                draft.reject(Rejection("NoBetter", key, 1, why), for_good=False)
            else:
                draft.choose_one(rows[key], name, f"drawn; {metric} difference {before:+.4f} -> {after:+.4f}")
        return End("Exhausted", "every subscriber has been drawn")

    def _drawn(self, own: BrokerLoad, name: str) -> bytes:
        return hashlib.sha256(f"{self.seed}/{own.name}/{own.epoch}/{own.seq}/{name}".encode()).digest()
