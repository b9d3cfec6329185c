"""Every fleet of a small size: sessions end without faults, predict correctly, and never return to an earlier state."""

from __future__ import annotations

from itertools import islice

import pytest
from tests.core.policies.hand import World
from tests.core.policies.padres.small import Hardware, excess, fleets, sessions

from plimsoll.core.policies.model.load import METRICS
from plimsoll.core.policies.padres import Padres
from plimsoll.core.policies.padres.report_cards import OUTPUT_WEIGHT

PAIRS = {
    "equal": {"s": Hardware(0.05, 1000), "t": Hardware(0.05, 1000)},
    "slow and fast": {"s": Hardware(0.2, 500), "t": Hardware(0.1, 2000)},
    "little bandwidth": {"s": Hardware(0.02, 400), "t": Hardware(0.02, 1000)},
}
WANTS = {"a": 1, "b": 2, "ab": 3, "n": 0}
SESSIONS_AT_MOST = 20
EVERY = [pytest.param(7, id="every seventh"), pytest.param(1, id="all", marks=pytest.mark.sweep)]
"""A stride through the enumeration of fleets. Seven has no divisor in common with the choices per broker (2 and 3), so
a seventh of the fleets still holds each choice of one broker beside each of another."""


def judged(world: World) -> tuple[float, ...]:
    over, input_and_match, output = excess(world)
    return round(over, 9), round(input_and_match + OUTPUT_WEIGHT * output, 9)


@pytest.mark.slow
@pytest.mark.parametrize("every", EVERY)
@pytest.mark.parametrize("kind", PAIRS)
def test_pairs_only_ever_get_better(kind: str, every: int):
    """PADRES 2006, 5.1 and 5.3: what is overloaded gets less; if nothing is, what input, delay and a tenth of output
    differ by beyond their triggers, squared. So every sequence of sessions ends, and none oscillates.
    """
    for world in islice(fleets(WANTS, {"s": (0, 1, 2), "t": (0, 1)}, PAIRS[kind]), 0, None, every):
        before, count = judged(world), 0
        for plan, after in sessions(world, Padres()):
            assert judged(after) < before, (world, plan)
            for predicted in (plan.predicted_source, plan.predicted_target):
                now = after.load(predicted.name).measures
                told = [predicted.measures.of_metric(metric, 0.1) for metric in METRICS]
                assert told == pytest.approx([now.of_metric(metric, 0.1) for metric in METRICS], abs=1e-9), (
                    world,
                    plan,
                )
            before, count = judged(after), count + 1
        assert count <= SESSIONS_AT_MOST, world


@pytest.mark.slow
@pytest.mark.parametrize("every", EVERY)
def test_three_brokers_never_come_back_to_where_they_were(every: int):
    kinds = {"s": Hardware(0.05, 1000), "t": Hardware(0.02, 1000), "u": Hardware(0.05, 700)}
    all_of_them = fleets({"a": 1, "bc": 6, "ac": 5}, {"s": (0, 1, 2), "t": (0, 2), "u": (0, 1)}, kinds)
    for world in islice(all_of_them, 0, None, every):
        seen = [world.brokers]
        for plan, after in sessions(world, Padres()):
            assert after.brokers not in seen, (world, plan)
            seen.append(after.brokers)
        assert len(seen) <= SESSIONS_AT_MOST, world
