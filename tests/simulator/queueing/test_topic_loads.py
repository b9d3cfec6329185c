"""Topics with deadlines on the model: reports of depth and path, a topic that moves, and newcomers meanwhile."""

from __future__ import annotations

from typing import Any

import pytest
from tests.simulator.queueing.conftest import fleet_of

from plimsoll.core.policies.model.topic_load import TopicLoad, reported_topics
from plimsoll.core.protocol.topic_units import topic_hash
from plimsoll.simulator.queueing.fleet import LinkDelays, QueueingFleet
from plimsoll.simulator.queueing.traffic import RateStep, Traffic, TrafficPublisher, TrafficSubscriber

LINKS = LinkDelays(0.02, 0.03)
BURST_AT, ENDS_AT = 15.0, 35.0
POLICY = {
    "type": "DelaySensitive", "detection": {"interval": "1s", "stabilizeFor": "2s"},
    "delaySensitive": {"topicAttribute": "topic", "topics": [{"name": "slow", "latency": "1s"}],
                       "defaultLatency": "100s"},
}  # fmt: skip


def fleet(
    *, newcomers: tuple[float, ...] = (), burst: float = 30.0, links: LinkDelays = LINKS, **own: Any
) -> QueueingFleet:
    """e11 has both topics, of which slow has 70 % of its output and, after the burst, with the other one 110 %."""
    publishers = [
        TrafficPublisher("p-slow", "c1-head", ({"topic": "slow"},), (RateStep(0.0, 70.0), RateStep(ENDS_AT, 0.0)),
                         5.0, 850),
        TrafficPublisher("p-other", "c1-head", ({"topic": "other"},),
                         (RateStep(0.0, 10.0), RateStep(BURST_AT, burst), RateStep(ENDS_AT, 0.0)), 5.0, 850),
    ]  # fmt: skip
    joined = [
        TrafficSubscriber(f"{topic}-{n}", "c1", (f"[topic,=,'{topic}']",), 0.1 * n, prefer="e11")
        for topic in ("slow", "other") for n in range(2)
    ]  # fmt: skip
    joined += [TrafficSubscriber(f"new-{at}", "c1", ("[topic,=,'other']",), at) for at in newcomers]
    resources = fleet_of(POLICY, base="10us", each="0us", bandwidth="180k")
    return QueueingFleet(resources, Traffic(publishers, joined), links=links, spread_reports=False, **own)


def loads(one: QueueingFleet, edge: str) -> dict[str, TopicLoad]:
    return {load.text: load for load in reported_topics(one.edges[edge].reporter.last)}


@pytest.mark.parametrize("own", [{}, {"fair_output": True}, {"fair_by_topic": True}])
def test_an_edge_reports_what_waits_and_how_far_publishers_are(own: dict[str, Any]):
    one = fleet(burst=10.0, **own)
    one.run(BURST_AT + 0.5)
    quiet = loads(one, "e11")["slow"]
    assert quiet.transmission_seconds == pytest.approx(2 * LINKS.to_clients + LINKS.between_brokers)
    assert quiet.required_seconds == 1.0
    assert quiet.subscribers == 2
    assert quiet.input_rate == pytest.approx(70.0, rel=0.05)
    assert quiet.depth <= 1
    assert one.counts.late == {}


def test_publishers_may_be_farther_away_than_subscribers():
    far = LinkDelays(LINKS.between_brokers, LINKS.to_clients, from_publishers=0.2)
    near, away = fleet(burst=10.0), fleet(burst=10.0, links=far)
    for one in (near, away):
        one.run(BURST_AT)
    before, after = (loads(one, "e11")["slow"].transmission_seconds for one in (near, away))
    assert after - before == pytest.approx(0.2 - LINKS.to_clients)
    means = [one.delays.between(10.0, BURST_AT).mean or 0.0 for one in (near, away)]
    assert means[1] - means[0] == pytest.approx(0.2 - LINKS.to_clients, abs=0.005), "deliveries come so much later, too"


def test_a_link_that_is_100_ms_longer_moves_the_threshold_of_the_depth():
    found = []
    for seconds in (LINKS.between_brokers, LINKS.between_brokers + 0.1):
        one = fleet(links=LinkDelays(seconds, LINKS.to_clients))
        one.run(BURST_AT - 1.0)
        slow = loads(one, "e11")["slow"]
        found.append(slow.depth_threshold(0.1, arrival_rate=70.0, delivery_rate=70.0))
    assert found[0] - found[1] == pytest.approx(0.1 * 70.0, abs=0.1)


@pytest.mark.parametrize("own", [{}, {"fair_by_topic": True}])
def test_the_topic_in_danger_stays_and_another_leaves_whole_with_its_newcomers(own: dict[str, Any]):
    """Between a plan and the end of its moves newcomers of the topic go to its target, whatever it serves yet."""
    alone = fleet(burst=40.0, **own)
    alone.run(ENDS_AT)
    (began,) = {each.session.started_at for each in alone.mediator.objects.values() if each.session is not None
                and each.session.is_parent}  # fmt: skip
    assert began is not None
    one = fleet(newcomers=(began + 0.3, began + 0.5), burst=40.0, **own)
    one.run(ENDS_AT + 10.0)
    sessions = [each.session for each in one.mediator.objects.values() if each.session is not None]
    assert [each.counts()["moved"] for each in sessions if each.is_parent] == [2]
    assert not any(each.plan is not None and each.plan.faults for each in sessions)
    places: dict[str, set[str]] = {}
    for name, edge in one.owners().items():
        places.setdefault(name.rpartition("#")[2], set()).add(edge)
    assert places == {f"{topic_hash('slow'):08x}": {"e11"}, f"{topic_hash('other'):08x}": {"e12"}}
    assert len(one.owners()) == 6


def test_deliveries_are_late_by_topic_where_nothing_balances():
    one = fleet(burst=60.0, fair_by_topic=True)
    one.mediator.policies = {}
    one.run(ENDS_AT)
    assert set(one.counts.late) == {"slow"}
    assert one.counts.late["slow"] < one.counts.of_topics["slow"]
