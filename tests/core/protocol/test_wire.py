"""Frames: the vectors, what is refused and how, and the bytes that the hot path writes by hand."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from tests.vectors import make

from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol import wire

FRAMES = make.frame_vectors()


@pytest.mark.parametrize("name", make.FILES)
def test_the_vector_files_are_what_the_script_makes(name: str):
    assert (make.HERE / name).read_text() == make.text(name), "run `python tests/vectors/make.py`, and say why"


@pytest.mark.parametrize("vector", FRAMES, ids=[v["name"] for v in FRAMES])
def test_every_frame_decodes_to_its_values_and_back(vector: dict[str, Any]):
    data = bytes.fromhex(vector["hex"])
    frame = wire.decode_frame(data)
    assert frame.version == wire.VERSION
    assert frame.kind == vector["value"][1] == wire.frame_kind(data)
    again = msgspec.msgpack.encode(frame)
    assert msgspec.msgpack.decode(again) == msgspec.msgpack.decode(data)


def test_there_is_a_vector_of_every_kind():
    assert {vector["value"][1] for vector in FRAMES} == set(range(10))


@pytest.mark.parametrize(("name", "code", "text"), make.BAD, ids=[name for name, _, _ in make.BAD])
def test_invalid_frames_are_refused_with_their_code(name: str, code: str, text: str):
    with pytest.raises(wire.WireError) as caught:
        wire.decode_frame(bytes.fromhex(text))
    assert caught.value.code == code
    assert str(caught.value)


@pytest.mark.parametrize("kind", range(10))
def test_a_frame_that_is_cut_short_anywhere_is_refused(kind: int):
    for vector in FRAMES:
        data = bytes.fromhex(vector["hex"])
        if data[2] == kind:
            for length in range(len(data)):
                with pytest.raises(wire.WireError):
                    wire.decode_frame(data[:length])


def test_fields_that_a_later_version_adds_at_the_end_are_passed_over():
    frame = wire.decode_frame(msgspec.msgpack.encode([1, wire.PING, 5, 6, "new", [1]]))
    assert frame == wire.Beat(1, wire.PING, 5, 6)


def test_nesting_that_is_too_deep_is_refused():
    deep = b"\x91" * 100_000 + b"\xc0"
    for data in (b"\x94\x01\x08" + b"\x90" + deep, b"\x93\x01\x08" + deep, b"\x93\x01\x08\x91" + deep):
        with pytest.raises(wire.WireError) as caught:
            wire.decode_frame(data)
        assert caught.value.code == "malformed"


@pytest.mark.parametrize("seq", [1, 127, 2**32, 2**63 - 1])
def test_the_head_of_a_data_frame_written_by_hand_is_msgpack(seq: int):
    records = [wire.encode(msg.Credit(1, seq)), wire.encode(msg.Pause(2))]
    cut = [records[0][:1], records[0][1:], records[1]]
    data = wire.data_frame(2**32 - 1, 1, seq, seq - 1, seq, cut, 2)
    frame = wire.decode_frame(data)
    assert isinstance(frame, wire.Data)
    assert (frame.link, frame.flags, frame.seq, frame.ack, frame.credit) == (2**32 - 1, 1, seq, seq - 1, seq)
    assert [bytes(raw) for raw in frame.records] == records
    assert len(data) == wire.DATA_HEAD_BYTES + sum(map(len, records))


def test_a_control_frame_holds_several_records():
    frame = wire.decode_frame(wire.control_frame(msg.StatusQuery(1), msg.Leave()))
    assert isinstance(frame, wire.Control)
    assert [msg.decode(msg.control, raw) for raw in frame.records] == [msg.StatusQuery(1), msg.Leave()]


def test_a_frame_has_a_bounded_number_of_records():
    """Each is an object before any is looked at: a million of one byte would take a tenth of a second and 60 MiB."""
    most = wire.RECORDS_AT_MOST
    assert most * 3 > 64 * 1024, "a sender that closes frames at 64 KiB never has more, of three bytes each"
    frame = wire.decode_frame(wire.data_frame(1, 0, 1, 0, 9, [b"\x90"] * most, most))
    assert isinstance(frame, wire.Data)
    with pytest.raises(wire.WireError, match="length <= 32768"):
        wire.decode_frame(wire.data_frame(1, 0, 1, 0, 9, [b"\x90"] * (most + 1), most + 1))
