"""The same seed gives the same run; cost grows with messages."""

import hashlib
import json
import os
import subprocess
import sys

import pytest
from tests.simulator.queueing.conftest import traffic_of

from plimsoll.simulator.queueing.traffic import Traffic, TrafficSubscriber

PADRES = {"type": "Padres", "detection": {"interval": "2s", "stabilizeFor": "5s"}}


def digest_of(world, seed: int) -> str:
    reports: list[object] = []
    fleet = world(PADRES, seed=seed, on_report=lambda report, now: reports.append([now, dict(report)]))
    fleet.run(60.0)
    return hashlib.sha256(json.dumps(reports, sort_keys=True, default=str).encode()).hexdigest()


def test_the_same_seed_gives_the_same_reports(world):
    assert digest_of(world, 1) == digest_of(world, 1)
    assert digest_of(world, 1) != digest_of(world, 2)


def test_subscribers_without_preference_are_placed_by_the_head(world):
    fleet = world(traffic=traffic_of(prefer=""))
    fleet.run(20.0)
    owners = list(fleet.owners().values())
    assert owners.count("e11") == owners.count("e12") == 5


def test_a_subscriber_that_leaves_gets_no_more(world):
    leaving = TrafficSubscriber("s", "c1", ("[topic,=,'a']",), 0.0, leaves_at=20.0)
    fleet = world(traffic=Traffic(traffic_of(0).publishers, [leaving]))
    fleet.run(60.0)
    assert fleet.owners() == {}
    assert fleet.counts.delivered == pytest.approx(15 * 20, abs=2)


def test_events_grow_with_publications_not_with_deliveries(world):
    few, many = world(traffic=traffic_of(10)), world(traffic=traffic_of(100), each="10us")
    few.run(30.0)
    many.run(30.0)
    assert many.counts.delivered > 9 * few.counts.delivered
    assert many.schedule.events < 1.3 * few.schedule.events


def test_a_run_does_not_depend_on_the_order_of_sets():
    """Subscribers of several topics become units. Sets have another order in each process."""
    program = (
        "from tests.simulator.queueing.test_bundles import fleet\n"
        "one = fleet(split={'maxTopics': 3})\n"
        "one.run(30.0)\n"
        "print(one.owners(), one.counts, one.heads['c1-head'].bundles.report())"
    )
    runs = {
        subprocess.run(
            [sys.executable, "-c", program], env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout
        for seed in ("1", "6")
    }  # fmt: skip
    assert len(runs) == 1
