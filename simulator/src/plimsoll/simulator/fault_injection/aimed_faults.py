"""Faults aimed at the steps of a hand-over: one strikes when a chosen message of the hand-over is sent.

Faults that are spread over a run seldom hit the few milliseconds of a cut. So a hand-over may have a fault of its own,
drawn from the seed: a point (the kind of a message that names it), a victim, a fault and a delay. It strikes once.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import msgspec

from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol import wire
from plimsoll.simulator.engine.network import NetworkParty, SimulatedConnection
from plimsoll.simulator.fault_injection.message_watch import ROUTE, routed_message
from plimsoll.simulator.fault_injection.random_faults import FaultInjector
from plimsoll.simulator.mediators.command_mediator import CommandedHandovers
from plimsoll.simulator.mediators.handover_plan import HandoverMix, PlannedHandover
from plimsoll.simulator.mediators.succession import MediatorSuccession

MESSAGE_TAGS: dict[str, int] = {
    kind.__name__: kind.__struct_config__.tag  # type: ignore[misc]  # tags of this protocol are numbers
    for kind in (
        msg.Prepare, msg.Slot, msg.StartMove, msg.MoveTo, msg.Attach, msg.TargetAttached,
        msg.Install, msg.CutRequest, msg.Installed, msg.Cut, msg.Marker, msg.End,
        msg.Go, msg.Done, msg.Stay, msg.Abort, msg.HandoverRejected, msg.ForceDetach, msg.Orphan,
        msg.Revoke, msg.Moved, msg.Resume, msg.Command, msg.Outcome,
    )
}  # fmt: skip
"""The messages that name a hand-over, by kind."""

DELAYS_SECONDS = (0.0, 0.0, 0.0004, 0.0015, 0.004, 0.02, 0.1)
VICTIMS = ("source", "target", "head", "target-head", "neighbor", "subscriber", "mediator", "link")
FAULTS = ("crash", "pause", "reconnect", "wall", "one-way")
COMMON_POINTS = (
    "CutRequest",
    "Installed",
    "Cut",
    "End",
    "Go",
    "Done",
    "Marker",
    "Install",
    "Attach",
    "Revoke",
    "Moved",
)
"""Points around the cut: most faults are aimed at these."""


@dataclass(slots=True)
class AimedFault:
    """A fault that strikes at the `nth` message of kind `point` that names the hand-over, counted from 0."""

    move: PlannedHandover
    point: str
    nth: int
    victim: str
    fault: str
    delay_seconds: float
    seed: int
    is_spent: bool = False

    def __str__(self) -> str:
        at = f"{self.point} {self.nth}" if self.nth else self.point
        return f"{self.fault} {self.victim} at {at} + {self.delay_seconds:g} s"


def draw_aimed_faults(moves: Sequence[PlannedHandover], mix: HandoverMix, rng: random.Random) -> list[AimedFault]:
    """At most one aimed fault per hand-over. A victim that this scenario must not kill is paused instead."""
    drawn = []
    for move in moves:
        has_aim = rng.random() < mix.aim
        point = rng.choice(COMMON_POINTS if rng.random() < 0.7 else tuple(MESSAGE_TAGS))
        nth, victim, fault = rng.choice((0, 0, 0, 1)), rng.choice(VICTIMS), rng.choice(FAULTS)
        if fault == "crash" and victim not in (*mix.crashable, "mediator", "link"):
            fault = "pause"
        one = AimedFault(move, point, nth, victim, fault, rng.choice(DELAYS_SECONDS), rng.getrandbits(32))
        if has_aim:
            drawn.append(one)
    return drawn


class AimedFaultInjector:
    """Reads the frames that are sent, and injects each aimed fault at its point."""

    def __init__(
        self, aims: list[AimedFault], store: CommandedHandovers, mediators: MediatorSuccession, faults: FaultInjector
    ) -> None:
        self.aims, self.store, self.mediators, self.faults = aims, store, mediators, faults
        self._count: dict[tuple[int, str], int] = {}
        self._tags = {MESSAGE_TAGS[aim.point] for aim in aims}
        if aims:
            faults.network.taps.append(self._on_frame)

    def _on_frame(self, connection: SimulatedConnection, src: NetworkParty, dst: NetworkParty, frame: bytes) -> None:
        if frame[2] not in (wire.DATA, wire.CONTROL):
            return
        decoded = wire.decode_frame(frame)
        assert isinstance(decoded, wire.Data | wire.Control)  # noqa: S101  # the kind was checked above
        for raw in decoded.records:
            record = memoryview(raw)
            if record[1] in self._tags or record[1] == ROUTE:
                self._on_message(connection, bytes(record))

    def _on_message(self, connection: SimulatedConnection, record: bytes) -> None:
        """Count the message for each fault that is aimed at its kind and hand-over; a ROUTE counts as its content."""
        tag = routed_message(record)[1] if record[1] == ROUTE else record[1]
        for aim in self.aims:
            if not aim.is_spent and MESSAGE_TAGS[aim.point] == tag and self._is_about(record, aim):
                key = (aim.move.number, aim.point)
                count = self._count[key] = self._count.get(key, -1) + 1
                if count == aim.nth:
                    aim.is_spent = True
                    self.faults.schedule.after(aim.delay_seconds, self._strike, aim, connection)

    def _is_about(self, record: bytes, aim: AimedFault) -> bool:
        """Whether the record has the id of the hand-over in it; that is cheaper than decoding every kind."""
        for one in self.store.handovers.values():
            if one.move.number == aim.move.number:
                return msgspec.msgpack.encode(one.session) in record
        return False

    # -- striking

    def _strike(self, aim: AimedFault, connection: SimulatedConnection) -> None:
        faults = self.faults
        faults.rng = random.Random(aim.seed)
        if faults.strike(lambda: self._inject(aim, connection), f"aimed {aim.fault}"):
            faults.network.trace_line(f"! aimed at {aim.move.label}: {aim}")

    def _inject(self, aim: AimedFault, connection: SimulatedConnection) -> bool:
        if aim.victim == "link":
            return self._strike_link(aim, connection)
        if aim.victim == "mediator":
            return self._strike_mediator(aim)
        name = self._victim(aim)
        if not name:
            return False
        actions: dict[str, Callable[[], bool]] = {
            "crash": lambda: self.faults.processes.crash_one(name),
            "pause": lambda: self.faults.processes.pause_one(name),
            "reconnect": lambda: self._reconnect(name),
            "wall": lambda: self._partition(name, both=True),
            "one-way": lambda: self._partition(name, both=False),
        }
        return actions[aim.fault]()

    def _victim(self, aim: AimedFault) -> str:
        """The name of the process to strike; empty if the run has no such process."""
        move, faults = aim.move, self.faults
        if aim.victim == "neighbor":
            others = [name for name in faults.fleet.shape.heads() if name not in (move.head, move.target_head)]
            return faults.rng.choice(others) if others else ""
        if aim.victim == "subscriber":
            names = self._clients(move)
            return faults.rng.choice(names) if names else ""
        return {
            "source": move.source, "target": move.target, "head": move.head, "target-head": move.target_head
        }[aim.victim]  # fmt: skip

    def _clients(self, move: PlannedHandover) -> list[str]:
        """Processes with members of the hand-over."""
        members = [m for one in self.store.handovers.values() if one.move is move for m in one.plan.members]
        processes = {self.faults.clients.process_name(member) for member in members}
        return sorted(processes & set(self.faults.clients.names()))

    def _reconnect(self, name: str) -> bool:
        """Break one connection of this process."""
        found = [each for each in self.faults.connections.candidates() if name in _ends(each)]
        if found:
            self.faults.network.reconnect(self.faults.rng.choice(found))
        return bool(found)

    def _partition(self, name: str, *, both: bool) -> bool:
        """Partition this process from the other end of one of its connections, in one direction or both."""
        found = [each for each in self.faults.connections.candidates() if name in _ends(each)]
        if not found:
            return False
        one, other = _ends(self.faults.rng.choice(found))
        ways = [(one, other), (other, one)]
        self.faults.rng.shuffle(ways)
        return self.faults.connections.partition(ways if both else ways[:1])

    def _strike_link(self, aim: AimedFault, connection: SimulatedConnection) -> bool:
        """Break or partition the connection that the message was sent on."""
        if not connection.is_up:
            return False
        one, other = _ends(connection)
        if aim.fault in ("crash", "reconnect"):
            self.faults.network.reconnect(connection)
            return True
        ways = [(one, other), (other, one)]
        self.faults.rng.shuffle(ways)
        return self.faults.connections.partition(ways[:1] if aim.fault == "one-way" else ways)

    def _strike_mediator(self, aim: AimedFault) -> bool:
        host = self.mediators.current
        if host is None or host.node is None:
            return False
        if aim.fault == "pause":
            return self.faults.processes.pause_one(host.name, host)
        self.mediators.crash()
        return self.faults.end_later("no mediator", self.mediators.restart)


def _ends(connection: SimulatedConnection) -> tuple[str, str]:
    return connection.dialler.name, connection.host.name if connection.host is not None else ""
