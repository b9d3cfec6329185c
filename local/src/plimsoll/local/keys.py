"""CURVE keys of a local fleet: a pair per broker, for the supervisor, the mediator, and local clients.

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

SUPERVISOR = "local.supervisor"
"""The supervisor's name on the wire; brokers' names have no dot, so none can be called so."""
MEDIATOR = "local.mediator"
CLIENTS = "local.clients"
ANY_NAME = "*"
Role = Literal["head", "edge"]


@dataclass(frozen=True)
class KeyPair:
    """A pair of Z85 texts; `secret_file` holds the secret one."""

    public: str
    secret_file: Path

    def secret(self) -> str:
        return self.secret_file.read_text(encoding="ascii").strip()


def pair(folder: FleetFolder, name: str) -> KeyPair:
    """The key pair of a name, made if there is none."""
    secret_file, public_file = folder.keys / f"{name}.key", folder.keys / f"{name}.pub"
    if not secret_file.exists() or not public_file.exists():
        public, secret = zmq.curve_keypair()
        write_private(secret_file, secret.decode() + "\n")
        write_private(public_file, public.decode() + "\n")
    return KeyPair(public_file.read_text(encoding="ascii").strip(), secret_file)


def collectors(count: int) -> tuple[str, ...]:
    """The names of so many collectors on the wire."""
    return tuple(f"local.collector-{number}" for number in range(count))


def authorize(folder: FleetFolder, brokers: Iterable[tuple[str, Role]], collecting: Iterable[str] = ()) -> None:
    """Write who may do what; brokers read the file again when it changes. `collecting`: names of collectors."""
    lines = [f"{pair(folder, name).public} {role} {name}\n" for name, role in brokers]
    lines.extend(f"{pair(folder, name).public} mediator {name}\n" for name in (SUPERVISOR, MEDIATOR))
    lines.extend(f"{pair(folder, name).public} collector {name}\n" for name in collecting)
    # Publishers and subscribers of this user call themselves what they like.
    lines.append(f"{pair(folder, CLIENTS).public} client {ANY_NAME}\n")
    write_private(folder.authorized_keys, "".join(lines))


def write_private(path: Path, text: str) -> None:
    """Replace a file in one step; only its user may read it."""
    partial = path.with_name(path.name + ".new")
    descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
    partial.chmod(0o600)
    partial.replace(path)
