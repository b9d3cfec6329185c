"""Keys: CURVE for every connection, or plain TCP because the application said so in as many words.

A key is 40 characters of Z85, or the path of a file that holds one. The public half of a pair follows from the secret.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

import zmq

from plimsoll.client.errors import SecurityError

KEY_CHARACTERS: Final = 40
_ALPHABET: Final = frozenset("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#")

Key = str | os.PathLike[str]


@dataclass(frozen=True, slots=True)
class Curve:
    """`secret`: of this process. `server`: the head's public key; edges' keys come from the head.

    Each is a key or the path of a file with one.
    """

    secret: Key = field(repr=False)
    server: Key = ""


Security = Curve | Literal["plain"]


@dataclass(frozen=True, slots=True)
class Keys:
    """A pair that sockets can use, in Z85."""

    public: bytes
    secret: bytes = field(repr=False)


def keys_of(security: Security) -> Keys | None:
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


def server_key(security: Security, of_address: str) -> str:
    """The public key of a head: the one beside its address, or the one of `Curve.server`.

    Raises:
        SecurityError: there is none.

    """
    if security == "plain":
        return ""
    key = of_address or security.server
    if not key:
        raise SecurityError("the head's public key is missing; give it as Curve(server=...) or with the head's Address")
    return read_key(key, "the head's public key")


def read_key(key: Key, what: str) -> str:
    """A key, or what the file of that name holds.

    Raises:
        SecurityError: naming the file, and what was found.

    """
    if isinstance(key, str) and is_key(key):
        return key
    path = Path(key)
    try:
        text = path.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        # A mistyped key is not printed: it may be nearly the secret one.
        shown = "a text of 40 characters that is no Z85 key" if len(str(path)) == KEY_CHARACTERS else str(path)
        why = error.strerror if isinstance(error, OSError) else "it is not ASCII text"
        raise SecurityError(f"{what}: cannot read it from {shown}: {why}; give a Z85 key or its file") from None
    if not is_key(text):
        raise SecurityError(f"{what}: {path} holds {len(text)} characters, not a Z85 key of {KEY_CHARACTERS}")
    return text


def is_key(text: str) -> bool:
    return len(text) == KEY_CHARACTERS and all(character in _ALPHABET for character in text)
