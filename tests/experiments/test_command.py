"""`plimsoll experiment`: results on disk, plain errors."""

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


def test_several_runs_have_a_file_each(tmp_path: Path, small):
    assert command.main(["padres-global", "--quick", "--runs", "2", "--report", str(tmp_path)]) == 0
    assert {path.name for path in tmp_path.glob("*.json")} == {"padres-global-2006.json", "padres-global-2007.json"}


def test_a_name_that_is_not_known_is_refused(capsys):
    with pytest.raises(SystemExit) as ended:
        command.main(["padres-locally"])
    assert ended.value.code == 2
    assert "padres-local" in capsys.readouterr().err


def test_without_quotes_it_says_what_to_do(monkeypatch, capsys):
    def missing():
        raise quotes.QuotesError("the quotes are not there; run make demo")

    monkeypatch.setattr(quotes, "load", missing)
    assert command.main(["padres-local", "--quick"]) == 1
    assert "run make demo" in capsys.readouterr().err
