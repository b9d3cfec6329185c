"""Loads and policies as sessions see them: what edges have answered, or else what they have reported."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from plimsoll.core.policies.fleet import BrokerLoad
from plimsoll.core.policies.match_delay import Fitted
from plimsoll.core.policies.registry import Policy, policy
from plimsoll.core.session.record import Loads, Session
from plimsoll.core.session.turn import Turn
from plimsoll.core.session.values import EdgeView
from plimsoll.core.spec.policy import PolicySpec

LEAST_ANSWER_SECONDS = 1.0


def spec_of(turn: Turn, edge: str) -> PolicySpec | None:
    """The policy of an edge's cluster, as it is written."""
    return turn.view.policy_of(edge) if turn.view is not None else None


def policy_of(turn: Turn, edge: str) -> Policy | None:
    """The policy of an edge's cluster, on this fleet's clock."""
    spec = spec_of(turn, edge)
    return policy(spec, turn.settings.time_factor) if spec is not None else None


def answer_seconds(turn: Turn) -> float:
    """How long an edge may take to answer: machines are not faster where a fleet's clock is."""
    return max(turn.timings.answer, LEAST_ANSWER_SECONDS)


def settle_seconds(turn: Turn, session: Session) -> float:
    """From the last move to the measurement: where a policy has chosen, as long as both edges stabilise."""
    policy = policy_of(turn, session.sources[0]) if session.by_policy or session.is_shuffle else None
    return turn.timings.settle if policy is None else policy.parameters.stabilize_seconds


def load(turn: Turn, edge: str) -> BrokerLoad | None:
    """What an edge carries, averaged by itself if it has answered lately; None if that is not known."""
    known = turn.view.edges.get(edge) if turn.view is not None else None
    answer = turn.states.answers.get(edge)
    is_recent = answer is not None and turn.now - answer.at <= turn.timings.busy
    return _load(turn, edge, answer.report if answer is not None and is_recent else _reported(known))


def is_since(turn: Turn, edge: str, at: float) -> bool:
    """Whether the last report of an edge is of an interval that began at this time or later."""
    known = turn.view.edges.get(edge) if turn.view is not None else None
    report = _reported(known)
    interval = report.get("interval_seconds", 0.0)
    if known is None or not report or not isinstance(interval, int | float):
        return False
    return turn.viewed_at - known.report_age_seconds - interval >= at


def reported(turn: Turn, edge: str) -> BrokerLoad | None:
    """What an edge has reported last; None if that is not known."""
    known = turn.view.edges.get(edge) if turn.view is not None else None
    return _load(turn, edge, _reported(known))


def _reported(known: EdgeView | None) -> Mapping[str, Any]:
    return known.report if known is not None else {}


def _load(turn: Turn, edge: str, report: Mapping[str, Any]) -> BrokerLoad | None:
    known = turn.view.edges.get(edge) if turn.view is not None else None
    if not report:
        return None
    spec = spec_of(turn, edge)
    model = _fitted(report) if spec is not None and spec.estimation.match_delay == "Fitted" else None
    bandwidth = known.output_bytes_per_second if known is not None else None
    try:
        return BrokerLoad.of(report, bandwidth=bandwidth, delay=model)
    except (TypeError, ValueError):  # it is as good as none: who needs it waits for another, and says so
        return None


def _fitted(report: Mapping[str, Any]) -> Fitted | None:
    """The line that a broker has fitted, at what it matches now."""
    names = ("match_base_seconds", "match_seconds_per_match", "input_rate", "output_rate")
    base, slope, arrivals, deliveries = (report.get(name) for name in names)
    if not all(isinstance(each, int | float) for each in (base, slope, arrivals, deliveries)) or not arrivals:
        return None
    return Fitted(float(base or 0.0), float(slope or 0.0), float(deliveries or 0.0) / float(arrivals))


def loads_of(load: BrokerLoad) -> Loads:
    """What a policy balances, as it is stored."""
    return Loads(
        input=round(load.input_utilization, 4),
        output=round(load.output_utilization, 4),
        match_seconds=round(load.match_delay_seconds, 6),
    )
