"""Lines of a log that grows and is replaced."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from plimsoll.cli.log_files import log_lines


def stamped(ago_seconds: float, text: str) -> str:
    when = datetime.now() - timedelta(seconds=ago_seconds)  # noqa: DTZ005  # as a log has it
    return f"{when:%Y-%m-%d %H:%M:%S},{when.microsecond // 1000:03} INFO {text}\n"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "e-0.log"
    path.with_suffix(".log.1").write_text(stamped(7200, "first"))
    path.write_text(stamped(3600, "second") + "  of two lines\n" + stamped(5, "third") + "  too\n")
    return path


def texts(lines: list[str]) -> list[str]:
    return [line.rpartition("INFO ")[2].strip() for line in lines]


def test_all_lines_are_those_of_both_files(log: Path):
    assert texts(list(log_lines(log, None, None, follow=False))) == ["first", "second", "of two lines", "third", "too"]


def test_the_last_lines(log: Path):
    assert texts(list(log_lines(log, 2, None, follow=False))) == ["third", "too"]


@pytest.mark.parametrize(("seconds", "expected"), [(60, 2), (4000, 4), (8000, 5)])
def test_the_lines_of_a_time(log: Path, seconds: float, expected: int):
    assert len(list(log_lines(log, None, seconds, follow=False))) == expected
    assert texts(list(log_lines(log, 1, seconds, follow=False))) == ["too"]


def test_new_lines_are_followed_into_the_next_file(log: Path, monkeypatch: pytest.MonkeyPatch):
    def append(text: str) -> None:
        with log.open("a") as file:
            file.write(text)

    steps = [
        lambda: append("half"),
        lambda: append(" and whole\nlast of this file\n"),
        lambda: (log.replace(log.with_suffix(".log.1")), log.write_text("first of the next\n")),
    ]

    def sleep(seconds: float) -> None:
        assert steps, "all lines were written, and not all were read"
        steps.pop(0)()

    monkeypatch.setattr(time, "sleep", sleep)
    lines = log_lines(log, 0, None, follow=True)
    assert [next(lines) for _ in range(3)] == ["half and whole", "last of this file", "first of the next"]
    lines.close()


def test_a_log_that_is_being_replaced_is_waited_for(log: Path, monkeypatch: pytest.MonkeyPatch):
    steps: list[Callable[[], object]] = [log.unlink, lambda: log.write_text("back\n")]
    monkeypatch.setattr(time, "sleep", lambda seconds: steps.pop(0)())
    lines = log_lines(log, 0, None, follow=True)
    assert next(lines) == "back"
    lines.close()
