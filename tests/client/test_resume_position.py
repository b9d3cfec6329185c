"""The position of an application between received and handled items."""

from __future__ import annotations

import random

from plimsoll.client.resume_position import resume_token, resume_watermarks, stream_items, unprocessed_items
from plimsoll.core.client import Address, Attached, Client, ClientSubscriber, Delivery, GapNotice
from plimsoll.core.client.events import Item
from plimsoll.core.protocol import messages as msg


def delivery(position: int, head: str = "h", offset: int | None = None) -> Delivery:
    pub = msg.PubOpen(position, head, 1, offset or position, "p", 1, 1, 0, 0, msg.Body({}))
    return Delivery(pub, ("h", 1), 0.0)


def gap(low: int, high: int, low_epoch: int = 1) -> GapNotice:
    return GapNotice(msg.Gap("h", low_epoch, low, 1, high, [("g", 1, 9)], "test"), 0.0)


def subscriber(position: int, marks: list[tuple[str, int, int]]) -> ClientSubscriber:
    client = Client("c", 1, lambda: random.Random(1).getrandbits(32), [Address("tcp://h")])
    return client.subscriber("s", token=("h", 1, position), watermarks=marks)


def test_when_all_is_dealt_with_it_stands_where_the_stream_does():
    inner = subscriber(50, [("h", 1, 40)])
    assert resume_token(inner, []) == ("h", 1, 50)
    assert resume_watermarks(inner, []) == [("h", 1, 40)]


def test_it_stands_in_front_of_the_first_that_is_not_dealt_with():
    inner = subscriber(50, [("h", 1, 40), ("g", 1, 9)])
    items: list[Item] = [delivery(41, offset=38), delivery(44, offset=40), gap(45, 48)]
    assert resume_token(inner, items) == ("h", 1, 40)
    assert resume_watermarks(inner, items) == [("h", 1, 37), ("g", 1, 8)]


def test_in_front_of_a_gap_is_before_its_low_end():
    inner = subscriber(50, [])
    assert resume_token(inner, [gap(7, 20, low_epoch=0)]) == ("h", 0, 6)
    assert resume_token(inner, [gap(0, 20)]) == ("h", 1, 0)


def test_what_the_machine_still_holds_counts():
    inner = subscriber(50, [])
    inner.events.append(Attached("e", "h", False))
    inner.events.append(delivery(45))
    assert unprocessed_items(inner, [delivery(44)]) == [delivery(44), delivery(45)]
    assert stream_items([Attached("e", "h", False), gap(1, 2)]) == [gap(1, 2)]
