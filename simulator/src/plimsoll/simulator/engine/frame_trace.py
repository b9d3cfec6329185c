"""Frames as a person can read them: kind, numbers, and the records by name."""

from __future__ import annotations

import inspect
from typing import Any

import msgspec

from plimsoll.core.protocol import messages, wire

_NAMES: dict[int, str] = {
    kind.__struct_config__.tag: name
    for name, kind in inspect.getmembers(messages, inspect.isclass)
    if issubclass(kind, msgspec.Struct) and isinstance(kind.__struct_config__.tag, int) and name != "PubOpen"
}
MAX_LINE_CHARS = 160
"""So many characters of a record are shown."""


def describe_frame(frame: bytes) -> str:
    """One line for a frame, whatever is in it."""
    try:
        decoded = wire.decode_frame(frame)
    except wire.WireError as error:
        return f"{len(frame)} bytes that are no frame: {error}"
    if isinstance(decoded, wire.Data):
        said = "; ".join(describe_message(raw) for raw in decoded.records)
        return f"DATA {decoded.seq} ack {decoded.ack} credit {decoded.credit}: {said}"
    if isinstance(decoded, wire.Control):
        return "CONTROL " + "; ".join(describe_message(raw) for raw in decoded.records)
    return str(decoded)


def describe_message(raw: msgspec.Raw) -> str:
    value: Any = msgspec.msgpack.decode(raw)
    if not isinstance(value, list) or not value:
        return repr(value)[:MAX_LINE_CHARS]
    name = _NAMES.get(value[0], str(value[0]))
    return f"{name}{value[1:]}"[:MAX_LINE_CHARS]
