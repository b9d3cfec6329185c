"""Profiles on their way: encoded, cut into pieces that fit into frames, and put together again.

Pieces may come twice and in any order; those of one query and one life of the edge belong together. What is put
together is checked before it becomes a profile: it comes from another machine.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from plimsoll.core import records as r
from plimsoll.core import wire
from plimsoll.core.policies.profile import Profile, Row
from plimsoll.core.policies.traffic import Block, Traffic
from plimsoll.core.wire import WireError

PIECE_BYTES = 512 * 1024
PROFILE_BYTES = 4 * 1024 * 1024
PARTS_AT_MOST = 64
_AROUND_BYTES = 16
"""What a text takes in a record beside its characters."""


def slices(texts: Iterable[str], most_bytes: int = PROFILE_BYTES) -> list[list[str]]:
    """Texts in parts that each fit into a frame; those that bring them above `most_bytes` together are left out."""
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


def encoded(profile: Profile) -> bytes:
    """A profile as bytes."""
    width = profile.traffic.width
    blocks = [r.BlockItem(block.width, block.rate, block.size_bytes) for block in profile.traffic.blocks]
    rows = [_item(row, width) for row in profile.rows]
    accepting, rest = _bytes(profile.accepting, width), _bytes(profile.rest, width)
    takers = [r.TakerItem(target, _bytes(bits, width)) for target, bits in profile.takers]
    return wire.encode(r.ProfileBody(blocks, accepting, profile.overhead_bytes, rows, rest, takers))


def _item(row: Row, width: int) -> r.RowItem:
    return r.RowItem(row.key, _bytes(row.bits, width), row.subscriptions, list(row.names))


def _bytes(bits: int, width: int) -> bytes:
    return bits.to_bytes((width + 7) // 8, "little")


def pieces(query: r.ProfileQuery, epoch: int, data: bytes) -> list[r.ProfileReply]:
    """The answer to a query."""
    cut = [data[at : at + PIECE_BYTES] for at in range(0, len(data), PIECE_BYTES)]
    return [r.ProfileReply(query.id, query.edge, epoch, part, len(cut), piece) for part, piece in enumerate(cut)]


class Gathering:
    """The parts of one thing as they come; `whole` has them in order once all are there."""

    def __init__(self) -> None:
        self._parts: dict[int, bytes] = {}
        self._count = self._epoch = 0

    def take(self, reply: r.ProfileReply) -> bytes | None:
        """A piece; the whole, once all are there. A later life of the edge begins anew."""
        if not 0 < reply.parts <= PARTS_AT_MOST or reply.part >= reply.parts or reply.epoch < self._epoch:
            return None
        if (reply.epoch, reply.parts) != (self._epoch, self._count):
            self._parts.clear()
            self._epoch, self._count = reply.epoch, reply.parts
        self._parts[reply.part] = reply.piece
        if len(self._parts) < self._count or sum(map(len, self._parts.values())) > 2 * PROFILE_BYTES:
            return None
        return b"".join(self._parts[part] for part in range(self._count))


def decoded(data: bytes) -> Profile:
    """A profile from its bytes.

    Raises:
        WireError: `malformed`, or what it says makes no sense.

    """
    body = r.decode(r.profile, data)
    try:
        traffic = Traffic(Block(block.width, block.rate, block.size_bytes) for block in body.blocks)
        rows = tuple(_row(item, traffic.width) for item in body.rows)
        _check(body, rows)
        accepting, rest = _bits(body.accepting, traffic.width), _bits(body.rest, traffic.width)
        takers = tuple((item.target, _bits(item.bits, traffic.width)) for item in body.takers)
    except ValueError as error:
        raise WireError("malformed", f"profile: {error}") from error
    return Profile(traffic, rows, accepting, body.overhead_bytes, rest, takers)


def _row(item: r.RowItem, width: int) -> Row:
    if not item.subscribers or len(set(item.subscribers)) < len(item.subscribers):
        raise ValueError(f"the row {item.key[:100]!r} names nobody, or somebody twice")
    return Row(item.key, _bits(item.bits, width), tuple(item.subscribers), item.subscriptions)


def _bits(data: bytes, width: int) -> int:
    bits = int.from_bytes(data, "little")
    if bits >> width:
        raise ValueError(f"bits of {bits.bit_length()} samples, where there are {width}")
    return bits


def _check(body: r.ProfileBody, rows: Sequence[Row]) -> None:
    if not (math.isfinite(body.overhead_bytes) and body.overhead_bytes >= 0.0):
        raise ValueError(f"an overhead of {body.overhead_bytes} bytes")
    if len({row.key for row in rows}) < len(rows):
        raise ValueError("two rows of the same key")
    if len({name for row in rows for name in row.names}) < sum(row.count for row in rows):
        raise ValueError("a subscriber in two rows")
    if len({item.target for item in body.takers}) < len(body.takers):
        raise ValueError("two answers for one target")
