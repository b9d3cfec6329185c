"""The configuration of one collector: its name, the heads it collects from and the folder it writes to.

The file is read again when it changes. Durations are in seconds. The mediator derives it from the custom resources; a
collector reads nothing else and has no rights in the cluster.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from plimsoll.core.config import LinkSecurity, PeerBroker
from plimsoll.telemetry.cluster_assignment import collector_of


class CollectorConfigError(ValueError):
    """A configuration that cannot be used; says where and what to do."""


Positive = Annotated[float, Meta(gt=0)]


class MonitoredCluster(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A cluster: how its head is reached on its control socket, and its brokers, the head among them."""

    head: PeerBroker
    brokers: tuple[str, ...] = ()


class CollectorConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Collector `index` of `collectors`. `clusters` has the whole fleet; each collector collects from its share of it.

    `identity`: the name beside its key; empty: its own. `http`: host and port of the service, port 0 for any; empty:
    none. `address_file`: where to write the bound port. `token_file`: senders of session outcomes must present its
    content; empty: `bearer_token` of the secret key. `report_seconds`: the interval of load reports.
    `max_age_seconds`: the greatest age of a Spark snapshot that is served.
    """

    name: Annotated[str, Meta(pattern=r"^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$", max_length=253)]
    fleet: str
    folder: str
    identity: str = ""
    index: Annotated[int, Meta(ge=0)] = 0
    collectors: Annotated[int, Meta(ge=1)] = 1
    interval_seconds: Positive = 10.0
    retain_seconds: Positive = 604_800.0
    report_seconds: Positive = 1.0
    max_age_seconds: Positive = 45.0
    http: str = "127.0.0.1:7410"
    address_file: str = ""
    token_file: str = ""
    security: LinkSecurity = LinkSecurity()
    clusters: dict[str, MonitoredCluster] = {}

    @property
    def share(self) -> dict[str, MonitoredCluster]:
        """The clusters that this collector collects from."""
        return {
            name: each for name, each in self.clusters.items() if collector_of(name, self.collectors) == self.index
        }  # fmt: skip

    @property
    def fresh_seconds(self) -> int:
        """The greatest age of a report for the fold: 5 s, or longer, so that one report may be missed."""
        return max(5, round(2.5 * self.report_seconds))

    @property
    def address(self) -> tuple[str, int]:
        host, _, port = self.http.rpartition(":")
        return host.strip("[]"), int(port)


def read_config(path: Path, name: str = "") -> CollectorConfig:
    """Read and check the configuration. `name`: NAME-INDEX, for one of several collectors that share a file.

    Raises:
        CollectorConfigError: naming file, field and remedy.

    """
    try:
        config = msgspec.json.decode(path.read_bytes(), type=CollectorConfig)
    except OSError as error:
        raise CollectorConfigError(f"--config: cannot read {path}: {error.strerror}") from error
    except msgspec.MsgspecError as error:
        raise CollectorConfigError(f"{path}: {error}") from error
    if name:
        _, _, index = name.rpartition("-")
        if not index.isdecimal():
            raise CollectorConfigError(f"--name: {name!r} does not end with the number of this collector; write NAME-0")
        config = msgspec.structs.replace(config, name=name, index=int(index))
    if troubles := list(config_problems(config)):
        raise CollectorConfigError("\n".join(f"{path}: {trouble}" for trouble in troubles))
    return config


def config_problems(config: CollectorConfig) -> list[str]:
    """Faults of a configuration that has the right shape; each with its field and a remedy."""
    found = []
    if config.index >= config.collectors:
        found.append(f"index: {config.index} is not below collectors, {config.collectors}; they are counted from 0")
    if config.http and not config.http.rpartition(":")[2].isdigit():
        found.append(f"http: {config.http!r} is no HOST:PORT; leave it empty for no service")
    if not config.security.plain and not config.security.secret_key_file:
        found.append("security.secret_key_file: is not set; name the file, or set security.plain on a trusted network")
    for cluster, listened in config.clusters.items():
        where, head = f"clusters.{cluster}.head", listened.head
        if not head.control.startswith("tcp://"):
            found.append(f"{where}.control: {head.control!r} is not an endpoint; write tcp://HOST:PORT")
        if not config.security.plain and not head.public_key:
            found.append(f"{where}.public_key: {head.name} needs its Z85 public key")
    return found


def encode_config(config: CollectorConfig) -> bytes:
    """As `read` reads it."""
    content: dict[str, Any] = msgspec.to_builtins(config)
    return msgspec.json.format(msgspec.json.encode(content), indent=2)
