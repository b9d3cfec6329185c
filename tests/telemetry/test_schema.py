"""The schema is explicit: every column has a type, a meaning and, where it is an amount, a unit."""

from __future__ import annotations

import re

import pyarrow as pa
import pytest

from plimsoll.telemetry import arrow
from plimsoll.telemetry.schema import LOADS, METRICS, TABLES, Field, columns, ddl


def all_fields():
    for table in TABLES:
        for field in table.fields:
            yield field
            if isinstance(field.type, tuple):
                yield from (inner for inner in field.type if isinstance(inner, Field))


def test_names_are_unique_and_keys_are_columns():
    for table in TABLES:
        assert len(set(table.names)) == len(table.names)
        assert set(table.key) <= set(table.names)
        assert all(not table.field(name).nullable for name in table.key)


@pytest.mark.parametrize("field", list(all_fields()), ids=lambda field: field.name)
def test_a_column_says_what_it_is(field: Field):
    assert field.about.endswith(".")
    assert field.unit or field.type != "float64", "an amount has a unit"
    for ending, unit in (("_us", "us since 1970"), ("_seconds", "s"), ("_bytes", "bytes"), ("_ratio", "ratio")):
        if field.name.endswith(ending):
            assert field.unit == unit
    if field.name.endswith("_per_second"):
        assert field.unit.endswith("/s")


def test_aggregates_are_of_columns_that_are_never_null():
    assert all(LOADS.field(name).type == "float64" and not LOADS.field(name).nullable for name in METRICS)


def test_spark_and_arrow_see_the_same_columns():
    names = {"INT": pa.int32(), "BIGINT": pa.int64(), "DOUBLE": pa.float64(), "STRING": pa.string()}
    for table in TABLES:
        found = re.findall(r"`(\w+)` (INT|BIGINT|DOUBLE|STRING|ARRAY)", ddl(table.fields))
        assert [name for name, _ in found] == arrow.schema(table).names
        for name, kind in found:
            assert kind == "ARRAY" or arrow.schema(table).field(name).type == names[kind]


def test_lists_of_several_fields_are_structs():
    text = ddl(LOADS.fields)
    assert "`covers` ARRAY<STRUCT<`link`: STRING, `subscriptions`: BIGINT>>" in text
    assert "`balanced_set` ARRAY<STRING>" in text


def test_a_page_can_list_the_columns():
    assert ("publishers", "int64?", "publishers", "Known to a head.") in list(columns(LOADS))
