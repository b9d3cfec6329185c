"""CURVE keys of a local fleet: a pair per broker, for the supervisor, the mediator, and the fleet's clients.

A pair is made once and kept, so that a broker keeps its identity over restarts. Secret keys are files of mode 0600; the
authorized-keys file has the role and name of each public key, and what clients may do. This user has a key of its own,
which may do everything but use the names of recorders and channels; the clients that the fleet names have one each.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import zmq

from plimsoll.core.spec.dataset_identities import channels_identity, recorder_identity
from plimsoll.core.spec.types.fleet import ClientSpec
from plimsoll.local.storage.fleet_folder import FleetFolder
from plimsoll.local.storage.state_files import write_private
from plimsoll.mediator.authorized_keys import KeyHolder, KeyHolderRole, authorized_keys_text, feed_readers_text
from plimsoll.mediator.control_plane import MediatorKeyPair

SUPERVISOR = "local.supervisor"
"""The supervisor's name on the wire; brokers' names have no dot, so no broker can have it."""
MEDIATOR = "local.mediator"
CLIENTS = "local.clients"
RECORDER = "local.recorder"
"""The recorders of feeds, as clients of heads; applications that read feeds know them by the same key."""
CHANNELS = "local.channels"
"""The driver of channels, as a client of heads."""
PARAMETERS = "local.parameters"
"""The identity with which the driver of channels lists parameters at edges, as collectors do."""
ANY_NAME = "*"
Role = Literal["head", "edge"]


@dataclass(frozen=True)
class KeyPairFile:
    """A pair of Z85 texts; `secret_file` holds the secret one."""

    public: str
    secret_file: Path

    def secret(self) -> str:
        return self.secret_file.read_text(encoding="ascii").strip()


def key_pair(folder: FleetFolder, name: str) -> KeyPairFile:
    """The key pair of a name, created if there is none; raises `StateWriteError`."""
    secret_file, public_file = folder.keys / f"{name}.key", folder.keys / f"{name}.pub"
    if not secret_file.exists() or not public_file.exists():
        public, secret = zmq.curve_keypair()
        write_private(secret_file, secret.decode() + "\n")
        write_private(public_file, public.decode() + "\n")
    return KeyPairFile(public_file.read_text(encoding="ascii").strip(), secret_file)


def control_keys(folder: FleetFolder, name: str, *, plain: bool) -> MediatorKeyPair | None:
    """The key pair that a name uses on control sockets; None in a fleet without keys."""
    if plain:
        return None
    pair = key_pair(folder, name)
    return MediatorKeyPair(pair.public, pair.secret())


def collector_names(count: int) -> tuple[str, ...]:
    """The wire names of `count` collectors."""
    return tuple(f"local.collector-{number}" for number in range(count))


def client_key_pair(folder: FleetFolder, client: str) -> KeyPairFile:
    """The key pair of a client that the fleet names; raises as `key_pair` does. Names of clients have no dot."""
    return key_pair(folder, f"client.{client}")


def write_authorized_keys(
    folder: FleetFolder,
    brokers: Iterable[tuple[str, Role]],
    collecting: Iterable[str] = (),
    clients: Iterable[ClientSpec] = (),
) -> None:
    """Write the authorized keys of brokers, and who may read feeds; both are read again. `collecting`: who may.

    Recorders and the driver of channels are always among them, so that their names are theirs before there are any.
    """
    roles: list[tuple[str, KeyHolderRole]] = [
        *brokers, (SUPERVISOR, "mediator"), (MEDIATOR, "mediator"), *((name, "collector") for name in collecting),
    ]  # fmt: skip
    holders = [KeyHolder(name, role, (key_pair(folder, name).public,)) for name, role in roles]
    # this user's publishers and subscribers may use any name that is not reserved
    holders.append(KeyHolder(ANY_NAME, "client", (key_pair(folder, CLIENTS).public,)))
    holders += [KeyHolder(each.name, "client", (client_key_pair(folder, each.name).public,), each) for each in clients]
    own = (recorder_identity(RECORDER), channels_identity(CHANNELS))
    holders += [KeyHolder(each.name, "client", (key_pair(folder, each.name).public,), each) for each in own]
    write_private(folder.authorized_keys, authorized_keys_text(holders))
    write_private(folder.feed_readers, feed_readers_text(holders))
