"""The client under test as a process: its pipes, its address, its end."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest

from plimsoll.conformance import ChildClient, ChildClientError
from plimsoll.conformance.client_under_test import ClientInput
from plimsoll.conformance.rules import RuleBrokenError

ECHO = "import sys\nfor line in sys.stdin: print(line, end='', flush=True)\n"
SECONDS = 300.0


@contextmanager
def running(program: str, *arguments: str) -> Iterator[ChildClient]:
    with closing(ChildClient([sys.executable, "-c", program, *arguments])) as client:
        yield client


def until(client: ChildClient, field: str) -> ClientInput:
    """Poll until there is something in this field."""
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        found = client.poll(0.1)
        if getattr(found, field) not in (None, [], ""):
            return found
    raise AssertionError(f"no {field} within {SECONDS:g} s")


def test_orders_go_in_and_reports_come_out():
    with running(ECHO) as client:
        client.order({"event": "counts", "subscriber": "s"})
        assert until(client, "reports").reports == [{"event": "counts", "subscriber": "s"}]


def test_the_head_is_named_twice():
    program = (
        "import json, os, sys; print(json.dumps({'event': 'at', 'at': [os.environ['PLIMSOLL_HEAD'], sys.argv[1]]}))"
    )
    with running(program, "--head={head}") as client:
        head = client.endpoint("h")
        assert until(client, "reports").reports == [{"event": "at", "at": [head, f"--head={head}"]}]
        assert head.startswith("tcp://127.0.0.1:")
        assert len({client.endpoint(broker) for broker in ("h", "e1", "e2", "e3")}) == 4


def test_an_end_has_its_code_and_what_was_written():
    with running("import sys; sys.exit('no head here')") as client:
        found = until(client, "exit_code")
        assert (found.exit_code, found.errors.strip()) == (1, "no head here")
        client.order({"do": "stop"})  # of a program that has ended, this is no fault


@pytest.mark.parametrize(("line", "found"), [("nonsense", "nonsense"), ("[1]", "no object"), ("{}", "no object")])
def test_lines_that_are_no_reports(line: str, found: str):
    program = f"print({line!r}, flush=True)\nimport time; time.sleep(600)"
    with running(program) as client, pytest.raises(RuleBrokenError, match=found):
        until(client, "reports")


def test_a_program_that_cannot_be_started():
    with pytest.raises(ChildClientError, match="/no/such/program cannot be started: No such file"):
        ChildClient(["/no/such/program"])


def test_a_program_is_ended():
    with running("import time; time.sleep(600)") as client:
        client.poll(0.0)
    assert client._process.poll() is not None
