"""One cell of the kill matrix of slices: a fleet in virtual time, one slice that moves, one process killed at one step.

    python -m plimsoll.simulator.slice_kills "Cache" "cache sent" behind giver    prints the result as JSON

The kill is exact to the message: frames are watched on the network, and what is killed comes back a second later, as a
supervisor brings it back. `plimsoll.soak.slice_kills.runner` runs all cells.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import msgspec

from plimsoll.core.head.machine import Head
from plimsoll.core.policies.consumer_groups.model import SliceMove, SlicePlan
from plimsoll.core.printable import printable_lines
from plimsoll.core.protocol import messages as msg
from plimsoll.core.verify import AuditVerdict
from plimsoll.core.verify import observations as seen
from plimsoll.core.verify.slice_kill_cells import STEPS, SliceKillCell, SliceKillResult
from plimsoll.simulator.fault_injection.message_watch import BEHIND_SECONDS, STEADY, MessageWatch
from plimsoll.simulator.run import SimulationRun
from plimsoll.simulator.scenarios.group_scenarios import LIMITS
from plimsoll.simulator.scenarios.scenario import SimulationScenario
from plimsoll.simulator.world.brokers import FleetShape
from plimsoll.simulator.world.consumers import GROUP, GroupLoad
from plimsoll.simulator.world.workload import WorkloadSize

MOVE_AT: Final = 3.0
DOWN_SECONDS: Final = 1.0
SLICES: Final = 4
MOVED: Final = 0

SCENARIO: Final = SimulationScenario(
    "slice-kill",
    "one slice of a group moves, and one process is killed",
    shape=FleetShape(1, 2),
    load=WorkloadSize(publishers=2, subscribers=1, publications=480, seconds=6.0, changes=0, confirm_edges=0.0),
    connection=STEADY,
    base=LIMITS,
    group=GroupLoad(SLICES, consumers=2, changes=0, work_seconds=(0.06, 0.06), in_hand=1, balancing="None"),
    settle_seconds=30.0,
    last_seconds=6.0,
)
KINDS: Final = {kind.__name__: kind for kind in (
    msg.SliceRevoked, msg.SliceReleased, msg.SliceAssigned, msg.SliceCaching, msg.SliceCache, msg.Resume, msg.Resumed,
)}  # fmt: skip


def scenario_of(cell: SliceKillCell) -> SimulationScenario:
    """The fleet of a cell. Only a head that is killed may lose anything, and tells it as a gap."""
    group = replace(SCENARIO.group or GroupLoad(), in_session=cell.in_session)
    return replace(SCENARIO, group=group, is_gap_free=cell.victim != "head")


class SliceKill:
    """A run in which slice 0 is moved at `MOVE_AT`, and the victim killed at the step of the cell."""

    def __init__(self, cell: SliceKillCell, seed: int = 1) -> None:
        self.cell = cell
        self.run = SimulationRun(scenario_of(cell), seed)
        kind, self._nth = STEPS[cell.in_session][cell.step]
        self._kind = KINDS[kind]
        self._giver = self._taker = self._edge = ""
        self.killed_at = 0.0
        self.counts: Counter[str] = Counter()
        self.run.schedule.at(MOVE_AT, self._move)
        if cell.victim == "mediator":
            self.run.schedule.at(1.0, self.run.mediators.start)

    def result(self) -> SliceKillResult:
        """Run it."""
        outcome = self.run.go()
        verdict, cell = outcome.verdict, self.cell
        broken = [str(one) for one in verdict.violations[:5]]
        if cell.victim is not None and not self.killed_at:
            broken.append(f"the step was not reached: {cell.step}")
        group = self._head().groups.by_name[GROUP]
        holder = group.slices[MOVED].holder
        counts = {**group.caches.counts}
        return SliceKillResult(
            cell=cell, way=self._way(counts), at={self._giver: "giver", self._taker: "taker"}.get(holder, holder),
            pause_seconds=round(self._pause(), 3), processed_once=verdict.processed_once,
            redelivered=verdict.redelivered, **_violated(verdict), gaps=self._gaps(),
            cached=counts.get("relayed_bytes", 0), broken=broken,
        )  # fmt: skip

    # -- the move and the kill

    def _move(self) -> None:
        group = self._head().groups.by_name[GROUP]
        self._giver = group.slices[MOVED].holder
        self._taker = next(name for name in sorted(group.members) if name != self._giver)
        member = self.run.apps.consumers[self._giver].member
        current = None if member is None else member.slices[MOVED].current
        self._edge = "" if current is None else current.port.edge
        MessageWatch(self.run.network, self._kind, self._nth, self._kill_soon)
        group.schedule.take_plan(SlicePlan(((SliceMove(self._giver, self._taker, MOVED),),), "one slice moves"))

    def _kill_soon(self) -> None:
        self.run.schedule.after(BEHIND_SECONDS if self.cell.when == "behind" else 0.0, self._kill)

    def _kill(self) -> None:
        run, victim = self.run, self.cell.victim
        self.killed_at = run.schedule.now
        edges = [name for name, broker in run.fleet.brokers.items() if not broker.is_head]
        names = {
            "giver": self._giver, "taker": self._taker, "giver's edge": self._edge,
            "other edge": next(name for name in edges if name != self._edge), "head": run.scenario.shape.heads()[0],
        }  # fmt: skip
        if victim == "mediator":
            run.mediators.crash()
            run.schedule.after(DOWN_SECONDS, run.mediators.restart)
        elif victim is not None:
            party = run.fleet if names[victim] in run.fleet.brokers else run.apps
            party.crash(names[victim])
            start = run.fleet.start if party is run.fleet else run.apps.restart
            run.schedule.after(DOWN_SECONDS, start, names[victim])

    # -- what it has shown

    def _head(self) -> Head:
        node = self.run.fleet.brokers[self.run.scenario.shape.heads()[0]].host.node
        if not isinstance(node, Head):
            raise LookupError("the head of the group does not run")
        return node

    def _items(self) -> list[seen.SliceItemObserved]:
        found = [one for one in self.run.journal.all if isinstance(one, seen.SliceItemObserved)]
        return [one for one in found if one.slice == MOVED]

    def _pause(self) -> float:
        """From the kill, or else from the command, until the next item of the slice was given."""
        since = self.killed_at or MOVE_AT
        return min((one.at for one in self._items() if one.at > since), default=since) - since

    def _way(self, counts: dict[str, int]) -> str:
        if self.cell.victim == "head":
            return "a new head"
        if counts.get("merged"):
            return "merged"
        gave_up = [why for why in ("slow", "uncached", "lost") if counts.get(why)]
        return f"from the log ({', '.join(gave_up)})" if gave_up else "from the log"

    def _gaps(self) -> int:
        return sum(isinstance(one, seen.GapObserved) and "@@" in one.subscriber for one in self.run.journal.all)


def _violated(verdict: AuditVerdict) -> dict[str, int]:
    laws = {"I1": "lost", "I2": "repeated", "I3": "reordered"}
    return {word: verdict.violated.get(law, 0) for law, word in laws.items()}


def main(arguments: Sequence[str]) -> int:
    """Run the cell that the arguments name, and print its result as JSON."""
    in_session, step, when, victim = arguments
    named = {"in_session": in_session, "step": step, "when": when, "victim": None if victim == "nothing" else victim}
    cell = msgspec.convert(named, SliceKillCell)
    sys.stdout.write(printable_lines(msgspec.json.encode(SliceKill(cell).result()).decode() + "\n"))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
