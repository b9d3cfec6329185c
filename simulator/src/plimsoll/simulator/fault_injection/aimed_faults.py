"""Faults aimed at the steps of a hand-over: when a chosen record of a session is sent, a fault strikes close by.

What is spread over a run seldom falls into the few milliseconds in which a cut happens. So each hand-over has, by its
seed, a point (the kind of a record that names it), a victim, a fault and a delay; it strikes once.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import msgspec

from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol import wire
from plimsoll.simulator.engine.network import NetworkParty, SimulatedConnection
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
"""Records that name a session, by kind."""

ROUTE: int = msg.Route.__struct_config__.tag  # type: ignore[assignment]  # tags of this protocol are numbers
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
"""Points around the cut: most aims are taken at these."""


@dataclass(slots=True)
class AimedFault:
    """What strikes a hand-over, at the `nth` record of kind `point` that names it."""

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


def draw_aimed_faults(moves: Sequence[PlannedHandover], moving: HandoverMix, draw: random.Random) -> list[AimedFault]:
    """At most one aimed fault per hand-over. Who must not be killed in this scenario stands still instead."""
    drawn = []
    for move in moves:
        struck = draw.random() < moving.aim
        point = draw.choice(COMMON_POINTS if draw.random() < 0.7 else tuple(MESSAGE_TAGS))
        nth, victim, fault = draw.choice((0, 0, 0, 1)), draw.choice(VICTIMS), draw.choice(FAULTS)
        if fault == "crash" and victim not in (*moving.crashable, "mediator", "link"):
            fault = "pause"
        one = AimedFault(move, point, nth, victim, fault, draw.choice(DELAYS_SECONDS), draw.getrandbits(32))
        if struck:
            drawn.append(one)
    return drawn


class AimedFaultInjector:
    """Watches what is sent, and strikes."""

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
        assert isinstance(decoded, wire.Data | wire.Control)  # noqa: S101  # the kind says so
        for raw in decoded.records:
            record = memoryview(raw)
            if record[1] in self._tags or record[1] == ROUTE:
                self._on_message(connection, bytes(record))

    def _on_message(self, connection: SimulatedConnection, record: bytes) -> None:
        """A record of a kind that some aim waits for. It names its session in full."""
        tag = _routed_message(record)[1] if record[1] == ROUTE else record[1]
        for aim in self.aims:
            if not aim.is_spent and MESSAGE_TAGS[aim.point] == tag and self._names(record, aim):
                key = (aim.move.number, aim.point)
                count = self._count[key] = self._count.get(key, -1) + 1
                if count == aim.nth:
                    aim.is_spent = True
                    self.faults.schedule.after(aim.delay_seconds, self._strike, aim, connection)

    def _names(self, record: bytes, aim: AimedFault) -> bool:
        for one in self.store.handovers.values():
            if one.move.number == aim.move.number:
                return msgspec.msgpack.encode(one.session) in record
        return False

    # -- striking

    def _strike(self, aim: AimedFault, connection: SimulatedConnection) -> None:
        faults = self.faults
        faults.draw = random.Random(aim.seed)
        if faults.strike(lambda: self._inject(aim, connection), f"aimed {aim.fault}"):
            faults.network.trace_line(f"! aimed at {aim.move.label}: {aim}")

    def _inject(self, aim: AimedFault, connection: SimulatedConnection) -> bool:
        if aim.victim == "link":
            return self._hit_link(aim, connection)
        if aim.victim == "mediator":
            return self._hit_mediator(aim)
        name = self._name(aim)
        if not name:
            return False
        actions: dict[str, Callable[[], bool]] = {
            "crash": lambda: self.faults.crash_one(name),
            "pause": lambda: self.faults.pause_one(name),
            "reconnect": lambda: self._reconnect(name),
            "wall": lambda: self._wall(name, both=True),
            "one-way": lambda: self._wall(name, both=False),
        }
        return actions[aim.fault]()

    def _name(self, aim: AimedFault) -> str:
        """The process that is meant, if there is one."""
        move, faults = aim.move, self.faults
        if aim.victim == "neighbor":
            others = [name for name in faults.fleet.shape.heads() if name not in (move.head, move.target_head)]
            return faults.draw.choice(others) if others else ""
        if aim.victim == "subscriber":
            names = self._clients(move)
            return faults.draw.choice(names) if names else ""
        return {
            "source": move.source, "target": move.target, "head": move.head, "target-head": move.target_head
        }[aim.victim]  # fmt: skip

    def _clients(self, move: PlannedHandover) -> list[str]:
        """Processes with members of the hand-over."""
        members = [m for one in self.store.handovers.values() if one.move is move for m in one.plan.members]
        return sorted({self.faults.clients.home(member) for member in members} & set(self.faults.clients.names()))

    def _reconnect(self, name: str) -> bool:
        """One connection of this process breaks."""
        found = [each for each in self.faults.connections() if name in _ends(each)]
        if found:
            self.faults.network.reconnect(self.faults.draw.choice(found))
        return bool(found)

    def _wall(self, name: str, *, both: bool) -> bool:
        found = [each for each in self.faults.connections() if name in _ends(each)]
        if not found:
            return False
        one, other = _ends(self.faults.draw.choice(found))
        ways = [(one, other), (other, one)]
        self.faults.draw.shuffle(ways)
        return self.faults.wall_off(f"no way between {one} and {other}", ways if both else ways[:1])

    def _hit_link(self, aim: AimedFault, connection: SimulatedConnection) -> bool:
        """The connection that the record was sent on."""
        if not connection.is_up:
            return False
        one, other = _ends(connection)
        if aim.fault in ("crash", "reconnect"):
            self.faults.network.reconnect(connection)
            return True
        ways = [(one, other), (other, one)]
        self.faults.draw.shuffle(ways)
        return self.faults.wall_off(f"no way between {one} and {other}", ways[:1] if aim.fault == "one-way" else ways)

    def _hit_mediator(self, aim: AimedFault) -> bool:
        host = self.mediators.current
        if host is None or host.node is None:
            return False
        if aim.fault == "pause":
            return self.faults.pause_one(host.name, host)
        self.mediators.crash()
        return self.faults.lasting("no mediator", self.mediators.restart)


def _ends(connection: SimulatedConnection) -> tuple[str, str]:
    return connection.dialler.name, connection.host.name if connection.host is not None else ""


def _routed_message(route: bytes) -> bytes:
    """The record that a ROUTE carries, to see its kind."""
    return msgspec.msgpack.encode(msgspec.msgpack.decode(route)[4])
