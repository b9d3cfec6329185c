"""A mediator in a process of its own, that may be killed: a driver, its book in a file, and its line to the heads.

    python -m plimsoll.local.soak.mediating     (started by the soak; its orders come on standard input)

It does as it is told, a hand-over at a time, and says how each stands. The next life has a higher epoch and goes on
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

from plimsoll.core import records as r
from plimsoll.core.config import Peer
from plimsoll.local import keys
from plimsoll.local.demo.orders import FINISH, Orders, work
from plimsoll.local.demo.workers import Given, Worker
from plimsoll.local.soak.driver import Book, Driver, Handover, Step
from plimsoll.local.soak.ground import Ground
from plimsoll.mediator.control import ControlPlane, Curve, Told

ROUND_SECONDS = 0.01
GREET_SECONDS = 0.5


class Mandate(Given, frozen=True, kw_only=True):
    """Whom to speak to, as whom. `journal`: the book."""

    heads: list[Peer]
    public_key: str
    secret_key: str
    epoch: int


class Order(msgspec.Struct, kw_only=True):
    """Begin a hand-over, or want a step of the one that was begun last."""

    begin: r.HandoverPlan | None = None
    head: str = ""
    head_epoch: int = 0
    until: Literal["ready", "done"] = "done"
    step: Step = "cut"


class Mediating:
    """One life."""

    def __init__(self, mandate: Mandate, orders: Orders) -> None:
        self._orders = orders
        self._control = ControlPlane(keys.MEDIATOR, Curve(mandate.public_key, mandate.secret_key), mandate.epoch)
        self._heads = [peer.name for peer in mandate.heads]
        for peer in mandate.heads:
            self._control.dial(peer, "head")
        self._book = Book(Path(mandate.journal))
        self._driver = Driver(mandate.epoch, self._book, self._control.send)
        self._said: bytes = b""
        self._greet_at = 0.0

    def run(self) -> None:
        """Until it is told to finish."""
        try:
            while (line := self._orders.wait(0.0)) != FINISH:
                if line is not None:
                    self._obey(msgspec.json.decode(line, type=Order))
                self._round()
        finally:
            self._control.close()

    def _obey(self, order: Order) -> None:
        now = time.monotonic()
        if order.begin is not None:
            self._driver.begin(order.head, order.head_epoch, order.begin, now, until=order.until)
        elif self._book.handovers:
            self._driver.want(next(reversed(self._book.handovers)), order.step, now)

    def _round(self) -> None:
        now = time.monotonic()
        if now >= self._greet_at:
            self._greet_at = now + GREET_SECONDS
            for head in self._heads:
                self._control.ask(head)
        for said in self._control.poll(ROUND_SECONDS):
            if isinstance(said, Told) and isinstance(said.said, r.Outcome):
                self._driver.heard(said.head, said.said, time.monotonic())
        self._driver.tick(time.monotonic())
        if self._book.handovers:
            self._say(self._book.handovers[next(reversed(self._book.handovers))])

    def _say(self, one: Handover) -> None:
        line = msgspec.json.encode(one)
        if line != self._said:
            self._said = line
            self._orders.say({"handover": msgspec.to_builtins(one)})


class Mediator:
    """The mediator of a ground, through all its lives."""

    def __init__(self, ground: Ground, book: Path, logs: Path) -> None:
        self._ground, self._book, self._logs = ground, book, logs
        self._worker: Worker | None = None
        self._lives = 0
        self._is_frozen = False

    def start(self) -> None:
        self._lives += 1
        own = keys.pair(self._ground.folder, keys.MEDIATOR)
        mandate = Mandate(
            journal=str(self._book),
            heads=[self._ground.brokers[head].peer for head in self._ground.heads],
            public_key=own.public,
            secret_key=own.secret(),
            epoch=self._lives,
        )
        log = self._logs / f"mediating.{self._lives}.log"
        self._worker = Worker("mediating", mandate, log, "plimsoll.local.soak")

    def begin(self, head: str, plan: r.HandoverPlan, until: Literal["ready", "done"]) -> None:
        self._order(Order(begin=plan, head=head, head_epoch=self._ground.epoch_of(head), until=until))

    def want(self, step: Step) -> None:
        self._order(Order(step=step))

    def handover(self) -> Handover | None:
        """As it has said it last."""
        if self._worker is None:
            return None
        said: Any = self._worker.hear().get("handover")
        return None if said is None else msgspec.convert(said, Handover)

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

    def _order(self, order: Order) -> None:
        if self._worker is not None:
            self._worker.order(msgspec.json.encode(order))


def run(orders: Orders) -> None:
    """From the first order to the last."""
    Mediating(msgspec.json.decode(orders.next(), type=Mandate), orders).run()


if __name__ == "__main__":
    sys.exit(work(run))
