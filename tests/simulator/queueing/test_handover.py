"""Hand-overs in the model lose and repeat nothing, within a cluster and across, and take the time of their messages."""

import pytest
from tests.simulator.queueing.conftest import traffic_of

from plimsoll.simulator.queueing.fleet import LinkDelays
from plimsoll.simulator.queueing.traffic import RateStep, Traffic

MOVE = {"scope": "Local", "source": {"name": "e11"}, "mode": "Execute", "select": {"count": 4}, "deadline": "60s"}


def run_with_move(world, fields, *, traffic=None, until=120.0, **options):
    fleet = world(traffic=traffic or traffic_of(rates=(RateStep(0.0, 20.0), RateStep(60.0, 0.0))), **options)
    fleet.at(20.0, fleet.mediator.create, "move", {**MOVE, **fields})
    fleet.run(until)
    return fleet, next(one.session for one in fleet.mediator.objects.values())


def due(fleet):
    """Each of ten subscribers takes every second publication."""
    return fleet.counts.published / 2 * 10


@pytest.mark.parametrize("method", ["Drain", "Replay"])
def test_a_move_within_a_cluster_delivers_all_once(world, method):
    fleet, session = run_with_move(world, {"target": {"name": "e12"}, "handover": method})
    assert (session.phase, session.counts()["moved"]) == ("Succeeded", 4)
    assert sorted(fleet.owners().values()).count("e12") == 4
    assert fleet.counts.delivered == due(fleet)


@pytest.mark.parametrize("method", ["Drain", "Replay"])
def test_a_move_from_a_full_output_that_is_shared_fairly_delivers_all_once(world, method):
    """END waits for what its own members are still to get; what others get lies in between."""
    traffic = traffic_of(rates=(RateStep(0.0, 60.0), RateStep(60.0, 0.0)))
    fleet, session = run_with_move(
        world, {"target": {"name": "e12"}, "handover": method}, traffic=traffic, until=400.0, fair_output=True,
        bandwidth="24k", base="10us", each="0us",
    )  # fmt: skip
    assert session.counts()["moved"] == 4
    assert fleet.counts.delivered == due(fleet)
    assert fleet.delays.between(15.0, 20.0).mean > 1.0, "the output was full"
    took = session.batches[0].ended_at - session.batches[0].begun_at
    assert took > 1.0 if method == "Drain" else took < 1.0


@pytest.mark.parametrize("method", ["Drain", "Replay"])
def test_a_move_from_an_overloaded_edge_delivers_all_once(world, method):
    """The source has a queue of seconds: by drain members wait for it, by replay they do not."""
    traffic = traffic_of(rates=(RateStep(0.0, 60.0), RateStep(60.0, 0.0)))
    fleet, session = run_with_move(
        world, {"target": {"name": "e12"}, "handover": method}, traffic=traffic, until=300.0
    )  # fmt: skip
    assert session.counts()["moved"] == 4
    assert fleet.counts.delivered == due(fleet)
    batch = session.batches[0]
    took = batch.ended_at - batch.begun_at
    assert took > 2.0 if method == "Drain" else took < 1.0


def test_a_move_between_clusters_delivers_all_once(world):
    fleet, session = run_with_move(
        world, {"scope": "Global", "target": {"name": "e22"}, "handover": "Drain"}, clusters=2
    )  # fmt: skip
    assert session.counts()["moved"] == 4
    assert sorted(fleet.owners().values()).count("e22") == 4
    assert fleet.counts.delivered == due(fleet)


def test_long_links_make_a_move_longer(world):
    short, long = (
        run_with_move(
            world, {"target": {"name": "e12"}, "handover": "Drain"}, links=LinkDelays(delay, delay)
        )[1].batches[0]
        for delay in (0.001, 0.1)
    )  # fmt: skip
    assert long.ended_at - long.begun_at > short.ended_at - short.begun_at + 0.5


def test_nothing_of_a_move_is_left_over(world):
    fleet, _ = run_with_move(world, {"target": {"name": "e12"}, "handover": "Drain"})
    assert not fleet.handovers.moving
    assert not fleet.handovers.replays.missing
    assert all(not edge.held and not edge.holding for edge in fleet.edges.values())
    assert all(not head.coordinator.sessions for head in fleet.heads.values())
    for edge in fleet.edges.values():
        assert fleet.heads["c1-head"].routed[edge.name] == edge.members
        covered = {name for name, each in edge.attachments.by_subscriber.items() if each.is_covered}
        assert covered == {x for x, owner in fleet.owners().items() if owner == edge.name}


def test_a_drained_edge_serves_no_subscriber(world):
    traffic = traffic_of(rates=(RateStep(0.0, 20.0), RateStep(60.0, 0.0)))
    fleet = world(traffic=Traffic(traffic.publishers, traffic.subscribers))
    drain = {"scope": "Local", "source": {"name": "e11"}, "action": "Drain", "mode": "Execute", "deadline": "5m"}
    fleet.at(20.0, fleet.mediator.create, "drain", drain)
    fleet.run(200.0)
    assert set(fleet.owners().values()) == {"e12"}
    assert fleet.counts.delivered == due(fleet)
