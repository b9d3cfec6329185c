from __future__ import annotations

from pathlib import Path

import pytest
import zmq

from plimsoll.client import Curve
from plimsoll.client.errors import SecurityError
from plimsoll.client.security import KEY_CHARACTERS, Keyring, is_key, own_keys, read_key, server_keys

PUBLIC, SECRET = (key.decode() for key in zmq.curve_keypair())


def test_a_key_is_itself_or_the_file_that_holds_it(tmp_path: Path):
    path = tmp_path / "app.key"
    path.write_text(SECRET + "\n")
    for secret in (SECRET, path, str(path)):
        keys = own_keys(Curve(secret=secret))
        assert keys is not None
        assert (keys.public, keys.secret) == (PUBLIC.encode(), SECRET.encode())


def path_of_a_key_s_form(name: str = "local.clients.key") -> Path:
    """A path of 40 characters of Z85, as a folder may happen to give; it is relative."""
    path = Path("a" * (KEY_CHARACTERS - len(name) - 1)) / name
    path.parent.mkdir()
    assert is_key(str(path))
    return path


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("kind", [str, Path])
def test_a_path_that_has_the_form_of_a_key_is_a_path(kind: type):
    path = path_of_a_key_s_form()
    path.write_text(SECRET + "\n")
    public = path_of_a_key_s_form("head.pub")
    public.write_text(PUBLIC + "\n")
    curve = Curve(secret=kind(path), server=kind(public))
    keys = own_keys(curve)
    assert keys is not None
    assert keys.public == PUBLIC.encode()
    assert server_keys(curve, "") == [PUBLIC]


def test_a_path_stays_one_while_its_file_is_away():
    path = path_of_a_key_s_form()
    path.write_text(SECRET)
    curve = Curve(secret=str(path))
    keyring = Keyring(curve, {})
    before = keyring.own()
    path.unlink()
    assert keyring.own() == before
    with pytest.raises(SecurityError, match=f"cannot read it from {path}"):
        own_keys(curve)
    with pytest.raises(SecurityError, match=f"cannot read it from {path}"):
        own_keys(Curve(secret=path))


def test_the_key_of_an_address_is_no_path(tmp_path: Path):
    path = tmp_path / "head.pub"
    path.write_text(PUBLIC)
    with pytest.raises(SecurityError, match=r"no Z85 key; give a file as Curve\(server=...\)"):
        server_keys(Curve(secret=SECRET), str(path))


def test_plain_has_no_keys():
    assert own_keys("plain") is None
    keyring = Keyring("plain", {"tcp://h:1": PUBLIC})
    assert (keyring.own(), keyring.servers("tcp://h:1"), keyring.first("tcp://h:1")) == (None, [], "")


def test_the_key_beside_an_address_comes_first(tmp_path: Path):
    other = zmq.curve_keypair()[0].decode()
    assert server_keys(Curve(secret=SECRET, server=PUBLIC), "") == [PUBLIC]
    assert server_keys(Curve(secret=SECRET, server=PUBLIC), other) == [other]


@pytest.mark.parametrize(
    ("text", "expected"), [("short\n", r"app.key holds 5 characters"), ("\u00e9" * 40, "cannot read it from")]
)
def test_a_file_that_holds_no_key_is_named(tmp_path: Path, text: str, expected: str):
    path = tmp_path / "app.key"
    path.write_text(text)
    with pytest.raises(SecurityError, match=expected):
        read_key(path, "the secret key")


def test_a_file_that_is_not_there_is_named(tmp_path: Path):
    with pytest.raises(SecurityError, match=r"the secret key: cannot read it from .*/none.key"):
        own_keys(Curve(secret=tmp_path / "none.key"))


def test_a_mistyped_key_is_not_printed():
    with pytest.raises(SecurityError) as caught:
        own_keys(Curve(secret=SECRET[:-1] + "~"))
    assert SECRET[:10] not in str(caught.value)


def test_a_missing_server_key_says_where_to_give_it():
    with pytest.raises(SecurityError, match=r"Curve\(server=...\)"):
        server_keys(Curve(secret=SECRET), "")
    with pytest.raises(SecurityError, match="or 'plain'"):
        own_keys("none")  # type: ignore[arg-type]  # what a user may write


def test_secrets_are_not_shown():
    assert SECRET not in repr(Curve(secret=SECRET))
    assert SECRET not in repr(own_keys(Curve(secret=SECRET)))


def test_files_are_read_again_and_what_cannot_be_read_any_more_stays(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    """As when a Secret that is mounted changes under a running process."""
    own, server, (other, next_secret) = tmp_path / "secret.key", tmp_path / "east.key", zmq.curve_keypair()
    own.write_text(SECRET)
    server.write_text(PUBLIC)
    keyring = Keyring(Curve(secret=own, server=server), {"tcp://h:1": ""})
    first = keyring.own()
    assert keyring.servers("tcp://h:1") == [PUBLIC]
    assert keyring.servers("tcp://edge:1") == []
    server.write_text(f"{PUBLIC}\n{other.decode()}\n")
    own.write_text(next_secret.decode())
    assert keyring.servers("tcp://h:1") == [PUBLIC, other.decode()]
    second = keyring.own()
    assert first is not None
    assert second is not None
    assert (first.public, second.public) == (PUBLIC.encode(), other)
    own.unlink()
    server.write_text("half a ke")
    for _ in range(2):
        assert keyring.own() == second
        assert keyring.servers("tcp://h:1") == [PUBLIC, other.decode()]
    assert [each.message.partition(":")[0] for each in caplog.records] == ["the secret key", "the head's public key"]
    assert "No such file or directory" in caplog.records[0].message
    server.write_text(PUBLIC)
    assert keyring.servers("tcp://h:1") == [PUBLIC]
    server.write_text("half a ke")
    assert keyring.servers("tcp://h:1") == [PUBLIC]
    assert len(caplog.records) == 3, "a fault that comes again is logged again"


def test_a_process_has_one_secret_key(tmp_path: Path):
    path = tmp_path / "app.key"
    path.write_text(f"{SECRET}\n{SECRET}\n")
    with pytest.raises(SecurityError, match=r"app\.key holds 2 keys; give a file with one"):
        own_keys(Curve(secret=path))


def test_the_keys_of_a_head_that_is_not_the_home_are_replaced_as_well(tmp_path: Path):
    """A publisher was moved to it: its key came with the command to move, the next one is in a file."""
    east, west, (following, _) = tmp_path / "east.key", tmp_path / "west.key", zmq.curve_keypair()
    old, new = PUBLIC, following.decode()
    east.write_text(zmq.curve_keypair()[0].decode())
    west.write_text(old)
    named = Curve(secret=SECRET, server={"tcp://east:1": east, "tcp://west:1": west})
    beside = Curve(secret=SECRET, server=east)
    for security in (named, beside):
        west.write_text(old)
        keyring = Keyring(security, {"tcp://east:1": ""})
        assert keyring.servers("tcp://west:1", old) == [old]
        west.write_text(f"{old}\n{new}\n")
        assert keyring.servers("tcp://west:1", old) == [old, new]
        west.write_text(new)
        assert keyring.servers("tcp://west:1", old) == [new], "a key that was removed is used no more"
        west.write_text("half a ke")
        assert keyring.servers("tcp://west:1", old) == [new]
        assert keyring.servers("tcp://edge:1", SECRET) == [SECRET], "edges' keys come from the head"


def test_a_key_that_a_head_has_told_is_tried_beside_one_that_was_given_as_text():
    """The text may be of before a key replacement; whoever tells has the present one."""
    told = zmq.curve_keypair()[0].decode()
    for heads in ({"tcp://east:1": PUBLIC}, {"tcp://east:1": PUBLIC, "tcp://west:1": PUBLIC}):
        keyring = Keyring(Curve(secret=SECRET, server={"tcp://west:1": PUBLIC}), heads)
        assert keyring.servers("tcp://west:1", told) == [PUBLIC, told]
        assert keyring.servers("tcp://east:1", PUBLIC) == [PUBLIC]
    assert Keyring(Curve(secret=SECRET), {}).servers("tcp://west:1", told) == [told]
    assert Keyring("plain", {}).servers("tcp://west:1", told) == []


def test_a_head_whose_file_cannot_be_read_yet_is_dialled_with_the_key_that_was_told(tmp_path: Path):
    keyring = Keyring(Curve(secret=SECRET, server={"tcp://west:1": tmp_path / "west.key"}), {})
    assert keyring.servers("tcp://west:1", PUBLIC) == [PUBLIC]
    (tmp_path / "west.key").write_text(PUBLIC)
    assert keyring.servers("tcp://west:1", PUBLIC) == [PUBLIC]
