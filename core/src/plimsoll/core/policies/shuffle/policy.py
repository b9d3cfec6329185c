"""Shuffle: bring all brokers at once to the lowest level that a few moves can reach.

BAD 2019 redistributes all subscribers, the heaviest first, each to the least loaded broker (LPT, Graham 1969). That
moves nearly every subscriber and counts shared input for each. Here subscribers of brokers below the level stay, and
load is what PADRES predicts: shared input counts once. The level is found by bisection; then brokers that cannot be
lowered are left as they are and the others brought further down, while they differ by more than the trigger.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass
from typing import ClassVar

from plimsoll.core.policies.model.broker_pair import calibrated_loads, with_demanded_load
from plimsoll.core.policies.model.load import BrokerLoad
from plimsoll.core.policies.model.parameters import BalancingParameters, Scope
from plimsoll.core.policies.model.plan import PlanRejection, bounded_rejections
from plimsoll.core.policies.model.profile import SubscriptionProfile
from plimsoll.core.policies.rebalancer import (
    NO_MEMORY,
    FleetLook,
    FleetSample,
    Memory,
    ProfileDetail,
    Step,
    Steps,
    StepsEnd,
)
from plimsoll.core.policies.shuffle.broker_model import ShuffledBroker
from plimsoll.core.policies.shuffle.fleet import ShuffleFleet
from plimsoll.core.policies.shuffle.packer import LevelPacker
from plimsoll.core.policies.shuffle.plan import ShuffleEnding, ShufflePlan, highest_metric
from plimsoll.core.policies.shuffle.waves import brokers_after, scheduled_waves

ROUNDS_AT_MOST = 4
"""Rounds in which some brokers are left as they are and the others brought lower."""


@dataclass(frozen=True)
class Shuffle:
    """`parameters`: those of the policy that otherwise balances the brokers."""

    name: ClassVar[str] = "Shuffle"
    metric: ClassVar[str] = "the highest load"
    profiles: ClassVar[ProfileDetail] = "takers"
    interval_seconds: ClassVar[float] = math.inf

    parameters: BalancingParameters = BalancingParameters()  # noqa: RUF009  # a frozen value
    scope: Scope = "Local"

    def plan(
        self,
        loads: Iterable[BrokerLoad],
        profiles: Mapping[str, SubscriptionProfile],
        staying: Mapping[str, str] | None = None,
        takes: Set[str] | None = None,
        most: int | None = None,
    ) -> ShufflePlan:
        """Plan the moves.

        `profiles`: one of each broker, whose `takers` are the samples that the others already take in. `staying` names
        subscribers that may not move, each with the reason. `takes` are the brokers that may take, all if None; `most`
        limits how many may move.
        """
        kept = staying or {}
        known = self._calibrated(sorted(loads, key=lambda load: load.name), profiles)
        brokers = {load.name: ShuffledBroker(load, profiles[load.name], kept) for load in known}
        subscribers = sum(row.count for holding in brokers.values() for row in holding.rows.values())
        search = _LevelSearch(
            self, brokers, frozenset(brokers) if takes is None else takes, subscribers if most is None else most
        )
        best, ended, stopped = search.run()
        waves = scheduled_waves(best.moves, brokers, self.parameters.thresholds)
        after = tuple(holding.predicted() for holding in brokers_after(waves, brokers))
        return ShufflePlan(
            before=known,
            after=after,
            waves=waves,
            rejected=bounded_rejections(list(self._rejected(best, search, kept))),
            high_before=max((self._high(load) for load in known), default=0.0),
            high_after=max((self._high(load) for load in after), default=0.0),
            ended=ended,
            stopped=stopped,
        )

    # -- as a rebalancer: a shuffle is only made at the request of a user

    def imbalance(self, look: FleetLook) -> str:
        """It looks for none."""
        return ""

    def observe(self, memory: Memory, look: FleetLook) -> Memory:
        """It remembers nothing."""
        return {}

    def wanted(self, memory: Memory) -> str:
        """It never asks for a plan itself."""
        return ""

    def after_moves(self, memory: Memory) -> Memory:
        """Nothing: it remembers nothing."""
        del memory
        return {}

    def fleet(self, sample: FleetSample, _memory: Memory = NO_MEMORY) -> ShuffleFleet:
        """The brokers, with gaps in their reports filled in."""
        known = self._calibrated(sorted(sample.loads, key=lambda load: load.name), sample.profiles)
        brokers = {load.name: ShuffledBroker(load, sample.profiles[load.name], sample.staying) for load in known}
        return ShuffleFleet(sample, brokers, known)

    def steps(self, fleet: ShuffleFleet, memory: Memory) -> Steps:
        """The plan, a step for each wave."""
        given = fleet.sample
        made = self.plan(given.loads, given.profiles, given.staying, given.takes, given.most)
        for number, wave in enumerate(made.waves):
            yield Step(wave, number)
        high = f"the highest load goes from {made.high_before:.1%} to {made.high_after:.1%}"
        return StepsEnd(made.ended, f"{made.stopped}; {high if made.waves else 'nothing moves'}", made.rejected)

    def _high(self, load: BrokerLoad) -> float:
        return highest_metric(load.measures, self.parameters.normalization_seconds)[0]

    def _calibrated(
        self, loads: list[BrokerLoad], profiles: Mapping[str, SubscriptionProfile]
    ) -> tuple[BrokerLoad, ...]:
        """All brokers, with gaps in their reports filled in from the most informative one."""
        if len(loads) < 2:
            return tuple(loads)
        model = max(loads, key=lambda load: (load.match_delay_seconds > 0.0, load.subscriptions, load.name))
        other = min((load for load in loads if load is not model), key=lambda load: (load.subscribers, load.name))
        found = []
        for load in loads:
            pair = calibrated_loads(model, other if load is model else load, profiles[model.name], self.parameters)
            found.append(with_demanded_load(pair[0 if load is model else 1], profiles[load.name], self.parameters))
        return tuple(found)

    def _rejected(self, best: LevelPacker, search: _LevelSearch, staying: Mapping[str, str]) -> Iterable[PlanRejection]:
        """Every subscriber that stays, with the reason."""
        for name, holding in sorted(best.brokers.items()):
            high = f"{best.high(name):.1%}"
            for key, row in sorted(holding.rows.items()):
                held = [staying[each] for each in row.names if each in staying]
                if held:
                    yield PlanRejection("Staying", key, len(held), f"{name}: {held[0]}")
                left = holding.present[key] - len(held)
                if left <= 0:
                    continue
                if name in search.given_up:
                    yield PlanRejection("NoPlace", key, left, f"{name} stays at {high}: {search.given_up[name]}")
                elif best.high(name) < search.before[name] - search.least:
                    yield PlanRejection("Enough", key, left, f"{name} is at {high} then, which is enough")
                else:
                    yield PlanRejection("NotNeeded", key, left, f"{name} is at {high}, not above the level")


class _LevelSearch:
    """A search for the lowest levels. `given_up` holds brokers that cannot be lowered, with the reason."""

    def __init__(self, policy: Shuffle, brokers: Mapping[str, ShuffledBroker], takes: Set[str], most: int) -> None:
        self.parameters = policy.parameters
        self.trigger = policy.parameters.trigger(policy.scope).ratio
        self.least = policy.parameters.balance_threshold
        self.brokers, self.takes, self.most = brokers, takes, most
        self.given_up: dict[str, str] = {}
        self.levels = dict.fromkeys(brokers, float("inf"))
        self.best = self._packed(self.levels)
        self.before = {name: self.best.high(name) for name in brokers}
        self.levels = dict(self.before)

    def run(self) -> tuple[LevelPacker, ShuffleEnding, str]:
        """The best packing, and why there is no better one."""
        if len(self.brokers) < 2 or not self.takes:
            return self.best, "Nothing", "there are no two brokers between which a subscriber could move"
        for _ in range(ROUNDS_AT_MOST):
            open_ = [name for name in self.brokers if name not in self.given_up]
            top = max((self.best.high(name) for name in open_), default=0.0)
            low = min(self.best.high(name) for name in self.takes)
            if top - low <= self.trigger:
                return (
                    self.best,
                    "Balanced",
                    f"every broker that can be lowered is within {self.trigger:g} of the lowest",
                )
            failed = self._lowered(open_, top, low)
            if failed.is_limited:
                return self.best, "Limit", f"{self.most} may move, which is the limit"
            if not failed.stuck:
                continue
            self.levels[failed.stuck] = self.best.high(failed.stuck)
            self.given_up[failed.stuck] = "nothing that it could give fits below that"
        return self.best, "NoBetter", "nothing lowers those that carry most"

    def _lowered(self, open_: list[str], top: float, low: float) -> LevelPacker:
        """Bring the open brokers down together as far as possible; returns the last packing that failed, if any."""
        above, below = top, low
        failed = self._at(open_, low)
        if not failed.stuck:
            self.best = failed
            return failed
        level = top - 2 * self.least  # just below the top: if even that fails, the search ends here
        while above - below > self.least:
            packing = self._at(open_, level)
            if packing.stuck:
                below, failed = level, packing
            else:
                above, self.best = level, packing
            level = (above + below) / 2
        self.levels |= dict.fromkeys(open_, above)
        return failed

    def _at(self, open_: list[str], level: float) -> LevelPacker:
        packing = self._packed({**self.levels, **dict.fromkeys(open_, level)})
        packing.pack()
        return packing

    def _packed(self, levels: Mapping[str, float]) -> LevelPacker:
        return LevelPacker(self.brokers, levels, self.parameters, self.takes, self.most)
