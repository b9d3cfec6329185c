"""What a move of a slice adds: delay of its items, and bytes on all links, from the log and with caches.

Measured in virtual time, with the machines of the product and links of a millisecond each way, so that what else the
machine does changes nothing. Each run is compared with one of the same seed in which nothing moves, item by item.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from plimsoll.core.head.machine import Head
from plimsoll.core.policies.consumer_groups.model import SliceMove, SlicePlan
from plimsoll.core.verify import observations as seen
from plimsoll.core.verify.slice_kill_cells import WAYS, InSession
from plimsoll.simulator.run import SimulationRun
from plimsoll.simulator.scenarios.scenario import SimulationScenario
from plimsoll.simulator.slice_kills import MOVED, SCENARIO
from plimsoll.simulator.world.consumers import GROUP, GroupLoad

SECONDS: Final = 10.0
FIRST_AT, EVERY_SECONDS, MOVES = 2.0, 0.25, 30
IDLE_SECONDS, BUSY_SECONDS = 0.001, 0.012
"""Work on an item: a consumer that has nothing to do in between, and one with items that wait."""


@dataclass(frozen=True)
class MovedRun:
    """`delays`: of each item of the slice, by its identity, in seconds. `cached`: items that went in caches."""

    delays: dict[seen.PublicationIdentity, float]
    frame_bytes: int
    moves: int
    merged: int


def scenario_of(in_session: InSession, work_seconds: float) -> SimulationScenario:
    load = replace(SCENARIO.load, publications=2_000, seconds=SECONDS, payload_bytes=200)
    group = replace(SCENARIO.group or GroupLoad(), in_session=in_session, work_seconds=(work_seconds, work_seconds))
    return replace(SCENARIO, load=load, group=group)


def moved_run(in_session: InSession, work_seconds: float, moves: int, seed: int = 1) -> MovedRun:
    """One run in which slice 0 moves `moves` times, back and forth."""
    run = SimulationRun(scenario_of(in_session, work_seconds), seed)
    sizes: list[int] = []
    run.network.taps.append(lambda _, __, ___, frame: sizes.append(len(frame)))
    for number in range(moves):
        run.schedule.at(FIRST_AT + number * EVERY_SECONDS, lambda: _move(run))
    outcome = run.go()
    if not outcome.ok:
        raise RuntimeError(f"a law is broken: {outcome.verdict}{outcome.error}")
    group = _head(run).groups.by_name[GROUP]
    return MovedRun(_delays(run), sum(sizes), group.counts["sessions"], group.caches.counts["merged"])


def _head(run: SimulationRun) -> Head:
    head = run.fleet.brokers[run.scenario.shape.heads()[0]].host.node
    if not isinstance(head, Head):
        raise TypeError("the head does not run")
    return head


def _move(run: SimulationRun) -> None:
    group = _head(run).groups.by_name[GROUP]
    giver = group.slices[MOVED].holder
    taker = next(name for name in sorted(group.members) if name != giver)
    group.schedule.take_plan(SlicePlan(((SliceMove(giver, taker, MOVED),),), "back and forth"))


def _delays(run: SimulationRun) -> dict[seen.PublicationIdentity, float]:
    published = {
        (one.publisher, one.incarnation, one.seq): one.at
        for one in run.journal.all
        if isinstance(one, seen.PublicationObserved)
    }
    items = (one for one in run.journal.all if isinstance(one, seen.SliceItemObserved) and one.slice == MOVED)
    return {one.publication: one.at - published[one.publication] for one in items if one.publication in published}


def share(values: list[float], part: float) -> float:
    """The value below which this part of all lies, by rank."""
    return sorted(values)[min(len(values) - 1, int(part * len(values)))]


def moves_added() -> dict[str, dict[str, float]]:
    """By way and load of consumers: what the moves add to items of the slice in milliseconds, and bytes by move."""
    found: dict[str, dict[str, float]] = {}
    for load, work in (("idle", IDLE_SECONDS), ("busy", BUSY_SECONDS)):
        for way in WAYS:
            still, moved = moved_run(way, work, 0), moved_run(way, work, MOVES)
            added = [(moved.delays[each] - still.delays[each]) * 1e3 for each in still.delays if each in moved.delays]
            delays = [[value * 1e3 for value in one.delays.values()] for one in (still, moved)]
            found[f"{way}, {load}"] = {
                "moves": moved.moves, "merged": moved.merged, "items": len(added),
                "still_p50_ms": round(share(delays[0], 0.5), 2), "moved_p50_ms": round(share(delays[1], 0.5), 2),
                "still_p99_ms": round(share(delays[0], 0.99), 2), "moved_p99_ms": round(share(delays[1], 0.99), 2),
                "added_p50_ms": round(share(added, 0.5), 2), "added_p99_ms": round(share(added, 0.99), 2),
                "bytes_by_move": round((moved.frame_bytes - still.frame_bytes) / moved.moves, 1),
            }  # fmt: skip
    return found
