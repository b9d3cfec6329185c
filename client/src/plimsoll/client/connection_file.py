"""Connection files: the addresses of heads and the keys of one application, as `plimsoll client-config` prints them.

A file is one JSON object with the keys of the Secret that the operator makes for a client: `secret.key`, `public.key`,
and `heads.json` with endpoint and public key of each cluster's head; and `feeds.json` with those of the recorder of
each feed that serves it, if there are any. A folder in which such a Secret is mounted is read
in the same way, and its files again whenever a connection has to be made. A fleet without keys says so in its file:
`"security": "plain"`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from plimsoll.client.errors import ConnectionFileError
from plimsoll.client.security import Curve, Security, file_with_key
from plimsoll.core.client import Address

SECRET_KEY, PUBLIC_KEY, HEADS, FEEDS, SECURITY = "secret.key", "public.key", "heads.json", "feeds.json", "security"
ENDPOINT, HEAD_KEY = "endpoint", "publicKey"
MOST_BYTES: Final = 1 << 20
"""A larger file is refused unread: 1 MiB is what a Secret may hold."""


@dataclass(frozen=True, slots=True)
class ConnectionSettings:
    """What a `Connection` is made with. `feeds`: the recorders that serve their datasets, by feed."""

    heads: tuple[Address, ...]
    security: Security
    feeds: Mapping[str, Address] = field(default_factory=dict)


def read_connection_file(path: str | os.PathLike[str], cluster: str = "") -> ConnectionSettings:
    """The heads and keys in a file or folder; `cluster`: the head of this one alone.

    Raises:
        ConnectionFileError: it cannot be read, or lacks something; the message says what.

    """
    place = Path(path).absolute()
    content = _folder_content(place) if place.is_dir() else _file_content(place)
    heads, feeds = _heads(content.get(HEADS), place), _feeds(content.get(FEEDS), place)
    if cluster and cluster not in heads:
        raise ConnectionFileError(f'{place} has no cluster "{cluster}"; it has {", ".join(sorted(heads))}')
    chosen = tuple(address for name, address in sorted(heads.items()) if cluster in ("", name))
    if _is_plain(content, place):
        served = {name: Address(address.endpoint) for name, address in feeds.items()}
        return ConnectionSettings(tuple(Address(address.endpoint) for address in chosen), "plain", served)
    # Of all heads: a publisher may be moved to one of another cluster, and its keys are replaced as well.
    used = [address for address in heads.values() if address in chosen or address.public_key]
    server = {address.endpoint: _head_key(address, place) for address in used}
    return ConnectionSettings(
        tuple(Address(address.endpoint) for address in chosen), Curve(secret=content[SECRET_KEY], server=server), feeds
    )


def connection_file_text(
    heads: Mapping[str, Address], keys: tuple[str, str] | None, feeds: Mapping[str, Address] | None = None
) -> str:
    """The text of a connection file. `heads`: by cluster. `keys`: the public and the secret one; None for plain TCP.

    `feeds`: the recorders that serve their datasets, by feed.
    """
    served = {FEEDS: addresses_by_name(feeds)} if feeds else {}
    secured = {SECURITY: "plain"} if keys is None else {PUBLIC_KEY: keys[0], SECRET_KEY: keys[1]}
    return json.dumps({HEADS: addresses_by_name(heads), **served, **secured}, indent=2)


def addresses_by_name(addresses: Mapping[str, Address]) -> dict[str, dict[str, str]]:
    """Addresses as connection files and Secrets have them."""
    return {
        name: {ENDPOINT: address.endpoint, HEAD_KEY: address.public_key} for name, address in sorted(addresses.items())
    }


def _file_content(path: Path) -> Mapping[str, Any]:
    text = _text(path)
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConnectionFileError(
            f"{path} is not JSON: {error}; `plimsoll client-config NAME` prints a connection file"
        ) from None  # the cause holds the text, which may hold a secret key
    if not isinstance(content, dict):
        raise ConnectionFileError(f"{path} is not a JSON object; `plimsoll client-config NAME` prints one")
    return content


def _folder_content(folder: Path) -> Mapping[str, Any]:
    """The content of a mounted Secret; the secret key stays a path, to be read again at every connection."""
    secret = folder / SECRET_KEY
    served = {FEEDS: _text(folder / FEEDS)} if (folder / FEEDS).exists() else {}
    return {HEADS: _text(folder / HEADS), **served, **({SECRET_KEY: secret} if secret.exists() else {})}


def _text(path: Path) -> str:
    try:
        with path.open(encoding="utf-8") as file:
            text = file.read(MOST_BYTES + 1)
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not text"
        raise ConnectionFileError(f"cannot read {path}: {why}") from None
    if len(text) > MOST_BYTES:
        raise ConnectionFileError(f"{path} is larger than {MOST_BYTES} bytes, so it is no connection file")
    return text


def _heads(given: object, place: Path) -> dict[str, Address]:
    """Addresses by cluster, from an object or from its text, as a Secret has it."""
    listed = _decoded(given, f"{place}: {HEADS}")
    if not isinstance(listed, dict) or not listed:
        raise ConnectionFileError(f"{place}: {HEADS} names no head; it has endpoint and publicKey by cluster")
    return {name: _address(head, f"{place}: {HEADS}: {name}") for name, head in listed.items()}


def _feeds(given: object, place: Path) -> dict[str, Address]:
    """Addresses by feed, in the same way; there may be none."""
    listed = {} if given is None else _decoded(given, f"{place}: {FEEDS}")
    if not isinstance(listed, dict):
        raise ConnectionFileError(f"{place}: {FEEDS} is not an object; it has endpoint and publicKey by feed")
    return {name: _address(recorder, f"{place}: {FEEDS}: {name}") for name, recorder in listed.items()}


def _decoded(given: object, where: str) -> object:
    if not isinstance(given, str):
        return given
    try:
        found: object = json.loads(given)
    except (ValueError, RecursionError) as error:
        raise ConnectionFileError(f"{where} is not JSON: {error}") from error
    return found


def _address(given: object, where: str) -> Address:
    endpoint, key = (given.get(ENDPOINT), given.get(HEAD_KEY, "")) if isinstance(given, dict) else (None, "")
    if not isinstance(endpoint, str) or not endpoint.startswith(("tcp://", "ipc://")):
        raise ConnectionFileError(f"{where} has no endpoint; write tcp://HOST:PORT")
    if not isinstance(key, str):
        raise ConnectionFileError(f"{where}: publicKey is not text")
    return Address(endpoint, key)


def _is_plain(content: Mapping[str, Any], place: Path) -> bool:
    """False, unless the file says plain: one that lost its key is refused, not used without encryption."""
    secret, stated = content.get(SECRET_KEY), content.get(SECURITY)
    if stated not in (None, "plain"):
        raise ConnectionFileError(f'{place}: security is "plain" or left out, not {stated!r}')
    if stated == "plain" and secret is not None:
        raise ConnectionFileError(f"{place} has a secret key and says plain; remove one of them")
    if stated is None and not isinstance(secret, str | Path):
        raise ConnectionFileError(f'{place} has no {SECRET_KEY}; a fleet without keys needs "security": "plain"')
    return stated is not None


def _head_key(address: Address, place: Path) -> str | Path:
    """The file with the keys of a head, if the folder has one, since it holds two during a rotation; or its key."""
    if not address.public_key:
        raise ConnectionFileError(f"{place}: {address.endpoint} has no publicKey, which a head with keys needs")
    return (file_with_key(place, address.public_key) if place.is_dir() else None) or address.public_key
