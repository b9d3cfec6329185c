"""Loads for decisions: what a broker reported, what it would report after a change, and what is too much.

A `BrokerLoad` is a value. `after` predicts by the definitions that brokers measure by (PADRES 2006, 3.2 and 4.2), so a
prediction can be compared with a later report. Changes are always counted from the report, never from a prediction, so
that errors do not add up.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any, Literal, NamedTuple, get_args

from plimsoll.core.policies.model.bundle_load import BundleLoad, reported_bundles
from plimsoll.core.policies.model.match_delay import LinearMatchDelay, MatchDelayModel
from plimsoll.core.policies.model.match_delay import MatchLoadChange as MatchChange
from plimsoll.core.policies.model.topic_load import TopicLoad, reported_topics

BalancingState = Literal["OK", "BUSY", "N/A", "STABILIZING"]
Metric = Literal["input", "match", "output"]
Resource = Literal["input", "output", "cpu", "memory"]

METRICS: tuple[Metric, ...] = get_args(Metric)
RESOURCES: tuple[Resource, ...] = get_args(Resource)
_METRICS: dict[str, Metric] = {metric: metric for metric in METRICS}
BALANCING_STATES: tuple[BalancingState, ...] = get_args(BalancingState)


def named_metric(name: str) -> Metric | None:
    """The metric of this name, as messages and stored sessions have it; None if it is of another policy."""
    return _METRICS.get(name)


def named_resources(names: Iterable[str]) -> tuple[Resource, ...]:
    """The resources of these names, each once; those of other policies are left out."""
    some = set(names)
    return tuple(each for each in RESOURCES if each in some)


class LoadChange(NamedTuple):
    """The total that has come to a broker (left it, if negative) since its report."""

    subscribers: int = 0
    subscriptions: int = 0
    input_rate: float = 0.0
    delivery_rate: float = 0.0
    bytes_per_second: float = 0.0

    def plus(self, other: LoadChange) -> LoadChange:
        """The sum of both changes."""
        return LoadChange(
            self.subscribers + other.subscribers,
            self.subscriptions + other.subscriptions,
            self.input_rate + other.input_rate,
            self.delivery_rate + other.delivery_rate,
            self.bytes_per_second + other.bytes_per_second,
        )


class LoadMeasures(NamedTuple):
    """Measured or predicted values of a broker. Utilisations are ratios, delays seconds, rates per second."""

    input_utilization: float
    output_utilization: float
    match_delay_seconds: float
    cpu_ratio: float
    memory_ratio: float
    input_rate: float
    output_rate: float
    output_bytes_per_second: float

    def of_resource(self, resource: Resource) -> float:
        """The utilisation of a resource."""
        if resource == "input":
            return self.input_utilization
        if resource == "output":
            return self.output_utilization
        return self.cpu_ratio if resource == "cpu" else self.memory_ratio

    def of_metric(self, metric: Metric, normalization_seconds: float) -> float:
        """A metric with comparable differences: a utilisation, or the matching delay by N_f. PADRES 2006, eq. 1."""
        if metric == "match":
            return self.match_delay_seconds / normalization_seconds
        return self.input_utilization if metric == "input" else self.output_utilization


_MEASURED = attrgetter(*LoadMeasures._fields)


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerLoad:
    """The load report of one broker, PIE in the paper. Rates are per second; a utilisation of 1.0 is all there is.

    `bandwidth` is in bytes per second, None if output is not limited. `delay` predicts the matching delay; None means
    eq. 4 from the report. With either, a prediction starts from the measured delay. `memory_per_subscriber` and
    `cpu_per_input` are the slopes of these ratios. `growth`: how many more subscribers it had each second.
    `bundles`: the load of each bundle of topics, under a policy that has them. `topics`: the load of each topic, under
    a policy that defends deadlines. `downlink_utilization`: bytes in by the bandwidth of the input, 0 if that is not
    limited; `downlink_bandwidth`: that bandwidth in bytes per second, None if it is not limited or not known.
    `report_seconds`: the interval that the report is about, 0 if it does not say.
    """

    name: str
    cluster: str = ""
    state: BalancingState = "OK"
    input_utilization: float = 0.0
    output_utilization: float = 0.0
    match_delay_seconds: float = 0.0
    cpu_ratio: float = 0.0
    memory_ratio: float = 0.0
    balanced_set: frozenset[str] = frozenset()
    epoch: int = 0
    seq: int = 0
    time: float = 0.0
    subscribers: int = 0
    subscriptions: int = 0
    growth: float = 0.0
    input_rate: float = 0.0
    output_rate: float = 0.0
    output_bytes_per_second: float = 0.0
    bandwidth: float | None = None
    capacity: float = 1.0
    delay: MatchDelayModel | None = None
    memory_per_subscriber: float = 0.0
    cpu_per_input: float = 0.0
    input_bytes_per_second: float = 0.0
    bundles: tuple[BundleLoad, ...] = ()
    topics: tuple[TopicLoad, ...] = ()
    downlink_utilization: float = 0.0
    downlink_bandwidth: float | None = None
    report_seconds: float = 0.0

    @classmethod
    def from_report(
        cls, report: Mapping[str, Any], *, bandwidth: float | None = None, delay: MatchDelayModel | None = None
    ) -> BrokerLoad:
        """From a load report.

        The bandwidth is the one given, or the report's `bandwidth_bytes_per_second`, or what its output utilisation
        implies.

        Raises:
            ValueError: the report names no broker or no known state, or holds an impossible number.

        """
        name, state = report.get("broker"), report.get("state", "OK")
        if not isinstance(name, str) or not name:
            raise ValueError(f"a load report names its broker, and this one does not: {name!r}")
        if state not in BALANCING_STATES:
            raise ValueError(f"{name} reports the state {state!r}, which is none of {', '.join(BALANCING_STATES)}")
        sent, output = _number(report, "output_bytes_per_second"), _number(report, "output_utilization")
        given = bandwidth or _number(report, "bandwidth_bytes_per_second") or (sent / output if output else None)
        return cls(
            name=name,
            cluster=str(report.get("cluster", "")),
            state=state,
            input_utilization=_number(report, "input_utilization"),
            output_utilization=output,
            match_delay_seconds=_number(report, "match_delay_seconds"),
            cpu_ratio=_number(report, "cpu_ratio"),
            memory_ratio=_number(report, "memory_ratio"),
            balanced_set=frozenset(str(each) for each in report.get("balanced_set", ())),
            epoch=int(_number(report, "epoch")),
            seq=int(_number(report, "seq")),
            time=_number(report, "time_us") / 1e6,
            subscribers=int(_number(report, "subscribers")),
            subscriptions=int(_number(report, "subscriptions")),
            growth=_number(report, "subscribers_growth"),
            input_rate=_number(report, "input_rate"),
            output_rate=_number(report, "output_rate"),
            output_bytes_per_second=sent,
            bandwidth=given,
            capacity=_number(report, "capacity") or 1.0,
            delay=delay,
            input_bytes_per_second=_number(report, "input_bytes_per_second"),
            bundles=reported_bundles(report),
            topics=reported_topics(report),
            downlink_utilization=_number(report, "downlink_utilization"),
            downlink_bandwidth=_downlink_bandwidth(report),
            report_seconds=_number(report, "interval_seconds"),
        )

    @property
    def measures(self) -> LoadMeasures:
        """The measured values."""
        return LoadMeasures._make(_MEASURED(self))

    def predict(self, change: LoadChange) -> LoadMeasures:
        """What this broker would measure after a change. PADRES 2006, 4.2."""
        input_rate = max(0.0, self.input_rate + change.input_rate)
        output_rate = max(0.0, self.output_rate + change.delivery_rate)
        sent = max(0.0, self.output_bytes_per_second + change.bytes_per_second)
        delay = self._delay_after(change, input_rate, output_rate)
        input_utilization = input_rate * delay
        busier = min(1.0, input_utilization) - min(1.0, self.input_utilization)
        return LoadMeasures(
            input_utilization,
            sent / self.bandwidth if self.bandwidth else 0.0,
            delay,
            max(0.0, self.cpu_ratio + self.cpu_per_input * busier),
            max(0.0, self.memory_ratio + self.memory_per_subscriber * change.subscribers),
            input_rate,
            output_rate,
            sent,
        )

    def after(self, change: LoadChange) -> BrokerLoad:
        """This broker as it would report after a change."""
        subscribers = max(0, self.subscribers + change.subscribers)
        subscriptions = max(0, self.subscriptions + change.subscriptions)
        return replace(self, subscribers=subscribers, subscriptions=subscriptions, **self.predict(change)._asdict())

    def _delay_after(self, change: LoadChange, input_rate: float, output_rate: float) -> float:
        before = self.output_rate / self.input_rate if self.input_rate else 0.0
        matches = output_rate / input_rate if input_rate else 0.0
        model = self.delay or LinearMatchDelay(self.subscriptions, self.match_delay_seconds)
        after = model.after(MatchChange(change.subscriptions, matches - before))
        if not self.match_delay_seconds:
            return after
        return max(0.0, self.match_delay_seconds + after - model.delay_seconds)


NO_THRESHOLD = math.inf


@dataclass(frozen=True, slots=True)
class OverloadThreshold:
    """Above `lower` a broker takes nothing more, above `higher` it seeks relief. PADRES 2006, 3.2.

    A policy whose metric lacks one of them leaves it at `NO_THRESHOLD`, which no load exceeds.
    """

    lower: float = 0.9
    higher: float = 0.95

    @property
    def relieved(self) -> float:
        """Where relief ends: as far below `lower` as `higher` is above it.

        Between the two thresholds a broker neither gives nor takes. The margin keeps a slightly wrong prediction from
        leaving it there.
        """
        if self.higher == NO_THRESHOLD:
            return self.lower
        return max(0.0, self.lower - (self.higher - self.lower)) if self.lower < NO_THRESHOLD else self.higher


NO_THRESHOLDS = OverloadThreshold(NO_THRESHOLD, NO_THRESHOLD)


@dataclass(frozen=True, slots=True)
class ResourceThresholds:
    """The overload thresholds of each resource."""

    input: OverloadThreshold = OverloadThreshold()
    output: OverloadThreshold = OverloadThreshold()
    cpu: OverloadThreshold = OverloadThreshold()
    memory: OverloadThreshold = OverloadThreshold()

    def of(self, resource: Resource) -> OverloadThreshold:
        """The thresholds of one resource."""
        found: OverloadThreshold = getattr(self, resource)
        return found

    def above_lower(self, measures: LoadMeasures) -> tuple[Resource, ...]:
        """The resources of which a broker can take no more."""
        return tuple(each for each in RESOURCES if measures.of_resource(each) > self.of(each).lower)

    def above_higher(self, measures: LoadMeasures) -> tuple[Resource, ...]:
        """The resources that are overloaded."""
        return tuple(each for each in RESOURCES if measures.of_resource(each) > self.of(each).higher)


def mean_load(loads: Sequence[BrokerLoad]) -> BrokerLoad:
    """Several reports of one broker, oldest first, as one: the last, with measurements averaged over all.

    The matching delay is the mean over publications, not over reports: a broker that took nothing in has measured none.
    Reports of an earlier epoch are left out: they come from another process.
    """
    last = loads[-1]
    same = [load for load in loads if load.epoch == last.epoch]
    found = {name: sum(getattr(load, name) for load in same) / len(same) for name in LoadMeasures._fields}
    if arrived := sum(load.input_rate for load in same):
        found["match_delay_seconds"] = sum(load.input_rate * load.match_delay_seconds for load in same) / arrived
    return replace(last, **found)


def combined_load(cluster: str, edges: Sequence[BrokerLoad]) -> BrokerLoad:
    """A cluster as its neighbours see it: the average of its edges, N/A if one of them is. PADRES 2006, 3.2."""
    if not edges:
        raise ValueError(f"cluster {cluster} has no edges to average")
    states = {edge.state for edge in edges}
    first = next((state for state in ("N/A", "BUSY", "STABILIZING") if state in states), "OK")
    averages = {name: sum(getattr(edge, name) for edge in edges) / len(edges) for name in LoadMeasures._fields}
    whole = BrokerLoad(name=cluster, cluster=cluster, state=next(s for s in BALANCING_STATES if s == first), **averages)
    return replace(
        whole,
        time=min(edge.time for edge in edges),
        subscribers=sum(edge.subscribers for edge in edges),
        subscriptions=sum(edge.subscriptions for edge in edges),
    )


def _downlink_bandwidth(report: Mapping[str, Any]) -> float | None:
    """What the report says, or what its use of the downlink implies."""
    used = _number(report, "downlink_utilization")
    said = _number(report, "downlink_bandwidth_bytes_per_second")
    return said or (_number(report, "input_bytes_per_second") / used if used else None)


def _number(report: Mapping[str, Any], name: str) -> float:
    value = report.get(name)
    if value is None:
        return 0.0
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0.0 <= value < math.inf:
        raise ValueError(f"{report.get('broker')} reports {name} {value!r}, which is no finite number of at least 0")
    return float(value)
