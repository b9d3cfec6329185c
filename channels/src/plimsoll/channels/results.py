"""From the rows of a query to results: typed attributes, only for parameters that somebody asks for."""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from plimsoll.channels.batch import Result
from plimsoll.channels.config import ChannelDefinition
from plimsoll.channels.subscriptions import ParameterRow, typed_value
from plimsoll.core.client import PublicationError
from plimsoll.core.client.publisher import encoded_body
from plimsoll.core.protocol.wire import Scalar
from plimsoll.core.spec.types.channel import BATCH_ATTRIBUTE, CHANNEL_ATTRIBUTE, ROW_ATTRIBUTE

PAYLOAD_COLUMN: Final = "payload"
"""A column of this name with bytes or text becomes the payload of a result."""
INT_LOW, INT_HIGH = -(2**63), 2**63 - 1


@dataclass(frozen=True)
class BatchResults:
    """`unasked`: rows for parameters that are not in force. `invalid`: rows that cannot be a publication."""

    results: tuple[Result, ...]
    unasked: int
    invalid: int


def results_of(
    rows: Iterable[Mapping[str, Any]],
    channel: ChannelDefinition,
    in_force: frozenset[ParameterRow],
    batch: int,
    most_bytes: int,
) -> BatchResults:
    """The results of a batch, in the order of its rows. `most_bytes`: the largest publication that is taken."""
    results: list[Result] = []
    unasked = invalid = 0
    for row in rows:
        asked = tuple(typed_value(_scalar(row.get(each.name)), each.type) for each in channel.parameters)
        if None in asked:
            invalid += 1
        elif asked not in in_force:
            unasked += 1
        else:
            values = dict(zip((each.name for each in channel.parameters), asked, strict=True))
            result = _result(row, {CHANNEL_ATTRIBUTE: channel.name, **values}, batch, len(results) + 1)
            if _fits(result, most_bytes):
                results.append(result)
            else:
                invalid += 1
    return BatchResults(tuple(results), unasked, invalid)


def _result(row: Mapping[str, Any], asked: Mapping[str, Any], batch: int, number: int) -> Result:
    found: dict[str, Scalar] = dict(asked)
    payload = b""
    for name, value in row.items():
        if name == PAYLOAD_COLUMN:
            payload = value.encode() if isinstance(value, str) else bytes(value or b"")
        elif name not in found and (scalar := _scalar(value)) is not None:
            found[name] = scalar
    return Result({**found, BATCH_ATTRIBUTE: batch, ROW_ATTRIBUTE: number}, payload)


def _scalar(value: object) -> Scalar | None:
    """A value of a column as an attribute; None: it has none. Times are texts in UTC, as ISO 8601 writes them."""
    if isinstance(value, str | bool | int):
        return value
    if isinstance(value, float | Decimal):
        number = float(value)
        return None if math.isnan(number) else number
    if isinstance(value, datetime.date):  # also a time
        return value.isoformat()
    return None


def _fits(result: Result, most_bytes: int) -> bool:
    try:
        encoded_body(result.attributes, result.payload, most_bytes)
    except PublicationError:
        return False
    return True
