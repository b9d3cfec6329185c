"""The schema is explicit: every column has a type, a meaning and, where it is an amount, a unit."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.telemetry.rows import row, write_rows

from plimsoll.telemetry.schema import INCOMING, LOADS, METRICS, OUTCOMES, TelemetryColumn

TABLES = (LOADS, OUTCOMES)
PAGE = (Path(__file__).parents[2] / "docs" / "telemetry.md").read_text()


def all_fields():
    for table in TABLES:
        for field in table.fields:
            yield field
            if isinstance(field.type, tuple):
                yield from (inner for inner in field.type if isinstance(inner, TelemetryColumn))


def test_names_are_unique_and_keys_are_columns():
    for table in TABLES:
        assert len(set(table.names)) == len(table.names)
        assert set(table.key) <= set(table.names)
        assert all(not table.field(name).nullable for name in table.key)


@pytest.mark.parametrize("field", list(all_fields()), ids=lambda field: field.name)
def test_a_column_says_what_it_is(field: TelemetryColumn):
    assert field.about.endswith(".")
    assert field.unit or field.type != "float64", "an amount has a unit"
    for ending, unit in (("_us", "us since 1970"), ("_seconds", "s"), ("_bytes", "bytes"), ("_ratio", "ratio")):
        if field.name.endswith(ending):
            assert field.unit == unit
    if field.name.endswith("_per_second"):
        assert field.unit.endswith("/s")


def test_aggregates_are_of_columns_that_are_never_null():
    assert all(LOADS.field(name).type == "float64" and not LOADS.field(name).nullable for name in METRICS)


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_the_page_has_every_column_with_its_unit(table):
    kinds = {field.name: field.type if isinstance(field.type, str) else "list" for field in table.fields}
    lines = "\n".join(
        f"| `{field.name}` | {kinds[field.name]}{'?' if field.nullable else ''} | {field.unit} | {field.about} |"
        for field in table.fields
    )
    assert lines in PAGE


def test_the_query_of_the_page_works(tmp_path: Path):
    folder = tmp_path / INCOMING
    folder.mkdir(parents=True)
    now_us = time.time_ns() // 1000
    old = row("e9", 1, now_us - 7_200_000_000, output_utilization=0.99)
    rows = [row(f"e{n}", 1, now_us - 1, output_utilization=n / 10, match_delay_seconds=2e-5) for n in range(1, 8)]
    more = row("e7", 2, now_us - 1, output_utilization=0.5, match_delay_seconds=4e-5, state="N/A")
    write_rows(folder / "a.parquet", LOADS, [*rows, row("h", 1, now_us - 1, role="head", output_utilization=0.9)])
    write_rows(folder / "b.parquet", LOADS, [more, old])
    script = tmp_path / "query.py"
    script.write_text(PAGE.split("```python\n")[1].split("```")[0])
    ran = subprocess.run([sys.executable, str(script), str(tmp_path)], capture_output=True, text=True, check=True)
    assert ran.stdout.splitlines() == [
        "c/e6: output 60% (max 60%), matching 20 us, N/A in 0 reports",
        "c/e7: output 60% (max 70%), matching 30 us, N/A in 1 reports",
        "c/e5: output 50% (max 50%), matching 20 us, N/A in 0 reports",
        "c/e4: output 40% (max 40%), matching 20 us, N/A in 0 reports",
        "c/e3: output 30% (max 30%), matching 20 us, N/A in 0 reports",
    ]
