"""A client that knows only an edge, or the head of another cluster: any broker is asked, and the client is sent on."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace
from tests.core.client.bundled import EDGES, Bundled

from plimsoll.core.client import Address, Client, ClientLimits, Delivery
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol.topic_units import topic_hash
from plimsoll.core.transport.link import LinkLimits

OWN = ClientLimits(link=LinkLimits(heartbeat_seconds=0.5, dead_seconds=2.0), backoff_seconds=0.05, failover_seconds=1.0)


def client_of(world: Bundled, *endpoints: str) -> Client:
    found = Client("late", 9, world.fleet.ids(), [Address(each) for each in endpoints], OWN)
    found.now = world.fleet.now
    world.fleet.nodes["late"] = found
    return found


def run(world: Bundled, client: Client, until: Any) -> list[Any]:
    events: list[Any] = []
    end = world.fleet.now + 10.0
    while world.fleet.now < end and not until(events):
        world.run(0.05)
        events += [event for _, some in client.take_events() for event in some]
    assert until(events), events
    return events


@pytest.mark.parametrize("edge", EDGES)
def test_a_client_that_knows_only_an_edge_is_served_by_the_owner_of_its_bundle(edge: str):
    world = Bundled()
    world.subscribe("s", "t0")
    [owner] = {world.owner(bundle) for bundle in world.partition.ranges if bundle.holds(topic_hash("t0"))}
    client = client_of(world, f"mem://{edge}")
    late = client.subscriber("t")
    late.subscribe("[topic,=,'t0']")
    run(world, client, lambda _: late.is_acknowledged)
    assert client.home.head == "h"
    assert client.counters["heads_followed"] == 1
    assert world.fleet.head().owners.entries[f"t#{topic_hash('t0'):08x}"].edge == owner
    world.publish("t0")
    got = run(world, client, lambda events: any(isinstance(each, Delivery) for each in events))
    assert sum(isinstance(each, Delivery) for each in got) == 1


def test_a_publisher_that_knows_only_an_edge_publishes_at_its_head():
    world = Bundled()
    world.subscribe("s", "t0")
    client = client_of(world, "mem://e1")
    publisher = client.publisher("q")
    publisher.publish({"topic": "t0", "n": 77}, sent_us=0)
    run(world, client, lambda _: world.numbers("s", "t0") == [77])
    assert client.home.head == "h"


def test_after_its_head_was_away_the_client_asks_the_edge_again():
    world = Bundled()
    client = client_of(world, "mem://e1")
    late = client.subscriber("t")
    late.subscribe("[topic,=,'t0']")
    run(world, client, lambda _: late.is_acknowledged)
    world.fleet.cut("late", "h")
    world.run(4.0)
    world.fleet.mend("late", "h")
    run(world, client, lambda _: client.home_link is not None and client.home_link.open)
    world.publish("t0")
    run(world, client, lambda events: any(isinstance(each, Delivery) for each in events))
    assert client.home.head == "h"
    assert client.counters["heads_followed"] > 1
    assert len(client.home.addresses) == 2, "one address is remembered, however often it is told"


def test_an_edge_that_does_not_know_its_head_yet_is_asked_again():
    world = Bundled()
    edge: Any = world.fleet.nodes["e1"]
    edge.head_endpoint = ""
    client = client_of(world, "mem://e1")
    client.subscriber("t").subscribe("[topic,=,'t0']")
    world.run(1.0)
    assert client.counters["heads_followed"] == 0
    edge.head_endpoint = "mem://h"
    run(world, client, lambda _: client.home.head == "h")


def test_a_client_is_told_the_key_that_the_head_has_by_now():
    """The keys of a head are replaced while its edges run, which were configured with the key before."""
    world = Bundled()
    authorised: list[str] = []
    edge: Any = world.fleet.edge("e1")
    edge.config = replace(edge.config, head=replace(edge.config.head, public_key="old"))
    edge.keys_of = {"h": authorised}.__getitem__
    for keys, told in ((["old"], "old"), (["old", "next"], "old"), (["next"], "next"), ([], "old")):
        authorised[:] = keys
        client = client_of(world, "mem://e1")
        client.subscriber("t").subscribe("[topic,=,'t0']")
        run(world, client, lambda _, client=client: client.home.head == "h")
        assert client.home.addresses[-1] == Address("mem://h", told)
        client.leave(world.fleet.now)
        world.run(0.5)


def test_one_that_is_sent_on_again_and_again_waits_between():
    """An edge that names itself, by mistake, does not keep the client busy."""
    world = Bundled()
    edge: Any = world.fleet.nodes["e1"]
    edge.head_endpoint = "mem://e1"
    client = client_of(world, "mem://e1")
    client.subscriber("t").subscribe("[topic,=,'t0']")
    world.run(2.0)
    assert 2 <= client.counters["heads_followed"] <= 2.0 / OWN.backoff_seconds + 2
    assert len(client.home.addresses) == 2


def test_who_is_no_edge_of_ours_cannot_send_a_client_on():
    world = Bundled()
    client = client_of(world, "mem://h")
    late = client.subscriber("t")
    late.subscribe("[price,>,0]")
    run(world, client, lambda _: late.is_acknowledged)
    [served] = [name for name in EDGES if "t" in world.fleet.edge(name).attachments.by_subscriber]
    edge = world.fleet.edge(served)
    [attachment] = edge.attachments.by_subscriber.values()
    edge.say(attachment.link, msg.SeeHead("h2", "mem://h2", ""))
    world.run(0.5)
    assert client.home.head == "h"
    assert client.counters["heads_followed"] == 0
