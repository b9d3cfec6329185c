"""Every fleet of a small size: sessions end, leave no fault, tell the truth, and never lead back to where they were."""

from __future__ import annotations

import pytest
from tests.core.policies.hand import World
from tests.core.policies.padres.small import Hardware, excess, fleets, sessions

from plimsoll.core.policies.fleet import METRICS
from plimsoll.core.policies.padres import Padres

PAIRS = {
    "equal": {"s": Hardware(0.05, 1000), "t": Hardware(0.05, 1000)},
    "slow and fast": {"s": Hardware(0.2, 500), "t": Hardware(0.1, 2000)},
    "little bandwidth": {"s": Hardware(0.02, 400), "t": Hardware(0.02, 1000)},
}
WANTS = {"a": 1, "b": 2, "ab": 3, "n": 0}
SESSIONS_AT_MOST = 20


def judged(world: World) -> tuple[float, ...]:
    return tuple(round(each, 9) for each in excess(world))


@pytest.mark.slow
@pytest.mark.parametrize("kind", PAIRS)
def test_pairs_only_ever_get_better(kind: str):
    """PADRES 2006, 5.1 and 5.3: what is overloaded gets less; if nothing is, what input and delay differ by beyond
    their triggers; if that is nothing, what output does. So every sequence of sessions ends, and none oscillates.
    """
    for world in fleets(WANTS, {"s": (0, 1, 2), "t": (0, 1)}, PAIRS[kind]):
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
def test_three_brokers_never_come_back_to_where_they_were():
    kinds = {"s": Hardware(0.05, 1000), "t": Hardware(0.02, 1000), "u": Hardware(0.05, 700)}
    for world in fleets({"a": 1, "bc": 6, "ac": 5}, {"s": (0, 1, 2), "t": (0, 2), "u": (0, 1)}, kinds):
        seen = [world.brokers]
        for plan, after in sessions(world, Padres()):
            assert after.brokers not in seen, (world, plan)
            seen.append(after.brokers)
        assert len(seen) <= SESSIONS_AT_MOST, world
