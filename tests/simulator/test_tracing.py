"""Whatever a frame holds, it can be read."""

from __future__ import annotations

from plimsoll.core import records as r
from plimsoll.core import wire
from plimsoll.simulator.tracing import described


def test_frames_are_told_by_name():
    frame = wire.data_frame(1, 0, 4, 2, 9, [wire.encode(r.Progress(7)), wire.encode(r.Join("s"))], 2)
    told = described(frame)
    assert told.startswith("DATA 4 ack 2 credit 9: Progress[7")
    assert "Join['s'" in told
    assert described(wire.control_frame(r.StatusQuery(3))) == "CONTROL StatusQuery[3]"
    assert described(wire.hello_frame(5, 0, False, wire.Info("x", "client", 1))).startswith("Hello(")


def test_what_is_no_frame_is_told_too():
    assert described(b"garbage").startswith("7 bytes that are no frame")
    assert "99" in described(wire.data_frame(1, 0, 1, 0, 0, [b"\x91\x63"], 1))
