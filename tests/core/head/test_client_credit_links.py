"""A light client beside one with 200 publishers, at a real head with a bounded bandwidth, in virtual time."""

from __future__ import annotations

from typing import Any

import pytest
from tests.core.fleet import Client, Fleet, Publishing, one_cluster, resume

from plimsoll.core.config import BrokerHardware
from plimsoll.core.protocol import messages as msg

STEP_SECONDS = 0.005
AWAY_STEPS = 16
"""The edge takes frames at every sixteenth step only: that is what the light client waits for without a flood."""
WARM_SECONDS = 5.0
PUBLISHERS = 200


class Crowd:
    """A client, over one link or several, whose publishers all publish whatever they may."""

    def __init__(self, fleet: Fleet, links: int, publishers: int) -> None:
        self.fleet = fleet
        self.clients = [fleet.client(f"flood-{i}", "h") for i in range(links)]
        self.publishers: dict[int, Publishing] = {}
        for i in range(1, publishers + 1):
            client = self.clients[i % links]
            self.publishers[i] = Publishing(client, "h", f"f{i}", i)

    def publish(self) -> None:
        for client in self.clients:
            heard, client.heard["h"] = client.heard["h"], []
            for record in heard:
                assert not isinstance(record, msg.Refused)
                if isinstance(record, msg.Opened | msg.Credit):
                    publisher = self.publishers[record.handle]
                    publisher.publish(max(0, record.through - publisher.seq), payload=b"x" * 180, kind="flood")


class Watch:
    """The light client: publishes at every tenth step, and learns when each has been delivered."""

    def __init__(self, fleet: Fleet, reader: Client) -> None:
        self.fleet, self.reader = fleet, reader
        self.publisher = Publishing(fleet.client("light", "h"), "h", "light")
        self.sent: list[float] = []
        self.delays: dict[int, float] = {}

    def publish(self) -> None:
        self.publisher.publish(kind="light")
        self.sent.append(self.fleet.now)

    def look(self) -> None:
        heard, self.reader.heard["e1"] = self.reader.heard["e1"], []
        for record in heard:
            if isinstance(record, msg.Deliver) and record.attachment == 2 and isinstance(record.item, msg.PubOpen):
                self.delays[record.item.seq] = self.fleet.now - self.sent[record.item.seq - 1]

    def p99_seconds(self) -> float:
        """Of all that it has published, those that have not come yet included."""
        missing = [self.fleet.now - at for n, at in enumerate(self.sent, 1) if n not in self.delays]
        delays = sorted([*self.delays.values(), *missing])
        return delays[int(len(delays) * 0.99)]


def fleet_of(identity_of: Any) -> Fleet:
    fleet = one_cluster(edges=1, hardware={"h": BrokerHardware(output_bytes_per_second=1_000_000)})
    fleet.nodes["h"].identity_of = lambda peer: identity_of(
        next(each.dialler for each in fleet.connections if each.id == peer)
    )
    return fleet


def beside(links: int, publishers: int) -> tuple[float, Crowd]:
    """The 99th percentile of the light client, and what it was beside."""
    fleet = fleet_of(lambda dialler: dialler.partition("-")[0])
    reader = fleet.client("reader", "e1")
    reader.tell("e1", resume(1, "s", "[kind,=,'flood']"), resume(2, "l", "[kind,=,'light']"))
    watch, crowd = Watch(fleet, reader), Crowd(fleet, links, publishers)
    fleet.run(0.5)
    begin, end, step = fleet.now + WARM_SECONDS, fleet.now + 2 * WARM_SECONDS, 0
    while fleet.now < end:
        step += 1
        crowd.publish()
        if step % 10 == 0 and fleet.now > begin:
            watch.publish()
        (fleet.freeze if step % AWAY_STEPS else fleet.thaw)("e1")
        fleet.run(STEP_SECONDS)
        watch.look()
    return watch.p99_seconds(), crowd


@pytest.mark.parametrize("links", [1, 20])
def test_a_light_client_beside_one_with_200_publishers_waits_at_most_twice_as_long_as_alone(links: int):
    quiet, _ = beside(1, 0)
    flooded, crowd = beside(links, PUBLISHERS)
    assert 0 < quiet < 0.1
    assert flooded <= 2 * quiet
    head = crowd.fleet.head()
    assert set(head.publishers.credits.by_name) == {"flood", "light"}
    assert head.publishers.credits.times_held_for_links
    counts = [each.seq for each in crowd.publishers.values()]
    assert min(counts) >= max(counts) // 3 > 0, "each of its publishers goes on"


def test_200_publishers_of_one_client_get_as_much_through_as_one_with_its_window():
    _, one = beside(1, 1)
    _, many = beside(1, PUBLISHERS)
    alone, together = (sum(each.seq for each in crowd.publishers.values()) for crowd in (one, many))
    assert together >= alone // 2
