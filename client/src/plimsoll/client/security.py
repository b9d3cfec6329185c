"""Keys: CURVE for every connection, or plain TCP if the application explicitly asks for it.

A key is 40 characters of Z85, or the path of a file that holds one. Paths have the same characters: a text is a path
if there is a file of this name, and so is every `os.PathLike`. The public half of a pair follows from the secret.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

import zmq

from plimsoll.client.errors import SecurityError

log = logging.getLogger(__name__)

KEY_CHARACTERS: Final = 40
_ALPHABET: Final = frozenset("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#")

Key = str | os.PathLike[str]


@dataclass(frozen=True, slots=True)
class Curve:
    """`secret`: of this process. `server`: the head's public key; edges' keys come from the head.

    With several heads, `server` may have the key of each by its endpoint, also of those that a publisher may be moved
    to. For one that it does not name, a file `*.key` beside those of `server` is used that holds the key which came
    with its endpoint.

    Each is a key or the path of a file with one; of a text that may be both, it is a path if the file is there when the
    object is made. A `pathlib.Path` is always a path. A file is read again whenever a connection has to be made, so
    keys can be replaced under a running process; that of `server` may hold several keys, one a line, tried in turn.
    """

    secret: Key = field(repr=False)
    server: Key | Mapping[str, Key] = ""

    def __post_init__(self) -> None:
        # Decided once: a file may be gone for a moment while it is replaced, and is no key for that.
        object.__setattr__(self, "secret", _key_or_path(self.secret))
        object.__setattr__(self, "server", _keys_or_paths(self.server))


Security = Curve | Literal["plain"]


@dataclass(frozen=True, slots=True)
class Keys:
    """A pair that sockets can use, in Z85."""

    public: bytes
    secret: bytes = field(repr=False)


def own_keys(security: Security) -> Keys | None:
    """The pair of this process; None for plain TCP.

    Raises:
        SecurityError: saying which key cannot be used and why.

    """
    if security == "plain":
        return None
    if not isinstance(security, Curve):
        raise SecurityError(f"security is Curve(secret=..., server=...) or 'plain', not {security!r}")
    secret = read_key(security.secret, "the secret key").encode("ascii")
    try:
        return Keys(zmq.curve_public(secret), secret)
    except zmq.ZMQError as error:
        raise SecurityError(f"the secret key cannot be used: {error}; make one with zmq.curve_keypair()") from error


def server_keys(security: Curve, of_address: str, endpoint: str = "") -> list[str]:
    """The public keys of a head: the one beside its address, or those in `Curve.server`; two during a key replacement.

    Raises:
        SecurityError: there is none.

    """
    if of_address:
        if not is_key(of_address):
            raise SecurityError("the public key of an Address is no Z85 key; give a file as Curve(server=...)")
        return [of_address]
    server = security.server.get(endpoint, "") if isinstance(security.server, Mapping) else security.server
    if not server:
        raise SecurityError("the head's public key is missing; give it as Curve(server=...) or with the head's Address")
    return read_keys(server, "the head's public key")


class Keyring:
    """The keys that a process connects with, read again for each connection, since files may have changed.

    `heads` has the key beside the address of each head, by endpoint. A key that cannot be read stays as it was, and the
    log says why. Other heads, which a head names with their keys, have theirs replaced as well: the application's keys
    count for them, too.
    """

    def __init__(self, security: Security, heads: Mapping[str, str]) -> None:
        self._security, self._heads = security, heads
        self._own = own_keys(security)
        self._faults: dict[str, str] = {}
        self._servers = {endpoint: self._read(endpoint) for endpoint in heads}
        self._named = security.server if isinstance(security, Curve) and isinstance(security.server, Mapping) else {}
        self._files: dict[str, Path] = {}  # by endpoint of a head that the application has not named
        self._had: dict[str, set[str]] = {}  # by endpoint: what the application has named for it so far

    def own(self) -> Keys | None:
        """The pair of this process; None for plain TCP."""
        try:
            self._own = own_keys(self._security)
        except SecurityError as error:
            self._note_fault("", error)
        else:
            self._faults.pop("", None)
        return self._own

    def servers(self, endpoint: str, told: str = "") -> list[str]:
        """The keys that a broker may answer with, tried in turn; empty if there are none, and for plain TCP.

        `told`: the key that came with its endpoint. It is one of them, unless the application has named it and does so
        no more.
        """
        if self._security == "plain":
            return []
        if endpoint in self._heads or endpoint in self._named or self._finds_file(endpoint, told):
            try:
                self._servers[endpoint] = self._read(endpoint)
            except SecurityError as error:
                self._note_fault(endpoint, error)
            else:
                self._faults.pop(endpoint, None)
        known = self._servers.get(endpoint, [])
        had = self._had.setdefault(endpoint, set()) if known else set()
        had.update(known)
        return [*known, told] if told and told not in had else known

    def first(self, endpoint: str) -> str:
        """The first of them."""
        return next(iter(self.servers(endpoint)), "")

    def _note_fault(self, owner: str, error: SecurityError) -> None:
        """Log a fault once: keys are read at every dial."""
        if self._faults.get(owner) != str(error):
            log.warning("%s; what was read before stays in use", error)
        self._faults[owner] = str(error)

    def _finds_file(self, endpoint: str, told: str) -> bool:
        """Whether a file has the keys of this head, which was found by the key that it was told."""
        if endpoint not in self._files and told and isinstance(self._security, Curve):
            server = self._security.server
            given = server.values() if isinstance(server, Mapping) else [server]
            folders = {Path(key).parent for key in given if not isinstance(key, str) or not (is_key(key) or key == "")}
            for found in filter(None, (file_with_key(folder, told) for folder in sorted(folders))):
                self._files[endpoint] = found
        return endpoint in self._files

    def _read(self, endpoint: str) -> list[str]:
        if not isinstance(self._security, Curve):
            return []
        if endpoint in self._heads:
            return server_keys(self._security, self._heads[endpoint], endpoint)
        return read_keys(self._named.get(endpoint) or self._files[endpoint], "the head's public key")


def read_key(key: Key, what: str) -> str:
    """A key as given, or as read from the file of that name.

    Raises:
        SecurityError: naming the file and its fault.

    """
    found = read_keys(key, what)
    if len(found) > 1:
        raise SecurityError(f"{what}: {key} holds {len(found)} keys; give a file with one")
    return found[0]


def read_keys(key: Key, what: str) -> list[str]:
    """A key as given, or the keys in the file of that name, one a line; raises `SecurityError` as `read_key` does."""
    key = _key_or_path(key)
    if isinstance(key, str) and is_key(key):
        return [key]
    path = Path(key)
    try:
        text = path.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        # A mistyped key is not printed: it may be nearly the secret one.
        is_typed = isinstance(key, str) and len(key) == KEY_CHARACTERS
        shown = f"a text of {KEY_CHARACTERS} characters that is neither a Z85 key nor a file" if is_typed else str(path)
        why = error.strerror if isinstance(error, OSError) else "it is not ASCII text"
        raise SecurityError(f"{what}: cannot read it from {shown}: {why}; give a Z85 key or its file") from None
    lines = text.split()
    if not lines or not all(map(is_key, lines)):
        raise SecurityError(f"{what}: {path} holds {len(text)} characters, not a Z85 key of {KEY_CHARACTERS}")
    return lines


def file_with_key(folder: Path, key: str) -> Path | None:
    """The file of a folder that holds this key of a head, maybe beside the next one; None if there is none."""
    return next((file for file in sorted(folder.glob("*.key")) if _holds(file, key)), None)


def _holds(file: Path, key: str) -> bool:
    try:
        return key in read_keys(file, "the head's public key")
    except SecurityError:
        return False


def _key_or_path(key: Key) -> Key:
    """A path for a text that has the form of a key, if there is a file of this name."""
    if isinstance(key, str) and is_key(key):
        try:
            if Path(key).is_file():
                return Path(key)
        except OSError:
            pass  # a folder that cannot be read: the text is a key
    return key


def _keys_or_paths(given: Key | Mapping[str, Key]) -> Key | dict[str, Key]:
    if isinstance(given, Mapping):
        return {endpoint: _key_or_path(key) for endpoint, key in given.items()}
    return _key_or_path(given)


def is_key(text: str) -> bool:
    return len(text) == KEY_CHARACTERS and all(character in _ALPHABET for character in text)
