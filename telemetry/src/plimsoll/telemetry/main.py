"""Start one collector from a configuration file, and end it in good order: what has been taken in is written first.

Exit codes: 0 it was told to stop; 2 the configuration cannot be used; 3 the folder or the port cannot be used.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from plimsoll.telemetry import config as configuration
from plimsoll.telemetry.collector import Collector
from plimsoll.telemetry.config import CollectorConfig, ConfigError
from plimsoll.telemetry.files import Files
from plimsoll.telemetry.listening import SILENT_SECONDS, Curve, Listening
from plimsoll.telemetry.service import Service

log = logging.getLogger("plimsoll.telemetry")

EXIT_CONFIG: Final = 2
EXIT_PLACE: Final = 3
ROUND_SECONDS: Final = 0.2
PACE_SECONDS: Final = 0.05
"""Between two rounds: reports can wait so long, and many at once cost less than each alone."""
CONFIG_SECONDS: Final = 1.0


def main(arguments: list[str]) -> int:
    """Run a collector until SIGTERM or SIGINT; returns the exit code."""
    options = _parser().parse_args(arguments)
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    stop = Stop(options.parent_pid)
    signal.signal(signal.SIGTERM, stop.on_signal)
    signal.signal(signal.SIGINT, stop.on_signal)
    try:
        return run(options.config, stop, options.name)
    except ConfigError as error:
        print(f"plimsoll.telemetry: {error}", file=sys.stderr)  # noqa: T201  # a person is meant to read it
        return EXIT_CONFIG
    except OSError as error:
        print(f"plimsoll.telemetry: {error}", file=sys.stderr)  # noqa: T201
        return EXIT_PLACE


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m plimsoll.telemetry", description="Run one collector.")
    parser.add_argument("--config", required=True, type=Path, metavar="FILE", help="what it is told, as JSON")
    parser.add_argument("--name", default="", help="which one it is, NAME-INDEX, where several read the same file")
    parser.add_argument("--parent-pid", type=int, metavar="PID", help="stop when this process has ended")
    return parser


class Stop:
    """Whether to go on."""

    def __init__(self, parent_pid: int | None) -> None:
        self._parent_pid = parent_pid
        self._told = False

    def on_signal(self, number: int, frame: object) -> None:
        self._told = True

    def __call__(self) -> bool:
        return self._told or (self._parent_pid is not None and os.getppid() != self._parent_pid)


def run(path: Path, stop: Callable[[], bool], name: str = "") -> int:
    """Listen, write and serve until `stop` says so.

    Raises:
        ConfigError: the file cannot be used. OSError: the folder or the port cannot be used.

    """
    config = configuration.read(path, name)
    listening = Listening(config.identity or config.name, _curve(config), _silent_seconds(config))
    service: Service | None = None
    try:
        collector = Collector(config, Files(Path(config.folder), config.name), _wall_us())
        collector.start(_wall_us())
        for trouble in collector.unreadable:
            log.warning("passed over at start: %s", trouble)
        collector.step(time.monotonic(), _wall_us())
        if config.http:
            service = Service(collector, time.monotonic, _wall_us)
            service.start()
            log.info("%s serves on port %d", config.name, service.port)
            _say_address(config, service.port)
        _listen(Told(path, name), collector, listening, stop)
        collector.write()
    finally:
        if service is not None:
            service.stop()
        listening.close()
    log.info("%s has stopped", config.name)
    return 0


def _listen(told: Told, collector: Collector, listening: Listening, stop: Callable[[], bool]) -> None:
    fault = ""
    while not stop():
        now = time.monotonic()
        if (config := told.look(now)) is not None:
            collector.told(config)
            listening.silent_seconds = _silent_seconds(config)
            listening.show({name: each.head for name, each in config.share.items()})
            log.info("hears %d of %d clusters", len(config.share), len(config.clusters))
        for heard in listening.hear(ROUND_SECONDS, now):
            collector.heard(heard, _wall_us())
        time.sleep(PACE_SECONDS)
        collector.step(time.monotonic(), _wall_us())
        if collector.files.fault != fault:
            fault = collector.files.fault
            log.warning("%s", f"cannot write: {fault}; rows wait" if fault else "can write again")


class Told:
    """The configuration file: read again when it has changed. One that cannot be used leaves the last in force."""

    def __init__(self, path: Path, name: str = "") -> None:
        self._path, self._name = path, name
        self._seen: tuple[int, int, int] | None = None
        self._look_at = float("-inf")

    def look(self, now: float) -> CollectorConfig | None:
        """The configuration if it is new."""
        if now < self._look_at:
            return None
        self._look_at = now + CONFIG_SECONDS
        try:
            stat = self._path.stat()
            seen = stat.st_mtime_ns, stat.st_size, stat.st_ino
            if seen == self._seen:
                return None
            self._seen = seen
            return configuration.read(self._path, self._name)
        except (OSError, ConfigError) as error:
            log.warning("goes on with what it was told before: %s", error)
            return None


def _silent_seconds(config: CollectorConfig) -> float:
    """How long a head may say nothing: three reports of its own, or 10 s if that is more."""
    return max(SILENT_SECONDS, 3 * config.report_seconds)


def _say_address(config: CollectorConfig, port: int) -> None:
    if config.address_file:
        said = {"http": f"{config.http.rpartition(':')[0]}:{port}", "pid": os.getpid()}
        path = Path(config.address_file)
        partial = path.with_name(f".{path.name}.partial")
        partial.write_text(json.dumps(said), encoding="ascii")
        partial.replace(path)


def _curve(config: CollectorConfig) -> Curve | None:
    if config.security.plain:
        return None
    where = config.security.secret_key_file
    try:
        return Curve.of(Path(where).read_text(encoding="ascii").strip())
    except (OSError, ValueError) as error:
        raise ConfigError(f"security.secret_key_file: {where}: {error}") from error


def _wall_us() -> int:
    return time.time_ns() // 1000
