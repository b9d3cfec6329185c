"""Least-loaded balancing: subscribers as equal shares of their broker's load, to whoever carries least.

A baseline: what a balancer does that knows loads and does not know content. The first by name go; each is taken to
bring the target what it brings the source on average.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from plimsoll.core.policies.fleet import RESOURCES, BrokerLoad
from plimsoll.core.policies.parameters import Parameters, Scope
from plimsoll.core.policies.profile import Profile
from plimsoll.core.policies.steps import Action, Move, Plan, Rejection, Step, bounded


@dataclass(frozen=True)
class LeastLoaded:
    """As many as would even out the two."""

    parameters: Parameters = Parameters()  # noqa: RUF009  a frozen value
    scope: Scope = "Local"

    def ranked(
        self, own: BrokerLoad, actions: Sequence[Action], others: Mapping[str, BrokerLoad]
    ) -> tuple[Action, ...]:
        """The target with the lowest of its highest utilisations first."""
        return tuple(sorted(actions, key=lambda a: (_highest(others[a.target]), a.target, -a.difference)))

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
        """The first by name, as many as their average share of the load evens out."""
        names = sorted((name, row) for row in profile.rows for name in row.names if name not in (staying or {}))
        wanted = self._wanted(source, target, action, sum(row.count for row in profile.rows))
        count = min(wanted, len(names), len(names) if most is None else most)
        share = f"one of {count}, each taken to be an equal part of the load of {source.name}"
        moves = [Move(row.key, (name,), source.name, target.name, share) for name, row in names[:count]]
        after = _shared(source, target, count)
        kept = [Rejection("Enough", row.key, 1, f"{count} even out {action.metric}") for _, row in names[count:]]
        held = [Rejection("Staying", row.key, 1, (staying or {})[n]) for row in profile.rows for n in row.names
                if n in (staying or {})]  # fmt: skip
        return Plan(
            action=action,
            source=source,
            target=target,
            predicted_source=after[0] if moves else source,
            predicted_target=after[1] if moves else target,
            steps=tuple(Step((move,)) for move in moves),
            rejected=bounded([*kept, *held]),
            ended="Balanced" if count == wanted else "Exhausted" if count == len(names) else "Limit",
            stopped=f"{wanted} subscribers of average load would even out {action.metric}",
        )

    def _wanted(self, source: BrokerLoad, target: BrokerLoad, action: Action, served: int) -> int:
        """The most subscribers that neither overload the target nor bring it above the source."""
        low, high = 0, served
        while low < high:
            middle = (low + high + 1) // 2
            left, come = _shared(source, target, middle)
            factor = self.parameters.normalization_seconds
            is_below = come.measures.of_metric(action.metric, factor) <= left.measures.of_metric(action.metric, factor)
            fits = is_below and not self.parameters.thresholds.above_lower(come.measures)
            low, high = (middle, high) if fits else (low, middle - 1)
        return low


def _shared(source: BrokerLoad, target: BrokerLoad, count: int) -> tuple[BrokerLoad, BrokerLoad]:
    """Both with so many equal shares of the source's load moved, at the target by its capacity."""
    part = count / source.subscribers if source.subscribers else 0.0
    scale = source.capacity / target.capacity
    ratios = {name: getattr(source, name) * part for name in _RATIOS}
    rates = {name: getattr(source, name) * part for name in _RATES}
    less = {name: max(0.0, getattr(source, name) - each) for name, each in (ratios | rates).items()}
    more = {name: getattr(target, name) + each * scale for name, each in ratios.items()}
    more |= {name: getattr(target, name) + each for name, each in rates.items()}
    return (
        replace(source, subscribers=max(0, source.subscribers - count), **less),
        replace(target, subscribers=target.subscribers + count, **more),
    )


_RATIOS = ("input_utilization", "output_utilization", "match_delay_seconds", "cpu_ratio", "memory_ratio")
_RATES = ("input_rate", "output_rate", "output_bytes_per_second")


def _highest(load: BrokerLoad) -> float:
    return max(load.measures.of_resource(resource) for resource in RESOURCES)
