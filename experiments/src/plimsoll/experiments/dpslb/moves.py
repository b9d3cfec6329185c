"""A slice that moves a hundred times under load: heads, edges and clients in the simulator, record by record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import msgspec

from plimsoll.core.head.machine import Head
from plimsoll.core.protocol import messages as msg
from plimsoll.core.verify import observations as seen
from plimsoll.demo.analysis.delays import percentile
from plimsoll.experiments.result import Claim, ExperimentResult, Figure
from plimsoll.pages.charts import Chart, ChartLine
from plimsoll.simulator.run import START_SECONDS, RunOutcome, SimulationRun
from plimsoll.simulator.scenarios.scenario import SMALL_LIMITS, SimulationScenario
from plimsoll.simulator.world.brokers import FleetShape
from plimsoll.simulator.world.consumers import GROUP, GroupLoad
from plimsoll.simulator.world.workload import WorkloadSize

NAME: Final = "dpslb-moves"
MOVED_SLICE: Final = 0
FIRST_SECONDS: Final = 2.0
"""From the first publication until the first move: all slices have a consumer by then."""
ADDED_SECONDS: Final = 0.02


@dataclass(frozen=True)
class MovesPlan:
    """`moves` at even times, while `publications` come; `edges`: with one both consumers are at the same."""

    moves: int = 100
    seconds: float = 40.0
    publications: int = 2000
    edges: tuple[int, ...] = (1, 3)


PLAN: Final = MovesPlan()


def small(plan: MovesPlan = PLAN) -> MovesPlan:
    """Few moves: to see it work."""
    return replace(plan, moves=10, seconds=8.0, publications=200)


@dataclass(frozen=True)
class MovesOutcome:
    """Of one run. `delays`: from publication to being given, in seconds, of the moved slice and of the others."""

    edges: int
    outcome: RunOutcome
    moved: int
    audit: msg.AuditItem
    delays: list[float]
    other_delays: list[float]


class MovesRun(SimulationRun):
    """A run in which a mediator commands the moves of one slice, from consumer to consumer and back."""

    def __init__(self, plan: MovesPlan, edges: int, seed: int) -> None:
        self.plan = plan
        super().__init__(_scenario(plan, edges), seed)

    def draw_plan(self) -> list[str]:
        """The plan of any run, and the moves."""
        publishers = super().draw_plan()
        span = self.plan.seconds - FIRST_SECONDS
        for number in range(self.plan.moves):
            at = START_SECONDS + FIRST_SECONDS + span * number / self.plan.moves
            self.schedule.at(at, self._move, number)
        return publishers

    @property
    def head(self) -> Head:
        """The head of the group."""
        node = self.fleet.brokers[self.fleet.shape.heads()[0]].host.node
        if not isinstance(node, Head):
            raise TypeError("no head is killed in these runs")
        return node

    def _move(self, number: int) -> None:
        """As by the command of a mediator: from who has the slice to the other one."""
        group = self.head.groups.by_name[GROUP]
        giver = group.slices[MOVED_SLICE].holder
        taker = next((name for name in sorted(group.members) if name != giver), "")
        if giver and taker:
            plan = msg.SliceMovesPlan(GROUP, giver, taker, [MOVED_SLICE], 10.0)
            self.head.slice_commands.moves.move(f"1.{number + 1}", plan)

    def finish(self) -> MovesOutcome:
        """Run, and gather what came of it."""
        outcome = self.go()
        moves = self.head.slice_commands.moves
        told = [moves.outcome(f"1.{number + 1}") for number in range(self.plan.moves)]
        audits = [each.audit for each in told if each.audit is not None]
        sums = [sum(values) for values in zip(*(msgspec.structs.astuple(each) for each in audits), strict=True)]
        own, others = self._delays()
        moved = sum(state == "moved" for each in told for _, state in each.slices)
        audit = msg.AuditItem(*sums) if sums else msg.AuditItem(0, 0, 0, 0, 0)
        return MovesOutcome(len(self.fleet.shape.edges_of(self.head.name)), outcome, moved, audit, own, others)

    def _delays(self) -> tuple[list[float], list[float]]:
        published = {
            (one.publisher, one.incarnation, one.seq): one.at
            for one in self.journal.all if isinstance(one, seen.PublicationObserved)
        }  # fmt: skip
        own: list[float] = []
        others: list[float] = []
        for one in self.journal.all:
            if isinstance(one, seen.SliceItemObserved) and one.publication in published:
                (own if one.slice == MOVED_SLICE else others).append(one.at - published[one.publication])
        return sorted(own), sorted(others)


def _scenario(plan: MovesPlan, edges: int) -> SimulationScenario:
    return SimulationScenario(
        NAME, "a slice moves back and forth", shape=FleetShape(1, edges), base=LIMITS, is_gap_free=True,
        load=WorkloadSize(subscribers=1, publications=plan.publications, seconds=plan.seconds, changes=0),
        group=GroupLoad(slices=5, consumers=2, changes=0, work_seconds=(0.001, 0.002), balancing="None"),
        settle_seconds=20.0,
    )  # fmt: skip


LIMITS: Final = msgspec.structs.replace(SMALL_LIMITS, queue_bytes=40_000)


def run(seed: int, *, plan: MovesPlan = PLAN) -> ExperimentResult:
    """With both consumers at one edge, and with three edges; each also without moves."""
    found = [MovesRun(plan, edges, seed).finish() for edges in plan.edges]
    still = {edges: MovesRun(replace(plan, moves=0), edges, seed).finish() for edges in plan.edges}
    rows = [_row(each) for each in (*found, *still.values())]
    return ExperimentResult(
        NAME, "DPSLB 2014: exactly once through many moves of one slice", "None", seed,
        [claim for each in found for claim in _claims(each, plan, still[each.edges])], [_figure(found, still)],
        {"runs": rows}, NOTES, runs=rows,
    )  # fmt: skip


NOTES: Final = (
    "Heads, edges and clients are the product's, in virtual time and record by record. Applications write down what "
    "they are given and when they finish it; the laws of groups judge that, and share no code with what moves slices.",
)


def _row(each: MovesOutcome) -> dict[str, Any]:
    return {
        "edges": each.edges, "moved": each.moved, "processed_once": each.outcome.verdict.processed_once,
        "audited": each.audit.members, "delay_p99_ms": _milliseconds(each.delays),
        "others_delay_p99_ms": _milliseconds(each.other_delays), "laws_broken": sorted(each.outcome.broken),
    }  # fmt: skip


def _milliseconds(delays: list[float]) -> float:
    return round(1000 * (percentile(delays, 0.99) or 0.0), 3)


def _claims(each: MovesOutcome, plan: MovesPlan, still: MovesOutcome) -> list[Claim]:
    where = f"{each.edges} {'edge' if each.edges == 1 else 'edges'}"
    audit = each.audit
    faults = audit.lost + audit.duplicated + audit.reordered
    added = _milliseconds(each.delays) - _milliseconds(still.delays)
    others = _milliseconds(each.other_delays) - _milliseconds(still.other_delays)
    return [
        Claim(f"{where}: the slice moves", f"{plan.moves} times", f"{each.moved} times", each.moved == plan.moves),
        Claim(f"{where}: each item is processed exactly once (3.4)", "yes",
              f"{each.outcome.verdict.processed_once:,} once; laws broken: {sorted(each.outcome.broken) or 'none'}",
              each.outcome.ok and each.outcome.verdict.processed_once > 0),
        Claim(f"{where}: members have counted no fault", "0",
              f"{faults} of {audit.members} audited moves", not faults and audit.members > 0),
        Claim(f"{where}: what moves add to its items at the 99th percentile", f"{1000 * ADDED_SECONDS:.0f} ms (ours)",
              f"{added:.1f} ms", added <= 1000 * ADDED_SECONDS),
        Claim(f"{where}: other slices are not delayed", "0 ms", f"{others:.1f} ms at the 99th percentile",
              others <= 1.0),
    ]  # fmt: skip


def _figure(found: list[MovesOutcome], still: Mapping[int, MovesOutcome]) -> Figure:
    shares = [0.5, 0.9, 0.95, 0.99, 0.999]
    named = [(f"{each.edges} edges, moved", each.delays) for each in found] + [
        (f"{edges} edges, without moves", each.delays) for edges, each in still.items()
    ]
    lines = [
        ChartLine(name, look, [(100 * share, 1000 * (percentile(delays, share) or 0.0)) for share in shares])
        for look, (name, delays) in enumerate(named) if delays
    ]  # fmt: skip
    chart = Chart("From publication to being given, of the slice that moves", "ms", lines, along=("percentile", "%"))
    return Figure("delays", chart, "Items of the moved slice, with and without moves.")
