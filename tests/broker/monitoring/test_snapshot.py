"""A snapshot of a machine does not change afterwards."""

from __future__ import annotations

import msgspec

from plimsoll.broker.main import make_broker_machine
from plimsoll.broker.monitoring.snapshot import take_snapshot
from plimsoll.broker.monitoring.usage_meter import RoundDurations
from plimsoll.core.config import BrokerConfig, LinkSecurity, PeerBroker
from plimsoll.core.policies.model.load import OverloadThreshold, ResourceThresholds

HEAD = BrokerConfig(
    name="h",
    role="head",
    cluster="c",
    fleet="f",
    data="tcp://127.0.0.1:1",
    control="tcp://127.0.0.1:2",
    edges=("e2", "e1"),
    security=LinkSecurity(plain=True),
)
EDGE = BrokerConfig(
    name="e1",
    role="edge",
    cluster="c",
    data="tcp://127.0.0.1:3",
    control="tcp://127.0.0.1:4",
    head=PeerBroker(name="h", data="tcp://127.0.0.1:1", control="tcp://127.0.0.1:2"),
    security=LinkSecurity(plain=True),
)


def test_a_head_that_waits_for_its_edges_says_for_which():
    head = make_broker_machine(HEAD, "")
    head.poll(1.0)
    taken = take_snapshot(head, "1.2", {"curve": 3}, RoundDurations(), 9.0)
    assert (taken.at, taken.epoch, taken.unready) == (9.0, head.epoch, "waiting for e1, e2 to report")
    assert taken.labels == {"broker": "h", "cluster": "c", "fleet": "f", "role": "head", "version": "1.2"}
    assert (taken.sessions, taken.arriving, taken.refusals) == (0, 0, {"curve": 3, "role": 0})
    assert taken.report["publishers"] == 0


def test_an_edge_whose_head_is_not_there_is_not_ready():
    edge = make_broker_machine(EDGE, "")
    edge.poll(1.0)
    taken = take_snapshot(edge, "", {}, RoundDurations(), 1.0)
    assert taken.unready == "head h does not answer"
    edge.leave(2.0)
    assert take_snapshot(edge, "", {}, RoundDurations(), 2.0).unready == "leaving"


def test_a_head_that_leaves_is_not_ready():
    head = make_broker_machine(HEAD, "")
    head.leave(1.0)
    assert take_snapshot(head, "", {}, RoundDurations(), 1.0).unready == "leaving"


def test_what_was_taken_stays_as_it_was():
    head, rounds = make_broker_machine(HEAD, ""), RoundDurations()
    head.counters["gaps_sent"] = 1
    head.meter.arrivals, head.meter.served, head.meter.service_seconds = 2, 2, 0.5
    head.poll(1.0)
    taken = take_snapshot(head, "", {}, rounds, 1.0)
    head.counters["gaps_sent"] = 2
    rounds.observe(1.0)
    head.meter.arrivals, head.meter.served, head.meter.service_seconds = 3, 3, 0.25
    head.poll(5.0)
    later = take_snapshot(head, "", {}, rounds, 5.0)
    assert (taken.counters["gaps_sent"], taken.totals["arrivals"], taken.served, taken.service_seconds) == (
        1,
        2,
        2,
        0.5,
    )
    assert (later.counters["gaps_sent"], later.totals["arrivals"], later.served, later.service_seconds) == (
        2,
        5,
        5,
        0.75,
    )
    assert (sum(taken.rounds.counts), sum(later.rounds.counts)) == (0, 1)


def test_the_load_line_is_that_of_the_edges_policy():
    policy = {"type": "Padres", "detection": {"overload": {"output": {"lower": "600m", "higher": "650m"}}}}
    balanced = msgspec.structs.replace(EDGE, policy=policy)
    taken = take_snapshot(make_broker_machine(balanced, ""), "", {}, RoundDurations(), 1.0)
    assert taken.thresholds == ResourceThresholds(output=OverloadThreshold(0.6, 0.65))
    for config in (EDGE, HEAD):
        assert take_snapshot(make_broker_machine(config, ""), "", {}, RoundDurations(), 1.0).thresholds is None
