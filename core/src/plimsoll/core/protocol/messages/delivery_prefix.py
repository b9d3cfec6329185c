"""The bytes in front of the content of DELIVER and EPOCH.

One publication goes to thousands of attachments. It is encoded once; each delivery is a prefix, made when the
attachment opens, followed by those same bytes. `tests/core/protocol/test_delivery_prefix.py` compares both with the
encoder.
"""

from __future__ import annotations

from typing import Final

from plimsoll.core.protocol.messages.publications import Deliver
from plimsoll.core.protocol.messages.subscribers import Epoch

PREFIX_BYTES: Final = 7
"""An array header, the message's tag, and the attachment as a 32-bit integer with its marker."""

_ARRAY_OF_3: Final = 0x93
_UINT32: Final = 0xCE
_DELIVER_TAG: Final[int] = Deliver.__struct_config__.tag  # type: ignore[assignment]  # tags of this protocol are numbers
_EPOCH_TAG: Final[int] = Epoch.__struct_config__.tag  # type: ignore[assignment]  # tags of this protocol are numbers
_DELIVER_START: Final = bytes((_ARRAY_OF_3, _DELIVER_TAG, _UINT32))


def deliver_prefix(attachment_id: int) -> bytes:
    """The bytes of DELIVER before its publication or gap."""
    return bytes((_ARRAY_OF_3, _DELIVER_TAG, _UINT32)) + attachment_id.to_bytes(4, "big")


def epoch_prefix(attachment_id: int) -> bytes:
    """The bytes of EPOCH before its gap."""
    return bytes((_ARRAY_OF_3, _EPOCH_TAG, _UINT32)) + attachment_id.to_bytes(4, "big")


def attachment_of(record: bytes) -> int | None:
    """The attachment of a DELIVER that was assembled here; None of any other record."""
    is_delivery = len(record) > PREFIX_BYTES and record[:3] == _DELIVER_START
    return int.from_bytes(record[3:PREFIX_BYTES], "big") if is_delivery else None


def is_epoch(record: bytes) -> bool:
    """Whether a record assembled here is an EPOCH, not a DELIVER."""
    return record[1] == _EPOCH_TAG
