"""Addresses and keys of a stored context; whole connections are made in tests/cli/commands/test_client_config.py."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import pytest
import zmq

from plimsoll.cli.contexts.context_file import ContextFile, StoredContext, write_contexts
from plimsoll.cli.exit_codes import BAD_INPUT, FAILED, NOT_FOUND, CommandError
from plimsoll.cli.fleet_connection import connection_settings, feed_settings, open_connection
from plimsoll.client import Address, Curve
from plimsoll.client.connection_file import connection_file_text
from plimsoll.local.head_access import HeadAccessError
from plimsoll.local.storage.fleet_folder import FleetFolder
from plimsoll.local.storage.object_store import ObjectStore

PUBLIC, SECRET = (key.decode() for key in zmq.curve_keypair())


def options(**given: str | None) -> argparse.Namespace:
    return argparse.Namespace(
        **{"fleet": None, "namespace": None, "context": "prod", "cluster": None, "client": None, **given}
    )


def stored(**fields: object) -> argparse.Namespace:
    write_contexts(ContextFile("", {"prod": StoredContext(**fields)}))  # type: ignore[arg-type]  # fields of a test
    return options()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A connection file with two heads."""
    path = tmp_path / "app.json"
    heads = {"a": Address("tcp://a:1", PUBLIC), "b": Address("tcp://b:1", PUBLIC)}
    path.write_text(connection_file_text(heads, (PUBLIC, SECRET)))
    return path


def test_plain_addresses():
    found = connection_settings(stored(addresses=("tcp://h:1", "tcp://h:2"), plain=True))
    assert (found.heads, found.security) == ((Address("tcp://h:1"), Address("tcp://h:2")), "plain")


def test_an_address_with_two_key_files(tmp_path: Path):
    key = tmp_path / "my.key"
    key.write_text(SECRET)
    found = connection_settings(stored(addresses=("tcp://h:1",), secret_key_file=str(key), server_key=PUBLIC))
    assert (found.heads, found.security) == ((Address("tcp://h:1"),), Curve(secret=key, server=PUBLIC))


def test_a_connection_file_and_other_addresses_of_its_heads(file: Path):
    assert len(connection_settings(stored(connection_file=str(file))).heads) == 2
    found = connection_settings(stored(connection_file=str(file), addresses=("tcp://x:1", "tcp://y:1")))
    assert found.heads == (Address("tcp://x:1"), Address("tcp://y:1"))
    assert found.security == Curve(secret=SECRET, server={"tcp://x:1": PUBLIC, "tcp://y:1": PUBLIC})


def test_the_recorders_of_a_connection_file_are_kept(file: Path):
    feeds = {"stocks": Address("tcp://r:1", PUBLIC)}
    file.write_text(connection_file_text({"a": Address("tcp://a:1", PUBLIC)}, (PUBLIC, SECRET), feeds))
    assert connection_settings(stored(connection_file=str(file))).feeds == feeds
    assert connection_settings(stored(connection_file=str(file), addresses=("tcp://x:1",))).feeds == feeds
    assert connection_settings(stored(addresses=("tcp://h:1",), plain=True)).feeds == {}


def test_a_file_with_several_heads_needs_an_address_for_each(file: Path):
    with pytest.raises(CommandError, match="has several heads: give an --address for each") as caught:
        connection_settings(stored(connection_file=str(file), addresses=("tcp://x:1",)))
    assert caught.value.code == BAD_INPUT


def test_a_cluster_is_chosen_in_a_connection_file_alone(file: Path):
    stored(connection_file=str(file))
    assert connection_settings(options(cluster="b")).heads == (Address("tcp://b:1"),)
    stored(addresses=("tcp://h:1",), plain=True)
    with pytest.raises(CommandError, match="names addresses, not clusters"):
        connection_settings(options(cluster="b"))


def test_errors_of_the_library_are_those_of_the_command(tmp_path: Path):
    missing = stored(connection_file=str(tmp_path / "missing.json"))
    with pytest.raises(CommandError, match=r"cannot read .*missing") as caught, open_connection(missing):
        pass
    assert caught.value.code == FAILED
    with pytest.raises(CommandError, match="no fleet in") as caught, open_connection(options(context=None)):
        pass
    assert caught.value.code == NOT_FOUND


def test_feeds_of_a_local_fleet_are_read_while_no_head_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PLIMSOLL_HOME", str(tmp_path))
    folder = FleetFolder.of("stocks")
    folder.make()
    with ObjectStore(folder.store) as store:
        for kind in ("BrokerFleet", "Feed"):
            item = {"apiVersion": "plimsoll.dev/v1alpha1", "kind": kind, "metadata": {"name": "stocks"}, "spec": {}}
            store.create(item, "2026-01-01T00:00:00Z")
        store.set_status("Feed", "stocks", lambda item: {"endpoint": "tcp://127.0.0.1:7421"})
    with pytest.raises(HeadAccessError, match="fleet stocks does not run"):
        feed_settings(options(context=None))
    with monkeypatch.context() as running:
        running.setattr(FleetFolder, "running_pid", lambda self: os.getpid())
        with pytest.raises(HeadAccessError, match="no head of fleet stocks runs"):
            connection_settings(options(context=None))
        found = feed_settings(options(context=None))
    assert found.feeds["stocks"].endpoint == "tcp://127.0.0.1:7421"
    assert isinstance(found.security, Curve)
