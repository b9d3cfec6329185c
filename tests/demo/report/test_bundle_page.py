"""The page of the demo with bundles: claims as they were judged, steps in their order, and names that are text."""

import json

from tests.demo.report.test_json_report import Page

from plimsoll.demo.report import bundle_page

SERIES = {"seconds": [0.0, 1.0], "input_rate": [1.0, 2.0], "output_rate": [3.0, 4.0], "output_utilization": [0.1, 0.2],
          "subscribers": [1, 2]}  # fmt: skip
SESSION = {"name": "plan-1", "at_seconds": 12.0, "by": "Lookup", "moved": 7, "state": "Succeeded",
           "reasons": ["<hot>"], "message": ""}  # fmt: skip
REPORT = {
    "verdict": "failed", "problems": ["3 deliveries were lost"], "violations": [], "published": 1, "expected": 2,
    "delivered": 3, "lost": 3, "duplicated": 0, "reordered": 0, "gaps": 0, "scenario": {"topics": 200},
    "claims": [{"claim": "pause", "value": None, "bound": "<= 2", "held": False},
               {"claim": "shed", "value": 3, "bound": ">= 1", "held": True}],
    "splits": [{"at": 20.0, "bundle": "0x0_0x8", "rate": 1200.4, "halves": ["0x0_0x4", "0x4_0x8"]}],
    "sessions": [SESSION], "killed": {"edge": "e-1", "at_seconds": 15.0}, "waits": {},
    "brokers": {"e-0": {"series": SERIES}, "e-1": {"series": SERIES}},
    "bundles": [{"bundle": "0x0_0x4", "edge": "", "serving": ["e-0"], "messages_per_second": 9.0}],
}  # fmt: skip


def test_claims_stand_there_as_they_were_judged(tmp_path):
    bundle_page.write_report(REPORT, tmp_path)
    words = Page((tmp_path / "bundles.html").read_text()).words
    assert "not measured" in words
    assert words.count("not held") == 1
    assert "3 deliveries were lost" in words
    assert "no edge" in words
    assert json.loads((tmp_path / "bundles.json").read_text())["verdict"] == "failed"


def test_the_steps_of_a_run_are_told_in_their_order():
    assert [text.split(" s: ")[0] for text in bundle_page.events(REPORT)] == ["12.0", "15.0", "20.0"]
    assert "split at 1200 messages a second into 0x0_0x4 and 0x4_0x8" in bundle_page.events(REPORT)[2]


def test_reasons_are_text_and_the_page_needs_no_network():
    text = bundle_page.render_page(REPORT)
    assert "<hot>" in Page(text).words
    assert "http" not in text
    assert Page(text).tags.count("svg") == 3
