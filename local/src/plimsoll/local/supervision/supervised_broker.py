"""One supervised broker: its process, its restarts, and its last status."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from plimsoll.core import config as broker_config
from plimsoll.core.config import BrokerConfig, PeerBroker
from plimsoll.local import ports
from plimsoll.local.storage.fleet_folder import FleetFolder
from plimsoll.local.storage.state_files import StateWriteError, write_private
from plimsoll.local.supervision.child_process import BrokerCommand, ChildProcess, describe_exit, log_note
from plimsoll.local.supervision.restart_backoff import RestartBackoff
from plimsoll.mediator.resource_status import ObservedBroker

GRACE_SECONDS = 15.0
WRITE_RETRY_SECONDS = 1.0
"""How long a start waits whose configuration could not be written."""

RecordBrokerEvent = Callable[[str, str, str, str], None]
"""Note an event: broker, Normal or Warning, reason, message."""


class SupervisedBroker:
    """Start, end and observe one broker. `now` is seconds of one monotonic clock."""

    def __init__(self, config: BrokerConfig, profile: str, public_key: str, folder: FleetFolder) -> None:
        self.config = config
        self.profile = profile
        self.public_key = public_key
        self.stopping = False
        self._folder = folder
        self._process: ChildProcess | None = None
        self._restarts = RestartBackoff()
        self._start_at: float | None = None
        self._kill_at: float | None = None
        self._answered_at: float | None = None
        self._reported_at: float | None = None
        self._report: Mapping[str, Any] = {}
        self._serving = False
        self._waiting_for = ""
        self._epoch = 0
        self._last_end = ""
        self._write_fault = ""
        self.failed = ""

    @property
    def name(self) -> str:
        return self.config.name

    @property
    def peer(self) -> PeerBroker:
        """The address and key of its control socket."""
        own = ports.address_of(self.config.data, self.config.control)
        control = own.reach_control or own.control
        return PeerBroker(name=self.name, data=self.config.advertised, control=control, public_key=self.public_key)

    @property
    def running(self) -> bool:
        return self._process is not None

    def start(self, command: BrokerCommand, record: RecordBrokerEvent) -> None:
        """Write its configuration and start it; raises `StateWriteError`, and then it has not started."""
        file = self._folder.config(self.name)
        write_private(file, broker_config.encode(self.config).decode())
        self._process = ChildProcess(command(file), self._folder.log(self.name))
        self._start_at = self._answered_at = self._reported_at = None
        self._report, self._serving, self._waiting_for, self._epoch = {}, False, "", 0
        self._write_fault = ""
        text = f"process {self._process.pid} listens on {self.config.data}{log_note(self._process)}"
        record(self.name, "Normal", "Started", text)

    def start_at(self, then: float) -> None:
        """Start it at a later step."""
        self._start_at = then

    def begin_drain(self, now: float) -> None:
        """Ask it to redirect its subscribers and exit; after GRACE_SECONDS it is killed."""
        if not self.stopping:
            self.stopping = True
            self._kill_at = now + GRACE_SECONDS
            self._start_at = None
        if self._process is not None:
            self._process.terminate()

    def poll(self, now: float, command: BrokerCommand, record: RecordBrokerEvent) -> None:
        """Notice its exit; restart or kill it when that is due."""
        code = self._process.exit_code() if self._process is not None else None
        if self._process is not None and code is not None:
            self._on_exit(code, self._process.last_output_line(), now, record)
        elif self._process is not None and self._kill_at is not None and now >= self._kill_at:
            record(self.name, "Warning", "Killed", f"process {self._process.pid} did not leave in time and was ended")
            self.kill()
        elif self._start_at is not None and now >= self._start_at:
            self._try_start(now, command, record)

    def _try_start(self, now: float, command: BrokerCommand, record: RecordBrokerEvent) -> None:
        try:
            self.start(command, record)
        except StateWriteError as error:
            self._start_at = now + WRITE_RETRY_SECONDS
            if self._write_fault != str(error):
                self._write_fault = self.failed = str(error)
                record(self.name, "Warning", "WriteFailed", f"{error}; it starts as soon as that is done")

    def kill(self) -> None:
        """End it now; nothing starts it again."""
        self.stopping, self._start_at = True, None
        if self._process is not None:
            self._process.kill()
            self._process = None

    def on_status(self, status: Mapping[str, Any], now: float, record: RecordBrokerEvent) -> None:
        """Take a status answer, in which a broker also reports whether it waits for others (`ready`, `waiting_for`)."""
        waiting = status.get("waiting_for")
        self._waiting_for = ", ".join(str(name) for name in waiting) if isinstance(waiting, list) else ""
        was_ready, self._serving = self._serving, bool(status.get("ready", True))
        self._answered_at, self._epoch = now, int(status.get("epoch", 0))
        if self._serving:
            self._restarts = self._restarts.on_ready(now)
            if not was_ready:
                record(self.name, "Normal", "Ready", f"answers on {self.config.control}")

    def on_load_report(self, report: Mapping[str, Any], now: float) -> None:
        """Take a load report; a repeat, or one older than the last, is ignored."""
        old = self._report
        is_numbered = {"epoch", "seq"} <= report.keys() & old.keys()
        if is_numbered and (report["epoch"], report["seq"]) <= (old["epoch"], old["seq"]):
            return
        self._report, self._reported_at = report, now

    def observed(self, now: float) -> ObservedBroker:
        """Its present state."""
        config = self.config
        return ObservedBroker(
            name=config.name,
            role=config.role,
            cluster=config.cluster,
            profile=self.profile,
            data=config.advertised,
            control=self.peer.control,
            public_key=self.public_key,
            pid=None if self._process is None else self._process.pid,
            restarts=self._restarts.count,
            last_end=self._last_end,
            answer_age=None if self._answered_at is None else now - self._answered_at,
            serving=self._serving,
            waiting_for=self._waiting_for,
            report_age=None if self._reported_at is None else now - self._reported_at,
            report=self._report,
            answered_epoch=self._epoch,
            stopping=self.stopping and self._process is not None,
            waiting_seconds=None if self._start_at is None else max(0.0, self._start_at - now),
        )

    def _on_exit(self, code: int, words: str, now: float, record: RecordBrokerEvent) -> None:
        self._process = None
        if self.stopping:
            record(self.name, "Normal", "Stopped", describe_exit(code))
            return
        self._last_end = describe_exit(code)
        self.failed = f"{self._last_end}: {words}" if words else self._last_end
        self._restarts, self._start_at = self._restarts.on_exit(now)
        delay = self._start_at - now
        record(self.name, "Warning", "Exited", f"{self.failed}; starts again after {delay:.0f} s")
