"""Recordings and replays, of a folder and of a feed that is served, through real brokers; and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.feeds.serving.served import Served, served, wait_until

from plimsoll.cli.argument_types import parse_speed
from plimsoll.cli.contexts.context_file import ContextFile, StoredContext, write_contexts
from plimsoll.cli.contexts.fleet_choice import LocalChoice
from plimsoll.cli.fleet_connection import local_settings
from plimsoll.client import Address, Curve
from plimsoll.client.connection_file import connection_file_text
from plimsoll.client.security import read_keys
from plimsoll.feeds.replay import recorded_publications


@pytest.mark.parametrize(("text", "speed"), [("2x", 2.0), ("1", 1.0), ("0.5x", 0.5), ("max", None)])
def test_speeds(text, speed):
    assert parse_speed(text) == speed


@pytest.mark.parametrize("text", ["0x", "fast", "-1", "x", "1e3x", "nan"])
def test_a_speed_that_is_none(run, text, tmp_path):
    code, _, err = run("replay", str(tmp_path), "--speed", text)
    assert code == 2
    assert "write one such as 1x" in err


def test_what_is_recorded_is_replayed(run, program, shared_fleet, tmp_path):
    data = tmp_path / "data"
    recorder = program("record", "--subscription", "[class,=,'STOCK']", "--path", str(data), "--count", "3")
    assert recorder.stderr is not None
    assert "recording to" in recorder.stderr.readline()
    for price in ("1.5", "2.5", "3.5"):
        assert run("pub", "class=STOCK", f"price={price}")[0] == 0
    out, _ = recorder.communicate(timeout=300)
    assert (recorder.returncode, out) == (0, "3 rows, 0 dead letters, 0 gaps\n")
    assert [each.attributes["price"] for each in recorded_publications(Path(data))] == [1.5, 2.5, 3.5]
    assert run("replay", str(data), "--speed", "max") == (0, "3 published, 3 accepted\n", "")
    assert "there is no dataset here" in run("replay", str(tmp_path), "--speed", "max")[2]


def test_a_recorder_goes_on_behind_its_last_commit(run, shared_fleet, tmp_path):
    data = tmp_path / "data"
    arguments = ("record", "--subscription", "[class,=,'BOND']", "--path", str(data))
    assert run(*arguments, "--seconds", "1")[:2] == (0, "0 rows, 0 dead letters, 0 gaps\n")
    assert run("pub", "class=BOND", "price=1")[0] == 0
    assert run(*arguments, "--count", "1", "--seconds", "60")[:2] == (0, "1 rows, 0 dead letters, 0 gaps\n")
    code, _, err = run("record", "--subscription", "[class,=,'X']", "--path", str(data))
    assert code == 1
    assert "was recorded with the subscription [class,=,'BOND']" in err


@pytest.fixture
def here(shared_fleet, tmp_path: Path):
    """A recorder beside the fleet, and the context `lab` with the addresses of both and one key for them."""
    with served(tmp_path / "s") as found:
        settings = local_settings(LocalChoice(), None, None)
        assert isinstance(settings.security, Curve)
        public, secret = (read_keys(file, "a key")[0] for file in key_files(settings.security))
        found.pairs["ann"] = (public, secret)
        found.grant()
        use(found, tmp_path, settings.heads[0])
        yield found


def key_files(security: Curve) -> tuple[Path, Path]:
    assert isinstance(security.secret, Path)
    return security.secret.with_suffix(".pub"), security.secret


def use(found: Served, folder: Path, head: Address, feed: str = "stocks") -> None:
    feeds = {feed: Address(found.server.endpoint, found.public)}
    (folder / "app.json").write_text(connection_file_text({"east": head}, found.pairs["ann"], feeds))
    write_contexts(ContextFile("lab", {"lab": StoredContext(connection_file=str(folder / "app.json"))}))


def test_a_feed_is_replayed_from_its_recorder(run, program, here: Served, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    here.record(40)
    here.record(5, hour=1)
    recorder = program(
        "record", "--subscription", "[class,=,'STOCK']", "--path", "again", "--count", "51", "--context", "lab"
    )
    assert recorder.stderr is not None
    assert "recording to" in recorder.stderr.readline()
    assert run("replay", "feed/stocks", "--speed", "max") == (0, "45 published, 45 accepted\n", "")
    assert run("replay", "feed/stocks", "--speed", "max", "--since", "40")[1] == "6 published, 6 accepted\n"
    recorder.communicate(timeout=300)
    volumes = [each.attributes["volume"] for each in recorded_publications(tmp_path / "again")]
    assert volumes == [*range(1, 46), *range(40, 46)]
    assert sorted(each.name for each in tmp_path.iterdir()) == ["again", "app.json", "s"], "there is no copy"


def test_a_feed_that_is_not_served_or_may_not_be_read(run, here: Served, tmp_path):
    here.record(1)
    code, _, err = run("replay", "feed/stock")
    assert code == 3
    assert 'no recorder serves a feed "stock" to this client. Did you mean "stocks"?' in err
    for word in ("feed/", "feed/a/b"):
        code, _, err = run("replay", word)
        assert code == 2
        assert f"write feed/NAME for a feed that is served, or ./{word} for a folder" in err
    here.grant(ann="none")
    here.server._readers.refresh()  # type: ignore[union-attr]  # it has keys
    assert run("replay", "feed/stocks") == (1, "", "plimsoll: ann may not read feeds; its roles lack read\n")


@pytest.mark.sweep
def test_a_replay_that_is_ended_says_how_to_go_on(program, here: Served, monkeypatch, tmp_path):
    here.record(3)
    here.record(1, hour=24)
    replay = program("replay", "feed/stocks", "--context", "lab")
    wait_until(lambda: here.server.served.size_bytes > 0, "it has begun to read")
    wait_until(lambda: here.server.served.requests["answered"] > 3, "it waits for the time of the last one")
    replay.terminate()
    out, err = replay.communicate(timeout=300)
    assert (replay.returncode, out, err) == (0, "3 published, 3 accepted; go on with --since 4\n", "")
