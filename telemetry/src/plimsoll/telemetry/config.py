"""What one collector is told: who it is, whose reports it hears, where it writes.

The file is read again when it changes. Durations are in seconds. Whatever starts collectors derives this from the
custom resources; a collector reads nothing else, and has no rights anywhere.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from plimsoll.core.config import Peer, Security
from plimsoll.telemetry.sharing import owner


class ConfigError(ValueError):
    """A configuration that cannot be used; says where and what to do."""


Positive = Annotated[float, Meta(gt=0)]


class Listened(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A cluster: how its head is reached on its control socket, and its brokers, the head among them."""

    head: Peer
    brokers: tuple[str, ...] = ()


class CollectorConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Collector `index` of `collectors`. `clusters` has the whole fleet; each collector hears its share of it.

    `identity`: the name that stands beside its key; empty: its own. `http`: host and port of the service, port 0 for
    any; empty: none. `address_file`: where to write which it has become. `token_file`: who sends session outcomes must
    know what is in it; empty: what `token_of` makes of the secret key. `report_seconds`: how often brokers report.
    `max_age_seconds`: how old a snapshot of Spark may be that is served.
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
    security: Security = Security()
    clusters: dict[str, Listened] = {}

    @property
    def share(self) -> dict[str, Listened]:
        """The clusters that this collector hears."""
        return {
            name: each for name, each in self.clusters.items() if owner(name, self.collectors) == self.index
        }  # fmt: skip

    @property
    def fresh_seconds(self) -> int:
        """How old a report may be for the fold: 5 s, or so long that one report may be missed."""
        return max(5, round(2.5 * self.report_seconds))

    @property
    def address(self) -> tuple[str, int]:
        host, _, port = self.http.rpartition(":")
        return host.strip("[]"), int(port)


def read(path: Path, name: str = "") -> CollectorConfig:
    """Read and check the configuration. `name`: of one among several who read the same file, as NAME-INDEX.

    Raises:
        ConfigError: naming file, field and remedy.

    """
    try:
        config = msgspec.json.decode(path.read_bytes(), type=CollectorConfig)
    except OSError as error:
        raise ConfigError(f"--config: cannot read {path}: {error.strerror}") from error
    except msgspec.MsgspecError as error:
        raise ConfigError(f"{path}: {error}") from error
    if name:
        _, _, index = name.rpartition("-")
        if not index.isdecimal():
            raise ConfigError(f"--name: {name!r} does not end with the number of this collector; write NAME-0")
        config = msgspec.structs.replace(config, name=name, index=int(index))
    if troubles := list(problems(config)):
        raise ConfigError("\n".join(f"{path}: {trouble}" for trouble in troubles))
    return config


def problems(config: CollectorConfig) -> list[str]:
    """What is wrong with a configuration that has the right shape; each with its field and a remedy."""
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


def encode(config: CollectorConfig) -> bytes:
    """As `read` reads it."""
    content: dict[str, Any] = msgspec.to_builtins(config)
    return msgspec.json.format(msgspec.json.encode(content), indent=2)
