"""A trace has a readable line for every frame, also for bytes that are not one."""

from __future__ import annotations

from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol import wire
from plimsoll.simulator.engine.frame_trace import describe_frame


def test_records_are_described_by_name():
    frame = wire.data_frame(1, 0, 4, 2, 9, [wire.encode(msg.Progress(7)), wire.encode(msg.Join("s"))], 2)
    line = describe_frame(frame)
    assert line.startswith("DATA 4 ack 2 credit 9: Progress[7")
    assert "Join['s'" in line
    assert describe_frame(wire.control_frame(msg.StatusQuery(3))) == "CONTROL StatusQuery[3]"
    assert describe_frame(wire.hello_frame(5, 0, False, wire.Info("x", "client", 1))).startswith("Hello(")


def test_bytes_that_are_not_a_frame_are_described():
    assert describe_frame(b"garbage").startswith("7 bytes that are not a frame")
    assert "200" in describe_frame(wire.data_frame(1, 0, 1, 0, 0, [b"\x91\xcc\xc8"], 1))
