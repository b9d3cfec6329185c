"""Encodes profiles in pieces that fit into frames, and puts them together again.

Pieces may come twice and in any order; those of one query and one life of the edge belong together. The bytes come from
another machine, so they are checked before they become a profile.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from plimsoll.core.policies.model.profile import ProfileRow, SubscriptionProfile
from plimsoll.core.policies.model.traffic import SampleBlock, SampledTraffic
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol import wire
from plimsoll.core.protocol.wire import WireError

PIECE_BYTES = 512 * 1024
PROFILE_BYTES = 4 * 1024 * 1024
PARTS_AT_MOST = 64
_AROUND_BYTES = 16
"""Bytes that a text takes in a message beside its characters."""


def split_texts(texts: Iterable[str], most_bytes: int = PROFILE_BYTES) -> list[list[str]]:
    """Split texts into parts that each fit into a frame; texts beyond `most_bytes` in all are left out."""
    parts: list[list[str]] = []
    room = 0
    for text in texts:
        size = len(text.encode()) + _AROUND_BYTES
        most_bytes -= size
        if most_bytes < 0:
            break
        if room < size:
            parts.append([])
            room = PIECE_BYTES
        parts[-1].append(text)
        room -= size
    return parts


def encode_profile(profile: SubscriptionProfile) -> bytes:
    """Encode a profile."""
    width = profile.traffic.width
    blocks = [msg.BlockItem(block.width, block.rate, block.size_bytes) for block in profile.traffic.blocks]
    places = {text: place for place, (text, _) in enumerate(profile.each)}
    rows = [_item(row, width, places) for row in profile.rows]
    accepting, rest = _bytes(profile.accepting, width), _bytes(profile.rest, width)
    takers = [msg.TakerItem(target, _bytes(bits, width)) for target, bits in profile.takers]
    each = [msg.EachItem(text, _bytes(bits, width)) for text, bits in profile.each]
    return wire.encode(msg.ProfileBody(blocks, accepting, profile.overhead_bytes, rows, rest, takers, each))


def _item(row: ProfileRow, width: int, places: Mapping[str, int]) -> msg.RowItem:
    each = [places[text] for text in row.texts] if places.keys() >= set(row.texts) else []
    return msg.RowItem(row.key, _bytes(row.bits, width), row.subscriptions, list(row.names), each)


def _bytes(bits: int, width: int) -> bytes:
    return bits.to_bytes((width + 7) // 8, "little")


def split_reply(query: msg.ProfileQuery, epoch: int, data: bytes) -> list[msg.ProfileReply]:
    """Split an encoded profile into the replies to a query."""
    cut = [data[at : at + PIECE_BYTES] for at in range(0, len(data), PIECE_BYTES)]
    return [msg.ProfileReply(query.id, query.edge, epoch, part, len(cut), piece) for part, piece in enumerate(cut)]


class ProfileAssembly:
    """Collects the pieces of one profile as they come."""

    def __init__(self) -> None:
        self._parts: dict[int, bytes] = {}
        self._count = self._epoch = 0

    def take(self, reply: msg.ProfileReply) -> bytes | None:
        """Take a piece; returns all of the bytes once every piece is there. A later life of the edge starts over."""
        if not 0 < reply.parts <= PARTS_AT_MOST or reply.part >= reply.parts or reply.epoch < self._epoch:
            return None
        if (reply.epoch, reply.parts) != (self._epoch, self._count):
            self._parts.clear()
            self._epoch, self._count = reply.epoch, reply.parts
        self._parts[reply.part] = reply.piece
        if len(self._parts) < self._count or sum(map(len, self._parts.values())) > 2 * PROFILE_BYTES:
            return None
        return b"".join(self._parts[part] for part in range(self._count))


def decode_profile(data: bytes) -> SubscriptionProfile:
    """Decode and check a profile.

    Raises:
        WireError: `malformed`: not a profile, or one that contradicts itself.

    """
    body = msg.decode(msg.profile, data)
    try:
        traffic = SampledTraffic(SampleBlock(block.width, block.rate, block.size_bytes) for block in body.blocks)
        each = tuple((item.text, _bits(item.bits, traffic.width)) for item in body.each)
        rows = tuple(_row(item, traffic.width, each) for item in body.rows)
        _check(body, rows)
        accepting, rest = _bits(body.accepting, traffic.width), _bits(body.rest, traffic.width)
        takers = tuple((item.target, _bits(item.bits, traffic.width)) for item in body.takers)
    except ValueError as error:
        raise WireError("malformed", f"profile: {error}") from error
    return SubscriptionProfile(traffic, rows, accepting, body.overhead_bytes, rest, takers, each)


def _row(item: msg.RowItem, width: int, each: Sequence[tuple[str, int]]) -> ProfileRow:
    if not item.subscribers or len(set(item.subscribers)) < len(item.subscribers):
        raise ValueError(f"the row {item.key[:100]!r} has no subscriber, or one twice")
    if any(place >= len(each) for place in item.each) or len(set(item.each)) < len(item.each):
        raise ValueError(f"the row {item.key[:100]!r} names a subscription that is not there, or one twice")
    texts = tuple(each[place][0] for place in item.each)
    return ProfileRow(item.key, _bits(item.bits, width), tuple(item.subscribers), item.subscriptions, texts)


def _bits(data: bytes, width: int) -> int:
    bits = int.from_bytes(data, "little")
    if bits >> width:
        raise ValueError(f"bits of {bits.bit_length()} samples, where there are {width}")
    return bits


def _check(body: msg.ProfileBody, rows: Sequence[ProfileRow]) -> None:
    if not (math.isfinite(body.overhead_bytes) and body.overhead_bytes >= 0.0):
        raise ValueError(f"an overhead of {body.overhead_bytes} bytes")
    if len({row.key for row in rows}) < len(rows):
        raise ValueError("two rows of the same key")
    if len({name for row in rows for name in row.names}) < sum(row.count for row in rows):
        raise ValueError("a subscriber in two rows")
    if len({item.text for item in body.each}) < len(body.each):
        raise ValueError("one subscription twice")
    if len({item.target for item in body.takers}) < len(body.takers):
        raise ValueError("two answers for one target")
