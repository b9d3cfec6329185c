"""Forecasts of a policy's plan: both edges as they will be measured, and by how much that is uncertain.

A policy decides by the loads that it knows. What is promised counts two things more: subscribers who come to an edge
before it is measured, at the rate at which they have come, and samples of fast publishers that span too little time.
"""

from __future__ import annotations

import math
from dataclasses import replace

from msgspec.structs import replace as replaced

from plimsoll.core.policies.model.load import BrokerLoad, LoadChange
from plimsoll.core.policies.model.parameters import HANDOVER_SECONDS, BalancingParameters
from plimsoll.core.policies.model.plan import OffloadPlan
from plimsoll.core.policies.model.profile import SubscriptionProfile
from plimsoll.core.session.context.edge_loads import load_figures_of
from plimsoll.core.session.session_plan import Forecast, LoadFigures

LEAST_UNCERTAINTY = 0.005
"""Of the output utilisation; less is not worth a word."""

LEAST_NEWCOMERS = 0.01
"""Of the subscribers of an edge; fewer are not counted."""

NEWCOMERS_UNCERTAIN = 0.5
"""Of what newcomers add: neither their number nor what they ask for is known."""


def forecasts_of(
    made: OffloadPlan, profile: SubscriptionProfile, parameters: BalancingParameters
) -> tuple[list[Forecast], str]:
    """The forecasts of both edges, and what they allow for in words, empty if for nothing."""
    # A measurement is the mean of the second half of the time to stabilise: by its middle half have come of those who
    # come by its end.
    seconds = HANDOVER_SECONDS + 0.75 * parameters.stabilize_seconds
    sampled = _sampling_uncertainty(made, profile)
    found: list[Forecast] = []
    counted, uncertain = [], []
    pairs = ((made.source, made.predicted_source), (made.target, made.predicted_target))
    for (before, after), ratio in zip(pairs, sampled, strict=True):
        later = with_newcomers(before, after, seconds)
        if (more := later.subscribers - after.subscribers) > 0:
            counted.append(f"{more} more at {before.name}")
        if ratio:
            uncertain.append(f"{before.name} by {ratio:.3f}")
        told = replace(later, output_utilization=later.output_utilization + ratio)
        if ratio and before is made.source and not more:  # a source that gives has no more than before
            told = replace(told, output_utilization=min(told.output_utilization, before.output_utilization))
        one = edge_forecast(before, told)
        deviation = _deviation(before, after, later, ratio, parameters.detection_seconds)
        found.append(replaced(one, uncertain=deviation))
    words = []
    if uncertain:
        what = "output is uncertain, as samples of fast publishers span too little time"
        words.append(f"{what}: {', '.join(uncertain)}, which forecasts allow for")
    if counted:
        words.append(f"subscribers are joining, and forecasts count {' and '.join(counted)}")
    return found, "; ".join(words)


def with_newcomers(before: BrokerLoad, after: BrokerLoad, seconds: float) -> BrokerLoad:
    """An edge after a move and after this time, if subscribers like its own come at the rate that it has reported.

    They bring traffic back that has left with the move: each the part that one of its own had before.
    """
    more = round(before.growth * seconds)
    if not before.subscribers or more < 1 or more < LEAST_NEWCOMERS * before.subscribers:
        return after
    share = more / before.subscribers
    back = max(0.0, min(before.input_rate - after.input_rate, share * before.input_rate))
    change = LoadChange(
        more, round(share * before.subscriptions), back, share * before.output_rate,
        share * before.output_bytes_per_second,
    )  # fmt: skip
    return after.after(change)


def _sampling_uncertainty(made: OffloadPlan, profile: SubscriptionProfile) -> list[float]:
    """By how much the output of both is uncertain, since samples span too little time; 0 where that is negligible."""
    bits = {row.key: row.bits for row in profile.rows}
    moved = [(bits[move.key], len(move.subscribers)) for move in made.moves]
    uncertain = profile.traffic.bytes_uncertainty(moved, profile.overhead_bytes)
    loads = (made.predicted_source, made.predicted_target)
    ratios = [uncertain / load.bandwidth if load.bandwidth else 0.0 for load in loads]
    return ratios if max(ratios) >= LEAST_UNCERTAINTY else [0.0, 0.0]


def _deviation(before: BrokerLoad, after: BrokerLoad, later: BrokerLoad, sampled: float, seconds: float) -> LoadFigures:
    """The standard deviations of a forecast: arrivals by chance, here and when it is measured; newcomers; samples."""
    counted = before.input_rate * seconds
    chance = math.sqrt(2.0 / counted) if counted > 0.0 else 0.0
    joined = [
        NEWCOMERS_UNCERTAIN * (getattr(later, name) - getattr(after, name))
        for name in ("input_utilization", "output_utilization", "match_delay_seconds")
    ]
    return LoadFigures(
        input=round(math.hypot(chance * later.input_utilization, joined[0]), 4),
        output=round(math.hypot(chance * later.output_utilization, joined[1], sampled), 4),
        match_seconds=round(abs(joined[2]), 6),
    )


def edge_forecast(before: BrokerLoad, after: BrokerLoad) -> Forecast:
    """An edge before and after, as it is stored."""
    return Forecast(
        edge=before.name,
        utilization_before=round(_higher_utilization(before), 4),
        utilization_after=round(_higher_utilization(after), 4),
        subscribers_before=before.subscribers,
        subscribers_after=after.subscribers,
        before=load_figures_of(before),
        after=load_figures_of(after),
    )


def _higher_utilization(load: BrokerLoad) -> float:
    return max(load.input_utilization, load.output_utilization)
