"""Profiles as bytes and in pieces: what is put together is what was sent, and nothing else is a profile."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.core.policies.model.profile import ProfileRow, SubscriptionProfile
from plimsoll.core.policies.model.traffic import SampleBlock, SampledTraffic
from plimsoll.core.profiling.profile_codec import (
    PIECE_BYTES,
    ProfileAssembly,
    decode_profile,
    encode_profile,
    split_reply,
    split_texts,
)
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol import wire
from plimsoll.core.protocol.wire import WireError

QUERY = msg.ProfileQuery(7, "e1", "e2")


@st.composite
def profiles(draw: st.DrawFn) -> SubscriptionProfile:
    blocks = [SampleBlock(draw(st.integers(0, 20)), draw(st.floats(0, 1e6)), draw(st.floats(0, 1e6))) for _ in range(3)]
    traffic = SampledTraffic(blocks)
    bits = st.integers(0, (1 << traffic.width) - 1)
    rows = tuple(
        ProfileRow(
            f"k{i}", draw(bits), tuple(f"s{i}.{j}" for j in range(draw(st.integers(1, 3)))), draw(st.integers(1, 5))
        )
        for i in range(draw(st.integers(0, 4)))
    )
    takers = tuple((f"e{i}", draw(bits)) for i in range(draw(st.integers(0, 3))))
    return SubscriptionProfile(traffic, rows, draw(bits), draw(st.floats(0, 100)), draw(bits), takers)


@given(profiles())
def test_a_profile_comes_back_as_it_was(profile: SubscriptionProfile):
    back = decode_profile(encode_profile(profile))
    assert back.traffic.blocks == profile.traffic.blocks
    assert (back.rows, back.accepting, back.rest) == (profile.rows, profile.accepting, profile.rest)
    assert (back.overhead_bytes, back.takers) == (profile.overhead_bytes, profile.takers)


@pytest.mark.parametrize("seed", range(20))
def test_pieces_may_come_twice_and_in_any_order(seed: int):
    draw = random.Random(seed)
    data = draw.randbytes(draw.randrange(1, 5 * PIECE_BYTES))
    sent = split_reply(QUERY, 3, data)
    assert max(len(wire.control_frame(piece)) for piece in sent) < 2**20
    come = [*sent, *draw.choices(sent, k=3)]
    draw.shuffle(come)
    gathering = ProfileAssembly()
    wholes = [whole for piece in come if (whole := gathering.take(piece)) is not None]
    assert wholes[0] == data, seed


def test_pieces_of_a_restarted_edge_do_not_mix_with_earlier_ones():
    old, new = split_reply(QUERY, 3, b"a" * (2 * PIECE_BYTES)), split_reply(QUERY, 4, b"b" * (2 * PIECE_BYTES))
    gathering = ProfileAssembly()
    assert gathering.take(old[0]) is None
    assert gathering.take(new[1]) is None
    assert gathering.take(old[0]) is None
    assert gathering.take(new[0]) == b"b" * (2 * PIECE_BYTES)


def test_numbers_of_pieces_that_make_no_sense_are_ignored():
    gathering = ProfileAssembly()
    for part, parts in ((0, 0), (1, 1), (5, 2), (0, 10**6)):
        assert gathering.take(msg.ProfileReply(7, "e1", 3, part, parts, b"x")) is None


def test_a_cover_goes_in_parts_that_fit_and_what_has_no_room_is_left_out():
    texts = ["x" * 1000] * 2000
    parts = split_texts(texts, 1_000_000)
    assert 900 <= sum(map(len, parts)) < 1000
    assert all(len(wire.control_frame(msg.ProfileQuery(7, "e1", "e2", 0, 9, part))) < 2**20 for part in parts)
    assert split_texts([]) == []


BLOCK = msg.BlockItem(8, 1.0, 10.0)


@pytest.mark.parametrize(
    "body",
    [
        msg.ProfileBody([BLOCK], b"\x00\x01", 0.0, []),
        msg.ProfileBody([BLOCK], b"", 0.0, [], b"\x00\x01"),
        msg.ProfileBody([BLOCK], b"", float("nan"), []),
        msg.ProfileBody([msg.BlockItem(8, float("inf"), 1.0)], b"", 0.0, []),
        msg.ProfileBody([msg.BlockItem(8, -1.0, 1.0)], b"", 0.0, []),
        msg.ProfileBody([BLOCK], b"", 0.0, [msg.RowItem("k", b"\x00\x01", 1, ["s"])]),
        msg.ProfileBody([BLOCK], b"", 0.0, [msg.RowItem("k", b"", 1, [])]),
        msg.ProfileBody([BLOCK], b"", 0.0, [msg.RowItem("k", b"", 1, ["s", "s"])]),
        msg.ProfileBody([BLOCK], b"", 0.0, [msg.RowItem("k", b"", 1, ["s"]), msg.RowItem("k", b"", 1, ["t"])]),
        msg.ProfileBody([BLOCK], b"", 0.0, [msg.RowItem("k", b"", 1, ["s"]), msg.RowItem("l", b"", 1, ["s"])]),
    ],
)
def test_what_makes_no_sense_is_no_profile(body: msg.ProfileBody):
    with pytest.raises(WireError, match=r"profile|record"):
        decode_profile(wire.encode(body))


@given(st.binary(max_size=100))
def test_any_bytes_are_a_profile_or_refused(data: bytes):
    try:
        decode_profile(data)
    except WireError as error:
        assert error.code == "malformed"


EACH = (("[a,=,1]", 1), ("[b,=,2]", 6))


def each_profile(texts: tuple[str, ...]) -> SubscriptionProfile:
    traffic = SampledTraffic([SampleBlock(3, 1.0, 10.0)])
    return SubscriptionProfile(traffic, (ProfileRow("k", 7, ("s",), 2, texts),), each=EACH)


def test_subscriptions_travel_once_and_rows_name_them():
    profile = each_profile(("[a,=,1]", "[b,=,2]"))
    found = decode_profile(encode_profile(profile))
    assert (found.rows, found.each) == (profile.rows, EACH)


def test_a_row_of_which_a_subscription_is_missing_names_none():
    assert decode_profile(encode_profile(each_profile(("[a,=,1]", "[c,=,3]")))).rows[0].texts == ()


@pytest.mark.parametrize("places", [[2], [0, 0]])
def test_places_of_subscriptions_that_cannot_be_are_refused(places: list[int]):
    body = msg.decode(msg.profile, encode_profile(each_profile(("[a,=,1]",))))
    rows = [msg.RowItem("k", b"\x07", 2, ["s"], places)]
    wrong = msg.ProfileBody(body.blocks, body.accepting, body.overhead_bytes, rows, body.rest, [], body.each)
    with pytest.raises(WireError, match="names a subscription that is not there, or one twice"):
        decode_profile(wire.encode(wrong))


def test_a_subscription_is_there_once():
    body = msg.decode(msg.profile, encode_profile(each_profile(("[a,=,1]",))))
    twice = msg.ProfileBody(body.blocks, body.accepting, 0.0, body.rows, body.rest, [], [*body.each, body.each[0]])
    with pytest.raises(WireError, match="one subscription twice"):
        decode_profile(wire.encode(twice))
