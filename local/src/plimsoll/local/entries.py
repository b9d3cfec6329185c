"""How applications of this user come into a local fleet: where its heads are, and with which keys."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from plimsoll.core.spec.problems import suggestion
from plimsoll.local import keys
from plimsoll.local.home import FleetFolder
from plimsoll.local.store import Store


class EntryError(LookupError):
    """There is no way in; the message says why."""


@dataclass(frozen=True)
class Entry:
    """One head. Without keys links are plain; else `server` is the head's, and our secret one is in the file."""

    cluster: str
    endpoint: str
    server: str = ""
    secret_key_file: Path | None = None


def entry(folder: FleetFolder, cluster: str | None = None) -> Entry:
    """The way in through a cluster's head, or through the first head that is ready.

    Raises:
        EntryError: the fleet does not run, or has no such cluster.

    """
    if folder.running_pid() is None:
        raise EntryError(f"fleet {folder.fleet} does not run: start it with `plimsoll up -f FILE`")
    with Store(folder.store) as store:
        clusters = {item["metadata"]["name"]: item for item in store.objects("BrokerCluster")[1]}
    if cluster is not None and cluster not in clusters:
        hint = suggestion(cluster, list(clusters), "cluster")
        raise EntryError(f'no cluster "{cluster}" in fleet {folder.fleet}. {hint}')
    heads = {name: item.get("status", {}).get("head", {}) for name, item in sorted(clusters.items())}
    running = [name for name, head in heads.items() if "pid" in head and cluster in (None, name)]
    if not running:
        raise EntryError(f"no head of fleet {folder.fleet} runs; `plimsoll events` may say why")
    ends = heads[running[0]]["endpoints"]
    if not ends["publicKey"]:
        return Entry(running[0], ends["data"])
    return Entry(running[0], ends["data"], ends["publicKey"], keys.pair(folder, keys.CLIENTS).secret_file)
