"""The tables of the audit job, made from observations."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from tests.core.verify.test_audit import world

from plimsoll.core.verify import encode_line
from plimsoll.core.verify import observations as seen
from plimsoll.sparkjobs import audit_tables
from plimsoll.sparkjobs.audit_tables import table_rows, write_tables


def read(folder: Path, name: str) -> list[dict]:
    return pq.read_table(folder / name).to_pylist()


def test_journals_become_tables_and_parts_add_up(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    one = world(1)
    counts = write_tables(one, tmp_path / "tables", batch=7)
    delivered = [each for each in one if isinstance(each, seen.DeliveryObserved)]
    assert counts["accepted"] == 60
    assert counts["delivered"] == len(delivered)
    journal = tmp_path / "journal.jsonl"
    journal.write_bytes(b"".join(map(encode_line, world(2))))
    assert audit_tables.main([str(journal), "--output", str(tmp_path / "tables")]) == 0
    assert "accepted: 60\n" in capsys.readouterr().out
    assert len(read(tmp_path / "tables", "accepted")) == 120
    assert sorted(each.suffix for each in (tmp_path / "tables" / "gaps").iterdir()) == [".parquet", ".parquet"]
    first = min(read(tmp_path / "tables", "delivered"), key=lambda row: (row["subscriber"], row["place"]))
    assert first["place"] == 0


def test_a_subscription_is_in_force_from_its_acknowledgement_to_its_end():
    run = [
        seen.HeadTreeObserved([("a", "b"), ("b", "c")]),
        seen.SubscriptionObserved("s", 1, 1, [("k", "=", 1)], 0.0),
        seen.AcknowledgementObserved("s", 1, [1], "a", ["b"], 1.0),
        seen.AcknowledgementObserved("s", 1, [1], "a", [], 5.0),
        seen.LeaseEndObserved("s", 1, 7.0),
        seen.WithdrawalObserved("s", 1, [1], 9.0),
        seen.RemovalObserved("s", 1, [1], 10.0),
        seen.SubscriptionObserved("t", 1, 1, [("k", "exists", None)], 2.0),
        seen.PublicationObserved("p", 1, 1, {"k": 1}, 1.0),
        seen.AnswerObserved("p", 1, 1, "accepted", 2.0),
        seen.LogEntryObserved("c", 1, 1, ("p", 1, 1), ("c", 1, 1), 1.5),
        seen.PublicationObserved("p", 1, 2, {"k": 1}, 3.0),
        seen.AnswerObserved("p", 1, 2, "refused", 4.0),
        seen.GapObserved("s", 1, "a", 1, 2, 1, 4, [("c", 1, 9)], "evicted", 6.0),
    ]
    found = {name: list(each) for name, each in table_rows(run).items()}
    times = [(row["live_from"], row["live_until"], row["due_until"], row["not_from"]) for row in found["subscriptions"]]
    assert times == [(1.0, 5.0, 7.0, ["c"]), (5.0, 7.0, 7.0, []), (2.0, 2.0, 2.0, [])]
    assert found["subscriptions"][0]["predicates"] == '[["k","=",1]]'
    (accepted,) = found["accepted"]
    assert (accepted["at"], accepted["head"], accepted["origin_offset"]) == (1.5, "c", 1)
    (gap,) = found["gaps"]
    assert (gap["after"], gap["head"], gap["last_offset"]) == (0, "c", 9)
