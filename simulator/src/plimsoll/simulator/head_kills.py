"""One cell of the kill matrix of heads whose logs outlast them: one hand-over, one head killed at one of its messages.

    python -m plimsoll.simulator.head_kills across "cut done" behind "far head" standby    prints the result as JSON

The kill is exact to the message: frames are watched on the network. What comes back is the head with its disk, or its
standby, as a supervisor brings it. `plimsoll.soak.head_kills.runner` runs all cells.
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

import msgspec

from plimsoll.core.printable import printable_lines
from plimsoll.core.protocol import messages as msg
from plimsoll.core.verify import observations as seen
from plimsoll.core.verify.head_kill_cells import MEMBERS, STEPS, HeadKillCell, HeadKillResult, Keeps
from plimsoll.simulator.fault_injection.message_watch import BEHIND_SECONDS, STEADY, MessageWatch
from plimsoll.simulator.mediators.command_mediator import CommandBackend
from plimsoll.simulator.mediators.handover_plan import HandoverMix, PlannedHandover
from plimsoll.simulator.run import SimulationRun
from plimsoll.simulator.scenarios.scenario import SMALL_LIMITS, SimulationScenario
from plimsoll.simulator.world.brokers import FleetShape
from plimsoll.simulator.world.durable_heads import DurableHeads
from plimsoll.simulator.world.standby_heads import StandbyHeads
from plimsoll.simulator.world.workload import PlannedPublication, WorkloadSize, draw_attributes

MOVE_AT: Final = 3.0
OFTEN, OFTEN_SECONDS = 240, 0.00025
"""Publications besides those of the whole run, from `MOVE_AT` on: they take longer than a hand-over."""
WATCHED_SECONDS: Final = 5.0
"""Behind a kill pauses are looked for this long; the head is back by then."""
ASLEEP_SECONDS: Final = 0.7
"""Behind the return of a head members sleep this long: the edges have reported by then."""
HEAD, FAR_HEAD, SOURCE = "h0", "h1", "h0e0"
HEADS: Final[dict[Keeps, DurableHeads | StandbyHeads]] = {
    "disk": DurableHeads(),
    "standby": StandbyHeads(),
    "standby and disk": StandbyHeads(has_disks=True),
    "standby, node lost": StandbyHeads(),
}
BACK_SECONDS: Final[dict[Keeps, float]] = {
    "disk": 1.0, "standby": 0.2, "standby and disk": 0.2, "standby, node lost": 3.2,
}  # fmt: skip
"""From the kill until the head is started again, or its standby is promoted: a lost node is noticed by its silence."""
FROZEN_FROM: Final = {"drain": msg.CutRequest, "replay": msg.Revoke, "across": msg.CutRequest}
KINDS: Final = {kind.__name__: kind for kind in (
    msg.Prepare, msg.Slot, msg.TargetAttached, msg.Install, msg.CutRequest, msg.Cut, msg.Marker, msg.Done, msg.Revoke,
    msg.Moved, msg.ResumeUp,
)}  # fmt: skip
LIMITS: Final = msgspec.structs.replace(SMALL_LIMITS, heartbeat_seconds=1.0, dead_seconds=10.0, lease_seconds=30.0)


def scenario_of(cell: HeadKillCell, *, in_tree: bool = False) -> SimulationScenario:
    """The fleet of a cell: three edges, or two clusters with two. Nothing may be lost, and no answer be unknown.

    `in_tree`: also within a cluster there is another one, whose publications the head has only as long as it asks.
    """
    shape, subscribers, processes = FleetShape(1, 3), 12, 4
    if cell.mode == "across":
        shape, subscribers = FleetShape(2, 2), 16
    elif in_tree:
        shape, subscribers, processes = FleetShape(2, 3), 24, 8
    return SimulationScenario(
        "head-kill",
        "one hand-over, and one head is killed",
        shape=shape,
        load=WorkloadSize(
            publishers=4, subscribers=subscribers, publications=600, seconds=9.0, changes=0, confirm_edges=0.0
        ),
        connection=STEADY,
        base=LIMITS,
        processes=processes,
        handovers=HandoverMix(1),
        is_gap_free=True,
        is_always_answered=True,
        durable=HEADS[cell.keeps],
        settle_seconds=60.0,
        last_seconds=6.0,
    )  # fmt: skip


class HeadKill:
    """A run in which subscribers are handed over at `MOVE_AT`, and the victim is killed at the step of the cell.

    `sleeps`: the fleet is a tree, and half of the members are frozen from their cut on until the head is back. So none
    of those has gone on when the edges report.
    """

    def __init__(self, cell: HeadKillCell, seed: int = 1, *, sleeps: bool = False) -> None:
        self.cell, self.sleeps = cell, sleeps
        self.run = SimulationRun(scenario_of(cell, in_tree=sleeps), seed)
        self.killed_at = 0.0
        self.moves = self._moves()
        self._frozen: list[str] = []
        self.run.schedule.at(MOVE_AT, self._watch)
        self._publish_often(random.Random(f"{seed}/often"))

    def _moves(self) -> CommandBackend:
        """The backend, with the hand-over of the cell in place of the one that the seed has drawn."""
        backend, is_across = self.run.mediators.backend, self.cell.mode == "across"
        if not isinstance(backend, CommandBackend):
            raise TypeError("a cell has no sessions")
        self._target = "h1e0" if is_across else "h0e1"
        backend.moves = [PlannedHandover(
            number=0, at=MOVE_AT, head=HEAD, source=SOURCE, target_head=FAR_HEAD if is_across else HEAD,
            target=self._target, count=MEMBERS, pick=1, non_members=0, replay=self.cell.mode == "replay", end="cut",
            patience_seconds=3.0, prepare_seconds=8.0, drain_seconds=8.0, stale=False,
        )]  # fmt: skip
        return backend

    def result(self) -> HeadKillResult:
        """Run it."""
        outcome = self.run.go()
        verdict, cell = outcome.verdict, self.cell
        broken = [str(one) for one in verdict.violations[:5]]
        if cell.victim is not None and not self.killed_at:
            broken.append(f"the step was not reached: {cell.step}")
        answers = [one for one in self.run.journal.all if isinstance(one, seen.AnswerObserved)]
        laws = verdict.violated
        return HeadKillResult(
            cell=cell, outcomes=self._outcomes(), homes=self._homes(), pause_seconds=round(self._pause(answers), 3),
            delivered=verdict.delivered, lost=laws.get("I1", 0), repeated=laws.get("I2", 0),
            reordered=laws.get("I3", 0), gaps=verdict.gaps,
            unknown=sum(one.answer == "unknown" for one in answers), broken=broken,
        )  # fmt: skip

    # -- the kill

    def _publish_often(self, rng: random.Random) -> None:
        """While the hand-over is under way: something is on its way at every moment at which a head is killed."""
        publishers = [name for process in self.run.apps.processes.values() for name in process.publishers]
        for i in range(OFTEN):
            at = MOVE_AT + i * OFTEN_SECONDS
            publication = PlannedPublication(at, publishers[i % len(publishers)], draw_attributes(rng), False)
            self.run.schedule.at(at, self.run.apps.publish, publication)

    def _watch(self) -> None:
        cell, network = self.cell, self.run.network
        kind, nth = STEPS[cell.mode][cell.step]
        if self.sleeps or cell.step == "draining":
            MessageWatch(network, FROZEN_FROM[cell.mode], 0, self._freeze_half)
        MessageWatch(network, KINDS[kind], nth, self._kill_soon)

    def _freeze_half(self) -> None:
        """Freeze the processes of half of the members before they are told anything of the cut."""
        (one,) = self.moves.store.handovers.values()
        processes = {self.run.apps.process_name(member) for member in one.plan.members[: MEMBERS // 2]}
        self._frozen = sorted(processes)
        for name in self._frozen:
            self.run.apps.host(name).pause()

    def _kill_soon(self) -> None:
        self.run.schedule.after(BEHIND_SECONDS if self.cell.when == "behind" else 0.0, self._kill)

    def _kill(self) -> None:
        run, cell = self.run, self.cell
        self.killed_at = run.schedule.now
        if self.sleeps:
            run.schedule.after(BACK_SECONDS[cell.keeps] + ASLEEP_SECONDS, self._wake)
        else:
            self._wake()
        if cell.victim is not None:
            head = self._victim()
            run.fleet.crash(head, with_node=cell.keeps == "standby, node lost")
            run.schedule.after(BACK_SECONDS[cell.keeps], run.fleet.start, head)

    def _wake(self) -> None:
        for name in self._frozen:
            self.run.apps.host(name).resume()

    def _victim(self) -> str:
        return FAR_HEAD if self.cell.victim == "far head" else HEAD

    # -- what it has shown

    def _outcomes(self) -> dict[str, int]:
        found: Counter[str] = Counter()
        for one in self.moves.store.handovers.values():
            if one.state != "failed":
                found.update(outcome for _, outcome in one.members)
        return dict(sorted(found.items()))

    def _homes(self) -> dict[str, int]:
        """Where the members were served last."""
        last = {one.subscriber: one.edge for one in self.run.journal.all if isinstance(one, seen.AttachmentObserved)}
        members = [member for one in self.moves.store.handovers.values() for member in one.plan.members]
        names = {SOURCE: "source", self._target: "target"}
        return dict(sorted(Counter(names.get(last[member], "others") for member in members).items()))

    def _pause(self, answers: Sequence[seen.AnswerObserved]) -> float:
        """The longest time without an answer to a publisher of the victim's cluster, from the kill on."""
        apps, head = self.run.apps, self._victim()
        since = self.killed_at or MOVE_AT
        until = min(since + WATCHED_SECONDS, self.run.end)
        later = [one.at for one in answers if since < one.at < until and apps.process_of[one.publisher].head == head]
        return max(second - first for first, second in pairwise([since, *sorted(later), until]))


def main(arguments: Sequence[str]) -> int:
    """Run the cell that the arguments name, and print its result as JSON."""
    mode, step, when, victim, keeps = arguments
    named = {"mode": mode, "step": step, "when": when, "victim": None if victim == "nothing" else victim}
    cell = msgspec.convert({**named, "keeps": keeps}, HeadKillCell)
    sys.stdout.write(printable_lines(msgspec.json.encode(HeadKill(cell).result()).decode() + "\n"))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
