"""Shuffle: all brokers at once are brought to the lowest level that they can be brought to, by few moves.

BAD 2019 redistributes all subscribers, the heaviest first to whoever carries least (LPT, as Graham 1969 has it). That
moves nearly everybody, and takes input that is shared for input of each. Here who is below the level stays, and load is
what PADRES predicts it to be: input counts once. The level is found by halving; then those that cannot be lowered are
left as they are, and the others brought further down, while they differ by more than would trigger balancing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass

from plimsoll.core.policies.fleet import BrokerLoad
from plimsoll.core.policies.pair import calibrated, demanded
from plimsoll.core.policies.parameters import Parameters, Scope
from plimsoll.core.policies.profile import Profile
from plimsoll.core.policies.shuffle.holding import Holding
from plimsoll.core.policies.shuffle.packing import Packing
from plimsoll.core.policies.shuffle.values import Ended, Shuffled, highest
from plimsoll.core.policies.shuffle.waves import in_waves, moved
from plimsoll.core.policies.steps import Rejection, bounded

ROUNDS_AT_MOST = 4
"""So many times some are left where they are, and the others brought lower."""


@dataclass(frozen=True)
class Shuffle:
    """`parameters`: those of the policy that balances the brokers otherwise."""

    parameters: Parameters = Parameters()  # noqa: RUF009  a frozen value
    scope: Scope = "Local"

    def plan(
        self,
        loads: Iterable[BrokerLoad],
        profiles: Mapping[str, Profile],
        staying: Mapping[str, str] | None = None,
        takes: Set[str] | None = None,
        most: int | None = None,
    ) -> Shuffled:
        """Who should go where.

        `profiles`: of each broker, with what the others take in already as its `takers`. `staying` names subscribers
        that may not move, each with the reason; `takes` are the brokers that may take, all if None; `most` is how many
        may move.
        """
        kept = staying or {}
        known = self._calibrated(sorted(loads, key=lambda load: load.name), profiles)
        brokers = {load.name: Holding(load, profiles[load.name], kept) for load in known}
        subscribers = sum(row.count for holding in brokers.values() for row in holding.rows.values())
        search = _Search(
            self, brokers, frozenset(brokers) if takes is None else takes, subscribers if most is None else most
        )
        best, ended, stopped = search.run()
        waves = in_waves(best.moves, brokers, self.parameters.thresholds)
        after = tuple(holding.predicted() for holding in moved(waves, brokers))
        return Shuffled(
            before=known,
            after=after,
            waves=waves,
            rejected=bounded(list(self._rejected(best, search, kept))),
            high_before=max((self._high(load) for load in known), default=0.0),
            high_after=max((self._high(load) for load in after), default=0.0),
            ended=ended,
            stopped=stopped,
        )

    def _high(self, load: BrokerLoad) -> float:
        return highest(load.measures, self.parameters.normalization_seconds)[0]

    def _calibrated(self, loads: list[BrokerLoad], profiles: Mapping[str, Profile]) -> tuple[BrokerLoad, ...]:
        """All with what their reports leave open filled in, by the one that says most."""
        if len(loads) < 2:
            return tuple(loads)
        model = max(loads, key=lambda load: (load.match_delay_seconds > 0.0, load.subscriptions, load.name))
        other = min((load for load in loads if load is not model), key=lambda load: (load.subscribers, load.name))
        found = []
        for load in loads:
            pair = calibrated(model, other if load is model else load, profiles[model.name], self.parameters)
            found.append(demanded(pair[0 if load is model else 1], profiles[load.name], self.parameters))
        return tuple(found)

    def _rejected(self, best: Packing, search: _Search, staying: Mapping[str, str]) -> Iterable[Rejection]:
        """Everybody who stays, with the reason."""
        for name, holding in sorted(best.brokers.items()):
            high = f"{best.high(name):.1%}"
            for key, row in sorted(holding.rows.items()):
                held = [staying[each] for each in row.names if each in staying]
                if held:
                    yield Rejection("Staying", key, len(held), f"{name}: {held[0]}")
                left = holding.present[key] - len(held)
                if left <= 0:
                    continue
                if name in search.given_up:
                    yield Rejection("NoPlace", key, left, f"{name} stays at {high}: {search.given_up[name]}")
                elif best.high(name) < search.before[name] - search.least:
                    yield Rejection("Enough", key, left, f"{name} is at {high} then, which is enough")
                else:
                    yield Rejection("NotNeeded", key, left, f"{name} is at {high}, not above the level")


class _Search:
    """The lowest levels. `given_up` has those that cannot be lowered, with the reason."""

    def __init__(self, policy: Shuffle, brokers: Mapping[str, Holding], takes: Set[str], most: int) -> None:
        self.parameters = policy.parameters
        self.trigger = policy.parameters.trigger(policy.scope).ratio
        self.least = policy.parameters.balance_threshold
        self.brokers, self.takes, self.most = brokers, takes, most
        self.given_up: dict[str, str] = {}
        self.levels = dict.fromkeys(brokers, float("inf"))
        self.best = self._packed(self.levels)
        self.before = {name: self.best.high(name) for name in brokers}
        self.levels = dict(self.before)

    def run(self) -> tuple[Packing, Ended, str]:
        """The best packing, and why it is no better."""
        if len(self.brokers) < 2 or not self.takes:
            return self.best, "Nothing", "there are no two brokers between which anybody could move"
        for _ in range(ROUNDS_AT_MOST):
            open_ = [name for name in self.brokers if name not in self.given_up]
            top = max((self.best.high(name) for name in open_), default=0.0)
            low = min(self.best.high(name) for name in self.takes)
            if top - low <= self.trigger:
                return self.best, "Balanced", f"whoever can be lowered is within {self.trigger:g} of the lowest"
            failed = self._lowered(open_, top, low)
            if failed.is_limited:
                return self.best, "Limit", f"{self.most} may move, which is the limit"
            if not failed.stuck:
                continue
            self.levels[failed.stuck] = self.best.high(failed.stuck)
            self.given_up[failed.stuck] = "nothing that it could give fits below that"
        return self.best, "NoBetter", "nothing lowers those that carry most"

    def _lowered(self, open_: list[str], top: float, low: float) -> Packing:
        """Bring the open ones down together as far as they go; returns the last packing that failed, if one did."""
        above, below = top, low
        failed = self._at(open_, low)
        if not failed.stuck:
            self.best = failed
            return failed
        level = top - 2 * self.least  # what cannot be at all is soon known
        while above - below > self.least:
            packing = self._at(open_, level)
            if packing.stuck:
                below, failed = level, packing
            else:
                above, self.best = level, packing
            level = (above + below) / 2
        self.levels |= dict.fromkeys(open_, above)
        return failed

    def _at(self, open_: list[str], level: float) -> Packing:
        packing = self._packed({**self.levels, **dict.fromkeys(open_, level)})
        packing.run()
        return packing

    def _packed(self, levels: Mapping[str, float]) -> Packing:
        return Packing(self.brokers, levels, self.parameters, self.takes, self.most)
