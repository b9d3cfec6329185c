"""The two processes of a head with a standby, run as the supervisor of a fleet runs them, under the harness' clock."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Mapping
from typing import Any

from plimsoll.core.config import BrokerConfig
from plimsoll.core.head.standby.leadership import HeadLeadership
from plimsoll.local import ports
from plimsoll.local.storage.fleet_folder import FleetFolder
from plimsoll.local.supervision.child_process import broker_command
from plimsoll.local.supervision.supervised_head import HeadControl, SupervisedHead
from plimsoll.mediator.known_log import KnownLog


class KeptLeadership:
    """Who leads, kept by this process, which is alone in changing it."""

    def __init__(self) -> None:
        self.kept = HeadLeadership()

    def load(self) -> HeadLeadership:
        return self.kept

    def change(self, before: HeadLeadership, after: HeadLeadership) -> HeadLeadership:
        """Keep `after` in place of `before`."""
        if before != self.kept:
            raise RuntimeError(f"{self.kept} is kept, not {before}")
        self.kept = after
        return after

    def known_log(self) -> KnownLog:
        """Nothing is known of their logs."""
        return KnownLog()


class HeadPair:
    """`events`: the reasons of what was recorded."""

    def __init__(
        self,
        config: BrokerConfig,
        public_key: str,
        folder: FleetFolder,
        control: HeadControl,
        controls: tuple[str, str],
    ) -> None:
        self.leadership = KeptLeadership()
        self.head = SupervisedHead(config, "head", public_key, folder, self.leadership, control, controls)
        self.events: list[str] = []
        self.is_frozen = False

    @property
    def pid(self) -> int | None:
        """The process that leads, or is about to."""
        return self.head.observed(time.monotonic()).pid

    @property
    def is_in_sync(self) -> bool:
        return self.leadership.kept.standby > 0

    def start(self) -> None:
        """Start both, unless they run."""
        if not self.head.running and not self.events:
            self.head.start(broker_command, self._record)

    def kill(self) -> None:
        """SIGKILL to the one that leads."""
        if (pid := self.pid) is not None:
            os.kill(pid, signal.SIGKILL)

    def poll(self) -> None:
        """Notice ends, and do what follows from them."""
        self.head.poll(time.monotonic(), broker_command, self._record)

    def on_status(self, broker: str, status: Mapping[str, Any]) -> None:
        """Take a status answer of either of them."""
        now = time.monotonic()
        if ports.is_standby(broker):
            self.head.on_standby_status(status, now, self._record)
        else:
            self.head.on_status(status, now, self._record)

    def _record(self, broker: str, type_: str, reason: str, message: str) -> None:
        self.events.append(reason)
