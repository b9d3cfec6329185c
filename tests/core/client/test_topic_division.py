"""Applications that are divided into units, against real brokers: nothing is lost, repeated or reordered by topic."""

from __future__ import annotations

import json
import random

import pytest
from tests.core.client.bundled import EDGES, POLICY, Bundled
from tests.examples import examples

from plimsoll.core.client import Acknowledged, Detached, Forgotten, GapNotice, Lapsed, SubscriptionRefused
from plimsoll.core.client.subscriber import SubscriberPhase
from plimsoll.core.client.subscriber_topics import SubscriberTopics
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol.topic_units import topic_hash

TOPICS = tuple(f"t{number}" for number in range(12))


def test_a_subscriber_of_topics_is_served_as_units_where_their_bundles_are():
    world = Bundled()
    subscriber = world.subscribe("s", *TOPICS)
    assert subscriber.phase is SubscriberPhase.IDLE, "it needs no edge itself"
    assert {f"s#{topic_hash(topic):08x}" for topic in TOPICS} == set(world.fleet.head().owners.entries)
    for bundle in world.partition.ranges:
        assert world.places(bundle) == {world.owner(bundle)}, "one edge serves all of a bundle"
    world.publish(*TOPICS, *TOPICS)
    world.check()
    assert subscriber.statistics()["units"] == len(TOPICS)
    assert subscriber.statistics()["delivered"] == 24


def test_no_lookup_no_owner():
    world = Bundled()
    assert [world.owner(bundle) for bundle in world.partition.ranges] == ["", ""]
    world.subscribe("s", "t0")
    assert sum(bool(world.owner(bundle)) for bundle in world.partition.ranges) == 1


def test_ids_and_acknowledgements_are_the_application_s():
    world = Bundled()
    subscriber = world.client.subscriber("s")
    one = subscriber.subscribe("[topic,in,('t0','t1','t2')]")
    other = subscriber.subscribe("[price,>,8]")
    world.run(until=lambda: subscriber.is_acknowledged)
    counted = [i for event in world.told["s"] if isinstance(event, Acknowledged) for i in event.ids]
    assert sorted(counted) == [one, other]
    assert set(subscriber.subscriptions) == {one, other}
    subscriber.unsubscribe(one)
    world.run(until=lambda: subscriber.is_acknowledged)
    assert [event.ids for event in world.told["s"] if isinstance(event, Forgotten)] == [(one,)]
    assert isinstance(subscriber.topics, SubscriberTopics)
    assert subscriber.topics.units == {}, "units end with their last subscription"
    assert set(world.client.subscribers) == {"s"}


def test_what_matches_a_topic_and_more_comes_once():
    """The rest asks for prices, the units for topics; both are sent the same publications by different edges."""
    world = Bundled(seed=3)
    subscriber = world.client.subscriber("s")
    for topic in ("t0", "t1", "t2", "t3"):
        subscriber.subscribe(f"[topic,=,'{topic}']")
    subscriber.subscribe("[price,>=,5]")
    world.run(until=lambda: subscriber.is_acknowledged)
    for _ in range(40):
        world.publish("t0", "t1", "t2", "t3", "t7")
        world.run(0.02)
    world.run(1.5)
    assert [world.numbers("s", topic) for topic in ("t0", "t1", "t2", "t3")] == [list(range(1, 41))] * 4
    assert world.numbers("s", "t7") == [n for n, price in world.sent["t7"] if price >= 5]
    assert subscriber.statistics()["overlaps"] == 80
    assert isinstance(subscriber.topics, SubscriberTopics)
    assert len(subscriber.topics.overlap) == 0, "what both sides have passed is forgotten"


def test_a_refused_part_refuses_the_whole_subscription():
    world = Bundled()
    subscriber = world.subscribe("s", "t0")
    unit = subscriber.topics.units[topic_hash("t0")]
    item = subscriber.subscribe("[topic,in,('t0','t1')]")
    part = max(unit.subscriptions)
    unit.subscription_list.on_subrefused(type("Refused", (), {"id": part, "text": "too many"})())
    world.run(1.0)
    refused = [event for event in world.told["s"] if isinstance(event, SubscriptionRefused)]
    assert [(event.id, event.text) for event in refused] == [(item, "too many")]
    assert set(subscriber.topics.units) == {topic_hash("t0")}


def test_topics_that_are_withdrawn_and_asked_for_again_meet_no_refusal():
    """Brokers remember the owner epoch of a unit that has ended; the next unit of its name begins behind it."""
    world = Bundled()
    subscriber = world.subscribe("s", "t0")
    for _ in range(12):
        for item in list(subscriber.subscriptions):
            subscriber.unsubscribe(item)
        world.run(until=lambda: subscriber.is_acknowledged)
        world.subscribe("s", "t0")
        world.publish("t0")
        world.run(0.2)
    assert subscriber.failed is None
    assert [event for event in world.told["s"] if isinstance(event, Detached)] == []
    assert world.numbers("s", "t0") == list(range(1, 13))


def test_units_that_outlive_a_policy_own_their_bundles_when_it_comes_back():
    world = Bundled()
    world.subscribe("s", *TOPICS)
    before = dict(world.fleet.head().bundles.owners)
    for policy in ({"type": "Padres"}, POLICY):
        world.mediator.say_control("h", msg.ClusterPolicy(json.dumps(policy)))
        world.run(0.2)
    world.mediator.say_control("h", msg.BundleTable(1, 0, list(world.partition.boundaries), [], []))
    world.run(0.2)
    assert world.fleet.head().bundles.owners == before


def test_a_bundle_moves_by_hand_over_and_newcomers_meet_it_there():
    world = Bundled()
    for name in ("s", "t", "u"):
        world.subscribe(name, *TOPICS)
    bundle = world.partition.ranges[0]
    source = world.owner(bundle)
    target = next(edge for edge in EDGES if edge != source)
    world.publish(*TOPICS)
    world.table({bundle: target})
    world.subscribe("late", *TOPICS)
    assert [name for name in world.units(source, bundle) if name.startswith("late")] == [], "no lookup answers it now"
    world.publish(*TOPICS)
    world.move(bundle, source, target)
    world.publish(*TOPICS)
    world.check()
    assert world.places(bundle) == {target}


def test_released_units_look_their_bundle_up_again_and_miss_nothing():
    world = Bundled()
    for name in ("s", "t", "u"):
        world.subscribe(name, *TOPICS)
    bundle = world.partition.ranges[1]
    before = world.owner(bundle)
    for _ in range(5):
        world.publish(*TOPICS)
        world.run(0.01)
    world.table(released=(bundle,))
    world.publish(*TOPICS)
    world.run(1.0)
    world.publish(*TOPICS)
    world.check()
    assert world.places(bundle) == {world.owner(bundle)} != {before}
    assert all(not world.gaps(name) for name in ("s", "t", "u"))


def test_a_head_that_restarts_has_ranges_and_owners_from_its_edges():
    world = Bundled()
    world.subscribe("s", *TOPICS)
    world.split(world.partition.ranges[0])
    owners = dict(world.fleet.head().bundles.owners)
    world.fleet.crash("h")
    world.run(0.5)
    world.fleet.start("h")
    world.run(3.0)
    head = world.fleet.head()
    assert head.bundles.partition == world.partition
    assert head.bundles.version == (1, 1)
    served = {bundle: edge for bundle, edge in owners.items() if world.places(bundle)}
    assert {bundle: head.bundles.owners.get(bundle) for bundle in served} == served


def test_without_bundles_a_subscriber_stays_whole():
    world = Bundled(policy={"type": "Padres"})
    subscriber = world.subscribe("s", "t0", "t1")
    assert subscriber.topics is None
    assert set(world.fleet.head().owners.entries) == {"s"}
    world.publish("t0", "t1")
    world.check()


def test_an_application_comes_back_with_its_token_and_the_marks_of_its_units():
    world = Bundled()
    subscriber = world.subscribe("s", *TOPICS)
    world.publish(*TOPICS)
    world.run(0.5)
    slow = world.owner(world.partition.ranges[0])
    world.fleet.freeze(slow)  # units of the other bundle get ahead
    world.publish(*TOPICS)
    world.run(0.5)
    world.fleet.thaw(slow)
    token = subscriber.token
    marks = [*subscriber.stream.marks(), *subscriber.topics.marks()]
    subscriber.close(withdraw=False)
    world.publish(*TOPICS)
    world.run(0.3)
    again = world.client.subscriber("s", token=token, watermarks=marks)
    for topic in TOPICS:
        again.subscribe(f"[topic,=,'{topic}']")
    world.run(until=lambda: again.is_acknowledged)
    world.publish(*TOPICS)
    world.check()


@pytest.mark.parametrize("lapses", ["a unit", "the rest"])
def test_what_lapses_voids_only_its_own_subscriptions(lapses: str):
    world = Bundled()
    subscriber = world.client.subscriber("s")
    one, both, rest = (
        subscriber.subscribe(f"[{text}]") for text in ("topic,=,'t0'", "topic,in,('t0','t1')", "price,>,8")
    )
    other = subscriber.subscribe("[topic,=,'t2']")
    world.run(until=lambda: subscriber.is_acknowledged)
    world.told["s"].clear()
    assert isinstance(subscriber.topics, SubscriberTopics)
    part = subscriber.topics.units[topic_hash("t0")] if lapses == "a unit" else subscriber
    assert part.subscription_list.void()
    part.tell(Lapsed())
    if part is subscriber:
        subscriber.topics.lapsed(subscriber)
    world.run(0.01)
    void, again = world.told["s"]
    assert isinstance(void, Lapsed)
    assert set(again.ids) == ({other, rest} if lapses == "a unit" else {one, both, other})
    part.subscription_list.report_counting()
    world.run(0.05)
    assert subscriber.is_acknowledged
    assert {i for event in world.told["s"][1:] for i in event.ids} == {one, both, other, rest}


def test_pauses_are_of_all_units():
    world = Bundled()
    subscriber = world.subscribe("s", "t0", "t1", "t2")
    subscriber.pause()
    world.run(0.3)
    world.publish("t0", "t1", "t2")
    world.run(0.5)
    assert world.numbers("s", "t0") == []
    subscriber.resume()
    world.check()


def test_a_full_queue_holds_all_units_and_lets_them_go_on():
    world = Bundled()
    subscriber = world.client.subscriber("s", holds=True)
    subscriber.stream.queue.high_records = 4
    world.subscribe("s", "t0", "t1", "t2")
    for _ in range(10):
        world.publish("t0", "t1", "t2")
        world.run(0.05)
    assert subscriber.stream.queue.is_held
    while len(world.numbers("s", "t0")) + len(world.numbers("s", "t1")) + len(world.numbers("s", "t2")) < 30:
        subscriber.stream.queue.consumed(2)
        world.run(0.1)
    world.check()


def test_a_name_of_a_unit_that_is_taken_is_a_clear_error():
    world = Bundled()
    world.subscribe("s", "t0")
    subscriber = world.client.subscribers["s"]
    world.client.subscriber(f"s#{topic_hash('t1'):08x}")
    with pytest.raises(ValueError, match="call it something else"):
        subscriber.subscribe("[topic,in,('t2','t1')]")
    assert isinstance(subscriber.topics, SubscriberTopics)
    assert set(subscriber.topics.units) == {topic_hash("t0")}, "nothing is half applied"


@pytest.mark.parametrize("name", ["s", "n" * 250])
def test_one_whose_unit_cannot_have_its_name_is_served_whole(name: str):
    """The name is taken by a subscriber that was there before the cluster was known to have topics, or is too long."""
    world = Bundled()
    world.client.subscriber(f"s#{topic_hash('t1'):08x}")
    subscriber = world.subscribe(name, "t1")
    world.publish("t1")
    world.check()
    assert subscriber.statistics().get("units", 0) == 0


@pytest.mark.parametrize("seed", range(examples(20)))
def test_whatever_happens_each_application_gets_each_publication_once_and_in_order_by_topic(seed: int):
    """Subscriptions, moves, releases, splits, cuts of links and frozen edges, in any order, under traffic."""
    draw = random.Random(f"bundles {seed}")
    world = Bundled(seed)
    names = ("s", "t", "u")
    for name in names:
        world.subscribe(name, *draw.sample(TOPICS, 4))
    for _ in range(25):
        world.publish(*draw.choices(TOPICS, k=5))
        _happen(world, draw)
        world.publish(*draw.choices(TOPICS, k=5))
        world.run(draw.uniform(0.0, 0.3))
    world.check()
    assert all(not world.gaps(name) for name in names)
    for bundle in world.partition.ranges:
        owner = world.owner(bundle)
        assert bool(owner) or not world.places(bundle), "what has units has an owner"
        for edge in sorted(world.places(bundle) - {owner}):  # units that could not reach it follow, as the policy wants
            world.move(bundle, edge, owner)
        assert world.places(bundle) <= {owner}
    world.publish(*TOPICS)
    world.check()


def _happen(world: Bundled, draw: random.Random) -> None:
    bundle = draw.choice(world.partition.ranges)
    owner, other = world.owner(bundle), draw.choice(EDGES)
    what = draw.choice(("move", "release", "split", "cut", "freeze", "subscribe", "nothing"))
    if what == "move" and owner and other != owner and world.units(owner, bundle):
        world.move(bundle, owner, other)
    elif what == "release":
        world.table(released=(bundle,))
    elif what == "split" and len(world.partition) < 8:
        world.split(bundle)
    elif what == "cut" and owner:
        world.fleet.cut("app", owner)
        world.run(0.2)
        world.fleet.mend("app", owner)
    elif what == "freeze" and owner:
        world.fleet.freeze(owner)
        world.run(0.3)
        world.fleet.thaw(owner)
    elif what == "subscribe":
        name = draw.choice(tuple(world.since))
        new = [topic for topic in TOPICS if topic not in world.since[name]]
        if new:
            world.subscribe(name, draw.choice(new))


def test_a_gap_says_of_which_topics_it_is():
    world = Bundled()
    subscriber = world.subscribe("s", "t0", "t1")
    assert isinstance(subscriber.topics, SubscriberTopics)
    lost = msg.Gap("h", 1, 5, 1, 6, [], "slow")
    subscriber.topics.units[topic_hash("t0")].tell(GapNotice(lost, 0.0))
    subscriber.tell(GapNotice(lost, 0.0))
    world.run(0.1)
    of_unit, of_rest = world.gaps("s")
    assert (of_unit.concerns("t0"), of_unit.concerns("t1")) == (True, False)
    assert (of_rest.concerns("t0"), of_rest.concerns("t1")) == (True, True)
