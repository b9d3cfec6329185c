"""A client program on a real fleet, whose subscribers are moved again and again while it publishes.

    python -m tests.conformance.real_moves 1000 ./go-client -count

Moves are by replay, the only way for a client without ATTACH; every tenth session is by drain, in which such a client
stays where it is. The client counts what its subscribers are given, by itself.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from tests.client.conftest import Fleet

from plimsoll.core.config import PeerBroker
from plimsoll.core.protocol import messages as msg
from plimsoll.mediator.control_plane import ControlPlane, HeadMessageReceived, StatusReceived
from plimsoll.soak.harness.handover_driver import DrivenHandover, HandoverDriver, HandoverLedger

SUBSCRIBERS = 5
SESSION_SECONDS = 300.0
SERVED_SECONDS = 300.0
SETTLED_SECONDS = 300.0
DRAIN_EVERY = 10
PUBLISHED_AT_ONCE = 20
UNANSWERED_AT_MOST = 1000
"""The program publishes no faster than it is answered: a busy machine moves as many, with fewer publications."""

STOCK = "[class,=,'STOCK']"


class ProgramUnderMoves:
    """The program with its pipes. `reports`: what it has written, read by a thread."""

    def __init__(self, command: Sequence[str], head: str, errors: Path) -> None:
        with errors.open("wb") as log:
            self.process = subprocess.Popen(
                [*command, "-head", head], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True
            )
        self.reports: list[dict[str, Any]] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.reports.append(json.loads(line))

    def order(self, **order: Any) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(order) + "\n")
        self.process.stdin.flush()

    def of(self, event: str) -> list[dict[str, Any]]:
        return [report for report in list(self.reports) if report["event"] == event]

    def answered(self) -> int:
        """The last number whose answer was reported; of those that count, one in a hundred is."""
        return next((int(report["number"]) for report in reversed(self.reports) if report["event"] == "answer"), 0)

    def positions(self) -> dict[str, dict[str, Any]]:
        """Where each subscriber is, asked for now."""
        before = len(self.of("position"))
        self.order(do="position")
        await_until(lambda: len(self.of("position")) >= before + SUBSCRIBERS, "positions", SERVED_SECONDS)
        return {report["subscriber"]: report for report in self.of("position")[-SUBSCRIBERS:]}

    def stop(self) -> int:
        self.order(do="stop")
        code = self.process.wait(300)
        self._reader.join(300)
        return code

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(300)
        for stream in (self.process.stdin, self.process.stdout):
            assert stream is not None
            stream.close()


def await_until(condition: Any, what: str, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"no {what} within {seconds:g} s"
        time.sleep(0.005)


class Mover:
    """A mediator that moves subscribers between the two edges of the fleet."""

    def __init__(self, fleet: Fleet) -> None:
        self.control = ControlPlane("mover", None, 1)
        self.control.dial(PeerBroker(name="h", data=fleet.data["h"], control=fleet.control["h"], public_key=""), "head")
        self.driver = HandoverDriver(1, HandoverLedger(), self.control.send)
        self.head_epoch = 0
        self._ask_at = 0.0

    def close(self) -> None:
        self.control.close()

    def knows_head(self) -> bool:
        self.poll()
        return bool(self.head_epoch)

    def poll(self) -> None:
        now = time.monotonic()
        if now >= self._ask_at:
            self._ask_at = now + 0.5
            self.control.ask("h")
        for event in self.control.poll(0.005):
            if isinstance(event, StatusReceived):
                self.head_epoch = int(event.status["epoch"])
            elif isinstance(event, HeadMessageReceived) and isinstance(event.said, msg.Outcome):
                self.driver.on_outcome(event.head, event.said, time.monotonic())
        self.driver.tick(time.monotonic())

    def begin(self, source: str, target: str, members: list[str], *, replay: bool) -> DrivenHandover:
        plan = msg.HandoverPlan(source, target, "h", members, replay, 2.0 if replay else 0.3, 10.0)
        return self.driver.begin("h", self.head_epoch, plan, time.monotonic())

    def until_final(self, one: DrivenHandover) -> Iterator[None]:
        """One session to its end; yields between two looks."""
        deadline = time.monotonic() + SESSION_SECONDS
        while not one.is_final:
            assert time.monotonic() < deadline, f"session {one.session} is {one.state}: {one.reason}"
            self.poll()
            yield


@contextmanager
def running(command: Sequence[str], folder: Path) -> Iterator[tuple[ProgramUnderMoves, Mover]]:
    """A fleet, the program with its subscribers served, and a mover."""
    fleet = Fleet(folder)
    with closing(fleet), closing(Mover(fleet)) as mover:
        await_until(mover.knows_head, "status of the head", SERVED_SECONDS)
        with closing(ProgramUnderMoves(command, fleet.head, folder / "client.log")) as program:
            for number in range(SUBSCRIBERS):
                program.order(do="subscribe", subscriber=f"s{number}", subscription=STOCK)
            await_until(lambda: len(program.of("counts")) >= SUBSCRIBERS, "SUBACK", SERVED_SECONDS)
            yield program, mover


def run_moves(command: Sequence[str], moves: int, folder: Path) -> dict[str, Any]:
    """Move subscribers until this number has moved; returns the client's counts, and those of the moves."""
    outcomes: Counter[str] = Counter()
    began = time.monotonic()
    with running(command, folder) as (program, mover):
        edges = {name: position["edge"] for name, position in program.positions().items()}
        published = sessions = 0
        while outcomes["moved"] < moves:
            sessions += 1
            source = max(("e1", "e2"), key=lambda edge: sum(at == edge for at in edges.values()))
            target = "e2" if source == "e1" else "e1"
            members = [name for name, at in edges.items() if at == source]
            replay = sessions % DRAIN_EVERY != 0
            one = mover.begin(source, target, members, replay=replay)
            for _ in mover.until_final(one):
                if published - program.answered() < UNANSWERED_AT_MOST:
                    program.order(do="publish", publisher="p", attributes={"class": "STOCK"}, count=PUBLISHED_AT_ONCE)
                    published += PUBLISHED_AT_ONCE
            for name, state in one.members:
                outcomes[state] += 1
                if state != "stayed":
                    edges[name] = target
        counts = _settle(program, published)
    return {"published": published, "sessions": sessions, "seconds": round(time.monotonic() - began, 1),
            "outcomes": dict(outcomes), "client": counts}  # fmt: skip


def _settle(program: ProgramUnderMoves, published: int) -> dict[str, Any]:
    """Stop once the last publication has reached every subscriber."""

    def is_settled() -> bool:
        offsets = [dict(_marks(one)).get("h", 0) for one in program.positions().values()]
        return min(offsets) >= published

    await_until(is_settled, "end of deliveries", SETTLED_SECONDS)
    assert program.stop() == 0
    (counts,) = (report for report in program.of("counts") if "accepted" in report)
    return counts


def _marks(position: dict[str, Any]) -> list[tuple[str, int]]:
    return [(head, offset) for head, _, offset in position["watermarks"]]


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        print(json.dumps(run_moves(sys.argv[2:], int(sys.argv[1]), Path(made)), indent=1))
