"""CURVE keys of a fleet: one pair per identity, made once, each in a Secret of its own.

A broker reads its own secret key and nobody else's. The operator has one identity per fleet, under which it is the
mediator; applications have those that the fleet's specification names. New keys follow a request (`rotation`): for a
while a Secret holds two pairs, and both are good.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field

import zmq

from plimsoll.operator import names
from plimsoll.operator.names import Object
from plimsoll.operator.observed import Observed

NEXT_SECRET, NEXT_PUBLIC = f"next.{names.SECRET_FILE}", f"next.{names.PUBLIC_FILE}"
OLD_PUBLIC = f"old.{names.PUBLIC_FILE}"


@dataclass(frozen=True)
class KeyPair:
    """A pair of Z85 texts."""

    public: str
    secret: str = field(repr=False)


@dataclass(frozen=True)
class Keys:
    """What a Secret holds: the pair in force, and other public keys that are good, too."""

    public: str
    secret: str = field(repr=False)
    others: tuple[str, ...] = ()
    next: str = ""
    """The public key that comes into force next, while a pair is being replaced."""

    @property
    def publics(self) -> tuple[str, ...]:
        """All keys under which this identity may come."""
        return (self.public, *(key for key in self.others if key != self.public))


def make() -> KeyPair:
    """A new pair."""
    public, secret = zmq.curve_keypair()
    return KeyPair(public.decode(), secret.decode())


def new_secret(name: str, labels: Mapping[str, str], owner: Object, namespace: str) -> Object:
    """A Secret with a new pair; to be created, never applied: there is no other copy of what it holds."""
    pair = make()
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": namespace, "labels": dict(labels), "ownerReferences": [owner]},
        "type": "Opaque",
        "data": {names.SECRET_FILE: encoded(pair.secret + "\n"), names.PUBLIC_FILE: encoded(pair.public + "\n")},
    }


def read(secret: Object) -> Keys | None:
    """The keys in a Secret; None if it does not hold a pair."""
    data = secret.get("data") or {}
    if names.SECRET_FILE not in data or names.PUBLIC_FILE not in data:
        return None
    others = tuple(_decoded(data[key]) for key in (NEXT_PUBLIC, OLD_PUBLIC) if key in data)
    following = _decoded(data[NEXT_PUBLIC]) if NEXT_PUBLIC in data else ""
    return Keys(_decoded(data[names.PUBLIC_FILE]), _decoded(data[names.SECRET_FILE]), others, following)


def of_brokers(observed: Observed) -> dict[str, Keys]:
    """The keys of all brokers of which something runs, by the name of their Secret."""
    found: dict[str, Keys] = {}
    for broker in observed.brokers():
        secret = observed.get("Secret", names.keys_of(broker))
        if secret is not None and (held := read(secret)) is not None:
            found[names.keys_of(broker)] = held
    return found


def encoded(text: str) -> str:
    """Text as Secrets hold it."""
    return base64.b64encode(text.encode()).decode()


def _decoded(data: str) -> str:
    return base64.b64decode(data).decode("ascii").strip()
