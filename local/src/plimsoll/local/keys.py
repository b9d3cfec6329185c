"""CURVE keys of a local fleet: one pair per broker, one for the supervisor, one for local clients.

A pair is made once and kept, so that a broker that is started again is the same one. Secret keys are files of mode
0600; what they may do is written in the authorized-keys file, one `Z85-public-key role name` per line.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import zmq

from plimsoll.local.home import FleetFolder

SUPERVISOR = "supervisor"
CLIENT = "client"
Role = Literal["head", "edge", "mediator", "client"]


@dataclass(frozen=True)
class KeyPair:
    """A pair of Z85 texts; `secret_file` holds the secret one."""

    public: str
    secret_file: Path

    def secret(self) -> str:
        return self.secret_file.read_text(encoding="ascii").strip()


def pair(folder: FleetFolder, name: str) -> KeyPair:
    """The key pair of a name, made if there is none. Names of brokers have no dot, so files cannot collide."""
    secret_file, public_file = folder.keys / f"{name}.key", folder.keys / f"{name}.pub"
    if not secret_file.exists() or not public_file.exists():
        public, secret = zmq.curve_keypair()
        write_private(secret_file, secret.decode() + "\n")
        write_private(public_file, public.decode() + "\n")
    return KeyPair(public_file.read_text(encoding="ascii").strip(), secret_file)


def authorize(folder: FleetFolder, brokers: Iterable[tuple[str, Role]]) -> None:
    """Write who may do what; brokers read the file again when it changes."""
    entries: list[tuple[str, Role]] = [*brokers, (SUPERVISOR, "mediator"), (CLIENT, "client")]
    lines = [f"{pair(folder, file_name(name, role)).public} {role} {name}\n" for name, role in entries]
    write_private(folder.authorized_keys, "".join(lines))


def file_name(name: str, role: Role) -> str:
    """Brokers and others have files of different forms: a broker may be called `client`."""
    return name if role in ("head", "edge") else f"local.{name}"


def write_private(path: Path, text: str) -> None:
    """Replace a file in one step; only its user may read it."""
    partial = path.with_name(path.name + ".new")
    descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
    partial.chmod(0o600)
    partial.replace(path)
