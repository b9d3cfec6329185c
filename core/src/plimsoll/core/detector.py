"""Detection: whether a broker is overloaded or carries too much beside its neighbours, and whom it should ask.

PADRES 2006, 3.2. A value in, a value out: `run` is given the broker's own load, what it has heard of the others and
what it remembers, and returns what to remember and what it found. The same function serves a cluster with the
averaged loads of its neighbours and the global triggers.

A session is told of by `began` and `ended`. One that came to nothing is not asked for again while the loads of both
brokers are what they were, so with unchanged load nothing is repeated.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from plimsoll.core.policies.fleet import METRICS, BrokerLoad, Metric, Resource, State
from plimsoll.core.policies.parameters import Parameters, Scope, Trigger
from plimsoll.core.policies.steps import Action

Levels = tuple[float, ...]

# PADRES 2006, Table 2: which offload algorithm relieves which resource, in the order of asking. Input utilisation is
# arrival rate x delay; 5.2 relieves it by the delay, which leaves the broker its traffic, and helps also while
# newcomers ask anew for what was taken away.
RELIEF: dict[Resource, tuple[Metric, ...]] = {
    "input": ("match", "input"),
    "output": ("output",),
    "cpu": ("match",),
    "memory": ("match",),
}


@dataclass(frozen=True, slots=True)
class Futile:
    """An action that came to nothing, and the metrics of both brokers when it did."""

    target: str
    metric: Metric
    own: Levels
    other: Levels
    until: float


@dataclass(frozen=True, slots=True)
class Memory:
    """What a detector keeps between runs. `since`: when stabilising began; `inert_since`: when load came between the
    overload thresholds, without having been above or below since.
    """

    is_busy: bool = False
    since: float | None = None
    inert_since: float | None = None
    last: Levels | None = None
    futile: tuple[Futile, ...] = ()


@dataclass(frozen=True, slots=True)
class Finding:
    """What a run found. `actions` is the broker-action list, best first; it is empty unless load should be balanced.

    `balanced`: those that this broker is balanced with. `passed_over`: who is not asked, and why.
    """

    state: State
    actions: tuple[Action, ...]
    reason: str
    balanced: frozenset[str] = frozenset()
    passed_over: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Detector:
    """Detection by these parameters, within a cluster or between clusters."""

    parameters: Parameters = Parameters()  # noqa: RUF009  a frozen value
    scope: Scope = "Local"

    @property
    def trigger(self) -> Trigger:
        """By how much brokers of this scope may differ."""
        return self.parameters.trigger(self.scope)

    @property
    def _patience_seconds(self) -> float:
        return self.parameters.patience * self.parameters.stabilize_seconds

    def run(self, own: BrokerLoad, others: Iterable[BrokerLoad], memory: Memory, now: float) -> tuple[Memory, Finding]:
        """Look at all loads once. Of the others only those that are fresh count."""
        fresh, passed = self._fresh(own, others, now)
        memory = self._aged(own, fresh, memory, now)
        balanced = frozenset(other.name for other in fresh if self._is_balanced(own, other))
        finding = self._finding(own, fresh, memory, now)
        return memory, replace(finding, balanced=balanced, passed_over=(*passed, *finding.passed_over))

    def began(self, memory: Memory) -> Memory:
        """A session has begun: this broker is BUSY until it ends."""
        return replace(memory, is_busy=True)

    def ended(
        self, memory: Memory, now: float, *, moved: bool, tried: Sequence[tuple[Action, BrokerLoad, BrokerLoad]] = ()
    ) -> Memory:
        """A session has ended. If something moved, load is given time to stabilise.

        `tried`: the actions that came to nothing, with the loads that they were tried at, own and the target's.
        """
        until = now + self._patience_seconds
        new = tuple(
            Futile(action.target, action.metric, self._levels(own), self._levels(other), until)
            for action, own, other in tried
        )
        kept = tuple(each for each in memory.futile if not any(_is_same(each, other) for other in new))
        return replace(memory, is_busy=False, since=now if moved else memory.since, last=None, futile=(*kept, *new))

    # -- what is remembered

    def _aged(self, own: BrokerLoad, fresh: Sequence[BrokerLoad], memory: Memory, now: float) -> Memory:
        levels, limits = self._levels(own), self.parameters
        known = {other.name: self._levels(other) for other in fresh}
        futile = tuple(
            each
            for each in memory.futile
            if now < each.until
            and self._is_steady(each.own, levels)
            and self._is_steady(each.other, known.get(each.target, each.other))
        )
        since = memory.since
        if since is not None and now - since >= limits.stabilize_seconds:
            is_steady = memory.last is not None and self._is_steady(memory.last, levels)
            if is_steady or now - since >= self._patience_seconds:
                since = None
        thresholds = limits.thresholds
        is_inert = thresholds.above_lower(own.measures) and not thresholds.above_higher(own.measures)
        inert_since = (now if memory.inert_since is None else memory.inert_since) if is_inert else None
        return replace(memory, since=since, inert_since=inert_since, last=levels, futile=futile)

    def _levels(self, load: BrokerLoad) -> Levels:
        return tuple(load.measures.of_metric(metric, self.parameters.normalization_seconds) for metric in METRICS)

    def _is_steady(self, before: Levels, after: Levels) -> bool:
        return all(abs(a - b) <= self.parameters.stabilize_change for a, b in zip(before, after, strict=True))

    def _fresh(
        self, own: BrokerLoad, others: Iterable[BrokerLoad], now: float
    ) -> tuple[list[BrokerLoad], list[tuple[str, str]]]:
        fresh, passed = [], []
        for other in sorted(others, key=lambda load: load.name):
            if other.name == own.name:
                continue
            if (age := now - other.time) <= self.parameters.fresh_seconds:
                fresh.append(other)
            else:
                passed.append((other.name, f"its load report is {age:.1f} s old"))
        return fresh, passed

    # -- what is found

    def _finding(self, own: BrokerLoad, fresh: Sequence[BrokerLoad], memory: Memory, now: float) -> Finding:
        """PADRES 2006, 3.2: the two steps of detection, and figure 4a. The inert period is bounded."""
        thresholds = self.parameters.thresholds
        if memory.is_busy:
            return Finding("BUSY", (), "in a session")
        if over := thresholds.above_higher(own.measures):
            wanted = self._relief(own, fresh, over)
            return self._asked(Finding("N/A", wanted, f"overloaded: {self._shown(own, over)}"), fresh, memory)
        if memory.since is not None:
            return Finding("STABILIZING", (), "load was moved, and may still change")
        if over := thresholds.above_lower(own.measures):
            why = f"takes nothing more, and is not overloaded yet: {self._shown(own, over)}"
            if now - (now if memory.inert_since is None else memory.inert_since) < self._patience_seconds:
                return Finding("N/A", (), why)
            return self._asked(Finding("N/A", self._imbalance(own, fresh), f"{why}, for long"), fresh, memory)
        found = self._asked(Finding("OK", self._imbalance(own, fresh), ""), fresh, memory)
        if found.actions:
            first = found.actions[0]
            text = f"{first.metric} differs from that of {first.target} by {first.difference:.3f}"
            return replace(found, reason=text)
        return replace(found, reason="no metric is above another broker's by more than the trigger")

    def _relief(self, own: BrokerLoad, fresh: Sequence[BrokerLoad], over: tuple[Resource, ...]) -> tuple[Action, ...]:
        """Step one. Every broker that carries less of what is overloaded, by what relieves it."""
        best: dict[tuple[str, Metric], tuple[float, tuple[Resource, ...]]] = {}
        for other in fresh:
            for resource in over:
                difference = own.measures.of_resource(resource) - other.measures.of_resource(resource)
                for metric in RELIEF[resource] if difference > 0 else ():
                    much, whole = best.get((other.name, metric), (0.0, ()))
                    best[other.name, metric] = max(much, difference), (*whole, resource)
        found = [Action(name, metric, much, whole) for (name, metric), (much, whole) in best.items()]
        return _sorted(found, ("match", "input", "output"))

    def _imbalance(self, own: BrokerLoad, fresh: Sequence[BrokerLoad]) -> tuple[Action, ...]:
        """Step two. Every broker that carries less than this one by more than the trigger, in any metric."""
        found = [Action(other.name, m, self._above(own, other, m)) for other in fresh for m in METRICS]
        return _sorted(action for action in found if action.difference > self._limit(action.metric))

    def _asked(self, finding: Finding, fresh: Sequence[BrokerLoad], memory: Memory) -> Finding:
        """Without those who would refuse, and without what has come to nothing."""
        states = {other.name: other.state for other in fresh}
        asked, passed = [], dict[str, str]()
        for action in finding.actions:
            if states[action.target] != "OK":
                passed[action.target] = f"it is {states[action.target]}"
            elif any((each.target, each.metric) == (action.target, action.metric) for each in memory.futile):
                passed[f"{action.target} {action.metric}"] = "came to nothing, and no load has changed since"
            else:
                asked.append(action)
        return replace(finding, actions=tuple(asked), passed_over=tuple(passed.items()))

    def _above(self, own: BrokerLoad, other: BrokerLoad, metric: Metric) -> float:
        factor = self.parameters.normalization_seconds
        return own.measures.of_metric(metric, factor) - other.measures.of_metric(metric, factor)

    def _limit(self, metric: Metric) -> float:
        return self.trigger.delay if metric == "match" else self.trigger.ratio

    def _is_balanced(self, own: BrokerLoad, other: BrokerLoad) -> bool:
        return all(abs(self._above(own, other, metric)) <= self._limit(metric) for metric in METRICS)

    def _shown(self, own: BrokerLoad, over: Sequence[Resource]) -> str:
        return ", ".join(f"{resource} at {own.measures.of_resource(resource):.3f}" for resource in over)


def _sorted(actions: Iterable[Action], metrics: tuple[Metric, ...] = METRICS) -> tuple[Action, ...]:
    """In descending order of difference; equals by metric and name, so that the order is everywhere the same."""
    return tuple(sorted(actions, key=lambda a: (-a.difference, metrics.index(a.metric), a.target)))


def _is_same(one: Futile, other: Futile) -> bool:
    return (one.target, one.metric) == (other.target, other.metric)
