"""Loads and policies as sessions see them: an edge's answer to a reservation, or else its last load report.

A head has a load as well: its input is its downlink, since it matches for links alone, and it is asked for nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from plimsoll.core.policies.balancing_policy import BalancingPolicy
from plimsoll.core.policies.model.delay_choice import fitted_line, reported_model
from plimsoll.core.policies.model.load import BrokerLoad
from plimsoll.core.policies.model.match_delay import MatchDelayModel
from plimsoll.core.policies.model.parameters import BalancingParameters
from plimsoll.core.policies.registry import is_fleet_wide, parameters_of_spec, policy_of_spec
from plimsoll.core.session.context.reservations import AnsweredReservation
from plimsoll.core.session.inputs import EngineSettings, FleetView
from plimsoll.core.session.session_plan import LoadFigures
from plimsoll.core.session.state import Session
from plimsoll.core.spec.types.policy import PolicySpec

LEAST_ANSWER_SECONDS = 1.0
"""Machines do not answer faster where the clock of a fleet runs faster."""


@dataclass(frozen=True)
class EdgeLoads:
    """The loads of edges at one time. `answered`: the last answer of each edge to a reservation."""

    fleet: FleetView
    observed_at: float
    answered: Mapping[str, AnsweredReservation]
    settings: EngineSettings
    now: float

    def policy_of(self, edge: str) -> BalancingPolicy | None:
        """The policy of an edge's cluster, on this fleet's clock; None also if it plans for the whole cluster."""
        spec = self.fleet.policy_of(edge)
        if spec is None or is_fleet_wide(spec):
            return None
        return policy_of_spec(spec, self.settings.time_factor)

    def parameters_of(self, edge: str) -> BalancingParameters | None:
        """The parameters of the policy of an edge's cluster, of either kind; None without a policy."""
        spec = self.fleet.policy_of(edge)
        return None if spec is None else parameters_of_spec(spec, self.settings.time_factor)

    @property
    def answer_seconds(self) -> float:
        """How long an edge may take to answer a reservation."""
        return max(self.settings.scaled.answer, LEAST_ANSWER_SECONDS)

    def settle_seconds(self, session: Session) -> float:
        """From the last move to the measurement: with a policy as long as brokers stabilise."""
        parameters = self.parameters_of(session.sources[0]) if session.chooses_by_policy else None
        if session.kind == "publishers" and (head := self.fleet.heads.get(session.sources[0])) is not None:
            spec = self.fleet.policies.get(head.cluster)
            parameters = None if spec is None else parameters_of_spec(spec, self.settings.time_factor)
        return self.settings.scaled.settle if parameters is None else parameters.stabilize_seconds

    def current(self, edge: str) -> BrokerLoad | None:
        """The load of an edge: the average in its answer if that is recent, else its last report; None without both."""
        answer = self.answered.get(edge)
        if answer is not None and self.now - answer.at <= self.settings.scaled.busy:
            return self._parse(edge, answer.report)
        return self.reported(edge)

    def reported(self, broker: str) -> BrokerLoad | None:
        """The load in the last report of an edge or a head; None without a report that can be read."""
        report = self.fleet.report_of(broker)
        return head_load(report) if broker in self.fleet.heads else self._parse(broker, report)

    def is_reported_since(self, broker: str, at: float) -> bool:
        """Whether the interval of the last report of an edge or a head began at `at` or later."""
        known, report = self.fleet.broker(broker), self.fleet.report_of(broker)
        interval = report.get("interval_seconds", 0.0)
        if known is None or not report or not isinstance(interval, int | float):
            return False
        return self.observed_at - known.report_age_seconds - interval >= at

    def _parse(self, edge: str, report: Mapping[str, Any]) -> BrokerLoad | None:
        if not report:
            return None
        known, spec = self.fleet.edges.get(edge), self.fleet.policy_of(edge)
        model = _match_delay_of(report, spec) if spec is not None else None
        bandwidth = known.output_bytes_per_second if known is not None else None
        try:
            return BrokerLoad.from_report(report, bandwidth=bandwidth, delay=model)
        except (TypeError, ValueError):  # missing: a session that needs it waits for another, and says so
            return None


def head_load(report: Mapping[str, Any]) -> BrokerLoad | None:
    """The load in a report of a head; None if it cannot be read. Its input is its downlink; it serves publishers."""
    try:
        load = BrokerLoad.from_report({**report, "subscribers": report.get("publishers_open", 0)})
    except (TypeError, ValueError):
        return None
    return replace(load, input_utilization=load.downlink_utilization, match_delay_seconds=0.0)


def _match_delay_of(report: Mapping[str, Any], spec: PolicySpec) -> MatchDelayModel | None:
    """The model that the policy asks for; None is eq. 4 of the paper."""
    if spec.estimation.match_delay == "Linear":
        return None
    return fitted_line(report) if spec.estimation.match_delay == "Fitted" else reported_model(report)


def load_figures_of(load: BrokerLoad) -> LoadFigures:
    """The figures of a load that a policy balances, as they are stored."""
    return LoadFigures(
        input=round(load.input_utilization, 4),
        output=round(load.output_utilization, 4),
        match_seconds=round(load.match_delay_seconds, 6),
    )
