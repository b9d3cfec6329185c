"""With exact rates the forecasts of a plan come true: samples hold all publications, and costs are those of eq. 4."""

import random
from statistics import fmean

import pytest
from tests.simulator.queueing.conftest import fleet_of

from plimsoll.simulator.queueing.fleet import QueueingFleet
from plimsoll.simulator.queueing.traffic import RateStep, Traffic, TrafficPublisher, TrafficSubscriber

ASKED_AT, ENDS_AT = 90.0, 180.0
FIGURES = {
    "input": "input_utilization", "output": "output_utilization", "match_seconds": "match_delay_seconds",
}  # fmt: skip


def traffic(seed: int) -> Traffic:
    """Six publishers, each of which repeats eight publications; 60 subscribers of ranges, four fifths at one edge."""
    draw = random.Random(seed)
    publishers = [
        TrafficPublisher(
            f"p{n}", "c1-head", tuple({"x": (7 * k + n) % 32, "p": n} for k in range(8)),
            (RateStep(0.0, 8.0 * (1 + n % 3)),), 1.0 + draw.random() / 8,
        )
        for n in range(6)
    ]  # fmt: skip
    subscribers = []
    for n in range(60):
        low = draw.randrange(28)
        text = f"[x,>=,{low}],[x,<,{low + draw.randrange(4, 16)}]"
        subscribers.append(TrafficSubscriber(f"s{n:02}", "c1", (text,), n / 60, prefer="e11" if n % 5 else "e12"))
    return Traffic(publishers, subscribers)


@pytest.mark.parametrize("seed", [1, 5])
def test_forecasts_are_right_within_a_hundredth(seed):
    reports: dict[str, list[tuple[float, dict[str, float]]]] = {}
    policy = {
        "type": "Padres", "detection": {"interval": "1h", "stabilizeFor": "20s"},
        "estimation": {"type": "Ring", "ring": {"samples": 2048}},
    }  # fmt: skip
    fleet = QueueingFleet(
        fleet_of(policy, base="0us", each="80us", bandwidth="220k"), traffic(seed), seed=seed, spread_reports=False,
        on_report=lambda report, now: reports.setdefault(report["broker"], []).append((now, dict(report))),
    )  # fmt: skip
    ask = {"scope": "Local", "source": {"name": "e11"}, "target": {"name": "e12"}, "mode": "Execute", "deadline": "2m"}
    fleet.at(ASKED_AT, fleet.mediator.create, "ask", ask)
    fleet.run(ENDS_AT)
    (session,) = [each.session for each in fleet.mediator.objects.values()]
    assert session is not None
    assert session.plan is not None
    assert session.counts()["moved"] > 10
    assert len(session.plan.forecasts) == 2
    for forecast in session.plan.forecasts:
        for name, field in FIGURES.items():
            measured = fmean(float(one[field]) for at, one in reports[forecast.edge] if at > ASKED_AT + 40.0)
            assert getattr(forecast.after, name) == pytest.approx(measured, rel=0.01), (forecast.edge, name)
