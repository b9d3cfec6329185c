"""The exchange of a scenario, line by line, as it is shown beside a broken rule."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol import wire
from plimsoll.core.protocol.wire import WireError

KINDS = ("DATA", "ACK", "HELLO", "HELLO_OK", "WHO", "PING", "PONG", "BYE", "CONTROL", "REFUSE")
NAMES = {
    kind.__struct_config__.tag: "".join("_" + c if c.isupper() else c for c in kind.__name__).strip("_").upper()
    for kind in (*msg.FromClient.__args__, *msg.ToClient.__args__)
}
QUIET_KINDS = ("ACK", "PING", "PONG")
"""Frames that are left out of a table of the exchange; `--json` has them."""


class ExchangeLine(NamedTuple):
    """One frame, order or report. `note`: what the scenario did with it, such as `lost on its way`."""

    seconds: float
    source: str
    target: str
    kind: str
    text: str
    note: str = ""


class Exchange:
    """All lines of one scenario, in order."""

    def __init__(self) -> None:
        self.lines: list[ExchangeLine] = []
        self.began = 0.0

    def frame(self, now: float, source: str, target: str, data: bytes, note: str = "") -> None:
        kind, text = describe_frame(data)
        self.lines.append(ExchangeLine(now - self.began, source, target, kind, text, note))

    def note(self, now: float, source: str, target: str, kind: str, text: str) -> None:
        self.lines.append(ExchangeLine(now - self.began, source, target, kind, text))

    def text(self) -> list[str]:
        """The lines for a reader; heartbeats and bare acknowledgements are left out."""
        return [
            f"{line.seconds:8.3f}  {line.source:>6} -> {line.target:<6}  {line.kind:<8}  {line.text}"
            + (f"  [{line.note}]" if line.note else "")
            for line in self.lines
            if line.kind not in QUIET_KINDS or line.note
        ]


def describe_frame(data: bytes) -> tuple[str, str]:
    """The kind of a frame, and its fields for a reader."""
    try:
        frame = wire.decode_frame(data)
    except WireError as error:
        return "?", f"{error}: {data[:64].hex()}"
    kind = KINDS[frame.kind]
    if isinstance(frame, wire.Data):
        records = ", ".join(describe_record(raw) for raw in frame.records)
        return kind, f"{frame.seq} (ack {frame.ack}, credit {frame.credit}): {records or 'no records'}"
    names = [name for name in frame.__struct_fields__ if name not in ("version", "kind")]
    return kind, ", ".join(f"{name} {_plain(getattr(frame, name))}" for name in names)


def describe_record(raw: bytes | msgspec.Raw) -> str:
    """`RESUME(1, 's', [7, 2], ...)`."""
    try:
        values = msgspec.msgpack.decode(raw)
    except (msgspec.MsgspecError, ValueError) as error:
        return f"unreadable ({error})"
    if not isinstance(values, list) or not values or not isinstance(values[0], int):
        return f"no record: {values!r}"
    name = NAMES.get(values[0], f"record {values[0]}")
    return f"{name}({', '.join(_short(value) for value in values[1:])})"


def _plain(value: Any) -> str:
    return f"{value.role} {value.name!r} {value.incarnation}" if isinstance(value, wire.Info) else repr(value)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 160 else text[:157] + "..."
