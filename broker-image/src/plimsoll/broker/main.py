"""Start one broker from a configuration file, and end it in good order.

Exit codes: 0 it has left; 1 a fault of the program; 2 the configuration cannot be used; 3 an endpoint cannot be bound;
4 the disk of a head's log has failed, or cannot be used; 5 another process of this head leads, or has a new log.
Keys and epochs never come from the environment: keys are read from files, an epoch is made here and used once.
"""

from __future__ import annotations

import argparse
import contextlib
import logging
import os
import resource
import time
from collections.abc import Callable, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import MappingProxyType
from typing import Final

import msgspec

from plimsoll.broker.event_loop import BrokerLoop
from plimsoll.broker.monitoring.process_probes import ProcessProbes
from plimsoll.broker.monitoring.usage_meter import ProcessUsage
from plimsoll.broker.network.socket_lane import BrokerCurveKeys, EndpointError
from plimsoll.broker.network.sockets import BrokerSockets
from plimsoll.broker.process_watch import ProcessWatch, raise_open_files
from plimsoll.broker.standby import standby_process
from plimsoll.broker.standby.replicated_log import ReplicatedLog
from plimsoll.broker.standby.running_head import RunningHead
from plimsoll.broker.standby.standby_process import ProcessShell
from plimsoll.broker.standby.standby_setting import StandbySetting
from plimsoll.broker.storage.log_disk import LogDisk, LogDiskError
from plimsoll.broker.storage.log_folder import LogFolderError
from plimsoll.core import config as configuration
from plimsoll.core.config import BrokerConfig
from plimsoll.core.edge.machine import Edge
from plimsoll.core.head.machine import Head
from plimsoll.core.head.standby.log_feed import ReplacedHeadError
from plimsoll.core.head.standby.log_follower import StaleStandbyError
from plimsoll.core.matching import warm_up
from plimsoll.core.printable import printable
from plimsoll.network.auth.authorized_keys import (
    AuthorizedKeys,
    KeyFileError,
    SecretKeyFile,
    is_key,
    read_secret_key,
)
from plimsoll.telemetry.http_server import HttpServer, address_of
from plimsoll.telemetry.log_lines import log_to_stderr, tell

log = logging.getLogger("plimsoll.broker")

EXIT_CONFIG: Final = 2
EXIT_ENDPOINT: Final = 3
EXIT_DISK: Final = 4
EXIT_STALE: Final = 5
REFUSE_SECONDS: Final = 1.5
"""How long a process that led lives on after its work, where another one takes over elsewhere. As long as it lives its
system refuses connections, which are tried again at once; later they are lost, and tried again after a second."""
WARM_UP_MEMORY_BYTES: Final = 512 * 1024 * 1024
"""The compiled matching loop takes 120 MB. With at least this much memory it is loaded before the broker reports ready;
with less, once there are enough subscriptions to need it."""

_WILDCARD_ENDPOINTS: Final = ("tcp://*:", "tcp://0.0.0.0:", "tcp://[::]:")


class BrokerConfigError(ValueError):
    """A configuration that cannot be used; says where and what to do."""


def main(arguments: list[str]) -> int:
    """Run a broker until it has left; returns the exit code."""
    options = _parser().parse_args(arguments)
    log_to_stderr()
    try:
        shown = {"restarts": options.restarts, "last_end": options.last_end} if options.restarts else {}
        return run(read_config(options.config), options.parent_pid, options.leave_seconds, options.config, shown)
    except (BrokerConfigError, KeyFileError) as error:
        tell(f"plimsoll.broker: {error}")
        return EXIT_CONFIG
    except EndpointError as error:
        tell(printable(f"plimsoll.broker: {error.strerror}"))
        return EXIT_ENDPOINT
    except (LogDiskError, LogFolderError) as error:
        tell(printable(f"plimsoll.broker: disk_log: {error}"))
        return EXIT_DISK
    except (StaleStandbyError, ReplacedHeadError) as error:
        tell(printable(f"plimsoll.broker: {error}"))
        return EXIT_STALE


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m plimsoll.broker", description="Run one head or edge.")
    parser.add_argument(
        "--config", required=True, type=Path, metavar="FILE", help="configuration of this broker, as JSON"
    )
    parser.add_argument("--parent-pid", type=int, metavar="PID", help="leave when this process has ended")
    parser.add_argument(
        "--leave-seconds",
        type=float,
        default=30.0,
        metavar="SECONDS",
        help="exit this long after SIGTERM at the latest",
    )
    parser.add_argument("--restarts", type=int, default=0, metavar="COUNT", help="of this broker so far; it is shown")
    parser.add_argument("--last-end", default="", metavar="TEXT", help="how it ended the last time; it is shown")
    return parser


def run(
    config: BrokerConfig, parent_pid: int | None, leave_seconds: float, file: Path,
    shown: Mapping[str, object] = MappingProxyType({}),
) -> int:  # fmt: skip
    """Bind, serve, leave. `file`: of the configuration, which says whether a head is to take on a standby.

    `shown`: what the status says of this process beside its usage.
    """
    if trouble := raise_open_files():
        log.warning("%s", trouble)
    curve, authority = _read_security(config)
    if curve is None:
        log.warning("security.plain is set: connections are neither encrypted nor authenticated")
    with contextlib.ExitStack() as opened:
        # Before the slow steps: PID 1 of a container ignores signals that it does not handle.
        watch = opened.enter_context(contextlib.closing(ProcessWatch(parent_pid)))
        if config.http and config.hardware.memory_bytes >= WARM_UP_MEMORY_BYTES:
            warm_up()
        sockets = opened.enter_context(contextlib.closing(BrokerSockets(config.limits, curve, authority)))
        probes, incarnation = ProcessProbes(), 0
        setting = StandbySetting(file, config)
        if config.http:
            opened.enter_context(contextlib.closing(serve_http(config.http, probes)))
        # An edge keeps the key that it started with: its head has announced that one to clients.
        is_rekeyed = curve is not None and config.role == "head"
        own = SecretKeyFile.read(config.security.secret_key_file) if is_rekeyed else None
        disk: LogDisk | ReplicatedLog | None = None
        if config.standby is not None and config.role == "head":
            disk = opened.enter_context(contextlib.closing(standby_process.replicated_log(config)))
        elif config.disk_log is not None and config.role == "head":
            disk = opened.enter_context(contextlib.closing(LogDisk(config.disk_log, config.name)))
        if isinstance(disk, ReplicatedLog) and config.standby is not None:
            sockets.control.bind(config.standby.control)
            shell = ProcessShell(sockets, watch, new_epoch(), new_id, authority, leave_seconds, probes, own)
            incarnation = shell.incarnation
            told = standby_process.become_head(config, disk, shell, setting)
            if told is None:
                log.info("%s stopped before it led", config.name)
                return 0
            config = told
        control, data = sockets.control.bind_when_free(config.control), sockets.data.bind_when_free(config.data)
        config = msgspec.structs.replace(config, control=control, data=data)
        machine = make_broker_machine(config, curve.public.decode() if curve else "", disk, incarnation)
        loop = BrokerLoop(
            machine, sockets, watch, config.hardware, authority=authority, own=own, leave_seconds=leave_seconds,
            disk=disk,
        )  # fmt: skip
        look = watch_setting(machine, loop, config, setting)

        def on_usage(usage: ProcessUsage) -> None:
            look()
            report_usage(machine, sockets, authority, usage, loop.disk)
            machine.process |= shown

        loop.on_usage = on_usage
        if config.http:
            answer_by_machine(probes, machine, loop)
        log.info("%s %s of %s listening: data %s, control %s", config.role, config.name, config.cluster, data, control)
        loop.run()
    log.info("%s stopped", config.name)
    if setting.standby is not None and setting.standby.waits:
        time.sleep(REFUSE_SECONDS)
    return 0


def watch_setting(
    machine: Head | Edge, loop: BrokerLoop, config: BrokerConfig, setting: StandbySetting
) -> Callable[[], None]:
    """What is to be called once in a while: of a head, to take on a standby once its file names one."""
    if isinstance(machine, Edge):
        return lambda: None
    return RunningHead(config, machine, loop, loop.sockets, setting, new_id).look


def make_broker_machine(
    config: BrokerConfig, public_key: str, disk: LogDisk | ReplicatedLog | None = None, incarnation: int = 0
) -> Head | Edge:
    """The machine of this broker, in an epoch of its own; with a disk, it goes on with the log that is there.

    `incarnation`: of a process with a standby, by which a mediator knows it.

    Raises:
        LogDiskError: the log cannot be read, or no room be made for it.

    """
    machine: Head | Edge
    if config.role == "head" and disk is not None:
        # A process that has followed leads now: it has all that the head before it has told others.
        recovered = disk.recover(is_replica=config.standby is not None and config.standby.follows)
        last = recovered.state.epochs[-1].epoch if recovered.state.epochs else 0
        last = max(last, config.disk_log.known_epoch if config.disk_log is not None else 0)
        own = standby_process.entries_at_hand(config) if isinstance(disk, ReplicatedLog) else config
        machine = Head(own, max(new_epoch(), last + 1), new_id, recovered)
        disk.attach(machine, time.monotonic())
        if isinstance(disk, ReplicatedLog):
            disk.begin_feed(standby_process.make_feed(config, machine.epoch, new_id, incarnation))
    elif config.role == "head":
        machine = Head(config, new_epoch(), new_id)
    else:
        machine = Edge(config, new_epoch(), new_id, public_key)
    machine.reporter.clock_offset_seconds = time.time() - time.monotonic()
    return machine


def new_epoch() -> int:
    """A number that no earlier start of this broker has had: microseconds of the clock, then 10 random bits.

    Later starts have greater epochs unless the clock was set back.
    """
    return (time.time_ns() // 1000 << 10 | int.from_bytes(os.urandom(2), "big") & 0x3FF) & (2**63 - 1)


def new_id() -> int:
    return int.from_bytes(os.urandom(4), "big")


def serve_http(endpoint: str, probes: ProcessProbes) -> HttpServer:
    """Start to answer probes and scrapes.

    Raises:
        EndpointError: the endpoint cannot be bound.

    """
    try:
        server = HttpServer(address_of(endpoint), probes.answer)
    except OSError as error:
        raise EndpointError(error.errno, f"cannot listen on {endpoint} (http): {error.strerror}") from error
    server.start()
    log.info("serving http: %s", server.endpoint)
    return server


def answer_by_machine(probes: ProcessProbes, machine: Head | Edge, loop: BrokerLoop) -> None:
    """Answer from snapshots that the loop takes whenever it measures its usage."""
    # Imported here: a broker without this endpoint does not need Prometheus' library.
    from plimsoll.broker.monitoring.health import BrokerHealth
    from plimsoll.broker.monitoring.snapshot import take_snapshot

    health, measured, release = BrokerHealth(lambda: loop.is_leaving), loop.on_usage, installed_version()

    def show(usage: ProcessUsage) -> None:
        measured(usage)
        health.update(take_snapshot(machine, release, loop.refusals(), loop.durations, time.monotonic()))

    loop.on_usage = show
    probes.answer_by(health.answer)


def installed_version() -> str:
    """The version of this distribution; empty if it is not installed."""
    try:
        return version("plimsoll-operator")
    except PackageNotFoundError:
        return ""


def report_usage(
    machine: Head | Edge,
    sockets: BrokerSockets,
    authority: AuthorizedKeys | None,
    usage: ProcessUsage,
    disk: LogDisk | ReplicatedLog | None = None,
) -> None:
    """Give the machine the figures that only the shell can see, for its load reports and its status."""
    machine.reporter.cpu_ratio, machine.reporter.memory_ratio = usage.cpu_ratio, usage.memory_ratio
    machine.reporter.clock_offset_seconds = time.time() - time.monotonic()  # the wall clock may have been set
    at_limit = sockets.is_at_limit(time.monotonic())
    machine.reporter.open_files_limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0] if at_limit else 0
    machine.process = {
        "pid": os.getpid(),
        "cpu_ratio": usage.cpu_ratio,
        "memory_ratio": usage.memory_ratio,
        "memory_bytes": usage.memory_bytes,
        "loop_lag_seconds": usage.lag_seconds,
        "accepting": sockets.ready,
        "security": "plain" if authority is None else "curve",
        "public_key": sockets.public_key,
        "keys_fault": authority.fault if authority else "",
        "keys_refused": authority.refused if authority else 0,
        **{f"data_{name}": count for name, count in sorted(sockets.data.counters.items())},
        **{f"control_{name}": count for name, count in sorted(sockets.control.counters.items())},
        **({} if disk is None else disk.status()),
    }


# -- configuration -----------------------------------------------------------------------------------------------------


def read_config(path: Path) -> BrokerConfig:
    """Read and check the configuration.

    Raises:
        BrokerConfigError: naming file, field and remedy.

    """
    try:
        text = path.read_bytes()
    except OSError as error:
        raise BrokerConfigError(f"--config: cannot read {path}: {error.strerror}") from error
    try:
        config = configuration.decode(text)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise BrokerConfigError(f"{path}: {error}") from error
    if troubles := config_problems(config):
        raise BrokerConfigError("\n".join(f"{path}: {trouble}" for trouble in troubles))
    return config


def config_problems(config: BrokerConfig) -> list[str]:
    """Faults of a configuration that has the right shape; each with the field's path and a remedy."""
    found = [*_peer_problems(config), *_number_problems(config)]
    for field in ("data", "control"):
        if not getattr(config, field).startswith("tcp://"):
            found.append(f"{field}: {getattr(config, field)!r} is not an endpoint; write tcp://HOST:PORT")
    if config.http:
        try:
            address_of(config.http)
        except ValueError as error:
            found.append(f"http: {error}, or nothing for no endpoint")
    if not config.advertised_data and config.role == "edge" and config.data.startswith(_WILDCARD_ENDPOINTS):
        found.append(f"advertised_data: {config.data} is no address for a client; give the one to send them to")
    if config.data == config.control and not config.data.endswith((":0", ":*")):
        found.append(f"control: {config.control} is the data endpoint, too; give it another port")
    security = config.security
    for field in ("secret_key_file", "authorized_keys_file"):
        if not security.plain and not getattr(security, field):
            found.append(f"security.{field}: is not set; name the file, or set security.plain on a trusted network")
    return found


def _peer_problems(config: BrokerConfig) -> list[str]:
    peers = [(f"neighbors[{i}]", peer) for i, peer in enumerate(config.neighbors)]
    if config.role == "edge":
        if config.head is None:
            return ["head: is not set; an edge needs the name and the endpoints of its head"]
        peers.append(("head", config.head))
    found = [f"{where}.name: {config.name} cannot be its own peer" for where, peer in peers if peer.name == config.name]
    for where, peer in peers:
        dials = where == "head" or config.name < peer.name
        if dials and not (peer.data.startswith("tcp://") and (where != "head" or peer.control.startswith("tcp://"))):
            found.append(f"{where}: {peer.name} is connected to from here and needs its endpoints as tcp://HOST:PORT")
        if dials and not config.security.plain and not is_key(peer.public_key):
            found.append(f"{where}.public_key: {peer.name} needs its Z85 public key of 40 characters")
    return found


def _number_problems(config: BrokerConfig) -> list[str]:
    values: dict[str, object] = {"time_factor": config.time_factor}
    for part, struct in (("hardware", config.hardware), ("limits", config.limits)):
        values |= {f"{part}.{name}": value for name, value in msgspec.structs.asdict(struct).items()}
    return [
        f"{name}: {value} must be more than 0; leave it out for the default"
        for name, value in values.items()
        if isinstance(value, int | float) and not value > 0
    ]


def _read_security(config: BrokerConfig) -> tuple[BrokerCurveKeys | None, AuthorizedKeys | None]:
    if config.security.plain:
        return None, None
    secret = read_secret_key(config.security.secret_key_file)
    return BrokerCurveKeys(secret), AuthorizedKeys.read(config.security.authorized_keys_file)
