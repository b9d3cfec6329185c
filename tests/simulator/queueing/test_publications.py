"""A publication knows its subscribers as bits, as the index of the product finds them."""

import pytest

from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol import wire
from plimsoll.simulator.queueing.publications import ContentTable, publication_bytes
from plimsoll.simulator.queueing.traffic import RateStep, TrafficPublisher, TrafficSubscriber

PUBLISHER = TrafficPublisher("p", "h", ({"x": 1}, {"x": 2}, {"x": 7}), (RateStep(0.0, 1.0),))
SUBSCRIBERS = [
    TrafficSubscriber("small", "c", ("[x,<,2]",)),
    TrafficSubscriber("both", "c", ("[x,<,3]", "[x,=,2]")),
    TrafficSubscriber("none", "c", ("[y,>,0]",)),
]


def test_the_mask_has_a_bit_for_each_subscriber_that_matches():
    table = ContentTable(SUBSCRIBERS)
    found = [table.members(table.content(PUBLISHER, n).mask) for n in range(3)]
    assert found == [["small", "both"], ["both"], []]


def test_contents_start_over_and_are_matched_once():
    table = ContentTable(SUBSCRIBERS)
    assert table.content(PUBLISHER, 4) is table.content(PUBLISHER, 1)


def test_the_size_is_that_on_the_wire():
    body = wire.encode(msg.Body({"x": 1}, b""))
    size = publication_bytes(PUBLISHER, {"x": 1}, 0)
    assert len(body) < size < len(body) + 60
    assert 1000 <= publication_bytes(PUBLISHER, {"x": 1}, 1000) - size <= 1003


def test_each_publication_has_its_own_size():
    table, sized = ContentTable(SUBSCRIBERS), TrafficPublisher("p", "h", ({"x": 1},), (), payload_sizes=(1000, 3000))
    sizes = [table.content(sized, n).size_bytes for n in range(3)]
    assert sizes[1] - sizes[0] == pytest.approx(2000, abs=3)
    assert sizes[2] == sizes[0]
    assert table.members(table.content(sized, 1).mask) == ["small", "both"]


def test_a_payload_of_equal_publications_counts():
    heavy = TrafficPublisher("p", "h", ({"x": 1},), (RateStep(0.0, 1.0),), payload_bytes=1000)
    assert ContentTable(SUBSCRIBERS).content(heavy, 0).size_bytes == publication_bytes(heavy, {"x": 1}, 1000)
