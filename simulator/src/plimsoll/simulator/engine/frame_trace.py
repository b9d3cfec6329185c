"""Frames in readable form: kind, numbers, and the records by name."""

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
"""A longer record is cut off in the trace."""


def describe_frame(frame: bytes) -> str:
    """One line for a frame; bytes that cannot be decoded are described, too."""
    try:
        decoded = wire.decode_frame(frame)
    except wire.WireError as error:
        return f"{len(frame)} bytes that are not a frame: {error}"
    if isinstance(decoded, wire.Data):
        records = "; ".join(describe_message(raw) for raw in decoded.records)
        return f"DATA {decoded.seq} ack {decoded.ack} credit {decoded.credit}: {records}"
    if isinstance(decoded, wire.Control):
        return "CONTROL " + "; ".join(describe_message(raw) for raw in decoded.records)
    return str(decoded)


def describe_message(raw: msgspec.Raw) -> str:
    value: Any = msgspec.msgpack.decode(raw)
    if not isinstance(value, list) or not value:
        return repr(value)[:MAX_LINE_CHARS]
    name = _NAMES.get(value[0], str(value[0]))
    return f"{name}{value[1:]}"[:MAX_LINE_CHARS]
