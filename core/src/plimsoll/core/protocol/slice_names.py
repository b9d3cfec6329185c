"""Slices of consumer groups as brokers know them: the name of a slice's subscriber, and the attribute with the stamp.

A slice is served as a subscriber named by its group, `@@` and its number. It belongs to no client but to its group: a
head lets only the consumer have it that it has assigned the slice to, in the epoch of that assignment. With a `+` it is
the slice's other side, under which a taker that caches attaches the slice beside its giver.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Final

from plimsoll.core.protocol.wire import Scalar

GROUP_CHARACTERS_AT_MOST: Final = 63
SLICES_AT_MOST: Final = 10_000
"""Slices of a group."""

STAMP_PREFIX: Final = "slice."
"""How the attribute begins that holds the slice of a publication, before the name of the group."""

STAMPS_SHIFT: Final = 16
"""Of the flags of a publication: from this bit on they say how many of its attributes, the last ones, are stamps."""
STAMPS_AT_MOST: Final = 0xFFFF
_STAMP_LENGTH_AT_MOST: Final = len(STAMP_PREFIX) + GROUP_CHARACTERS_AT_MOST
_STAMP_BYTES: Final = 5
"""Of a stamp besides its name, at most: the header of the name, and a number below 2^16."""
_COUNT_BYTES: Final = 4
"""By which the header of the attributes may grow with their number."""

_GROUP: Final = re.compile(r"[a-z0-9](?:[a-z0-9.-]{0,61}[a-z0-9])?")
_SLICE: Final = re.compile(r"([a-z0-9](?:[a-z0-9.-]{0,61}[a-z0-9])?)@@(0|[1-9][0-9]{0,3})(\+?)")


def is_group_name(name: str) -> bool:
    """Whether a group can have this name: lower case letters, digits, `-` and `.`, at most 63 characters."""
    return _GROUP.fullmatch(name) is not None


def slice_name(group: str, number: int, side: int = 0) -> str:
    """The name of the subscriber that a slice is for brokers. `side`: 0 or 1."""
    return f"{group}@@{number}+" if side else f"{group}@@{number}"


def slice_of_name(name: str) -> tuple[str, int] | None:
    """The group and the number of a slice; None for the name of any other subscriber."""
    if "@@" not in name or (found := _SLICE.fullmatch(name)) is None:
        return None
    return found[1], int(found[2])


def side_of_name(name: str) -> int:
    """Which side of its slice a name is."""
    return int(name.endswith("+"))


def stamp_attribute(group: str) -> str:
    """The attribute of publications that holds their slice in this group."""
    return STAMP_PREFIX + group


def flags_with_stamps(flags: int, count: int) -> int:
    """The flags of a publication whose last `count` attributes are stamps."""
    return flags & STAMPS_AT_MOST | count << STAMPS_SHIFT


def split_stamps(attributes: dict[str, Scalar], flags: int) -> tuple[dict[str, Scalar], dict[str, int]]:
    """What the publisher has written, and the stamps that its client or a head has added behind that.

    What cannot be a stamp counts as written, whatever the flags say.
    """
    stamps: dict[str, int] = {}
    if not flags >> STAMPS_SHIFT:
        return attributes, stamps
    for name in islice(reversed(attributes), flags >> STAMPS_SHIFT):
        value = attributes[name]
        if not name.startswith(STAMP_PREFIX) or len(name) > _STAMP_LENGTH_AT_MOST:
            break
        if type(value) is not int or not 0 <= value < SLICES_AT_MOST:
            break
        stamps[name] = value
    return dict(islice(attributes.items(), len(attributes) - len(stamps))), stamps


def stamps_bytes_at_most(names: Iterable[str]) -> int:
    """How much larger stamps of these names make a publication, at most."""
    return _COUNT_BYTES + sum(len(name) + _STAMP_BYTES for name in names)


def stamps_bytes(stamps: Mapping[str, int], attributes: int) -> int:
    """How much smaller a publication with this number of attributes is without these stamps.

    At most what they take, however they are written: so no byte of what a publisher wrote is left uncounted.
    """
    found = _map_header(attributes) - _map_header(attributes - len(stamps))
    for name, number in stamps.items():
        found += len(name) + (1 if len(name) < 32 else 2) + (1 if number < 128 else 2 if number < 256 else 3)
    return found


def _map_header(count: int) -> int:
    return 1 if count < 16 else 3 if count < 2**16 else 5


def slice_subscription(group: str, filter_text: str, number: int) -> str:
    """What the subscriber of a slice asks for: the filter of its group, and the stamp."""
    stamp = f"[{stamp_attribute(group)},=,{number}]"
    return f"{filter_text},{stamp}" if filter_text else stamp


def stream_subscription(group: str, filter_text: str) -> str:
    """What all slices of a group together ask for."""
    stamp = f"[{stamp_attribute(group)},exists]"
    return f"{filter_text},{stamp}" if filter_text else stamp


def owner_identity(subscriber: str, identity: str) -> str:
    """Whose a subscriber is: its client's, or of a slice the group's, for it moves between clients."""
    found = slice_of_name(subscriber)
    return identity if found is None else f"group:{found[0]}"
