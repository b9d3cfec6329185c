"""Connection files: what they hold, what is refused, and that connections are made with them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zmq

from plimsoll.client import Address, Connection, Curve
from plimsoll.client.aio import AsyncConnection
from plimsoll.client.connection_file import (
    MOST_BYTES,
    addresses_by_name,
    connection_file_text,
    read_connection_file,
)
from plimsoll.client.errors import ConnectionFileError
from plimsoll.client.security import Keyring

PUBLIC, SECRET = (key.decode() for key in zmq.curve_keypair())
HEAD, NEXT_HEAD = (zmq.curve_keypair()[0].decode() for _ in range(2))
HEADS = {"east": Address("tcp://127.0.0.1:7000", HEAD), "west": Address("tcp://127.0.0.1:7001", HEAD)}


def written(folder: Path, text: str) -> Path:
    path = folder / "app.json"
    path.write_text(text)
    return path


def test_what_is_written_is_read(tmp_path: Path):
    found = read_connection_file(written(tmp_path, connection_file_text(HEADS, (PUBLIC, SECRET))))
    assert [head.endpoint for head in found.heads] == [head.endpoint for head in HEADS.values()]
    assert found.security == Curve(secret=SECRET, server={head.endpoint: HEAD for head in HEADS.values()})
    plain = {"c": Address("tcp://127.0.0.1:7000")}
    found = read_connection_file(written(tmp_path, connection_file_text(plain, None)))
    assert (found.heads, found.security) == ((Address("tcp://127.0.0.1:7000"),), "plain")


FEEDS = {"stocks": Address("tcp://127.0.0.1:7421", HEAD)}


def test_the_recorders_of_feeds_are_beside_the_heads(tmp_path: Path):
    for heads, keys, feeds in (
        (HEADS, (PUBLIC, SECRET), FEEDS),
        ({"c": Address("tcp://127.0.0.1:7000")}, None, {"stocks": Address("tcp://127.0.0.1:7421")}),
    ):
        found = read_connection_file(written(tmp_path, connection_file_text(heads, keys, FEEDS)))
        assert found.feeds == feeds
    assert read_connection_file(written(tmp_path, connection_file_text(HEADS, (PUBLIC, SECRET)))).feeds == {}
    folder = mounted(tmp_path)
    assert read_connection_file(folder).feeds == {}
    (folder / "feeds.json").write_text(json.dumps(addresses_by_name(FEEDS)))
    assert read_connection_file(folder).feeds == FEEDS
    for text, said in (("{", "is not JSON"), ("[]", "is not an object"), ('{"a": 1}', "a has no endpoint")):
        (folder / "feeds.json").write_text(text)
        with pytest.raises(ConnectionFileError, match=rf"feeds\.json.*{said}"):
            read_connection_file(folder)


def test_one_cluster_may_be_chosen(tmp_path: Path):
    path = written(tmp_path, connection_file_text(HEADS, (PUBLIC, SECRET)))
    assert read_connection_file(path, "west").heads == (Address("tcp://127.0.0.1:7001"),)
    with pytest.raises(ConnectionFileError, match='no cluster "north"; it has east, west'):
        read_connection_file(path, "north")


def test_the_data_of_a_secret_is_a_connection_file(tmp_path: Path):
    whole = json.loads(connection_file_text(HEADS, (PUBLIC, SECRET)))
    text = json.dumps({**whole, "heads.json": json.dumps(whole["heads.json"]), "east-head.key": HEAD + "\n"})
    assert len(read_connection_file(written(tmp_path, text)).heads) == len(HEADS)


def mounted(folder: Path) -> Path:
    """A folder as a pod has it."""
    heads = json.loads(connection_file_text({"east": HEADS["east"]}, None))["heads.json"]
    (folder / "heads.json").write_text(json.dumps(heads))
    (folder / "secret.key").write_text(SECRET + "\n")
    (folder / "public.key").write_text(PUBLIC + "\n")
    (folder / "east-head.key").write_text(f"{HEAD}\n{NEXT_HEAD}\n")
    return folder


def test_a_folder_keeps_its_files(tmp_path: Path):
    found = read_connection_file(mounted(tmp_path))
    server = {"tcp://127.0.0.1:7000": tmp_path / "east-head.key"}
    assert found.security == Curve(secret=tmp_path / "secret.key", server=server)


def test_both_keys_of_a_head_that_is_given_new_ones_are_tried(tmp_path: Path):
    found = read_connection_file(mounted(tmp_path))
    keyring = Keyring(found.security, {head.endpoint: head.public_key for head in found.heads})
    assert keyring.servers("tcp://127.0.0.1:7000") == [HEAD, NEXT_HEAD]
    (tmp_path / "east-head.key").write_text(NEXT_HEAD + "\n")
    assert keyring.servers("tcp://127.0.0.1:7000") == [NEXT_HEAD]


def test_the_keys_of_the_other_heads_are_there_for_publishers_that_are_moved_to_them(tmp_path: Path):
    other = zmq.curve_keypair()[0].decode()
    east, west = mounted(tmp_path) / "east-head.key", tmp_path / "west-head.key"
    heads = {**WHOLE["heads.json"], "west": {"endpoint": "tcp://127.0.0.1:7001", "publicKey": other}}
    (tmp_path / "heads.json").write_text(json.dumps(heads))
    west.write_text(f"{other}\n{NEXT_HEAD}\n")
    found = read_connection_file(tmp_path, "east")
    assert found.heads == (Address("tcp://127.0.0.1:7000"),)
    server = {"tcp://127.0.0.1:7000": east, "tcp://127.0.0.1:7001": west}
    assert found.security == Curve(secret=tmp_path / "secret.key", server=server)
    keyring = Keyring(found.security, {head.endpoint: head.public_key for head in found.heads})
    assert keyring.servers("tcp://127.0.0.1:7001", other) == [other, NEXT_HEAD]
    heads["north"] = {"endpoint": "tcp://127.0.0.1:7002"}
    (tmp_path / "heads.json").write_text(json.dumps(heads))
    assert read_connection_file(tmp_path, "east").security == found.security, "one without a key is in nobody's way"


WHOLE: dict[str, Any] = json.loads(connection_file_text(HEADS, (PUBLIC, SECRET)))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "is not JSON"),
        ("[" * 100_000, "is not JSON"),
        ("[]", "is not a JSON object"),
        ("{}", "names no head"),
        (json.dumps({**WHOLE, "heads.json": "{"}), "heads.json is not JSON"),
        (json.dumps({**WHOLE, "heads.json": {"east": {"endpoint": "nowhere"}}}), "heads.json: east has no endpoint"),
        (json.dumps({**WHOLE, "heads.json": {"east": 5}}), "heads.json: east has no endpoint"),
        (
            json.dumps({**WHOLE, "heads.json": {"east": {"endpoint": "tcp://a:1", "publicKey": 1}}}),
            "publicKey is not text",
        ),
        (json.dumps({**WHOLE, "heads.json": {"east": {"endpoint": "tcp://a:1"}}}), "has no publicKey"),
        (json.dumps({"heads.json": WHOLE["heads.json"]}), "has no secret.key"),
        (json.dumps({**WHOLE, "security": "plain"}), "has a secret key and says plain"),
        (json.dumps({**WHOLE, "security": "none"}), 'security is "plain" or left out'),
        (" " * (MOST_BYTES + 1), "is larger than"),
    ],
)
def test_what_cannot_be_used_is_named(tmp_path: Path, text: str, said: str):
    with pytest.raises(ConnectionFileError, match=said) as caught:
        read_connection_file(written(tmp_path, text))
    assert str(tmp_path) in str(caught.value)
    assert SECRET not in str(caught.value)


def test_a_file_that_is_not_there(tmp_path: Path):
    with pytest.raises(ConnectionFileError, match=r"cannot read .*app\.json: No such file"):
        read_connection_file(tmp_path / "app.json")
    (tmp_path / "app.json").write_bytes(b"\xff\xfe")
    with pytest.raises(ConnectionFileError, match="it is not text"):
        read_connection_file(tmp_path / "app.json")


@pytest.mark.parametrize("curve", [False, True])
def test_connections_are_made_with_it(own_fleet: Callable[..., Any], tmp_path: Path, curve: bool):
    fleet = own_fleet(curve=curve)
    path = written(tmp_path, fleet.connection_file())
    with Connection.from_file(path, name="app") as connection:
        connection.wait_open(300)
        assert (connection.name, connection.status()["head"], connection.status()["plain"]) == ("app", "h", not curve)

    async def opened() -> str:
        async with AsyncConnection.from_file(path) as twin:
            await twin.wait_open(300)
            return str(twin.status()["head"])

    assert asyncio.run(opened()) == "h"
