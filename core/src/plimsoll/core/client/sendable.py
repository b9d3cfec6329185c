"""Whether brokers can read what a handle will say, asked when an application makes the handle.

A record that cannot be encoded would end the connection with all its handles, and one that a broker refuses to decode
has no answer. So what an application gives is encoded and read back here, while its caller can be told.
"""

from __future__ import annotations

from msgspec import Struct

from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol import wire

TEXT_AT_MOST = 200
"""Of what an error repeats."""
FAULTS = (ValueError, TypeError, OverflowError, RecursionError)


def check_record(what: str, record: Struct) -> None:
    """Raises ValueError, which begins with `what`, if a broker could not read this record of a client."""
    try:
        msg.from_client.decode(wire.encode(record))
    except FAULTS as error:
        raise ValueError(f"{what}: {str(error)[:TEXT_AT_MOST]}") from error


def check_connection(info: wire.Info) -> None:
    """Raises ValueError if no broker could read how this client introduces itself."""
    try:
        wire.decode_frame(wire.hello_frame(1, 0, False, info))
    except FAULTS as error:
        raise ValueError(f"the name of a connection, {info.name[:40]!r}: {str(error)[:TEXT_AT_MOST]}") from error


def shown(text: str) -> str:
    """A text of an application as an error repeats it."""
    return text if len(text) <= TEXT_AT_MOST else f"{text[:TEXT_AT_MOST]}... ({len(text)} characters)"
