"""The table and the JSON of a run."""

from __future__ import annotations

import json

from plimsoll.conformance import SCENARIOS, Verdict, json_report, table_report
from plimsoll.conformance.report import SHOWN_LINES
from plimsoll.conformance.rules import Rule

KEPT = Verdict(SCENARIOS[0], True, 0.5, ["a line"], [{"kind": "HELLO"}])
RULE = Rule("6.4", "words of the page")
BROKEN = Verdict(SCENARIOS[1], False, 1.25, [f"line {n}" for n in range(SHOWN_LINES + 3)], [], RULE, "no GO has come")


def test_the_table_names_the_rule_and_shows_the_exchange():
    lines = table_report([KEPT, BROKEN]).splitlines()
    assert lines[0] == "hello-repeated  3.1  kept"
    assert lines[1] == "frame-lost      3.1  BROKEN: no GO has come"
    assert "  rule:  docs/protocol.md, 6.4: words of the page" in lines
    assert "  (3 earlier lines are left out; --json has them)" in lines
    assert "  line 2" not in lines
    assert "  line 3" in lines
    assert lines[-1] == "1 of 2 scenarios kept"


def test_json_has_all_of_it():
    document = json.loads(json_report([KEPT, BROKEN]))
    assert document["kept"] is False
    assert document["scenarios"][1]["rule"] == {"section": "6.4", "words": "words of the page"}
    assert document["scenarios"][0]["rule"] is None
    assert document["scenarios"][0]["exchange"] == [{"kind": "HELLO"}]
    assert json.loads(json_report([KEPT]))["kept"] is True


def test_no_scenarios_make_a_table():
    assert table_report([]).splitlines()[-1] == "0 of 0 scenarios kept"
