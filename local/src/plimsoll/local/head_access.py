"""How applications connect to a local fleet: the addresses and keys of its heads, and a key of their own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from plimsoll.core.spec.problems import suggestion
from plimsoll.local import keys
from plimsoll.local.storage.fleet_folder import FleetFolder
from plimsoll.local.storage.object_store import ObjectStore


class HeadAccessError(LookupError):
    """No head can be reached; the message says why."""


@dataclass(frozen=True)
class HeadAccess:
    """One head. Without keys links are plain; else `server` is the head's public key, and the file has our secret."""

    cluster: str
    endpoint: str
    server: str = ""
    secret_key_file: Path | None = None


def head_access(folder: FleetFolder, cluster: str | None = None) -> HeadAccess:
    """How to connect to a cluster's head, or to the first head that is ready.

    Raises:
        HeadAccessError: the fleet does not run, or has no such cluster.

    """
    return all_head_access(folder, cluster)[0]


def all_head_access(folder: FleetFolder, cluster: str | None = None) -> list[HeadAccess]:
    """How to connect to each head that runs, or to that of one cluster; at least one. Raises as `head_access` does."""
    check_running(folder)
    with ObjectStore(folder.store) as store:
        clusters = {item["metadata"]["name"]: item for item in store.objects("BrokerCluster")[1]}
    if cluster is not None and cluster not in clusters:
        hint = suggestion(cluster, list(clusters), "cluster")
        raise HeadAccessError(f'no cluster "{cluster}" in fleet {folder.fleet}. {hint}')
    heads = {name: item.get("status", {}).get("head", {}) for name, item in sorted(clusters.items())}
    running = {name: head for name, head in heads.items() if "pid" in head and cluster in (None, name)}
    if not running:
        raise HeadAccessError(f"no head of fleet {folder.fleet} runs; `plimsoll events` may say why")
    return [_access(folder, name, head["endpoints"]) for name, head in running.items()]


def check_running(folder: FleetFolder) -> None:
    """Raises HeadAccessError: the fleet does not run."""
    if folder.running_pid() is None:
        raise HeadAccessError(f"fleet {folder.fleet} does not run: start it with `plimsoll up -f FILE`")


def named_clients(folder: FleetFolder) -> list[str]:
    """The clients that the fleet names, for whom there are keys."""
    with ObjectStore(folder.store) as store:
        [fleet] = store.objects("BrokerFleet")[1]
    return sorted(each["name"] for each in fleet.get("spec", {}).get("security", {}).get("clients", []))


def application_key(folder: FleetFolder, client: str | None) -> keys.KeyPairFile:
    """The key pair of a client that the fleet names; None: that of this user (`keys`).

    Raises:
        HeadAccessError: the fleet names no such client.

    """
    if client is None:
        return keys.key_pair(folder, keys.CLIENTS)
    known = named_clients(folder)
    if not known:
        remedy = f"add `security: {{clients: [{{name: {client}}}]}}` to its BrokerFleet"
        raise HeadAccessError(f"fleet {folder.fleet} names no client: {remedy}")
    if client not in known:
        raise HeadAccessError(f'no client "{client}" in fleet {folder.fleet}. {suggestion(client, known, "client")}')
    return keys.client_key_pair(folder, client)


def _access(folder: FleetFolder, cluster: str, ends: Mapping[str, str]) -> HeadAccess:
    if not ends["publicKey"]:
        return HeadAccess(cluster, ends["data"])
    return HeadAccess(cluster, ends["data"], ends["publicKey"], keys.key_pair(folder, keys.CLIENTS).secret_file)
