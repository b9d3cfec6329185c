"""Profiles as bytes and in pieces: what is put together is what was sent, and nothing else is a profile."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.core import records as r
from plimsoll.core import wire
from plimsoll.core.balancing.pieces import PIECE_BYTES, Gathering, decoded, encoded, pieces, slices
from plimsoll.core.policies.profile import Profile, Row
from plimsoll.core.policies.traffic import Block, Traffic
from plimsoll.core.wire import WireError

QUERY = r.ProfileQuery(7, "e1", "e2")


@st.composite
def profiles(draw: st.DrawFn) -> Profile:
    blocks = [Block(draw(st.integers(0, 20)), draw(st.floats(0, 1e6)), draw(st.floats(0, 1e6))) for _ in range(3)]
    traffic = Traffic(blocks)
    bits = st.integers(0, (1 << traffic.width) - 1)
    rows = tuple(
        Row(f"k{i}", draw(bits), tuple(f"s{i}.{j}" for j in range(draw(st.integers(1, 3)))), draw(st.integers(1, 5)))
        for i in range(draw(st.integers(0, 4)))
    )
    takers = tuple((f"e{i}", draw(bits)) for i in range(draw(st.integers(0, 3))))
    return Profile(traffic, rows, draw(bits), draw(st.floats(0, 100)), draw(bits), takers)


@given(profiles())
def test_a_profile_comes_back_as_it_was(profile: Profile):
    back = decoded(encoded(profile))
    assert back.traffic.blocks == profile.traffic.blocks
    assert (back.rows, back.accepting, back.rest) == (profile.rows, profile.accepting, profile.rest)
    assert (back.overhead_bytes, back.takers) == (profile.overhead_bytes, profile.takers)


@pytest.mark.parametrize("seed", range(20))
def test_pieces_may_come_twice_and_in_any_order(seed: int):
    draw = random.Random(seed)
    data = draw.randbytes(draw.randrange(1, 5 * PIECE_BYTES))
    sent = pieces(QUERY, 3, data)
    assert max(len(wire.control_frame(piece)) for piece in sent) < 2**20
    come = [*sent, *draw.choices(sent, k=3)]
    draw.shuffle(come)
    gathering = Gathering()
    wholes = [whole for piece in come if (whole := gathering.take(piece)) is not None]
    assert wholes[0] == data, seed


def test_pieces_of_an_edge_that_started_anew_do_not_mix_with_those_before():
    old, new = pieces(QUERY, 3, b"a" * (2 * PIECE_BYTES)), pieces(QUERY, 4, b"b" * (2 * PIECE_BYTES))
    gathering = Gathering()
    assert gathering.take(old[0]) is None
    assert gathering.take(new[1]) is None
    assert gathering.take(old[0]) is None
    assert gathering.take(new[0]) == b"b" * (2 * PIECE_BYTES)


def test_numbers_of_pieces_that_make_no_sense_are_ignored():
    gathering = Gathering()
    for part, parts in ((0, 0), (1, 1), (5, 2), (0, 10**6)):
        assert gathering.take(r.ProfileReply(7, "e1", 3, part, parts, b"x")) is None


def test_a_cover_goes_in_parts_that_fit_and_what_has_no_room_is_left_out():
    texts = ["x" * 1000] * 2000
    parts = slices(texts, 1_000_000)
    assert 900 <= sum(map(len, parts)) < 1000
    assert all(len(wire.control_frame(r.ProfileQuery(7, "e1", "e2", 0, 9, part))) < 2**20 for part in parts)
    assert slices([]) == []


BLOCK = r.BlockItem(8, 1.0, 10.0)


@pytest.mark.parametrize(
    "body",
    [
        r.ProfileBody([BLOCK], b"\x00\x01", 0.0, []),
        r.ProfileBody([BLOCK], b"", 0.0, [], b"\x00\x01"),
        r.ProfileBody([BLOCK], b"", float("nan"), []),
        r.ProfileBody([r.BlockItem(8, float("inf"), 1.0)], b"", 0.0, []),
        r.ProfileBody([r.BlockItem(8, -1.0, 1.0)], b"", 0.0, []),
        r.ProfileBody([BLOCK], b"", 0.0, [r.RowItem("k", b"\x00\x01", 1, ["s"])]),
        r.ProfileBody([BLOCK], b"", 0.0, [r.RowItem("k", b"", 1, [])]),
        r.ProfileBody([BLOCK], b"", 0.0, [r.RowItem("k", b"", 1, ["s", "s"])]),
        r.ProfileBody([BLOCK], b"", 0.0, [r.RowItem("k", b"", 1, ["s"]), r.RowItem("k", b"", 1, ["t"])]),
        r.ProfileBody([BLOCK], b"", 0.0, [r.RowItem("k", b"", 1, ["s"]), r.RowItem("l", b"", 1, ["s"])]),
    ],
)
def test_what_makes_no_sense_is_no_profile(body: r.ProfileBody):
    with pytest.raises(WireError, match="profile"):
        decoded(wire.encode(body))


@given(st.binary(max_size=100))
def test_any_bytes_are_a_profile_or_refused(data: bytes):
    try:
        decoded(data)
    except WireError as error:
        assert error.code == "malformed"
