"""Round trips of links: on a network with known delays, with peers that are busy, and with made-up answers."""

from __future__ import annotations

import random
from functools import partial
from typing import Literal

import pytest

from plimsoll.core.protocol.wire import Info
from plimsoll.core.transport.link import LinkLimits
from plimsoll.core.transport.overlay_node import OverlayNode
from plimsoll.core.transport.round_trips import ANSWERS_IN_WINDOW, PINGS_REMEMBERED, RoundTrip, measured
from plimsoll.simulator.engine.event_queue import EventQueue
from plimsoll.simulator.engine.host import SimulatedHost
from plimsoll.simulator.engine.network import ConnectionQuality, SimulatedNetwork

LIMITS = LinkLimits(heartbeat_seconds=1.0, dead_seconds=10.0)
ROUND_SECONDS = 0.0002
"""From the arrival of a frame to the round that serves it, in the simulator."""


def trip(*answers: float) -> RoundTrip:
    """A round trip after answers that took so long, a second apart."""
    found = RoundTrip()
    for second, seconds in enumerate(answers, start=1):
        found.pinged(second * 1_000_000)
        assert found.answered(second * 1_000_000, second + seconds)
    return found


def test_the_least_of_the_window_counts():
    assert trip(0.3, 0.1, 0.9).seconds == pytest.approx(0.1)
    assert trip(0.1, *[0.3] * (ANSWERS_IN_WINDOW - 1)).seconds == pytest.approx(0.1)
    assert trip(0.1, *[0.3] * ANSWERS_IN_WINDOW).seconds == pytest.approx(0.3), "the way has become longer"
    assert trip(*[0.3] * ANSWERS_IN_WINDOW, 0.1).seconds == pytest.approx(0.1), "and shorter, at once"


def test_an_answer_to_no_ping_counts_nothing():
    found = trip(0.1)
    assert not found.answered(0, 100.0), "made up"
    assert not found.answered(1_000_000, 100.0), "answered before"
    assert found.seconds == pytest.approx(0.1)


def test_unanswered_pings_are_bounded():
    found = RoundTrip()
    for number in range(10 * PINGS_REMEMBERED):
        found.pinged(number)
    assert not found.answered(0, 1.0)
    assert found.answered(10 * PINGS_REMEMBERED - 1, 1.0)


def test_another_connection_is_measured_anew():
    found = trip(*[0.1] * ANSWERS_IN_WINDOW)
    found.restart()
    assert found.seconds == pytest.approx(0.1), "the last known way, until there is an answer"
    found.pinged(9_000_000)
    found.answered(9_000_000, 9.4)
    assert found.seconds == pytest.approx(0.4)


def role_of(name: str) -> Literal["client", "edge", "head"]:
    return "client" if name == "client" else "edge" if name == "edge" else "head"


class Pair:
    """A head that accepts the links of an edge and a client, on a network whose delays are known."""

    def __init__(self, delay_seconds: float) -> None:
        draw = random.Random(1)
        self.schedule = EventQueue()
        self.network = SimulatedNetwork(self.schedule, draw, ConnectionQuality(delay_seconds, 0.0))
        self.hosts = {name: SimulatedHost(name, self.schedule, self.network) for name in ("head", "edge", "client")}
        self.nodes = {
            name: OverlayNode(Info(name, role_of(name), 1), LIMITS, lambda: draw.getrandbits(32), max_frame_bytes=10**6)
            for name in self.hosts
        }
        for name, host in self.hosts.items():
            host.start(partial(self.nodes.__getitem__, name), f"sim://{name}")
        for name in ("edge", "client"):
            self.nodes[name].dial("head", "sim://head")
            self.hosts[name].wake()

    def run(self, seconds: float) -> None:
        self.schedule.run(self.schedule.now + seconds)

    def of(self, name: str) -> float:
        """The round trip of the head's link to this peer."""
        (link,) = [link for link in self.nodes["head"].handshakes.accepted_links() if link.name == name]
        return link.rtt_seconds

    def lengthen(self, name: str, delay_seconds: float) -> None:
        self.network.pair_qualities[frozenset(("head", name))] = ConnectionQuality(delay_seconds, 0.0)


@pytest.mark.parametrize("delay_seconds", [0.001, 0.02, 0.25])
def test_both_sides_measure_what_the_network_takes(delay_seconds: float):
    pair = Pair(delay_seconds)
    pair.run(6.0)
    expected = 2 * delay_seconds
    for name in ("edge", "client"):
        assert pair.of(name) == pytest.approx(expected, abs=3 * ROUND_SECONDS)
        assert pair.nodes[name].dialled["head"].rtt_seconds == pytest.approx(expected, abs=3 * ROUND_SECONDS)


def test_a_peer_that_is_busy_now_and_then_is_not_taken_for_a_far_one():
    pair = Pair(0.01)
    pair.run(6.0)
    for _ in range(6):
        pair.hosts["client"].pause()
        pair.run(1.4)  # a PING waits for it all this time, and the next one for a part of it
        pair.hosts["client"].resume()
        pair.run(1.6)
        assert pair.of("client") == pytest.approx(0.02, abs=0.005)


def test_a_longer_way_to_a_broker_shows_within_a_heartbeat_where_deadlines_are_defended():
    pair = Pair(0.01)
    pair.nodes["head"].heartbeats.measure_ways(closely=True)
    pair.run(6.0)
    pair.lengthen("edge", 0.11)
    pair.run(LIMITS.heartbeat_seconds + 0.4)
    assert pair.of("edge") == pytest.approx(0.22, abs=0.005)
    pair.lengthen("client", 0.11)
    pair.run(ANSWERS_IN_WINDOW * LIMITS.heartbeat_seconds + 1.4)
    assert pair.of("client") == pytest.approx(0.22, abs=0.005), "clients are pinged with the heartbeats alone"


def test_a_report_has_the_longest_and_the_median_by_role_and_the_brokers_by_name():
    pair = Pair(0.01)
    pair.run(3.0)
    found = measured(pair.nodes["head"].links.values())
    assert set(found["round_trip_seconds"]) == set(found["round_trip_median_seconds"]) == {"client", "edge"}
    assert set(found["broker_round_trip_seconds"]) == {"edge"}
    assert found["round_trip_seconds"]["edge"] == pytest.approx(0.02, abs=0.002)
    assert measured([]) == {
        "round_trip_seconds": {}, "round_trip_median_seconds": {}, "broker_round_trip_seconds": {},
    }  # fmt: skip
