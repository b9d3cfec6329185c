"""Units of a subscriber: the part of it that asks for topics of one hash is a subscriber of its own for brokers.

The name of a unit is the name of the subscriber, `#`, and the hash as 8 hexadecimal digits. So wherever a name goes,
in owner entries, profiles, plans and sessions, the unit goes with it.
"""

from __future__ import annotations

import zlib
from typing import Final

from plimsoll.core.protocol.wire import Scalar

HASH_END: Final = 0xFFFFFFFF
"""The highest hash of a topic."""

_SEPARATOR: Final = "#"
_DIGITS: Final = 8
SUFFIX_CHARACTERS: Final = len(_SEPARATOR) + _DIGITS
"""What the name of a unit has beyond the name of its subscriber."""


def topic_hash(topic: Scalar) -> int:
    """The hash of a topic, 32 bits: CRC-32 of its text. Equal numbers have one hash, as they select the same."""
    text = topic if type(topic) is str else repr(topic) if type(topic) is int else topic_text(topic)
    return zlib.crc32(text.encode(errors="surrogatepass"))


def topic_text(topic: Scalar) -> str:
    """A topic as text. A boolean and the string of the same letters share one; they only share a bundle."""
    if isinstance(topic, bool):
        return "true" if topic else "false"
    if isinstance(topic, float) and topic.is_integer():
        return str(int(topic))
    return topic if isinstance(topic, str) else repr(topic)


def unit_name(subscriber: str, topic: int) -> str:
    """The name of a subscriber's unit for topics of this hash."""
    return f"{subscriber}{_SEPARATOR}{topic:0{_DIGITS}x}"


def hash_of_unit(name: str) -> int | None:
    """The hash of the topics of a unit; None for a subscriber as a whole."""
    if len(name) <= SUFFIX_CHARACTERS or name[-SUFFIX_CHARACTERS] != _SEPARATOR:
        return None
    digits = name[-_DIGITS:]
    return int(digits, 16) if set(digits) <= _HEXADECIMAL else None


def subscriber_of_unit(name: str) -> str:
    """The subscriber that a unit belongs to: itself, if it is no unit."""
    return name if hash_of_unit(name) is None else name[:-SUFFIX_CHARACTERS]


_HEXADECIMAL: Final = frozenset("0123456789abcdef")
