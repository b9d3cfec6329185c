"""Whatever a frame holds, it can be read."""

from __future__ import annotations

from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol import wire
from plimsoll.simulator.engine.frame_trace import describe_frame


def test_frames_are_told_by_name():
    frame = wire.data_frame(1, 0, 4, 2, 9, [wire.encode(msg.Progress(7)), wire.encode(msg.Join("s"))], 2)
    told = describe_frame(frame)
    assert told.startswith("DATA 4 ack 2 credit 9: Progress[7")
    assert "Join['s'" in told
    assert describe_frame(wire.control_frame(msg.StatusQuery(3))) == "CONTROL StatusQuery[3]"
    assert describe_frame(wire.hello_frame(5, 0, False, wire.Info("x", "client", 1))).startswith("Hello(")


def test_what_is_no_frame_is_told_too():
    assert describe_frame(b"garbage").startswith("7 bytes that are no frame")
    assert "99" in describe_frame(wire.data_frame(1, 0, 1, 0, 0, [b"\x91\x63"], 1))
