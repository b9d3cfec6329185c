"""What a client is answered to a record that cannot be taken, so that a fault of its own does not look like silence.

The answer is that of the request, with as much of its number or name as can be read. It never repeats the record, and
so is short however long that was; how many a link is answered is bounded by `LinkRefusals`.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, TypeVar

import msgspec
from msgspec import Meta, Raw, Struct

from plimsoll.core.printable import printable
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol import wire
from plimsoll.core.protocol.wire import WireError

TEXT_AT_MOST: Final = 300
RETRY_SECONDS: Final = 0.5
ANSWERS_AT_ONCE: Final = 32
ANSWERS_A_SECOND: Final = 16.0

RefusedRecord = msg.Refused | msg.AttachmentClosed | msg.SubRefused | msg.GroupRefused | msg.Unplaced

_NONE: Final = Raw(b"\xc0")

_T = TypeVar("_T")
_Group = Annotated[str, Meta(min_length=1, max_length=wire.NAME_AT_MOST)]


class _Start(Struct, array_like=True):
    """How a record or a frame begins. What is behind that is passed over: it may be a million of values."""

    number: Raw = _NONE
    first: Raw = _NONE
    second: Raw = _NONE


def _numbers(*kinds: type[Any]) -> frozenset[int]:
    return frozenset(kind.__struct_config__.tag for kind in kinds)


_OF_PUBLISHERS: Final = _numbers(msg.Open, msg.OpenStandby, msg.OpenReturning, msg.Publish, msg.Close, msg.PublisherGo)
_OF_GROUPS: Final = _numbers(
    msg.GroupJoin, msg.GroupBeat, msg.SliceReleased, msg.GroupLeave, msg.SliceCaching, msg.SliceCache
)
_PUBLISH, _JOIN, _RESUME, _SUBS = (*map(_numbers, (msg.Publish, msg.Join, msg.Resume, msg.Subs)),)


def refusal_text(error: WireError) -> str:
    """What an error says, without the values that it quotes beyond a line."""
    text = printable(str(error)[: TEXT_AT_MOST + 1])
    return text if len(text) <= TEXT_AT_MOST else f"{text[:TEXT_AT_MOST]}…"


def refused_record(raw: bytes | Raw, error: WireError) -> RefusedRecord:
    """The answer to a record of a client. REFUSED of handle 0 and number 0 if it is none with an answer of its own."""
    text, code = refusal_text(error), error.code
    start = _read(raw, _Start, _Start())
    number, first, second = (_read(part, int, -1) for part in (start.number, start.first, start.second))
    of_number = first if 0 <= first < 2**32 else 0
    if number in _OF_PUBLISHERS:
        seq = second if number in _PUBLISH and 0 <= second < 2**63 else 0
        return msg.Refused(of_number, seq, code, text)
    if number in _RESUME:
        return msg.AttachmentClosed(of_number, code, text)
    if number in _SUBS:
        return msg.SubRefused(of_number, second if 0 <= second < 2**63 else 0, 0, text)
    if number in _OF_GROUPS and (group := _read(start.first, _Group, "")):
        return msg.GroupRefused(group, code, text)
    if number in _JOIN and (name := _read(start.first, _Group, "")):
        return msg.Unplaced(name, text, RETRY_SECONDS)
    return msg.Refused(0, 0, code, text)


def link_of_frame(data: bytes) -> int:
    """The link that a frame names, of one that cannot be taken; 0 if that cannot be read either."""
    found = _read(_read(data, _Start, _Start()).second, int, 0)
    return found if 0 <= found < 2**32 else 0


def _read(data: bytes | Raw, kind: type[_T], default: _T) -> _T:
    try:
        return msgspec.msgpack.decode(data, type=kind)
    except (msgspec.MsgspecError, RecursionError, ValueError, OverflowError):
        return default


class LinkRefusals:
    """How many refused records of one link are still answered: a first number at once, then a number a second."""

    __slots__ = ("_at", "_left")

    def __init__(self, now: float) -> None:
        self._left, self._at = float(ANSWERS_AT_ONCE), now

    def may_answer(self, now: float) -> bool:
        """Whether the next one is answered; counts it."""
        self._left = min(ANSWERS_AT_ONCE, self._left + max(0.0, now - self._at) * ANSWERS_A_SECOND)
        self._at = now
        if self._left < 1.0:
            return False
        self._left -= 1.0
        return True
