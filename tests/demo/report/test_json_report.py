"""Both files of the report, read as their readers read them: a program, and a browser without a network."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from plimsoll.core.config import PeerBroker, Role
from plimsoll.core.spec import parse
from plimsoll.demo.analysis.claims import ClaimsVerdict
from plimsoll.demo.analysis.load_series import LoadSeries
from plimsoll.demo.analysis.machine_load import MachineLoad
from plimsoll.demo.fleet import DemoBroker
from plimsoll.demo.options import resource_folder
from plimsoll.demo.report import json_report
from plimsoll.demo.workload import DemoScenario
from plimsoll.local import manifests

ALWAYS = ["published", "expected", "delivered", "lost", "duplicated", "reordered", "gaps", "brokers"]
VOID = {"meta", "br", "line", "img", "link", "input", "hr"}


class Page(HTMLParser):
    """The elements of a page; fails if they are not well nested."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.words = ""
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words += data


@pytest.fixture
def made(tmp_path, judged):
    def make(delivered, faults=()):
        series = LoadSeries()
        for seq in range(1, 4):
            for name in ("quotes-head", "b1"):
                series.take({"broker": name, "epoch": 1, "seq": seq, "input_utilization": 0.5, "subscribers": 7}, seq)
        fleet = parse(manifests.load([str(resource_folder())]))
        places: list[tuple[str, Role, str]] = [
            ("quotes-head", "head", "b0"), ("b1", "edge", "b1"), ("b2", "edge", "b2"),
        ]  # fmt: skip
        brokers = {name: DemoBroker(name, role, profile, PeerBroker(name=name)) for name, role, profile in places}
        judgement = judged(delivered, faults=faults)
        durations = {"traffic_seconds": 4.0, "total_seconds": 9.0}
        run = json_report.DemoResult(
            DemoScenario(seconds=4, seed=11),
            fleet,
            brokers,
            series,
            judgement,
            durations,
            {"resent": 0},
            "2026-01-02T03:04:05Z",
            ClaimsVerdict([], MachineLoad(2, 9.0, 0.8, 0.05)),
        )
        json_report.write_report(json_report.build_report(run), tmp_path)
        return json.loads((tmp_path / "report.json").read_text()), (tmp_path / "report.html").read_text()

    return make


def test_the_json_has_what_is_promised(made):
    found, _ = made([1, 2, 3, 4])
    assert [key for key in ALWAYS if key not in found] == []
    assert [found[key] for key in ALWAYS[:-1]] == [4, 4, 4, 0, 0, 0, 0]
    assert found["verdict"] == "passed"
    assert found["seed"] == found["scenario"]["seed"] == 11
    assert found["durations"]["traffic_seconds"] == 4.0
    assert found["delivery_delay_seconds"]["p50"] == 0.25
    assert {"processors", "memory_bytes", "system"} <= set(found["machine"])
    assert {"python", "plimsoll-operator", "pyzmq"} <= set(found["versions"])


def test_each_broker_has_its_series_and_its_hardware(made):
    brokers = made([1, 2, 3, 4])[0]["brokers"]
    assert list(brokers) == ["quotes-head", "b1", "b2"]
    assert brokers["b1"]["series"]["seconds"] == [1, 2, 3]
    assert brokers["b1"]["series"]["input_utilization"] == [0.5, 0.5, 0.5]
    assert brokers["b1"]["delivery_delay_seconds"]["count"] == 4
    assert brokers["b2"]["series"]["seconds"] == []
    assert brokers["b2"]["delivery_delay_seconds"]["count"] == 0
    assert brokers["b1"]["hardware"] == {
        "cpu_cores": 0.1, "memory_bytes": 64 * 2**20, "input_bytes_per_second": 300_000.0,
        "output_bytes_per_second": 300_000.0, "emulated_base_seconds": 0.001,
        "emulated_seconds_per_subscription": 0.00004,
    }  # fmt: skip


def test_a_failed_run_says_so_in_both(made):
    found, text = made([1, 2, 4], faults=["b1: <died> & came back"])
    assert found["verdict"] == "failed"
    assert found["lost"] == 1
    assert found["problems"] == ["1 deliveries were lost", "b1: <died> & came back"]
    assert len(found["violations"]) == 1
    page = Page(text)
    assert "1 deliveries were lost" in page.words
    assert "b1: <died> & came back" in page.words
    assert "Passed" not in page.words


def test_the_page_stands_alone_and_is_well_formed(made):
    _, text = made([1, 2, 3, 4])
    page = Page(text)
    assert [tag for tag in page.tags if tag in {"script", "link", "img", "iframe", "object", "base"}] == []
    assert [a for a in page.attributes if a[1] in {"src", "href", "srcset", "xlink:href", "style"}] == []
    assert not re.search(r"https?:|//|url\(|@import", text)
    assert page.tags.count("svg") == 8
    assert "prefers-color-scheme: dark" in text


def test_the_verdict_stands_before_everything_else(made):
    _, text = made([1, 2, 3, 4])
    page = Page(text)
    assert page.tags.index("section") < page.tags.index("svg")
    assert page.words.index("Passed: nothing lost, repeated or reordered.") < page.words.index("Loads over time")


def test_lines_of_a_broker_look_the_same_in_all_charts(made):
    _, text = made([1, 2, 3, 4])
    looks = set(re.findall(r'<path class="(s\d)" d="[^"]*"><title>b1</title>', text))
    assert looks == {"s1"}


def test_nothing_is_left_half_written(made, tmp_path: Path):
    made([1, 2, 3, 4])
    assert [path.name for path in tmp_path.iterdir() if path.name.endswith(".new")] == []
