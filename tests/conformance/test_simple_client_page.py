"""docs/simple-client.md has the numbers and the fields of the code, and every record that reaches such a client."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import pytest

from plimsoll.core.client.limits import ClientLimits
from plimsoll.core.config import BrokerLimits
from plimsoll.core.protocol import messages as msg
from plimsoll.core.transport import link

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "simple-client.md").read_text()
KINDS = {
    re.sub(r"(?<!^)(?=[A-Z])", "_", kind.__name__).upper(): kind
    for kind in (*get_args(msg.FromClient), *get_args(msg.ToClient), msg.Pub, msg.Gap)
}
ROWS = [line for line in PAGE.splitlines() if re.match(r"\| (send )?\d+ [A-Z]", line)]
NOT_FOR_IT = {
    "ATTACH", "HELD", "GO", "AUDIT_QUERY", "AUDIT_REPLY", "OPEN_STANDBY", "PUBLISHER_GO", "OPEN_RETURNING",
    "GROUP_JOIN", "GROUP_BEAT", "SLICE_RELEASED", "GROUP_LEAVE", "SLICE_CACHING", "COUNTS_FROM",
}  # fmt: skip


def named(row: str) -> list[tuple[int, str]]:
    """The records that a row is about, with their numbers."""
    return [(int(number), name) for number, name in re.findall(r"(\d+) ([A-Z_]{3,})", row.split("|")[1])]


def count_fields(cell: str) -> int:
    """Elements of a list of fields: commas inside brackets do not count."""
    plain = re.sub(r"\[[^\]]*\]", "x", cell)
    return len(plain.split(","))


def test_names_are_understood():
    assert {name for row in ROWS for _, name in named(row)} <= set(KINDS)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.split("|")[1].strip())
def test_a_row_has_the_number_and_the_fields_of_the_record(row: str):
    fields = row.split("|")[2].strip()
    for number, name in named(row):
        kind = KINDS[name]
        assert number == kind.__struct_config__.tag
        if fields:
            assert count_fields(fields) == len(kind.__struct_fields__)


def test_every_record_has_its_row():
    listed = {name for row in ROWS for _, name in named(row)}
    assert set(KINDS) - NOT_FOR_IT == listed


def test_times_and_sizes_are_those_of_the_code():
    limits, client = BrokerLimits(), ClientLimits()
    assert f"nothing has come for {client.link.dead_seconds:g} s" in PAGE
    assert f"cannot be reached for {client.away_seconds:g} s" in PAGE
    assert f"Not open in {client.attach_seconds:g} s, or no answer to RESUME in {client.answer_seconds:g} s" in PAGE
    assert f"when no edge of it could be had for {client.stream_seconds:g} s" in PAGE
    assert f"received + {link.LinkLimits().window_frames}" in PAGE
    assert f"more than {10 * limits.lease_seconds:g} s" in PAGE
    assert f"({client.backoff_seconds:g} s to {client.backoff_max_seconds:g} s)" in PAGE
