"""The file of stored contexts, `contexts.json` in the folder of all fleets, readable by its user alone."""

from __future__ import annotations

from pathlib import Path

import msgspec

from plimsoll.cli.exit_codes import FAILED, CommandError
from plimsoll.local.storage.fleet_folder import plimsoll_home
from plimsoll.local.storage.state_files import write_private


class StoredContext(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel", omit_defaults=True):
    """One context: addresses of heads, or a local fleet, or a context of the kubeconfig and a namespace.

    With addresses: a connection file, or a file with the client's secret key and the head's public key, or plain TCP.
    """

    addresses: tuple[str, ...] = ()
    connection_file: str = ""
    secret_key_file: str = ""
    server_key: str = ""
    plain: bool = False
    fleet: str = ""
    kubernetes: str = ""
    namespace: str = ""


class ContextFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All stored contexts, and the name of the one in use, which may be a found one; empty if none is."""

    current: str = ""
    contexts: dict[str, StoredContext] = msgspec.field(default_factory=dict)


def context_path() -> Path:
    """Where contexts are stored."""
    return plimsoll_home() / "contexts.json"


def read_contexts() -> ContextFile:
    """The stored contexts; none if there is no file."""
    path = context_path()
    try:
        return msgspec.json.decode(path.read_bytes(), type=ContextFile)
    except FileNotFoundError:
        return ContextFile()
    except (OSError, msgspec.DecodeError) as error:
        raise CommandError(FAILED, f"cannot read {path}: {error}; correct it, or remove it") from error


def write_contexts(contexts: ContextFile) -> None:
    """Replace the file."""
    path = context_path()
    path.parent.mkdir(parents=True, exist_ok=True)
    write_private(path, msgspec.json.format(msgspec.json.encode(contexts).decode(), indent=2) + "\n")
