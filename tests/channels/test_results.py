"""From rows of a query to results: identities, types, and only what is asked for."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

from plimsoll.channels.batch import Result
from plimsoll.channels.config import ChannelDefinition, ChannelParameter
from plimsoll.channels.results import BatchResults, results_of

FIRES = ChannelDefinition(
    "fires", (ChannelParameter("area", "Integer"), ChannelParameter("limit", "Number")), (), "SELECT 1"
)


def results(*rows: dict[str, Any], most_bytes: int = 10_000) -> BatchResults:
    return results_of(rows, FIRES, frozenset({(7, 2.0), (8, 2.0)}), 4, most_bytes)


def test_a_result_has_channel_parameters_columns_and_identity():
    found = results({"area": 7, "limit": 2, "severity": 3}, {"area": 8, "limit": 2.0, "severity": None})
    assert found.results == (
        Result({"channel": "fires", "area": 7, "limit": 2.0, "severity": 3, "batch": 4, "batch_row": 1}),
        Result({"channel": "fires", "area": 8, "limit": 2.0, "batch": 4, "batch_row": 2}),
    )


def test_a_row_without_a_subscription_is_not_a_result_and_rows_are_numbered_without_it():
    found = results({"area": 9, "limit": 2.0}, {"area": 7, "limit": 2.0})
    assert (found.unasked, found.invalid) == (1, 0)
    assert [each.attributes["batch_row"] for each in found.results] == [1]


def test_rows_without_a_parameter_or_too_large_are_counted():
    found = results({"area": None, "limit": 2.0}, {"limit": 2.0}, {"area": "7", "limit": 2.0})
    assert (found.results, found.unasked, found.invalid) == ((), 0, 3)
    assert results({"area": 7, "limit": 2.0, "text": "x" * 500}, most_bytes=400).invalid == 1


def test_values_of_all_types():
    at = datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=datetime.UTC)
    [found] = results(
        {"area": 7, "limit": 2.0, "a": True, "b": Decimal("1.5"), "c": at, "d": at.date(), "e": float("nan"),
         "payload": "text"}
    ).results  # fmt: skip
    assert {name: found.attributes.get(name) for name in "abcde"} == {
        "a": True, "b": 1.5, "c": "2026-01-02T03:04:05+00:00", "d": "2026-01-02", "e": None,
    }  # fmt: skip
    assert found.payload == b"text"
    assert results({"area": 7, "limit": 2.0, "payload": None}).results[0].payload == b""
