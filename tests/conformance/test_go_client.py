"""The client in Go, of examples/go-client: it keeps to the simple profile, and loses nothing while it is moved."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.client.conftest import Fleet
from tests.conformance.real_moves import STOCK, ProgramUnderMoves, await_until, run_moves

from plimsoll.conformance import SCENARIOS, ChildClient, play_all, table_report

SOURCE = Path(__file__).resolve().parents[2] / "examples" / "go-client"
GO = shutil.which("go") or shutil.which("go", path="/usr/local/go/bin")
BUILD_SECONDS = 900
WITHOUT_KEY = '{"heads.json": {"c": {"endpoint": "tcp://127.0.0.1:1", "publicKey": ""}}}'

pytestmark = pytest.mark.skipif(GO is None, reason="the client in Go is not tried: there is no Go here to build it")


@pytest.fixture(scope="module")
def binary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built without a network: the client needs the standard library alone."""
    folder = tmp_path_factory.mktemp("go")
    made = folder / "go-client"
    settings = {"GOFLAGS": "-mod=mod", "GOPROXY": "off", "GOTOOLCHAIN": "local"}
    if "HOME" not in os.environ and "GOCACHE" not in os.environ:
        settings["GOCACHE"] = str(folder / "cache")
    command = [str(GO), "build", "-o", str(made), "."]
    subprocess.run(command, cwd=SOURCE, env={**os.environ, **settings}, check=True, timeout=BUILD_SECONDS)
    return made


@pytest.mark.sweep
@pytest.mark.timeout(1800)  # the first build compiles Go's own library, too
def test_it_keeps_to_the_simple_profile(binary: Path):
    scenarios = [scenario for scenario in SCENARIOS if "simple" in scenario.profiles]
    verdicts = list(play_all(scenarios, partial(ChildClient, [str(binary)]), jobs=4, patience=25))
    assert all(verdict.is_kept for verdict in verdicts), table_report(verdicts)


def assert_nothing_is_missing(found: dict[str, Any], moves: int) -> None:
    client = found["client"]
    assert found["outcomes"]["moved"] >= moves
    assert client["moves"] == found["outcomes"]["moved"]
    assert client["accepted"] == found["published"]
    assert client["delivered"] == found["published"] * client["series"]
    assert {
        key: client[key] for key in ("lost", "repeated", "reordered", "gaps", "refused", "unknown")
    } == dict.fromkeys(("lost", "repeated", "reordered", "gaps", "refused", "unknown"), 0)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_it_loses_nothing_in_moves(binary: Path, tmp_path: Path):
    assert_nothing_is_missing(run_moves([str(binary), "-count"], 100, tmp_path), 100)


@pytest.mark.sweep
@pytest.mark.timeout(900)  # a thousand moves, one session after the other
def test_it_loses_nothing_in_a_thousand_moves(binary: Path, tmp_path: Path):
    assert_nothing_is_missing(run_moves([str(binary), "-count"], 1000, tmp_path), 1000)


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Fleet]:
    made = Fleet(tmp_path)
    yield made
    made.close()


def program(binary: Path, fleet: Fleet, name: str) -> ProgramUnderMoves:
    return ProgramUnderMoves([str(binary), "-name", name], fleet.head, fleet.folder / f"{name}.log")


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_it_speaks_curve_as_a_connection_file_says(binary: Path, tmp_path: Path):
    fleet = Fleet(tmp_path, curve=True)
    file = tmp_path / "app.json"
    file.write_text(fleet.connection_file())
    client = ProgramUnderMoves([str(binary), "-file", str(file)], "", tmp_path / "go.log")
    try:
        client.order(do="subscribe", subscriber="s", subscription=STOCK)
        await_until(lambda: client.of("counts"), "SUBACK", 300)
        text = "x" * 5_000  # several blocks of the cipher, and a long message part
        client.order(do="publish", publisher="p", attributes={"class": "STOCK", "text": text}, count=20)
        await_until(lambda: len(client.of("delivery")) == 20, "twenty deliveries", 300)
        assert client.of("delivery")[-1]["attributes"]["text"] == text
        assert client.stop() == 0
    finally:
        client.close()
        fleet.close()


def test_a_wrong_connection_file_is_named(binary: Path, tmp_path: Path):
    file = tmp_path / "app.json"
    for text, said in (("{", "is not a connection file"), ("{}", "names no head"), (WITHOUT_KEY, "has no secret.key")):
        file.write_text(text)
        done = subprocess.run([str(binary), "-file", str(file)], capture_output=True, text=True, check=False)
        assert (done.returncode, said in done.stderr) == (2, True), done.stderr


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_it_goes_on_from_its_token_and_outlives_an_edge(binary: Path, fleet: Fleet):
    """A second process goes on behind what the first one was given; then the edge that serves it is killed."""
    feed = program(binary, fleet, "feed")
    first = program(binary, fleet, "reader")
    try:
        first.order(do="subscribe", subscriber="s", subscription=STOCK)
        await_until(lambda: first.of("counts"), "SUBACK", 300)
        feed.order(do="publish", publisher="p", attributes={"class": "STOCK"}, count=10)
        await_until(lambda: len(first.of("delivery")) == 10, "ten deliveries", 300)
        first.order(do="position")
        await_until(lambda: first.of("position"), "position", 300)
        (place,) = first.of("position")
        first.order(do="close", subscriber="s", withdraw=False)
        assert first.stop() == 0
        feed.order(do="publish", publisher="p", attributes={"class": "STOCK"}, count=10)
        await_until(lambda: len(feed.of("answer")) == 20, "twenty answers", 300)
        _second_life(binary, fleet, feed, place)
        assert feed.stop() == 0
    finally:
        feed.close()
        first.close()


def _second_life(binary: Path, fleet: Fleet, feed: ProgramUnderMoves, place: dict[str, Any]) -> None:
    second = program(binary, fleet, "reader")
    try:
        stored = {"token": place["token"], "watermarks": place["watermarks"]}
        second.order(do="subscribe", subscriber="s", subscription=STOCK, **stored)
        await_until(lambda: len(second.of("delivery")) == 10, "deliveries from the log", 300)
        second.order(do="position")
        await_until(lambda: second.of("position"), "position", 300)
        fleet.kill(second.of("position")[0]["edge"])
        feed.order(do="publish", publisher="p", attributes={"class": "STOCK"}, count=10)
        await_until(lambda: len(second.of("delivery")) == 20, "deliveries at the other edge", 300)
        assert [report["seq"] for report in second.of("delivery")] == list(range(11, 31))
        assert second.of("gap") == []
        assert second.stop() == 0
    finally:
        second.close()
