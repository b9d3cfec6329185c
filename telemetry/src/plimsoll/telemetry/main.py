"""Run one collector from a configuration file until a signal stops it; pending rows are written before it exits.

Exit codes: 0 stopped by a signal; 2 invalid configuration; 3 unusable folder or port.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import logging
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from plimsoll.core.printable import is_told_again, printable
from plimsoll.telemetry import config as configuration
from plimsoll.telemetry.api.http_service import CollectorService
from plimsoll.telemetry.collector import TelemetryCollector
from plimsoll.telemetry.config import CollectorConfig, CollectorConfigError
from plimsoll.telemetry.ingest.head_listener import SILENT_SECONDS, CollectorCurveKeys, HeadListener
from plimsoll.telemetry.log_lines import log_to_stderr, tell
from plimsoll.telemetry.stop_signal import StopSignal
from plimsoll.telemetry.storage.folder import TelemetryFolder

log = logging.getLogger("plimsoll.telemetry")

EXIT_CONFIG: Final = 2
EXIT_UNUSABLE_PATH: Final = 3
ROUND_SECONDS: Final = 0.2
TEXT_AT_MOST: Final = 500
"""Of what the log says about a fault of the program."""
PACE_SECONDS: Final = 0.05
"""Pause between two rounds: a batch of reports costs less than each alone, and none is urgent."""
CONFIG_CHECK_SECONDS: Final = 1.0
ADDRESS_RETRY_SECONDS: Final = 1.0


def main(arguments: list[str]) -> int:
    """Run a collector until SIGTERM or SIGINT; returns the exit code."""
    options = _parser().parse_args(arguments)
    log_to_stderr()
    stop = StopSignal(options.parent_pid)
    stop.listen()
    try:
        return run(options.config, stop, options.name)
    except CollectorConfigError as error:
        tell(f"plimsoll.telemetry: {error}")
        return EXIT_CONFIG
    except OSError as error:
        tell(printable(f"plimsoll.telemetry: {error}"))
        return EXIT_UNUSABLE_PATH


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m plimsoll.telemetry", description="Run one collector.")
    parser.add_argument("--config", required=True, type=Path, metavar="FILE", help="configuration, as JSON")
    parser.add_argument("--name", default="", help="this collector's name, NAME-INDEX, where several share one file")
    parser.add_argument("--parent-pid", type=int, metavar="PID", help="stop when this parent process has ended")
    return parser


def run(path: Path, stop: Callable[[], bool], name: str = "") -> int:
    """Listen, write and serve until `stop` returns true.

    Raises:
        CollectorConfigError: the file cannot be used.
        OSError: the folder or the port cannot be used.

    """
    config = configuration.read_config(path, name)
    listener = HeadListener(config.identity or config.name, _read_curve(config), _silent_seconds(config))
    service: CollectorService | None = None
    try:
        collector = TelemetryCollector(config, TelemetryFolder(Path(config.folder), config.name), _wall_us())
        collector.start(_wall_us())
        for trouble in collector.unreadable:
            log.warning("ignored an unreadable file at start: %s", trouble)
        collector.advance(time.monotonic(), _wall_us())
        if config.http:
            service = CollectorService(collector, time.monotonic, _wall_us)
            service.start()
            log.info("collector %s serving on port %d", config.name, service.port)
        address = AddressFile(config, service.port if service is not None else 0)
        _serve_rounds(ConfigFileWatch(path, name), collector, listener, address, stop)
        collector.write()
    finally:
        if service is not None:
            service.stop()
        listener.close()
    log.info("collector %s stopped", config.name)
    return 0


def _serve_rounds(
    config_file: ConfigFileWatch,
    collector: TelemetryCollector,
    listener: HeadListener,
    address: AddressFile,
    stop: Callable[[], bool],
) -> None:
    fault, broken = "", Counter[str]()
    while not stop():
        now = time.monotonic()
        address.write_when_due(now)
        if (config := config_file.read_if_changed(now)) is not None:
            collector.reconfigure(config)
            listener.silent_seconds = _silent_seconds(config)
            listener.set_heads({name: each.head for name, each in config.share.items()})
            log.info("collecting from %d of %d clusters", len(config.share), len(config.clusters))
        for reports in listener.receive(ROUND_SECONDS, now):
            with _part(f"the reports of cluster {reports.cluster}", broken):
                collector.take_reports(reports, _wall_us())
        time.sleep(PACE_SECONDS)
        with _part("writing or keeping the folder", broken):
            collector.advance(time.monotonic(), _wall_us())
        if collector.files.fault != fault:
            fault = collector.files.fault
            log.warning("%s", f"cannot write: {fault}; keeping the rows in memory" if fault else "writing again")


@contextlib.contextmanager
def _part(what: str, broken: Counter[str]) -> Iterator[None]:
    """Go on after a fault of the program in one part, and say it ever more rarely."""
    try:
        yield
    except Exception as error:
        broken[what] += 1
        if is_told_again(broken[what]):
            text = f"{type(error).__name__}: {error}"[:TEXT_AT_MOST]
            log.error("%s failed (%d times so far), and the rest goes on: %s", what, broken[what], text, exc_info=error)


class ConfigFileWatch:
    """Reads the configuration file again when it changes. An invalid file leaves the previous one in force."""

    def __init__(self, path: Path, name: str = "") -> None:
        self._path, self._name = path, name
        self._seen: tuple[int, int, int] | None = None
        self._look_at = float("-inf")

    def read_if_changed(self, now: float) -> CollectorConfig | None:
        """The configuration if it is new."""
        if now < self._look_at:
            return None
        self._look_at = now + CONFIG_CHECK_SECONDS
        try:
            stat = self._path.stat()
            seen = stat.st_mtime_ns, stat.st_size, stat.st_ino
            if seen == self._seen:
                return None
            self._seen = seen
            return configuration.read_config(self._path, self._name)
        except (OSError, CollectorConfigError) as error:
            log.warning("invalid configuration, keeping the previous one: %s", error)
            return None


def _silent_seconds(config: CollectorConfig) -> float:
    """How long a head may be silent before it is dialled again: three report intervals, at least 10 s."""
    return max(SILENT_SECONDS, 3 * config.report_seconds)


class AddressFile:
    """Writes where this collector serves, if it serves and its configuration names a file. Tries until it succeeds."""

    def __init__(self, config: CollectorConfig, port: int) -> None:
        self._path = Path(config.address_file) if config.address_file and config.http else None
        self._text = json.dumps({"http": f"{config.http.rpartition(':')[0]}:{port}", "pid": os.getpid()})
        self._fault = ""
        self._try_at = float("-inf")

    def write_when_due(self, now: float) -> None:
        """Write it, unless that is done; a fault is logged once, and tried again later."""
        if self._path is None or now < self._try_at:
            return
        self._try_at = now + ADDRESS_RETRY_SECONDS
        partial = self._path.with_name(f".{self._path.name}.partial")
        try:
            partial.write_text(self._text, encoding="ascii")
            partial.replace(self._path)
        except OSError as error:
            if self._fault != str(error):
                log.warning("cannot write the address of this collector: %s; trying again", error)
            self._fault = str(error)
        else:
            self._path = None


def _read_curve(config: CollectorConfig) -> CollectorCurveKeys | None:
    if config.security.plain:
        return None
    where = config.security.secret_key_file
    try:
        return CollectorCurveKeys.of(Path(where).read_text(encoding="ascii").strip())
    except (OSError, ValueError) as error:
        raise CollectorConfigError(f"security.secret_key_file: {where}: {error}") from error


def _wall_us() -> int:
    return time.time_ns() // 1000
