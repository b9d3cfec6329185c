"""What brokers say of paths, queues and deadlines, against what the simulator knows of them."""

from __future__ import annotations

import pytest
from tests.simulator.deadline_world import DeadlineWorld
from tests.simulator.test_balancing import run, sessions

from plimsoll.core.config import BrokerHardware, HardwareEmulation
from plimsoll.core.head.machine import Head
from plimsoll.core.policies.model.topic_load import reported_topics
from plimsoll.core.protocol.topic_units import topic_hash

NEAR = 0.0005
DELAYS = {
    ("near", "h0"): 0.01, ("far", "h1"): 0.06, ("h0", "h1"): 0.04, ("h0", "h0e0"): 0.02, ("h0", "h0e1"): 0.02,
    ("app", "h0e0"): 0.05, ("app", "h0e1"): 0.05,
}  # fmt: skip
SLACK = 0.003
"""Rounds of processes take a fifth of a millisecond each way, on each of some links."""


def playing(hardware: dict[str, BrokerHardware] | None = None) -> DeadlineWorld:
    """`fast` is published here and at the other head, `slow` only here, and both are subscribed to."""
    world = DeadlineWorld(DELAYS, hardware)
    app, near, far = world.application("app", "h0"), world.application("near", "h0"), world.application("far", "h1")
    world.subscribe(app, "s", "fast", "slow")
    world.subscribe(app, "t", "fast")
    world.run(3.0)
    world.publish_at(near, "p", "slow", 20, 60)
    world.publish_at(near, "r", "fast", 20, 60)
    world.publish_at(far, "q", "fast", 5, 60)
    world.run(6.0)
    world.delays.clear()
    world.run(4.0)
    return world


def test_the_longest_path_is_that_of_the_simulator():
    world = playing()
    fast, slow = world.load("fast"), world.load("slow")
    assert fast.transmission_seconds == pytest.approx(0.06 + 0.04 + 0.02 + 0.05, abs=SLACK)
    assert slow.transmission_seconds == pytest.approx(0.01 + 0.02 + 0.05, abs=SLACK)
    assert max(world.delays) == pytest.approx(fast.transmission_seconds + fast.broker_seconds, abs=2 * SLACK)
    assert (fast.required_seconds, slow.required_seconds) == (1.0, 0.0)
    assert (fast.subscribers, slow.subscribers) == (2, 1)
    assert fast.input_rate == pytest.approx(25, abs=2)
    assert fast.remote_rate == pytest.approx(5, abs=1)
    assert fast.depth == fast.late == 0


def test_one_edge_serves_a_topic():
    world = playing()
    for topic in ("fast", "slow"):
        served = [name for name in ("h0e0", "h0e1") for load in [world.edge(name)]
                  if any(one.text == topic for one in reported_topics(load.reporter.last))]  # fmt: skip
        assert served == [world.owner(topic)]


def test_a_longer_link_moves_the_threshold_within_two_looks():
    world = playing()
    before = world.load("fast")
    world.lengthen("h0", world.owner("fast"), 0.02 + 0.1)
    world.run(2.5)
    after = world.load("fast")
    assert after.transmission_seconds - before.transmission_seconds == pytest.approx(0.1, abs=SLACK)
    assert before.allowed_seconds - after.allowed_seconds == pytest.approx(0.1, abs=2 * SLACK)
    one, other = (each.depth_threshold(0.1, arrival_rate=25.0, delivery_rate=25.0) for each in (before, after))
    assert one - other == pytest.approx(0.1 * 25.0, abs=2 * SLACK * 25.0), "eq. 2: t_e times the rate of service"


def test_a_head_without_the_policy_tells_of_its_publishers_as_long_as_a_neighbour_wants_to_know():
    world = playing()
    assert world.head("h1").publisher_paths.is_wanted
    assert world.head("h1").heartbeats.next_probe_at < float("inf")
    world.head().topics.take_policy(None)
    world.run(12.0)
    for name in ("h0", "h1"):
        assert not world.head(name).publisher_paths.is_wanted
        assert world.head(name).heartbeats.next_probe_at == float("inf")


def test_topics_that_rise_together_at_another_head_are_known_before_anyone_asks_for_them():
    """Two topics burst at the far end of the tree, a third is steady; no other head has a publication of them."""
    world = DeadlineWorld(clusters=3, is_everywhere=True)
    far = world.application("far", "h2")
    for topic, burst in (("fast", 60), ("slow", 30), ("calm", 0)):
        world.publish_at(far, f"p-{topic}", topic, 20, 30)
        if burst:
            world.schedule.after(8.0, lambda topic=topic, burst=burst: world.publish_at(far, topic, topic, burst, 20))
    world.run(16.0)
    for name in ("h0", "h1", "h2"):
        topics = world.head(name).topics
        assert topics.rates.history.keys() == {topic_hash(topic) for topic in ("fast", "slow", "calm")}
        topics.owners = {topic_hash("slow"): f"{name}e0", topic_hash("calm"): f"{name}e1"}
        assert topics.beside(topic_hash("fast")) == {f"{name}e0": 1}, "calm rises with none"
    assert world.head("h0").topics.rates.own == world.head("h1").topics.rates.own == {}
    assert world.head("h0").topics.rates.elsewhere[topic_hash("fast")] == pytest.approx(80, abs=3)


def test_a_queue_that_grows_is_as_deep_as_the_simulator_knows():
    """An edge sends 200 kB a second, and 300 publications of a kilobyte come: a third of them stay each second."""
    slow = BrokerHardware(output_bytes_per_second=200_000.0)
    world = DeadlineWorld(DELAYS, {"h0e0": slow, "h0e1": slow})
    app, near = world.application("app", "h0"), world.application("near", "h0")
    world.subscribe(app, "s", "fast")
    world.run(3.0)
    world.publish_at(near, "p", "fast", 300, 12, size=1000)
    depths, late = [], 0
    for _ in range(9):
        world.run(1.0)
        load = world.load("fast")
        late += load.late
        under_way = load.arrival_rate * load.transmission_seconds
        waiting = world.published["fast"] - world.delivered["s", "fast"]
        # Frames of 64 kB leave at once and then use up the bandwidth: one is under way or has just left.
        assert load.depth == pytest.approx(waiting - under_way, abs=70)
        depths.append(load.depth)
    assert depths[-1] > depths[0] + 500
    assert load.delivery_rate == pytest.approx(190, abs=30)
    assert load.arrival_rate == pytest.approx(300, abs=2)
    assert load.waiting == 1
    truly_late = sum(delay > 1.0 for delay in world.delays)
    assert truly_late > 300
    assert late == pytest.approx(truly_late, rel=0.15)


def test_matching_and_arrival_at_an_edge_are_time_in_brokers():
    slow = BrokerHardware(input_bytes_per_second=50_000.0, emulation=HardwareEmulation(base_seconds=0.01))
    world = DeadlineWorld(DELAYS, {"h0e0": slow, "h0e1": slow})
    app, near = world.application("app", "h0"), world.application("near", "h0")
    world.subscribe(app, "s", "fast")
    world.run(3.0)
    world.publish_at(near, "p", "fast", 10, 20, size=1000)
    world.run(4.0)
    world.delays.clear()
    world.run(4.0)
    load = world.load("fast")
    assert load.broker_seconds == pytest.approx(0.01 + 1050 / 50_000, abs=SLACK)
    assert max(world.delays) == pytest.approx(load.transmission_seconds + load.broker_seconds, abs=2 * SLACK)


def test_a_subscription_says_within_which_time_it_wants_its_messages():
    world = DeadlineWorld()
    app = world.application("app", "h0")
    world.subscribe(app, "s", "fast", latency_seconds=0.25)
    world.subscribe(app, "t", "fast", "slow")
    world.run(4.0)
    assert world.load("fast").required_seconds == 0.25
    assert world.load("slow").required_seconds == 0.0
    edge = world.owner("fast")
    world.fleet.crash(edge)
    world.run(2.0)
    world.fleet.start(edge)
    world.run(12.0)
    assert world.load("fast").required_seconds == 0.25, "its client says so again"


# -- scenarios


def test_topics_move_away_from_overloaded_edges_and_newcomers_with_them():
    one = run("sessions-deadlines", 2)
    plans = [each.plan for each in sessions(one) if each.plan is not None and each.plan.bundles]
    assert plans
    head = one.fleet.heads()[0].host.node
    assert isinstance(head, Head)
    for name, edge in plans[-1].bundles.items():
        assert head.topics.owners[int(name.rpartition("#")[2], 16)] == edge


def test_laws_hold_under_faults():
    one = run("sessions-deadlines-faults", 3)
    assert all(session.is_over for session in sessions(one))


def test_publishers_leave_an_overloaded_head_while_topics_leave_its_edges():
    one = run("sessions-deadlines-heads", 0)
    relief = [each for each in sessions(one) if each.kind == "publishers"]
    moved = {name for each in relief for name, outcome in each.outcomes().items() if outcome == "moved"}
    assert moved
    assert any(each.kind == "rebalance" and each.counts()["moved"] for each in sessions(one)), "beside it"
    plans = [each.plan for each in relief if each.plan is not None and each.plan.members]
    assert all(one.utilization_measured is not None for plan in plans for one in plan.forecasts)
