"""A head and, if it is to have one, its standby: of two processes one leads, and the other follows its log.

`standby` may be set and removed while the head runs: its process takes on a standby when its configuration file says
so, and goes on alone once the store says that the standby is not to be promoted.

To the rest of the fleet it is one broker. When the leading process ends and the other is in sync, that one is promoted
by a change of the stored leadership, and the ended one is started again as the standby. The process that is replaced
has always ended before: its address becomes free with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import msgspec

from plimsoll.core import config as broker_config
from plimsoll.core.config import BrokerConfig, PeerBroker, Role
from plimsoll.core.head.standby.leadership import LEASE_SECONDS, HeadLeadership
from plimsoll.core.protocol import messages as msg
from plimsoll.local import ports
from plimsoll.local.storage.fleet_folder import FleetFolder
from plimsoll.local.storage.state_files import StateWriteError, write_private
from plimsoll.local.supervision.child_process import BrokerCommand, ChildProcess, describe_exit, log_note
from plimsoll.local.supervision.restart_backoff import RestartBackoff
from plimsoll.local.supervision.supervised_broker import WRITE_RETRY_SECONDS, RecordBrokerEvent, SupervisedBroker
from plimsoll.mediator.head_pair import FRESH_SECONDS
from plimsoll.mediator.known_log import KnownLog

ASK_SECONDS = 0.5
SILENT_SECONDS = 5.0
"""A standby in sync for which its head has waited so long is given up: the head goes on alone."""
PAUSED_SECONDS = 1.0
"""With more between two looks this process itself was paused, and has received nothing."""


class StoredLeadership(Protocol):
    """Where it is kept which process leads."""

    def load(self) -> HeadLeadership: ...
    def change(self, before: HeadLeadership, after: HeadLeadership) -> HeadLeadership: ...
    def known_log(self) -> KnownLog: ...


class HeadControl(Protocol):
    """The control sockets to the two processes."""

    def dial(self, peer: PeerBroker, role: Role) -> None: ...
    def hang_up(self, broker: str) -> None: ...
    def ask(self, broker: str) -> None: ...
    def ask_leadership(self, process: str) -> None: ...
    def send(self, broker: str, record: msg.GoOnAlone | msg.Promote) -> None: ...


@dataclass
class StandbyProcess:
    """The process that follows. `number`: which of the two it is, 0 or 1."""

    number: int
    process: ChildProcess | None = None
    config: BrokerConfig | None = None
    status: Mapping[str, Any] = field(default_factory=dict)
    restarts: RestartBackoff = field(default_factory=RestartBackoff)
    start_at: float = 0.0
    asked_at: float = 0.0
    answered_at: float = 0.0

    @property
    def incarnation(self) -> int:
        return int(self.status.get("incarnation", 0))


class SupervisedHead(SupervisedBroker):
    """As `SupervisedBroker`, which is the process that leads.

    `controls`: where each of the two listens while it follows; empty as long as the head is to have no standby.
    """

    def __init__(
        self,
        config: BrokerConfig,
        profile: str,
        public_key: str,
        folder: FleetFolder,
        leadership: StoredLeadership,
        control: HeadControl,
        controls: tuple[str, str],
    ) -> None:
        super().__init__(config, profile, public_key, folder)
        self._leadership, self._control, self.controls = leadership, control, controls
        self.standby_name = ports.standby_of(config.name)
        """The name of the standby's control connection; no broker can have it."""
        self._known = leadership.load()
        self._head_status: Mapping[str, Any] = {}
        self._standby = StandbyProcess(1 - self._known.leader)
        self._promoting = 0
        self._has_pair = self._has_term = False
        """Whether the process that leads has been told that it has a standby, and whether it leads in a term."""
        self._may_lag: dict[int, bool] = {}
        """By process: whether its configuration file says that a standby's word is enough, without the disk's."""
        self._silent_since: float | None = None
        self._heard_at: float | None = None
        self._polled_at = 0.0

    @property
    def standby_pid(self) -> int | None:
        return None if self._standby.process is None else self._standby.process.pid

    # -- the process that leads

    def start(self, command: BrokerCommand, record: RecordBrokerEvent) -> None:
        """Start a process as the head; in a term of its own, if the other one is to follow, or may have led."""
        leader = 1 - self._standby.number
        self._has_pair = self._has_term = self.config.standby is not None
        if self._has_pair or self._known.standby:
            self._known = self._leadership.change(self._known, self._known.begun(leader))
        self._promoting, self._head_status = 0, {}
        self._launch(leader, command, record)

    def _launch(self, number: int, command: BrokerCommand, record: RecordBrokerEvent) -> None:
        file = self._write_config(number, follows=False)
        self._process = ChildProcess(command(file), self._folder.log(self._files(number)))
        self._expect_answers()
        text = f"process {self._process.pid} listens on {self.config.data}{log_note(self._process)}"
        record(self.name, "Normal", "Started", text)

    def _expect_answers(self) -> None:
        self._start_at = self._answered_at = self._reported_at = None
        self._report, self._serving, self._waiting_for, self._epoch = {}, False, "", 0
        self._write_fault, self._heard_at = "", None

    def _files(self, number: int) -> str:
        return self._folder.second(self.name) if number else self.name

    def _config_of(self, number: int, *, follows: bool) -> BrokerConfig:
        """The configuration of one of the two processes."""
        own, standby = self.config, self.config.standby
        if standby is not None:
            term = 0 if follows else self._known.term
            standby = msgspec.structs.replace(standby, term=term, follows=follows, control=self.controls[number])
        disk = own.disk_log
        if disk is not None and number:
            disk = msgspec.structs.replace(disk, directory=self._folder.second(disk.directory))
        if disk is not None and not follows:  # one that follows gets its log from the head
            known = self._leadership.known_log()
            disk = msgspec.structs.replace(disk, known_epoch=known.epoch, known_position=known.position)
        return msgspec.structs.replace(own, standby=standby, disk_log=disk)

    def _write_config(self, number: int, *, follows: bool) -> Any:
        file = self._folder.config(self._files(number))
        config = self._config_of(number, follows=follows)
        write_private(file, broker_config.encode(config).decode())
        self._may_lag[number] = config.may_lag
        if follows:
            self._standby.config = config
        return file

    def _on_exit(self, code: int, words: str, now: float, record: RecordBrokerEvent) -> None:
        standby = self._standby
        can_lead = standby.process is not None and self._known.standby == standby.incarnation != 0
        if self.stopping or not can_lead or standby.process is None:
            super()._on_exit(code, words, now, record)
            return
        end = describe_exit(code)
        self._last_end = f"{end}: {words}" if words and code else end
        if not self._change(self._known.promoted()):
            return
        self._promoting, self._head_status = self._known.term, {}
        self._process = standby.process
        self._expect_answers()
        self._restarts, start_at = self._restarts.on_exit(now)
        self._standby = StandbyProcess(1 - standby.number, start_at=start_at)
        self._control.send(self.standby_name, msg.Promote(self._promoting))
        text = f"{end}; process {self._process.pid}, its standby, leads now, in term {self._known.term}"
        record(self.name, "Warning", "Promoted", text)

    # -- time

    def poll(self, now: float, command: BrokerCommand, record: RecordBrokerEvent) -> None:
        if self._heard_at is not None and now - self._polled_at > PAUSED_SECONDS:
            self._heard_at = now
        self._polled_at = now
        self._end_silent_process(now, record)
        super().poll(now, command, record)
        if (self.config.standby is not None) != self._has_pair and self._process is not None and not self._promoting:
            self._let_go(record) if self._has_pair else self._take_on()
        self._tell_confirm()
        self._poll_standby(now, command, record)

    def _end_silent_process(self, now: float, record: RecordBrokerEvent) -> None:
        """End a leading process that neither answers nor reaches its standby: the standby then leads."""
        if self.stopping or self._process is None or self._heard_at is None or now - self._heard_at <= LEASE_SECONDS:
            return
        standby = self._standby
        can_lead = standby.process is not None and self._known.standby == standby.incarnation != 0
        is_fresh = now - standby.answered_at <= FRESH_SECONDS
        if can_lead and is_fresh and standby.status.get("head_silent") and self._process.exit_code() is None:
            text = f"process {self._process.pid} has been silent for {LEASE_SECONDS:g} s and was ended"
            record(self.name, "Warning", "Killed", text)
            self._process.kill()

    def _poll_standby(self, now: float, command: BrokerCommand, record: RecordBrokerEvent) -> None:
        standby = self._standby
        if standby.process is not None and (code := standby.process.exit_code()) is not None:
            standby.process, standby.status = None, {}
            standby.restarts, standby.start_at = standby.restarts.on_exit(now)
            if not self.stopping:
                record(self.name, "Warning", "StandbyExited", f"its standby {describe_exit(code)}")
        if self._known.standby and standby.process is None:
            self._go_on_alone()
        if self._promoting:
            self._control.send(self.standby_name, msg.Promote(self._promoting))
        elif self._known.waits_in_vain(self._head_status):
            self._control.send(self.name, msg.GoOnAlone(self._known.term, self._known.ended))
        if self.stopping or self._promoting or self._process is None:
            return
        if self._has_term and now >= standby.asked_at:
            standby.asked_at = now + ASK_SECONDS
            self._control.ask_leadership(self.name)  # its status waits for a standby that is silent
            if standby.process is not None:
                self._control.ask(self.standby_name)
        has_pair = self._has_pair and self.config.standby is not None  # else it is let go once that can be stored
        if has_pair and standby.process is None and now >= standby.start_at:
            self._start_standby(now, command, record)
        elif (
            has_pair and standby.process is not None and standby.config != self._config_of(standby.number, follows=True)
        ):
            standby.process.terminate()  # its settings as a head have changed: it starts again with the new ones
        if self._silent_since is not None and now - self._silent_since > SILENT_SECONDS:
            record(self.name, "Warning", "StandbySilent", "its standby is silent; the head goes on alone")
            self._go_on_alone()

    def _tell_confirm(self) -> None:
        """Have the processes read a changed `confirm`: what has to have a publication before it is accepted.

        It waits while a standby is taken on or let go, since both change the files in an order of their own.
        """
        if (self.config.standby is not None) != self._has_pair:
            return
        standby, may_lag = self._standby, self.config.may_lag
        if self._process is not None and not self._promoting and self._may_lag.get(1 - standby.number) != may_lag:
            self._rewrite(1 - standby.number, follows=False)
        if standby.process is not None and self._may_lag.get(standby.number) != may_lag:
            self._rewrite(standby.number, follows=True)

    def _take_on(self) -> None:
        """Have the process that leads take on a standby: it reads its configuration again."""
        leader = 1 - self._standby.number
        if not self._has_term and not self._change(self._known.begun(leader)):
            return
        self._has_term = True
        if self._rewrite(leader, follows=False):
            self._has_pair = True

    def _let_go(self, record: RecordBrokerEvent) -> None:
        """End the standby; the process that leads goes on alone, whichever of the two it is."""
        if self._known.standby and not self._change(self._known.without_standby(self._head_status)):
            return
        standby = self._standby
        if standby.process is not None:
            standby.process.kill()
            self._control.hang_up(self.standby_name)
        self._standby, self._silent_since = StandbyProcess(standby.number), None
        if self._rewrite(1 - standby.number, follows=False):
            self._has_pair = False
            record(self.name, "Normal", "StandbyRemoved", "its standby was removed; its process goes on alone")

    def _rewrite(self, number: int, *, follows: bool) -> bool:
        """Write what a process reads, or reads again; False if that cannot be done now."""
        try:
            self._write_config(number, follows=follows)
        except StateWriteError:  # as in `_change`
            return False
        return True

    def _start_standby(self, now: float, command: BrokerCommand, record: RecordBrokerEvent) -> None:
        standby = self._standby
        if not self._rewrite(standby.number, follows=True):
            standby.start_at = now + WRITE_RETRY_SECONDS
            return
        files = self._files(standby.number)
        standby.process = ChildProcess(command(self._folder.config(files)), self._folder.log(files))
        peer = PeerBroker(
            name=self.standby_name, control=self.controls[standby.number], public_key=self.public_key
        )  # fmt: skip
        self._control.hang_up(self.standby_name)
        self._control.dial(peer, "head")
        record(self.name, "Normal", "StandbyStarted", f"process {standby.process.pid} follows its log")

    def _go_on_alone(self) -> None:
        """Store that the standby is not to be promoted; the head is told until it goes on without it."""
        if self._change(self._known.without_standby(self._head_status)):
            self._silent_since = None

    def _change(self, after: HeadLeadership) -> bool:
        """Store who leads; False if that cannot be written now: it is tried again, and until then nothing follows."""
        try:
            self._known = self._leadership.change(self._known, after)
        except StateWriteError:  # the supervisor reports it, as it writes the status to the same store
            return False
        return True

    # -- answers

    def on_status(self, status: Mapping[str, Any], now: float, record: RecordBrokerEvent) -> None:
        super().on_status(status, now, record)
        process = status.get("process", {})
        self.on_leadership(process if isinstance(process, dict) else {}, now)

    def on_leadership(self, said: Mapping[str, Any], now: float) -> None:
        """Take what the head says of its term and its standby, and give up one that has ended."""
        self._head_status = said
        if said.get("term") == self._known.term:
            self._heard_at = now
        if self._promoting and self._head_status.get("term") == self._promoting:
            self._promoting = 0
            self._control.hang_up(self.standby_name)
        waits_for = self._head_status.get("standby_in_sync") if self._head_status.get("term") == self._known.term else 0
        is_over = self._head_status.get("standby_syncs", 0) <= self._known.ended
        if waits_for and not is_over and self._is_gone(waits_for):
            self._go_on_alone()
        if not self._head_status.get("standby_silent"):
            self._silent_since = None
        elif self._silent_since is None:
            self._silent_since = now

    def _is_gone(self, incarnation: object) -> bool:
        """Whether a standby of this incarnation has ended; one that has just started has not said which it is."""
        standby = self._standby
        return standby.process is None or standby.incarnation not in (0, incarnation)

    def on_standby_status(self, status: Mapping[str, Any], now: float, record: RecordBrokerEvent) -> None:
        """Take a status answer of the standby, and store that it has come in sync."""
        standby = self._standby
        if status.get("role") != "standby" or standby.process is None or self._promoting:
            return
        standby.status, standby.answered_at = status, now
        standby.restarts = standby.restarts.on_ready(now)
        after = self._known.noted(status)
        if after != self._known and self._change(after):
            record(self.name, "Normal", "StandbyInSync", f"its standby has all of its log, in term {after.term}")

    # -- the end

    def begin_drain(self, now: float) -> None:
        """Ask both to leave; the standby first, so that it is not waited for."""
        if self._standby.process is not None:
            self._standby.process.kill()
            self._standby.process = None
            self._go_on_alone()
        if self._has_term:
            self._control.send(self.name, msg.GoOnAlone(self._known.term, self._known.ended))
        super().begin_drain(now)

    def kill(self) -> None:
        """End both now; nothing starts them again."""
        if self._standby.process is not None:
            self._standby.process.kill()
            self._standby.process = None
        super().kill()
