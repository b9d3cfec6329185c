"""Tables V and VI, and the fleets that are made of them."""

from __future__ import annotations

from plimsoll.demo import crisis_tables as tables


def test_every_topic_has_a_place_and_b1_has_those_of_figure_three():
    assert tables.GIVEN.keys() == tables.TOPICS.keys()
    assert tuple(number for number, edge in tables.GIVEN.items() if edge == "b1") == tables.AT_B1
    assert set(tables.GIVEN.values()) == set(tables.EDGES)


def test_a_faster_world_has_faster_brokers():
    one, two = (tables.crisis_resources(None, 100, speed=speed).profiles["b0"].spec for speed in (1.0, 2.0))
    rates = [each.bandwidth.output_bytes_per_second for each in (one, two)]
    assert [float(rate.value) for rate in rates if rate is not None] == [812_500, 1_625_000]
    assert one.emulation is not None
    assert two.emulation is not None
    assert two.emulation.base.seconds * 2 == one.emulation.base.seconds


def test_policies_have_the_deadlines_that_are_asked_for():
    assert len(tables.delay_sensitive(0.1, 1.0)["delaySensitive"]["topics"]) == 15
    own = tables.delay_sensitive(0.1, 1.0, {8: 0.4}, rules="Text")["delaySensitive"]
    assert own["topics"] == [{"name": "t8", "latency": "0.4s"}]
    assert (own["rules"], own["balancingTime"]) == ("Text", "0.1s")


def test_names_of_topics_are_their_rows():
    assert [tables.number_of(tables.topic_name(number)) for number in tables.TOPICS] == list(tables.TOPICS)
