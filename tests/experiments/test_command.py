"""`plimsoll experiment`: results on disk, plain errors."""

import argparse
import json
from pathlib import Path

import pytest

from plimsoll.demo import quotes
from plimsoll.experiments import catalogue, command


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(catalogue, "QUICK_SHARE", 0.03)
    monkeypatch.setattr(catalogue, "QUICK_SUBSCRIBERS", 40)


def test_a_run_writes_json_page_and_picture(tmp_path: Path, capsys, small):
    assert command.main(["padres-local", "--quick", "--seed", "3", "--report", str(tmp_path)]) == 0
    found = json.loads((tmp_path / "padres-local.json").read_text())
    assert (found["name"], found["seed"], found["policy"]) == ("padres-local", 3, "Padres")
    assert found["processor_seconds"] > 0
    assert (tmp_path / "padres-local.html").read_text().startswith("<!DOCTYPE html>")
    assert (tmp_path / "padres-local.png").read_bytes().startswith(b"\x89PNG")
    assert "claims held" in capsys.readouterr().out


@pytest.mark.sweep
def test_several_runs_have_a_file_each(tmp_path: Path, small):
    assert command.main(["padres-global", "--quick", "--runs", "2", "--report", str(tmp_path)]) == 0
    assert {path.name for path in tmp_path.glob("*.json")} == {"padres-global-2006.json", "padres-global-2007.json"}


def test_a_name_that_is_not_known_is_refused(capsys):
    with pytest.raises(SystemExit) as ended:
        command.main(["padres-locally"])
    assert ended.value.code == 2
    assert "padres-local" in capsys.readouterr().err


def test_what_cannot_be_run_or_written_is_refused(tmp_path: Path, capsys):
    (tmp_path / "file").write_text("")
    refused = [
        (["--runs", "0"], "--runs: give at least 1"),
        (["--report", str(tmp_path / "file" / "below")], "cannot be made"),
    ]
    for arguments, said in refused:
        with pytest.raises(SystemExit) as ended:
            command.main(["pulsar-shedding", *arguments])
        assert ended.value.code == 2
        assert said in capsys.readouterr().err


def test_without_quotes_it_says_what_to_do(monkeypatch, capsys):
    def missing():
        raise quotes.QuotesError("the quotes are not there; run make demo")

    monkeypatch.setattr(quotes, "load", missing)
    assert command.main(["padres-local", "--quick"]) == 1
    assert "run make demo" in capsys.readouterr().err


def test_experiments_of_a_policy_need_no_quotes(monkeypatch, tmp_path: Path):
    def missing():
        raise quotes.QuotesError("the quotes are not there; run make demo")

    monkeypatch.setattr(quotes, "load", missing)
    assert command.main(["bad-simulation", "--quick", "--seed", "3", "--report", str(tmp_path)]) == 0
    found = json.loads((tmp_path / "bad-simulation.json").read_text())
    assert (found["name"], found["seed"], found["policy"]) == ("bad-simulation", 3, "Bad")
    assert {"claim", "paper", "ours", "held"} == set(found["claims"][0])
    assert (tmp_path / "bad-simulation.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.sweep
def test_the_same_seed_gives_the_same_result(tmp_path: Path):
    for name in ("one", "two"):
        assert command.main(["bad-simulation", "--quick", "--report", str(tmp_path / name)]) == 0
    one, two = (json.loads((tmp_path / name / "bad-simulation.json").read_text()) for name in ("one", "two"))
    assert one["claims"] == two["claims"]
    assert one["figures"] == two["figures"]


def test_schemes_of_one_policy_run_under_no_other(capsys):
    with pytest.raises(SystemExit) as ended:
        command.main(["bad-prototype", "--policy", "greedy"])
    assert ended.value.code == 2
    assert "leave that out" in capsys.readouterr().err


@pytest.mark.parametrize(("policy", "with_bad"), [(None, True), ("bad", True), ("greedy", False)])
def test_all_leaves_out_what_another_policy_cannot_run(policy: str | None, with_bad: bool):
    names = command.experiments_to_run(argparse.ArgumentParser(), "all", policy)
    assert ("bad-prototype" in names) == with_bad
    assert "padres-local" in names
