"""How applications of this user connect to a local fleet: the addresses and keys of its heads."""

from __future__ import annotations

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
    if folder.running_pid() is None:
        raise HeadAccessError(f"fleet {folder.fleet} does not run: start it with `plimsoll up -f FILE`")
    with ObjectStore(folder.store) as store:
        clusters = {item["metadata"]["name"]: item for item in store.objects("BrokerCluster")[1]}
    if cluster is not None and cluster not in clusters:
        hint = suggestion(cluster, list(clusters), "cluster")
        raise HeadAccessError(f'no cluster "{cluster}" in fleet {folder.fleet}. {hint}')
    heads = {name: item.get("status", {}).get("head", {}) for name, item in sorted(clusters.items())}
    running = [name for name, head in heads.items() if "pid" in head and cluster in (None, name)]
    if not running:
        raise HeadAccessError(f"no head of fleet {folder.fleet} runs; `plimsoll events` may say why")
    ends = heads[running[0]]["endpoints"]
    if not ends["publicKey"]:
        return HeadAccess(running[0], ends["data"])
    return HeadAccess(running[0], ends["data"], ends["publicKey"], keys.key_pair(folder, keys.CLIENTS).secret_file)
