"""`plimsoll simulate`: a table, a page and JSON of one world under several policies."""

import json
from pathlib import Path

import pytest
import yaml

from plimsoll.cli.main import main

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "worlds" / "two-edges.yaml"


@pytest.fixture
def short(tmp_path: Path) -> Path:
    """The example, one minute long."""
    documents = list(yaml.safe_load_all(EXAMPLE.read_text()))
    documents[0]["spec"] |= {"duration": "60s"}
    documents[0]["spec"]["subscribers"][0]["joins"] = {"over": "5s"}
    path = tmp_path / "world.yaml"
    path.write_text(yaml.safe_dump_all(documents))
    return path


def test_policies_side_by_side(short: Path, tmp_path: Path, capsys):
    page, numbers = tmp_path / "page.html", tmp_path / "rows.json"
    command = ["simulate", "-f", str(short), "--policy", "none", "--policy", "padres"]
    assert main([*command, "--page", str(page), "--json", str(numbers)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("POLICY")
    assert [line.split()[0] for line in lines[1:]] == ["none", "padres"]
    assert [row["policy"] for row in json.loads(numbers.read_text())] == ["none", "padres"]
    assert page.read_text().count("<svg") == 2


def test_what_was_measured_stands_beside_the_first_minute(short: Path, capsys):
    documents = list(yaml.safe_load_all(short.read_text()))
    brokers = [
        {"name": "quotes-head", "publicationsPerSecond": 21},
        {"name": "small", "inputUtilizationPercent": 67, "deliveriesPerSecond": 1234, "subscribers": 60},
        {"name": "gone", "inputUtilizationPercent": 5, "subscribers": 1},
    ]
    documents[0]["spec"]["measured"] = {"at": "2026-11-23T22:47:13Z", "brokers": brokers}
    short.write_text(yaml.safe_dump_all(documents))
    assert main(["simulate", "-f", str(short), "--policy", "none"]) == 0
    lines = capsys.readouterr().out.splitlines()
    at = lines.index("measured at 2026-11-23T22:47:13Z, and the first minute under none:")
    head, small, gone = (line.split() for line in lines[at + 2 : at + 5])
    assert (head[0], head[5], head[6], head[7:]) == ("quotes-head", "21", "20", ["-", "-"])
    assert (small[1], small[7]) == ("67", "1,234")
    assert 30 <= int(small[2]) <= 35
    assert 700 <= int(small[8].replace(",", "")) <= 900
    assert gone[1:3] == ["5", "-"]


def test_a_file_without_a_world_is_refused(tmp_path: Path, capsys):
    path = tmp_path / "fleet.yaml"
    path.write_text(
        yaml.safe_dump({"apiVersion": "plimsoll.dev/v1alpha1", "kind": "BrokerFleet", "metadata": {"name": "f"}})
    )
    assert main(["simulate", "-f", str(path)]) == 2
    assert "there is no World" in capsys.readouterr().err


def test_a_fault_in_the_world_is_said(short: Path, capsys):
    short.write_text(short.read_text().replace("edge: small", "edge: tiny"))
    assert main(["simulate", "-f", str(short)]) == 2
    assert "tiny is no edge of cluster quotes" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("found", "instead", "line", "said"),
    [
        ("duration: 10m", "duration: 10", 7, "World/two-edges spec.duration: 10 has no unit"),
        ("[high,>,20]", "[high,>,20,5]", 25, "It is not a subscription: column 29: found ',', expected ']'."),
        ("bandwidth: {inputBytesPerSecond: 1M,", "bandwidth: {inputBytesPerSecond: fast,", 43, "HardwareProfile/head"),
    ],
)
def test_a_fault_has_its_file_and_line(found: str, instead: str, line: int, said: str, tmp_path: Path, capsys):
    path = tmp_path / "world.yaml"
    path.write_text(EXAMPLE.read_text().replace(found, instead, 1))
    assert main(["simulate", "-f", str(path)]) == 2
    told = capsys.readouterr().err
    assert told.startswith(f"{path}:{line}: ")
    assert said in told


def test_what_cannot_be_written_is_said_before_the_run(tmp_path: Path, capsys):
    given = ["simulate", "-f", str(tmp_path / "no-such-world.yaml")]
    assert main([*given, "--json", str(tmp_path)]) == 2
    assert main([*given, "--page", str(tmp_path / "none" / "page.html")]) == 2
    assert main([*given, "--page", "-"]) == 2
    told = capsys.readouterr().err
    for said in ("is a folder", "has no folder", "name a file for --page"):
        assert said in told
    assert "no-such-world" not in told


def test_the_numbers_may_go_to_standard_output(short: Path, capsys, monkeypatch):
    monkeypatch.chdir(short.parent)
    assert main(["simulate", "-f", str(short), "--policy", "none", "--json", "-"]) == 0
    assert [row["policy"] for row in json.loads(capsys.readouterr().out)] == ["none"]
    assert not Path("-").exists()


def test_the_example_is_a_world_with_its_fleet(capsys):
    from plimsoll.core.spec import SourceDocument, parse
    from plimsoll.simulator.worlds.world_spec import parse_world
    from plimsoll.simulator.worlds.world_traffic import faults

    world, *rest = yaml.safe_load_all(EXAMPLE.read_text())
    assert faults(parse_world(world["spec"]), parse([SourceDocument(each, "<example>") for each in rest])) == []


@pytest.mark.sweep
def test_the_documented_command_prints_the_documented_table(capsys):
    policies = [word for name in ("none", "padres", "greedy") for word in ("--policy", name)]
    assert main(["simulate", "-f", str(EXAMPLE), *policies]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines() if line.strip()]
    page = EXAMPLE.parents[2] / "docs" / "worlds.md"
    documented = [line.split() for line in page.read_text().splitlines()]
    assert [row for row in rows if row not in documented] == []
    assert len(rows) == 4


def test_topics_under_pulsar_and_without(tmp_path: Path, capsys):
    documents = list(yaml.safe_load_all((EXAMPLE.parent / "topics.yaml").read_text()))
    documents[0]["spec"]["duration"] = "60s"
    path = tmp_path / "topics.yaml"
    path.write_text(yaml.safe_dump_all(documents))
    command = ["simulate", "-f", str(path), "--policy", "none", "--policy", "pulsar"]
    assert main(command) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()[1:]] == ["none", "pulsar"]
    del documents[0]["spec"]["topicAttribute"]
    path.write_text(yaml.safe_dump_all(documents))
    assert main(command) == 2
    said = capsys.readouterr().err
    assert "publishers market: topics need an attribute; give the World its topicAttribute" in said
    assert "--policy pulsar needs the attribute" in said
