"""The exchange as it is shown to people."""

from __future__ import annotations

from tests.conformance.raw_client import data, hello

from plimsoll.conformance.exchange import Exchange, describe_frame, describe_record
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol import wire


def test_a_frame_is_described_by_its_fields():
    assert describe_frame(hello()) == ("HELLO", "link 99, received 0, known False, info client 'raw' 7")
    kind, text = describe_frame(data(3, msg.Go("3.1", [msg.GoItem(6)]), msg.AttachmentClosed(5, "head", "gone"), ack=2))
    assert (kind, text) == (
        "DATA", "3 (ack 2, credit 1024): GO('3.1', [[6, None, []]]), ATTACHMENT_CLOSED(5, 'head', 'gone', 0)"
    )  # fmt: skip
    assert describe_frame(data(1)) == ("DATA", "1 (ack 0, credit 1024): no records")


def test_bytes_that_are_no_frame_are_shown():
    assert describe_frame(b"\x01\x02")[0] == "?"
    assert describe_record(b"\xc1").startswith("unreadable")
    assert describe_record(b"\xa1a") == "no record: 'a'"
    assert describe_record(b"\x92\xcd\x03\xe7\x01") == "record 999(1)"


def test_long_values_are_cut():
    record = wire.encode(msg.AttachmentClosed(5, "head", "x" * 500))
    assert len(describe_record(record)) < 220


def test_heartbeats_are_left_out_unless_something_was_done_with_them():
    exchange = Exchange()
    exchange.frame(1.0, "client", "e1", wire.ping_frame(99, 5))
    exchange.frame(1.0, "client", "e1", wire.ping_frame(99, 5), "no link")
    exchange.note(2.5, "order", "client", "", "stop")
    assert len(exchange.lines) == 3
    first, second = exchange.text()
    assert first.endswith("[no link]")
    assert second.split() == ["2.500", "order", "->", "client", "stop"]
