"""Detection: whether a broker is overloaded or carries more than its neighbours, and which of them it should ask.

PADRES 2006, 3.2. A pure function: `run` takes the broker's own load, the reports of the others and the detector's
state, and returns the new state and the result. A cluster uses the same function with the averaged loads of its
neighbours and the global triggers.

`session_began` and `session_ended` report sessions. An action that moved nothing is not proposed again until something
changes on which its plan depended: a steady load never repeats a futile session, however long it lasts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from plimsoll.core.policies.model.load import METRICS, BalancingState, BrokerLoad, Metric, Resource
from plimsoll.core.policies.model.parameters import BalancingParameters, ImbalanceTrigger, Scope
from plimsoll.core.policies.model.plan import BrokerAction

MetricLevels = tuple[float, ...]

SLIGHT_CHANGE = 0.5
"""The part of `stabilize_change` that counts as a change for an action that came to nothing a while ago: its plan was
made from samples, and others are there by then."""

# PADRES 2006, Table 2: which offload algorithm relieves which resource, in order of preference. Input utilisation is
# arrival rate x delay; 5.2 lowers the delay, which leaves the broker its traffic and helps even while newcomers
# subscribe to what has just been moved away.
RELIEVING_METRICS: dict[Resource, tuple[Metric, ...]] = {
    "input": ("match", "input"),
    "output": ("output",),
    "cpu": ("match",),
    "memory": ("match",),
}


@dataclass(frozen=True, slots=True)
class FutileAction:
    """An action that moved nothing, and what the plan depended on at that time.

    The metrics and the subscriptions of both brokers; `rest`: the metrics of all others, by name, None until the next
    run, which sees them. `since`: when.
    """

    target: str
    metric: Metric
    own: MetricLevels
    other: MetricLevels
    own_subscriptions: int = 0
    other_subscriptions: int = 0
    rest: tuple[tuple[str, MetricLevels], ...] | None = None
    since: float = 0.0


@dataclass(frozen=True, slots=True)
class DetectorState:
    """What a detector keeps between runs.

    `since`: when stabilising began. `inert_since`: since when the load has stayed between the overload thresholds.
    """

    is_busy: bool = False
    since: float | None = None
    inert_since: float | None = None
    last: MetricLevels | None = None
    futile: tuple[FutileAction, ...] = ()


@dataclass(frozen=True, slots=True)
class DetectionResult:
    """The result of a run. `actions` is the broker-action list, best first; it is empty unless load should be balanced.

    `balanced`: the brokers that this one is balanced with. `passed_over`: brokers that are not asked, with the reason.
    """

    state: BalancingState
    actions: tuple[BrokerAction, ...]
    reason: str
    balanced: frozenset[str] = frozenset()
    passed_over: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Detector:
    """Detection with these parameters, within a cluster or between clusters."""

    parameters: BalancingParameters = BalancingParameters()  # noqa: RUF009  # a frozen value
    scope: Scope = "Local"

    @property
    def trigger(self) -> ImbalanceTrigger:
        """How far brokers of this scope may differ."""
        return self.parameters.trigger(self.scope)

    @property
    def _patience_seconds(self) -> float:
        return self.parameters.patience * self.parameters.stabilize_seconds

    def run(
        self, own: BrokerLoad, others: Iterable[BrokerLoad], memory: DetectorState, now: float
    ) -> tuple[DetectorState, DetectionResult]:
        """Examine all loads once. Reports of other brokers count only while they are fresh."""
        fresh, passed = self._fresh(own, others, now)
        memory = self._aged(own, fresh, memory, now)
        balanced = frozenset(other.name for other in fresh if self._is_balanced(own, other))
        finding = self._finding(own, fresh, memory, now)
        return memory, replace(finding, balanced=balanced, passed_over=(*passed, *finding.passed_over))

    def session_began(self, memory: DetectorState) -> DetectorState:
        """A session has begun: this broker is BUSY until it ends."""
        return replace(memory, is_busy=True)

    def session_ended(
        self,
        memory: DetectorState,
        now: float,
        *,
        moved: bool,
        tried: Sequence[tuple[BrokerAction, BrokerLoad, BrokerLoad]] = (),
    ) -> DetectorState:
        """A session has ended. If it moved anything, the load gets time to stabilise.

        `tried`: the actions that moved nothing, each with the loads of this broker and of the target at that time.
        """
        new = tuple(
            FutileAction(
                action.target, action.metric, self._levels(own), self._levels(other), own.subscriptions,
                other.subscriptions, since=now,
            )
            for action, own, other in tried
        )  # fmt: skip
        kept = tuple(each for each in memory.futile if not any(_is_same(each, other) for other in new))
        return replace(memory, is_busy=False, since=now if moved else memory.since, last=None, futile=(*kept, *new))

    # -- state

    def _aged(self, own: BrokerLoad, fresh: Sequence[BrokerLoad], memory: DetectorState, now: float) -> DetectorState:
        levels, limits = self._levels(own), self.parameters
        futile = tuple(each for each in memory.futile if self._is_still_futile(each, own, fresh, now))
        futile = tuple(
            each if each.rest is not None else replace(each, rest=self._rest(each.target, fresh)) for each in futile
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

    def _is_still_futile(self, futile: FutileAction, own: BrokerLoad, fresh: Sequence[BrokerLoad], now: float) -> bool:
        """Whether nothing has changed on which the plan depended: then another session would move nothing either."""
        is_old = now - futile.since >= self._patience_seconds
        limit = self.parameters.stabilize_change * (SLIGHT_CHANGE if is_old else 1.0)

        def is_same(load: BrokerLoad, levels: MetricLevels, subscriptions: int) -> bool:
            is_alike = abs(load.subscriptions - subscriptions) <= self.parameters.stabilize_change * subscriptions
            return is_alike and self._is_steady(levels, self._levels(load), limit)

        target = next((other for other in fresh if other.name == futile.target), None)
        if not is_same(own, futile.own, futile.own_subscriptions):
            return False
        if target is not None and not is_same(target, futile.other, futile.other_subscriptions):
            return False
        rest, before = dict(self._rest(futile.target, fresh)), dict(futile.rest or ())
        return all(self._is_steady(before[name], rest[name]) for name in before.keys() & rest.keys())

    def _rest(self, target: str, fresh: Sequence[BrokerLoad]) -> tuple[tuple[str, MetricLevels], ...]:
        return tuple((other.name, self._levels(other)) for other in fresh if other.name != target)

    def _levels(self, load: BrokerLoad) -> MetricLevels:
        return tuple(load.measures.of_metric(metric, self.parameters.normalization_seconds) for metric in METRICS)

    def _is_steady(self, before: MetricLevels, after: MetricLevels, limit: float | None = None) -> bool:
        most = self.parameters.stabilize_change if limit is None else limit
        return all(abs(a - b) <= most for a, b in zip(before, after, strict=True))

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

    # -- results

    def _finding(
        self, own: BrokerLoad, fresh: Sequence[BrokerLoad], memory: DetectorState, now: float
    ) -> DetectionResult:
        """PADRES 2006, 3.2: the two steps of detection, and figure 4a.

        The inert period is bounded: a broker between its thresholds would otherwise never give anything away.
        """
        thresholds = self.parameters.thresholds
        if memory.is_busy:
            return DetectionResult("BUSY", (), "in a session")
        if over := thresholds.above_higher(own.measures):
            wanted = self._relief(own, fresh, over)
            return self._without_refusals(
                DetectionResult("N/A", wanted, f"overloaded: {self._described(own, over)}"), fresh, memory
            )
        if memory.since is not None:
            return DetectionResult("STABILIZING", (), "load was moved, and may still change")
        if over := thresholds.above_lower(own.measures):
            why = f"takes nothing more, and is not overloaded yet: {self._described(own, over)}"
            if now - (now if memory.inert_since is None else memory.inert_since) < self._patience_seconds:
                return DetectionResult("N/A", (), why)
            return self._without_refusals(
                DetectionResult("N/A", self._imbalance(own, fresh), f"{why}, for long"), fresh, memory
            )
        found = self._without_refusals(DetectionResult("OK", self._imbalance(own, fresh), ""), fresh, memory)
        if found.actions:
            first = found.actions[0]
            text = f"{first.metric} differs from that of {first.target} by {first.difference:.3f}"
            return replace(found, reason=text)
        return replace(found, reason="no metric is above another broker's by more than the trigger")

    def _relief(
        self, own: BrokerLoad, fresh: Sequence[BrokerLoad], over: tuple[Resource, ...]
    ) -> tuple[BrokerAction, ...]:
        """Step one: every broker that has less of an overloaded resource, with the metrics that relieve it."""
        best: dict[tuple[str, Metric], tuple[float, tuple[Resource, ...]]] = {}
        for other in fresh:
            for resource in over:
                difference = own.measures.of_resource(resource) - other.measures.of_resource(resource)
                for metric in RELIEVING_METRICS[resource] if difference > 0 else ():
                    much, whole = best.get((other.name, metric), (0.0, ()))
                    best[other.name, metric] = max(much, difference), (*whole, resource)
        found = [BrokerAction(name, metric, much, whole) for (name, metric), (much, whole) in best.items()]
        return _sorted(found, ("match", "input", "output"))

    def _imbalance(self, own: BrokerLoad, fresh: Sequence[BrokerLoad]) -> tuple[BrokerAction, ...]:
        """Step two: every broker that is below this one by more than the trigger, in any metric."""
        found = [BrokerAction(other.name, m, self._difference(own, other, m)) for other in fresh for m in METRICS]
        return _sorted(action for action in found if action.difference > self._limit(action.metric))

    def _without_refusals(
        self, finding: DetectionResult, fresh: Sequence[BrokerLoad], memory: DetectorState
    ) -> DetectionResult:
        """Drop targets that would refuse, and actions that moved nothing at this load."""
        states = {other.name: other.state for other in fresh}
        asked, passed = [], dict[str, str]()
        for action in finding.actions:
            if states[action.target] != "OK":
                passed[action.target] = f"it is {states[action.target]}"
            elif any((each.target, each.metric) == (action.target, action.metric) for each in memory.futile):
                passed[f"{action.target} {action.metric}"] = "came to nothing, and nothing has changed since"
            else:
                asked.append(action)
        return replace(finding, actions=tuple(asked), passed_over=tuple(passed.items()))

    def _difference(self, own: BrokerLoad, other: BrokerLoad, metric: Metric) -> float:
        factor = self.parameters.normalization_seconds
        return own.measures.of_metric(metric, factor) - other.measures.of_metric(metric, factor)

    def _limit(self, metric: Metric) -> float:
        return self.trigger.delay if metric == "match" else self.trigger.ratio

    def _is_balanced(self, own: BrokerLoad, other: BrokerLoad) -> bool:
        return all(abs(self._difference(own, other, metric)) <= self._limit(metric) for metric in METRICS)

    def _described(self, own: BrokerLoad, over: Sequence[Resource]) -> str:
        return ", ".join(f"{resource} at {own.measures.of_resource(resource):.3f}" for resource in over)


def _sorted(actions: Iterable[BrokerAction], metrics: tuple[Metric, ...] = METRICS) -> tuple[BrokerAction, ...]:
    """In descending order of difference; ties by metric and name, so that every broker computes the same order."""
    return tuple(sorted(actions, key=lambda a: (-a.difference, metrics.index(a.metric), a.target)))


def _is_same(one: FutileAction, other: FutileAction) -> bool:
    return (one.target, one.metric) == (other.target, other.metric)
