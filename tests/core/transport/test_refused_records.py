"""Every record of a client that cannot be taken is answered, so that its sender can read it, within bounds."""

from __future__ import annotations

import tracemalloc
from typing import Any

import msgspec
import pytest
from tests.core.fleet import STOCK, Fleet, one_cluster, resume

from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol import wire
from plimsoll.core.protocol.wire import WireError
from plimsoll.core.transport.refused_records import (
    ANSWERS_A_SECOND,
    ANSWERS_AT_ONCE,
    TEXT_AT_MOST,
    LinkRefusals,
    link_of_frame,
    refused_record,
)

LONG = "x" * 300
BAD: list[tuple[Any, type[Any], dict[str, Any]]] = [
    ([10, 5, LONG, 1], msg.Refused, {"handle": 5, "seq": 0}),
    ([10, "5", "p", 1], msg.Refused, {"handle": 0, "seq": 0}),
    ([10, -5, "p", 1], msg.Refused, {"handle": 0, "seq": 0}),
    ([25, 6, "p"], msg.Refused, {"handle": 6, "seq": 0}),
    ([1, 5, 7, "flags"], msg.Refused, {"handle": 5, "seq": 7}),
    ([1, 5, 2**64 - 1], msg.Refused, {"handle": 5, "seq": 0}),
    ([30, 3, "s", [1, 1], 1, [], ["x"], "token", []], msg.AttachmentClosed, {"attachment": 3}),
    ([30, 3, "s", [1, 1], 1, [[1, LONG * 300]], [], None, []], msg.AttachmentClosed, {"attachment": 3}),
    ([33, 7, 3, "x", []], msg.SubRefused, {"attachment": 7, "version": 3, "id": 0}),
    ([20, "s", "x", ""], msg.Unplaced, {"subscriber": "s"}),
    ([20, LONG, [], ""], msg.Refused, {"handle": 0, "seq": 0}),
    ([41, "g", 3], msg.GroupRefused, {"group": "g"}),
    ([41, LONG, 3], msg.Refused, {"handle": 0, "seq": 0}),
    ([34, [1], 3], msg.Refused, {"handle": 0, "seq": 0}),
    ([99, 1], msg.Refused, {"handle": 0, "seq": 0}),
    ([], msg.Refused, {"handle": 0, "seq": 0}),
    (5, msg.Refused, {"handle": 0, "seq": 0}),
]


@pytest.mark.parametrize("broker", ["h", "e1"])
@pytest.mark.parametrize(("raw", "kind", "fields"), BAD)
def test_a_record_that_cannot_be_read_is_answered(broker: str, raw: Any, kind: type[Any], fields: dict[str, Any]):
    fleet = one_cluster()
    client = fleet.client("c", broker)
    client.put(client.dialled[broker], msgspec.msgpack.encode(raw))
    fleet.run(0.5)
    (answer,) = client.of(broker, kind)
    assert {name: getattr(answer, name) for name in fields} == fields
    assert answer.text.startswith("record: ")
    assert len(wire.encode(answer)) < TEXT_AT_MOST + 300
    assert getattr(answer, "code", "malformed") == "malformed"
    assert (client.refusals, client.lost) == ([], [])


def test_a_request_for_another_broker_and_a_name_of_slices_are_answered():
    fleet = one_cluster()
    client = fleet.client("c", "h", "e1")
    fleet.run(30.0)  # by then a head that has restarted would know of its groups
    client.tell("h", resume(1, "a@@1", STOCK))
    client.tell("e1", resume(2, "a@@1", STOCK), msg.Publish(5, 7, 0, 0, msgspec.Raw(b"\x92\x80\xc4\x00")))
    fleet.run(1.0)
    assert [(each.attachment, each.code) for each in client.of("h", msg.AttachmentClosed)] == [(1, "misplaced")]
    assert [each.attachment for each in client.of("e1", msg.AttachmentClosed)] == [2]
    assert [(each.handle, each.seq, each.code) for each in client.of("e1", msg.Refused)] == [(5, 7, "misplaced")]


@pytest.mark.parametrize("broker", ["h", "e1"])
def test_answers_are_bounded_by_time_and_none_repeats_the_record(broker: str):
    fleet = one_cluster()
    client = fleet.client("c", broker)
    for _ in range(500):
        client.put(client.dialled[broker], msgspec.msgpack.encode([99]))
    fleet.run(1.0)
    told = len(client.of(broker, msg.Refused))
    assert ANSWERS_AT_ONCE <= told <= ANSWERS_AT_ONCE + ANSWERS_A_SECOND + 1
    node: Any = fleet.nodes[broker]
    assert node.counters["records_refused_malformed"] == 500
    assert node.counters["records_refused_unanswered"] == 500 - told
    fleet.run(5.0)
    client.put(client.dialled[broker], msgspec.msgpack.encode([99]))
    fleet.run(0.5)
    assert len(client.of(broker, msg.Refused)) == told + 1
    quoted = refused_record(b"\xc0", WireError("malformed", f"Invalid value '{LONG * 1000}'"))
    assert len(quoted.text) == TEXT_AT_MOST + 1
    assert "\n" not in refused_record(b"\xc0", WireError("malformed", "a\nb")).text


def test_what_is_over_is_forgotten():
    fleet = one_cluster()
    client = fleet.client("c", "e1")
    client.put(client.dialled["e1"], msgspec.msgpack.encode([99]))
    fleet.run(0.5)
    edge = fleet.edge("e1")
    assert len(edge.client_intake._refusals) == 1
    fleet.crash("c")
    fleet.run(10.0)
    assert edge.client_intake._refusals == {}


def test_a_share_comes_back_with_time_and_a_clock_that_stands_still_gives_none():
    refusals = LinkRefusals(5.0)
    assert sum(refusals.may_answer(5.0) for _ in range(100)) == ANSWERS_AT_ONCE
    assert not refusals.may_answer(4.0)
    assert refusals.may_answer(6.0)
    assert sum(refusals.may_answer(1e9) for _ in range(100)) == ANSWERS_AT_ONCE


def hello(name: str, link: int = 77) -> bytes:
    return msgspec.msgpack.encode([1, wire.HELLO, link, 0, False, {"name": name, "role": "client", "incarnation": 1}])


def test_a_hello_that_cannot_be_read_is_answered_at_once_and_then_ever_more_rarely():
    fleet: Fleet = one_cluster()
    node = fleet.edge("e1")
    for _ in range(100):
        node.receive(b"stranger", [hello(LONG)], fleet.now)
    out = [wire.decode_frame(data) for peer, data in node._out if peer == b"stranger"]
    assert [type(frame) for frame in out] == [wire.Refuse] * 4, "the first, the eighth, the tenth, the hundredth"
    first = out[0]
    assert isinstance(first, wire.Refuse)
    assert (first.link, first.code) == (77, "malformed")
    assert "length <= 253" in first.text


def test_the_text_of_a_refusal_is_short_however_long_the_hello():
    fleet: Fleet = one_cluster()
    node = fleet.edge("e1")
    data = msgspec.msgpack.encode([1, wire.HELLO, 7, 0, False, {"name": "c", "role": "r" * 200_000, "incarnation": 1}])
    node.receive(b"stranger", [data], fleet.now)
    (refuse,) = [data for peer, data in node._out if peer == b"stranger"]
    assert len(refuse) < TEXT_AT_MOST + 100


@pytest.mark.parametrize(
    "data", [b"", b"\xc1", b"\x91\x01", b"\x93\x01\x02\xa1x", b"\x93\x01\x02\xff", b"\x91" * 10_000]
)
def test_a_frame_without_a_link_names_none(data: bytes):
    assert link_of_frame(data) == 0


def test_a_record_of_very_many_values_is_answered_without_reading_them():
    count = 200_000
    raw = b"\xdd" + count.to_bytes(4, "big") + bytes([1, 9]) + b"\xc0" * (count - 2)
    tracemalloc.start()
    try:
        answer, link = refused_record(raw, WireError("malformed", "")), link_of_frame(raw)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert isinstance(answer, msg.Refused)
    assert link == 0
    assert peak < 100_000
