"""How large a publication is on the links between brokers, and which payload makes it as large as is wanted.

For models and plans that reckon with bytes. Numbers in a publication grow during a run, and its size with them: sizes
are of one in the middle of a run.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol import wire

TYPICAL_NUMBER: Final = 2**15

Scalars = Mapping[str, str | int | float | bool]


def publication_bytes(head: str, publisher: str, attributes: Scalars, payload_bytes: int) -> int:
    """The size of a publication as it travels between brokers. `head`: which accepts it."""
    body = msgspec.Raw(wire.encode(msg.Body(dict(attributes), bytes(payload_bytes))))
    typical = TYPICAL_NUMBER
    pub = msg.Pub(typical, head, 1, typical, publisher, 1, typical, 0, 10**15, body)
    return len(wire.encode(pub))


def payload_for(head: str, publisher: str, attributes: Scalars, size_bytes: int) -> int:
    """The bytes of the largest payload with which a publication is at most this large; 0 if none is small enough."""
    payload = max(0, size_bytes - publication_bytes(head, publisher, attributes, 0))
    while payload and publication_bytes(head, publisher, attributes, payload) > size_bytes:
        payload -= 1  # the length of a longer payload takes more bytes itself
    return payload
