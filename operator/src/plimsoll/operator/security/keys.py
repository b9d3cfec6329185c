"""CURVE keys of a fleet: one pair per identity, created once, each in its own Secret.

A broker can read only its own secret key. The operator has one identity per fleet, that of the mediator; applications
have those that the fleet's spec names. During a key replacement (`rotation`) a Secret holds two pairs, and both are
accepted.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

import zmq

from plimsoll.operator import names
from plimsoll.operator.names import Object
from plimsoll.operator.reconcile.observed import ObservedObjects

NEXT_SECRET, NEXT_PUBLIC = f"next.{names.SECRET_FILE}", f"next.{names.PUBLIC_FILE}"
OLD_PUBLIC = f"old.{names.PUBLIC_FILE}"
_Z85_KEY = re.compile(r"[0-9A-Za-z.:+=^!/*?&<>()\[\]{}@%$#-]{40}")


@dataclass(frozen=True)
class Z85KeyPair:
    """A key pair as Z85 text."""

    public: str
    secret: str = field(repr=False)


@dataclass(frozen=True)
class StoredKeys:
    """What a Secret holds: the pair in use, and other public keys that are accepted, too."""

    public: str
    secret: str = field(repr=False)
    others: tuple[str, ...] = ()
    next: str = ""
    """The public key that is used next, while a pair is being replaced."""

    @property
    def publics(self) -> tuple[str, ...]:
        """All public keys that are accepted from this identity."""
        return (self.public, *(key for key in self.others if key != self.public))


def make_key_pair() -> Z85KeyPair:
    """Create a key pair."""
    public, secret = zmq.curve_keypair()
    return Z85KeyPair(public.decode(), secret.decode())


def new_secret(
    name: str,
    labels: Mapping[str, str],
    owner: Object,
    namespace: str,
    annotations: Mapping[str, str] | None = None,
    old: str = "",
) -> Object:
    """A Secret with a new pair. It must be created, never applied: that could overwrite the only copy of a key.

    `old`: the public key of a deleted Secret of this name, which stays accepted as after a rotation.
    """
    pair = make_key_pair()
    metadata = {"name": name, "namespace": namespace, "labels": dict(labels), "ownerReferences": [owner]}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {**metadata, "annotations": dict(annotations)} if annotations else metadata,
        "type": "Opaque",
        "data": {
            names.SECRET_FILE: base64_text(pair.secret + "\n"),
            names.PUBLIC_FILE: base64_text(pair.public + "\n"),
            **({OLD_PUBLIC: base64_text(old + "\n")} if old else {}),
        },
    }


def read_keys(secret: Object) -> StoredKeys | None:
    """The keys in a Secret; None if it does not hold a pair."""
    data = secret.get("data") or {}
    public, own = _decoded(data.get(names.PUBLIC_FILE, "")), _decoded(data.get(names.SECRET_FILE, ""))
    if not public or not own:
        return None
    others = tuple(key for each in (NEXT_PUBLIC, OLD_PUBLIC) if (key := _decoded(data.get(each, ""))))
    return StoredKeys(public, own, others, _decoded(data.get(NEXT_PUBLIC, "")))


def broker_keys(observed: ObservedObjects) -> dict[str, StoredKeys]:
    """The keys of all brokers that have a StatefulSet or a pod, by the name of their Secret."""
    found: dict[str, StoredKeys] = {}
    for broker in observed.brokers():
        secret = observed.get("Secret", names.keys_of(broker))
        if secret is not None and (held := read_keys(secret)) is not None:
            found[names.keys_of(broker)] = held
    return found


def base64_text(text: str) -> str:
    """Text in the encoding of a Secret's data."""
    return base64.b64encode(text.encode()).decode()


def _decoded(data: str) -> str:
    """A key in the data of a Secret, which others may have written; empty if there is none."""
    try:
        text = base64.b64decode(data).decode("ascii").strip()
    except ValueError:  # not base64, or not a text
        return ""
    return text if _Z85_KEY.fullmatch(text) else ""
