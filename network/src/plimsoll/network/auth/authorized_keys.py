"""Who may connect, and under which name: the authorised keys, the answers to ZAP, the check of names against keys.

CURVE proves that a peer holds a key; this module decides what the key permits. It fails closed: unknown keys and
malformed requests are refused. It opens no socket.

The file has one `Z85-public-key role name` per line; `#` starts a comment. Roles are client, collector, edge, head and
mediator; a collector may only receive load reports. Permissions and quotas may follow the name of a client
(`permission_parser`).

A name has one role and may have several keys, so that a key can be replaced without a pause: add the new one, change
over, remove the old one. A connection has the permissions of the key that it authenticated with, and ends when that
key is removed. The name `*` is for clients that may use any name but a broker's; all others must use the name beside
their key, or, so that a client may have several connections, one that its library has made up (`~...`). Names of
subscribers and publishers belong to identities: a name of this file, or where that is `*`, the key.
"""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path
from typing import Final

from plimsoll.core.permissions import (
    ALL_PERMISSIONS,
    GENERATED,
    NO_NAME_GRANTS,
    ClientPermissions,
    NameGrants,
    name_of_broker,
)
from plimsoll.network.auth import permission_parser

DATA_DOMAIN: Final = "plimsoll.data"
CONTROL_DOMAIN: Final = "plimsoll.control"
FEED_DOMAIN: Final = "plimsoll.feed"

ROLES: Final = ("client", "collector", "edge", "head", "mediator")
ADMITTED: Final[Mapping[str, frozenset[str]]] = {
    DATA_DOMAIN: frozenset({"client", "edge", "head"}),
    CONTROL_DOMAIN: frozenset({"collector", "edge", "head", "mediator"}),
    FEED_DOMAIN: frozenset({"client"}),
}
"""Which roles may open a connection to which socket."""

ANY_NAME: Final = "*"
KEY_CHARACTERS: Final = 40

# ZeroMQ RFC 32 (Z85)
_ALPHABET: Final = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
# ZeroMQ RFC 27 (ZAP)
_ZAP_VERSION: Final = b"1.0"
_OK, _REFUSED, _FAILED = b"200", b"400", b"500"


class KeyFileError(ValueError):
    """A key or a file of keys that cannot be used; says where and what to do."""


@dataclass(frozen=True, slots=True)
class KeyIdentity:
    """The role and name of a key; only clients have grants."""

    role: str
    name: str
    grant: ClientPermissions = ALL_PERMISSIONS


def z85(raw: bytes) -> str:
    """Z85 text of `raw`, whose length is a multiple of four."""
    words = (word for (word,) in struct.iter_unpack(">I", raw))
    return "".join(_ALPHABET[word // 85**power % 85] for word in words for power in (4, 3, 2, 1, 0))


def is_key(text: str) -> bool:
    return len(text) == KEY_CHARACTERS and all(character in _ALPHABET for character in text)


def parse_authorized_keys(text: str, where: str) -> dict[str, KeyIdentity]:
    """Read the lines of an authorised-keys file: key -> identity.

    Raises:
        KeyFileError: naming file, line, and what is wrong.

    """
    found: dict[str, KeyIdentity] = {}
    known: dict[str, KeyIdentity] = {}
    for number, line in enumerate(text.splitlines(), 1):
        # A key may contain '#': it starts a comment only at the start of a line or after the name.
        fields = line.split()
        is_owned = len(fields) > 1 and fields[1] in ROLES
        if not fields or (fields[0].startswith("#") and not (is_key(fields[0]) and is_owned)):
            continue
        key, identity = _parse_fields(fields, f"{where}:{number}")
        if key in found:
            raise KeyFileError(
                f"{where}:{number}: this key is already listed for {found[key].name}; a key has one owner"
            )
        above = known.setdefault(identity.name, identity)
        if above.role != identity.role:
            raise KeyFileError(
                f"{where}:{number}: {identity.name} is a {above.role} above and a {identity.role} here; "
                "a name has one role"
            )
        if above.grant != identity.grant:
            raise KeyFileError(
                f"{where}:{number}: {identity.name} may do something else above; each line of a name says the same"
            )
        found[key] = identity
    return found


def _parse_fields(fields: list[str], where: str) -> tuple[str, KeyIdentity]:
    if len(fields) < 3:
        raise KeyFileError(f"{where}: expected `public-key role name`, found {len(fields)} fields")
    (key, role, name), granted = fields[:3], list(takewhile(lambda field: not field.startswith("#"), fields[3:]))
    if not is_key(key):
        raise KeyFileError(
            f"{where}: a public key is {KEY_CHARACTERS} characters of Z85, found {len(key)}: {key[:8]}..."
        )
    if role not in ROLES:
        raise KeyFileError(f"{where}: unknown role {role!r}; roles are {', '.join(ROLES)}")
    if name == ANY_NAME and role != "client":
        raise KeyFileError(f"{where}: only a client may have the name {ANY_NAME!r}; give the {role} its own name")
    if role != "client":
        if granted:
            raise KeyFileError(f"{where}: found {granted[0]!r} after the name; only clients have permissions")
        return key, KeyIdentity(role, name)
    try:
        return key, KeyIdentity(role, name, permission_parser.parse_permissions(granted, name))
    except ValueError as error:
        raise KeyFileError(f"{where}: {error}") from error


def read_secret_key(path: str, where: str = "security.secret_key_file") -> str:
    """The Z85 secret key that the file holds. `where`: of the path, in the configuration.

    Raises:
        KeyFileError: the file cannot be read, or holds something else.

    """
    try:
        text = Path(path).read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise KeyFileError(f"{where}: cannot read {path}: {error}") from error
    if not is_key(text):
        raise KeyFileError(f"{where}: {path} does not hold a Z85 secret key of {KEY_CHARACTERS} characters")
    return text


@dataclass(slots=True)
class SecretKeyFile:
    """The secret key of this process, read again when its file changes; an unreadable file leaves the last in force."""

    path: str
    secret: str = field(repr=False)
    fault: str = ""

    @classmethod
    def read(cls, path: str, where: str = "security.secret_key_file") -> SecretKeyFile:
        """Read the file for the first time; raises `KeyFileError`."""
        return cls(path, read_secret_key(path, where))

    def refresh(self) -> bool:
        """Read the file again; true if the key has changed."""
        try:
            secret = read_secret_key(self.path)
        except KeyFileError as error:
            self.fault = str(error)
            return False
        changed, self.secret, self.fault = secret != self.secret, secret, ""
        return changed


@dataclass(slots=True)
class AuthorizedKeys:
    """The authorised keys of one broker, read again when the file changes, and the answers to ZAP.

    A file that has become unreadable leaves the last good keys in force, and `fault` says so.
    """

    path: Path
    keys: dict[str, KeyIdentity] = field(default_factory=dict)
    fault: str = ""
    name_grants: NameGrants = NO_NAME_GRANTS
    admitted: int = 0
    refused: int = 0
    _seen: tuple[int, int, int] = (0, 0, 0)

    @classmethod
    def read(cls, path: str, where: str = "security.authorized_keys_file") -> AuthorizedKeys:
        """Read the file for the first time. `where`: of the path, in the configuration.

        Raises:
            KeyFileError: it cannot be used; a process that listens must not start without it.

        """
        authority = cls(Path(path))
        authority.refresh()
        if authority.fault:
            raise KeyFileError(f"{where}: {authority.fault}")
        return authority

    def refresh(self) -> bool:
        """Read the file again if it has changed; true if the keys in force have changed."""
        try:
            stat = self.path.stat()
            seen = (stat.st_mtime_ns, stat.st_size, stat.st_ino)
            if seen == self._seen:
                return False
            keys = parse_authorized_keys(self.path.read_text(encoding="utf-8"), str(self.path))
        except (OSError, UnicodeDecodeError) as error:
            self.fault = f"cannot read {self.path}: {error}"
            return False
        except KeyFileError as error:
            self.fault = str(error)
            return False
        changed = keys != self.keys
        self.keys, self._seen, self.fault = keys, seen, ""
        self.name_grants = _name_grants(keys)
        return changed

    def answer_zap(self, request: Sequence[bytes]) -> list[bytes]:
        """The reply to one ZAP request. User-Id is the key, since a connection's permissions are those of its key."""
        if len(request) < 6 or request[0] != _ZAP_VERSION:
            self.refused += 1
            return [_ZAP_VERSION, request[1] if len(request) > 1 else b"", _FAILED, b"not a ZAP 1.0 request", b"", b""]
        _, request_id, domain, _address, _routing_id, mechanism, *credentials = request
        identity = None
        if mechanism == b"CURVE" and len(credentials) == 1 and len(credentials[0]) == 32:
            identity = self.keys.get(z85(credentials[0]))
        if identity is None:
            self.refused += 1
            return [_ZAP_VERSION, request_id, _REFUSED, b"this key is not authorised here", b"", b""]
        if identity.role not in ADMITTED.get(domain.decode("ascii", "replace"), frozenset()):
            self.refused += 1
            return [_ZAP_VERSION, request_id, _REFUSED, b"this role may not use this socket", b"", b""]
        self.admitted += 1
        return [_ZAP_VERSION, request_id, _OK, b"OK", z85(credentials[0]).encode(), b""]

    def identity_of(self, key: str) -> str:
        """Whose key this is: the name beside it. A key for any name stands for itself, as does one that is unknown."""
        return _identity(key, self.keys.get(key))

    def keys_of(self, name: str) -> list[str]:
        """The keys that authenticate this name, in the order of the file."""
        return [key for key, identity in self.keys.items() if identity.name == name]

    def refusal_reason(self, key: str, role: str, name: str) -> str:
        """Why the holder of this key may not use this role and name; an empty string if it may."""
        known = self.keys.get(key)
        if known is None:
            return f"the key of {name} is no longer authorised"
        if role != known.role:
            return f"the key of {known.name} is for the role {known.role}, not {role}"
        made_up = role == "client" and name.startswith(GENERATED)
        if known.name not in (ANY_NAME, name) and not made_up:
            return f"the key of {known.name} is not for the name {name}"
        if role == "client" and any(each.name == name and each.role != "client" for each in self.keys.values()):
            return name_of_broker(name)
        if not (known.grant.publishes or known.grant.subscribes):
            return f"{known.name} may neither publish nor subscribe; give it a role"
        return ""


def _identity(key: str, known: KeyIdentity | None) -> str:
    return ANY_NAME + key if known is None or known.name == ANY_NAME else known.name


def _name_grants(keys: Mapping[str, KeyIdentity]) -> NameGrants:
    """The prefixes of names in these lines, each with the identities that it is granted to."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for key, known in keys.items():
        for prefix in known.grant.name_prefixes:
            found[prefix].add(_identity(key, known))
    return NameGrants({prefix: frozenset(identities) for prefix, identities in found.items()})
