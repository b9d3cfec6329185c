"""A mediator in a process of its own, which may be killed: a driver, its book in a file, and its link to the heads.

    python -m plimsoll.soak.harness.mediator_worker     (started by the soak; its orders come on standard input)

It obeys orders, one hand-over at a time, and reports the state of each. The next life has a higher epoch and resumes
from the book. `Mediator` is the process as its controller sees it.
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
    """The heads to connect to, and its own identity. `journal`: the book."""

    heads: list[PeerBroker]
    public_key: str
    secret_key: str
    epoch: int


class HandoverOrder(msgspec.Struct, kw_only=True):
    """Begin a hand-over, or request a step of the one begun last."""

    begin: msg.HandoverPlan | None = None
    head: str = ""
    head_epoch: int = 0
    until: Literal["ready", "done"] = "done"
    step: Step = "cut"


class SoakMediatorWorker:
    """One life."""

    def __init__(self, mandate: SoakMediatorTask, orders: WorkerPipe) -> None:
        self._orders = orders
        self._control = ControlPlane(
            keys.MEDIATOR, MediatorKeyPair(mandate.public_key, mandate.secret_key), mandate.epoch
        )
        self._heads = [peer.name for peer in mandate.heads]
        for peer in mandate.heads:
            self._control.dial(peer, "head")
        self._book = HandoverLedger(Path(mandate.journal))
        self._driver = HandoverDriver(mandate.epoch, self._book, self._control.send)
        self._said: bytes = b""
        self._status_request_at = 0.0

    def run(self) -> None:
        """Run until told to finish."""
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
        elif self._book.handovers:
            self._driver.request_step(next(reversed(self._book.handovers)), order.step, now)

    def _round(self) -> None:
        now = time.monotonic()
        if now >= self._status_request_at:
            self._status_request_at = now + GREET_SECONDS
            for head in self._heads:
                self._control.ask(head)
        for said in self._control.poll(ROUND_SECONDS):
            if isinstance(said, HeadMessageReceived) and isinstance(said.said, msg.Outcome):
                self._driver.on_outcome(said.head, said.said, time.monotonic())
        self._driver.tick(time.monotonic())
        if self._book.handovers:
            self._send_state(self._book.handovers[next(reversed(self._book.handovers))])

    def _send_state(self, one: DrivenHandover) -> None:
        line = msgspec.json.encode(one)
        if line != self._said:
            self._said = line
            self._orders.say({"handover": msgspec.to_builtins(one)})


class SoakMediatorProcess:
    """The mediator of a fleet, through all its lives."""

    def __init__(self, ground: FleetHarness, book: Path, logs: Path) -> None:
        self._ground, self._book, self._logs = ground, book, logs
        self._worker: WorkerProcess | None = None
        self._lives = 0
        self._is_frozen = False

    def start(self) -> None:
        self._lives += 1
        own = keys.key_pair(self._ground.folder, keys.MEDIATOR)
        mandate = SoakMediatorTask(
            journal=str(self._book),
            heads=[self._ground.brokers[head].peer for head in self._ground.heads],
            public_key=own.public,
            secret_key=own.secret(),
            epoch=self._lives,
        )
        log = self._logs / f"mediating.{self._lives}.log"
        self._worker = WorkerProcess("plimsoll.soak.harness.mediator_worker", mandate, log)

    def begin(self, head: str, plan: msg.HandoverPlan, until: Literal["ready", "done"]) -> None:
        self._order(HandoverOrder(begin=plan, head=head, head_epoch=self._ground.epoch_of(head), until=until))

    def request_step(self, step: Step) -> None:
        self._order(HandoverOrder(step=step))

    def handover(self) -> DrivenHandover | None:
        """Its last report."""
        if self._worker is None:
            return None
        said: Any = self._worker.hear().get("handover")
        return None if said is None else msgspec.convert(said, DrivenHandover)

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
