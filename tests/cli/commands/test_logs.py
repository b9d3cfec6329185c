"""`plimsoll logs` of a local fleet; that of a pod is tested with the backend."""

from __future__ import annotations

import signal

import pytest
from tests.cli import asked


@pytest.fixture
def folder(home):
    for found in asked.fleet():
        found.log("e-0").write_text("2026-01-01 00:00:00,000 INFO one\n2026-01-01 00:00:01,000 INFO two\n")
        found.log("east-head").write_text("")
        yield found


def test_the_lines_of_a_broker(run, folder):
    assert run("logs", "e-0", "--tail", "1") == (0, "2026-01-01 00:00:01,000 INFO two\n", "")
    assert run("logs", "e-0", "--since", "1h") == (0, "", "")
    assert run("logs", "east-head") == (0, "", "")


@pytest.mark.parametrize("name", ["e-O", "../logs/e-0"])
def test_a_name_without_a_log(run, folder, name):
    code, out, err = run("logs", name)
    assert (code, out) == (3, "")
    assert "no log of" in err


def test_lines_are_followed_until_ctrl_c(program, folder):
    process = program("logs", "e-0", "-f")
    assert process.stdout.readline().endswith("one\n")
    assert process.stdout.readline().endswith("two\n")
    with folder.log("e-0").open("a") as file:
        file.write("2026-01-01 00:00:02,000 INFO three\n")
    assert process.stdout.readline().endswith("three\n")
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=300)
    assert (process.returncode, err) == (130, "")
