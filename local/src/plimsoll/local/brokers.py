"""One supervised broker: its process, when it is started again, and what is known of it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from typing import Any

from plimsoll.core import config as broker_config
from plimsoll.core.config import BrokerConfig, Peer
from plimsoll.local import keys, ports
from plimsoll.local.home import FleetFolder
from plimsoll.local.processes import Command, Process, how_it_ended
from plimsoll.local.restarts import Restarts
from plimsoll.mediator.reports import Seen

Record = Callable[[str, str, str, str], None]
"""Note an event: broker, Normal or Warning, reason, message."""


class Broker:
    """Start, end and observe one broker. `now` is seconds of one monotonic clock."""

    def __init__(self, config: BrokerConfig, profile: str, public_key: str, folder: FleetFolder) -> None:
        self.config = config
        self.profile = profile
        self.public_key = public_key
        self.stopping = False
        self._folder = folder
        self._process: Process | None = None
        self._restarts = Restarts()
        self._start_at: float | None = None
        self._kill_at: float | None = None
        self._answered_at: float | None = None
        self._reported_at: float | None = None
        self._report: Mapping[str, Any] = {}
        self._serving = False
        self._waiting_for = ""
        self._last_end = ""
        self.failed = ""

    @property
    def name(self) -> str:
        return self.config.name

    @property
    def peer(self) -> Peer:
        """How its control socket is dialled."""
        own = ports.address_of(self.config.data, self.config.control)
        control = own.reach_control or own.control
        return Peer(name=self.name, data=self.config.advertised, control=control, public_key=self.public_key)

    @property
    def running(self) -> bool:
        return self._process is not None

    def start(self, command: Command, record: Record) -> None:
        """Write its configuration and run it."""
        file = self._folder.config(self.name)
        keys.write_private(file, broker_config.encode(self.config).decode())
        self._process = Process(command(file), self._folder.log(self.name))
        self._start_at = self._answered_at = self._reported_at = None
        self._report, self._serving, self._waiting_for = {}, False, ""
        record(self.name, "Normal", "Started", f"process {self._process.pid} listens on {self.config.data}")

    def start_at(self, then: float) -> None:
        """Run it at a later step."""
        self._start_at = then

    def leave(self, now: float, grace_seconds: float) -> None:
        """Ask it to let its subscribers go elsewhere and exit; after the grace period it is ended."""
        if not self.stopping:
            self.stopping = True
            self._kill_at = now + grace_seconds
            self._start_at = None
        if self._process is not None:
            self._process.terminate()

    def step(self, now: float, command: Command, record: Record) -> None:
        """Notice its end; start it again, or end it, when that is due."""
        code = self._process.ended() if self._process is not None else None
        if self._process is not None and code is not None:
            self._ended(code, self._process.last_words(), now, record)
        elif self._process is not None and self._kill_at is not None and now >= self._kill_at:
            record(self.name, "Warning", "Killed", f"process {self._process.pid} did not leave in time and was ended")
            self.kill()
        elif self._start_at is not None and now >= self._start_at:
            self.start(command, record)

    def kill(self) -> None:
        """End it now; nothing starts it again."""
        self.stopping, self._start_at = True, None
        if self._process is not None:
            self._process.kill()
            self._process = None

    def answered(self, status: Mapping[str, Any], now: float, record: Record) -> None:
        """Take an answer; a broker says itself whether it waits for others (`ready`, `waiting_for`)."""
        waiting = status.get("waiting_for")
        self._waiting_for = ", ".join(str(name) for name in waiting) if isinstance(waiting, list) else ""
        was_ready, self._serving = self._serving, bool(status.get("ready", True))
        self._answered_at = now
        if self._serving:
            self._restarts = self._restarts.ready(now)
            if not was_ready:
                record(self.name, "Normal", "Ready", f"answers on {self.config.control}")

    def reported(self, report: Mapping[str, Any], now: float) -> None:
        """Take a load report; one that is repeated, or older than the last, says nothing new."""
        old = self._report
        with contextlib.suppress(TypeError, KeyError):
            if (report["epoch"], report["seq"]) <= (old["epoch"], old["seq"]):
                return
        self._report, self._reported_at = report, now

    def seen(self, now: float) -> Seen:
        """What is known of it now."""
        config = self.config
        return Seen(
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
            stopping=self.stopping and self._process is not None,
            waiting_seconds=None if self._start_at is None else max(0.0, self._start_at - now),
        )

    def _ended(self, code: int, words: str, now: float, record: Record) -> None:
        self._process = None
        if self.stopping:
            record(self.name, "Normal", "Stopped", how_it_ended(code))
            return
        self._last_end = how_it_ended(code)
        self.failed = f"{self._last_end}: {words}" if words else self._last_end
        self._restarts, self._start_at = self._restarts.ended(now)
        delay = self._start_at - now
        record(self.name, "Warning", "Exited", f"{self.failed}; starts again after {delay:.0f} s")
