"""A mediator as a process that may be killed: a driver of hand-overs, its ledger in a file, and the control plane.

    python -m plimsoll.soak.harness.mediator_worker     (started by the soak; its orders come on standard input)

It takes orders for one hand-over at a time and reports its state. After a kill the next life has a higher epoch and
continues from the ledger. `SoakMediatorProcess` starts it and sends the orders.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path
from typing import Any, Literal

import msgspec

from plimsoll.core.config import PeerBroker
from plimsoll.core.protocol import messages as msg
from plimsoll.demo.workers.worker_process import WorkerProcess, WorkerTask
from plimsoll.demo.workers.worker_protocol import FINISH, WorkerPipe, run_worker
from plimsoll.local import keys
from plimsoll.mediator.control_plane import ControlPlane, HeadMessageReceived, MediatorKeyPair
from plimsoll.soak.harness.fleet_harness import FleetHarness
from plimsoll.soak.harness.handover_driver import DrivenHandover, HandoverDriver, HandoverLedger, Step

ROUND_SECONDS = 0.01
GREET_SECONDS = 0.5


class SoakMediatorTask(WorkerTask, frozen=True, kw_only=True):
    """The heads to connect to, and the worker's own identity. `journal` is the file of the ledger."""

    heads: list[PeerBroker]
    public_key: str
    secret_key: str
    epoch: int


class HandoverOrder(msgspec.Struct, kw_only=True):
    """An order: begin a hand-over, or request a step of the last one."""

    begin: msg.HandoverPlan | None = None
    head: str = ""
    head_epoch: int = 0
    until: Literal["ready", "done"] = "done"
    step: Step = "cut"


class SoakMediatorWorker:
    """One life of the mediator process."""

    def __init__(self, task: SoakMediatorTask, orders: WorkerPipe) -> None:
        self._orders = orders
        self._control = ControlPlane(keys.MEDIATOR, MediatorKeyPair(task.public_key, task.secret_key), task.epoch)
        self._heads = [peer.name for peer in task.heads]
        for peer in task.heads:
            self._control.dial(peer, "head")
        self._ledger = HandoverLedger(Path(task.journal))
        self._driver = HandoverDriver(task.epoch, self._ledger, self._control.send)
        self._last_line: bytes = b""
        self._status_request_at = 0.0

    def run(self) -> None:
        """Run until the order to finish."""
        try:
            while (line := self._orders.wait(0.0)) != FINISH:
                if line is not None:
                    self._execute(msgspec.json.decode(line, type=HandoverOrder))
                self._round()
        finally:
            self._control.close()

    def _execute(self, order: HandoverOrder) -> None:
        now = time.monotonic()
        if order.begin is not None:
            self._driver.begin(order.head, order.head_epoch, order.begin, now, until=order.until)
        elif self._ledger.handovers:
            self._driver.request_step(next(reversed(self._ledger.handovers)), order.step, now)

    def _round(self) -> None:
        now = time.monotonic()
        if now >= self._status_request_at:
            self._status_request_at = now + GREET_SECONDS
            for head in self._heads:
                self._control.ask(head)
        for event in self._control.poll(ROUND_SECONDS):
            if isinstance(event, HeadMessageReceived) and isinstance(event.said, msg.Outcome):
                self._driver.on_outcome(event.head, event.said, time.monotonic())
        self._driver.tick(time.monotonic())
        if self._ledger.handovers:
            self._send_state(self._ledger.handovers[next(reversed(self._ledger.handovers))])

    def _send_state(self, one: DrivenHandover) -> None:
        line = msgspec.json.encode(one)
        if line != self._last_line:
            self._last_line = line
            self._orders.report({"handover": msgspec.to_builtins(one)})


class SoakMediatorProcess:
    """The mediator of a fleet as its parent sees it, through all its lives."""

    def __init__(self, harness: FleetHarness, ledger: Path, logs: Path) -> None:
        self._harness, self._ledger, self._logs = harness, ledger, logs
        self._worker: WorkerProcess | None = None
        self._lives = 0
        self._is_frozen = False

    def start(self) -> None:
        self._lives += 1
        own = keys.key_pair(self._harness.folder, keys.MEDIATOR)
        task = SoakMediatorTask(
            journal=str(self._ledger),
            heads=[self._harness.brokers[head].peer for head in self._harness.heads],
            public_key=own.public,
            secret_key=own.secret(),
            epoch=self._lives,
        )
        log = self._logs / f"mediating.{self._lives}.log"
        self._worker = WorkerProcess("plimsoll.soak.harness.mediator_worker", task, log)

    def begin(self, head: str, plan: msg.HandoverPlan, until: Literal["ready", "done"]) -> None:
        self._order(HandoverOrder(begin=plan, head=head, head_epoch=self._harness.epoch_of(head), until=until))

    def request_step(self, step: Step) -> None:
        self._order(HandoverOrder(step=step))

    def handover(self) -> DrivenHandover | None:
        """The hand-over as last reported; None before a report, and while the process is down."""
        if self._worker is None:
            return None
        report: Any = self._worker.read_report().get("handover")
        return None if report is None else msgspec.convert(report, DrivenHandover)

    def kill(self) -> None:
        """SIGKILL."""
        if self._worker is not None:
            self._worker.kill()
            self._worker = None
        self._is_frozen = False

    def freeze(self) -> None:
        """SIGSTOP."""
        if self._worker is not None:
            os.kill(self._worker.pid, signal.SIGSTOP)
            self._is_frozen = True

    def thaw(self) -> None:
        """SIGCONT, if it is frozen."""
        if self._is_frozen and self._worker is not None:
            os.kill(self._worker.pid, signal.SIGCONT)
        self._is_frozen = False

    def _order(self, order: HandoverOrder) -> None:
        if self._worker is not None:
            self._worker.order(msgspec.json.encode(order))


def run(orders: WorkerPipe) -> None:
    """Run from the first order to the last."""
    SoakMediatorWorker(msgspec.json.decode(orders.next(), type=SoakMediatorTask), orders).run()


if __name__ == "__main__":
    sys.exit(run_worker(run))
