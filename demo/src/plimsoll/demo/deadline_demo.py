"""The demo of deadlines: a burst in the crisis world, with the policy, with Padres and with none, in processes.

`python -m plimsoll.demo.deadline_demo`; Tao, Poslad, Bigham 2013, section V. The same traffic three times, each with
fresh brokers and the same initial places; every delivery is audited, and which came later than its topic requires is
read from the journals.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec

from plimsoll.core.protocol.topic_units import topic_hash
from plimsoll.core.session import decode
from plimsoll.core.spec import Resources
from plimsoll.demo import crisis_tables as tables
from plimsoll.demo.analysis.deadline_claims import (
    NONE,
    OWN,
    PADRES,
    TRIGGER_TOLERANCE,
    DeadlineFigures,
    judged_claims,
)
from plimsoll.demo.analysis.deadline_misses import Misses, late_in_all, late_over_time, misses_of
from plimsoll.demo.analysis.measured_claims import MeasuredClaim
from plimsoll.demo.analysis.topic_depths import Points, TopicDepths, cleared_at
from plimsoll.demo.analysis.topic_moves import TopicMove, topic_moves
from plimsoll.demo.audited_run import AuditedRun, RunDirector, exit_code, run_audited
from plimsoll.demo.command import FAILED
from plimsoll.demo.crisis_workload import required_seconds
from plimsoll.demo.live_display import LiveDisplay, stdout_display
from plimsoll.demo.report import deadline_page
from plimsoll.demo.workload import DemoScenario

SPEED: Final = 2.0
"""How many seconds of the text go by in one."""

DEADLINE_SCENARIO: Final = DemoScenario(
    seconds=30.5, publishers=sum(each.publishers for each in tables.TOPICS.values()),
    subscribers=sum(each.subscribers for each in tables.TOPICS.values()), join_from=0.0, join_to=0.1, step_at=8 / 30.5,
    crisis_speed=SPEED,
)  # fmt: skip
FRAMING: Final = 1.015
"""Heads of frames and acknowledgements are 1.2 to 1.9 % of what these edges send, and no part of the text's sizes."""

BURST: Final = "10ms"
"""With 50 ms saved up, the queue of topic 8 would begin to grow 1.5 s of the text behind the burst."""

PLAIN_SECONDS: Final = 10.0
SHOWN_CASES: Final = 5
REPORT_FILES: Final = ("deadlines.json", "deadlines.html")
COUNTS: Final = ("published", "expected", "delivered", "lost", "duplicated", "reordered", "gaps")
DEFAULTS: Final[Mapping[str, Any]] = {
    "timing": {"reattachWithin": "40s", "heartbeat": "2s", "deadAfter": "20s", "progress": "500ms"},
    "subscribers": {"blockFor": "4m"},
}
"""Behind an overload messages are late, not lost. In seconds of the fleet's clock, which runs at the text's."""


class DepthDirector(RunDirector):
    """Notes how many messages of each topic wait."""

    def __init__(self) -> None:
        self.depths = TopicDepths()

    def look(self, seconds: float, reports: Mapping[str, Mapping[str, Any]]) -> None:
        for report in reports.values():
            self.depths.take(report, seconds)


@dataclass(frozen=True)
class PolicyRun:
    """The run of one policy. Times are seconds of its traffic."""

    name: str
    found: AuditedRun
    misses: Misses
    moves: Sequence[TopicMove]
    asked_at: Sequence[float]
    """When the sessions that moved some were asked for."""

    depths: Points
    """Of the topic whose deadline is in danger, at b1."""

    def plain(self) -> dict[str, Any]:
        """Its part of `deadlines.json`."""
        verdict, judgement = self.found.judgement.verdict, self.found.judgement
        return {
            **{name: getattr(verdict, name) for name in COUNTS},
            "problems": judgement.problems,
            "violations": judgement.cases,
            "late": late_in_all(self.misses),
            "topics": {
                topic: {"delivered": one.delivered, "late": one.late, "longest_seconds": round(one.longest_seconds, 4)}
                for topic, one in self.misses.items()
            },
            "moves": [
                {"at_seconds": round(each.at, 2), "ended_at_seconds": round(each.ended_at, 2), "from": each.source,
                 "to": each.target, "topics": {tables.topic_name(n): count for n, count in each.topics.items()}}
                for each in self.moves
            ],
            "asked_at_seconds": [round(at, 2) for at in self.asked_at],
            "sessions": len(self.found.sessions),
            "machine_load": self.found.machine.plain(),
            "delivery_delay_seconds": judgement.delays.summary(),
            "late_over_time": late_over_time(self.misses),
            "longest_over_time": sorted(self.misses[tables.topic_name(tables.IN_DANGER)].longest_by_second.items()),
            "depths": self.depths,
            "brokers": {edge: {"series": self.found.series.of(edge)} for edge in tables.EDGES},
        }  # fmt: skip


@dataclass(frozen=True)
class DeadlineRuns:
    """All runs, by policy."""

    scenario: DemoScenario
    runs: Mapping[str, PolicyRun]
    wall_seconds: float

    @property
    def problems(self) -> list[str]:
        """The reasons why it fails, one sentence each: deliveries and laws alone."""
        return [f"{name}: {text}" for name, one in self.runs.items() for text in one.found.judgement.problems]

    @property
    def counts(self) -> dict[str, int]:
        """The counts of the audits, all runs together."""
        verdicts = [one.found.judgement.verdict for one in self.runs.values()]
        return {name: sum(getattr(each, name) for each in verdicts) for name in COUNTS}

    @property
    def figures(self) -> DeadlineFigures:
        """What the claims are about."""
        own, burst = self.runs[OWN], self.scenario.step_seconds
        asked = [at for at in own.asked_at if at >= burst]
        publishers = tables.TOPICS[tables.IN_DANGER].publishers
        clear = cleared_at([point for point in own.depths if point[0] >= burst], publishers)
        return DeadlineFigures(
            self.counts,
            {name: late_in_all(one.misses) for name, one in self.runs.items()},
            [each for each in own.moves if each.at >= burst],
            self._in_text(asked[0]) if asked else None,
            None if clear is None else self._in_text(clear),
            {name: self._moved_early(one) for name, one in self.runs.items()},
        )

    def _moved_early(self, run: PolicyRun) -> int:
        """Subscribers that moved while no deadline was in danger yet, by the text."""
        danger = tables.TRIGGER_AT - TRIGGER_TOLERANCE
        early = (each for each in run.moves if self._in_text(each.at) < danger)
        return sum(sum(each.topics.values()) for each in early)

    def _in_text(self, seconds: float) -> float:
        """The second of the text that is this second of the traffic, from the burst on."""
        return tables.BURST_AT + (seconds - self.scenario.step_seconds) * self.scenario.crisis_speed

    def plain(self) -> dict[str, Any]:
        """The contents of `deadlines.json`."""
        return {
            "verdict": "failed" if self.problems else "passed",
            "problems": self.problems,
            **self.counts,
            "claims": [claim.plain() for claim in judged_claims(self.figures)],
            "seed": self.scenario.seed,
            "wall_seconds": round(self.wall_seconds, 1),
            "scenario": msgspec.to_builtins(self.scenario),
            "burst_at_seconds": self.scenario.step_seconds,
            "required_seconds": {
                tables.topic_name(n): round(seconds, 4)
                for n, seconds in required_seconds(self.scenario.crisis_speed).items()
            },
            "runs": {name: one.plain() for name, one in self.runs.items()},
        }


def policies(speed: float) -> dict[str, dict[str, Any] | None]:
    """What each run balances by: latencies are of the clock of messages, all else of the fleet's, which is faster."""
    required = {number: round(seconds, 4) for number, seconds in required_seconds(speed).items()}
    return {OWN: tables.delay_sensitive(0.1, 1.0, required), PADRES: tables.padres(1.0), NONE: None}


def fleet_resources(policy: Mapping[str, Any] | None, speed: float) -> Resources:
    """Table V with all times compressed, and room for the heads of frames."""
    return tables.crisis_resources(policy, round(100 / speed), speed=speed * FRAMING, burst=BURST, **DEFAULTS)


def main(argv: Sequence[str] | None = None) -> int:
    """Run all; returns the exit code: 1 if something was lost, repeated or reordered, or a law was broken."""
    given = _parser().parse_args(argv)
    scenario = msgspec.structs.replace(DEADLINE_SCENARIO, seed=given.seed)
    live = stdout_display(min(PLAIN_SECONDS, scenario.seconds / 6))
    return exit_code(live, lambda: _reported(scenario, given.report, live))


def _reported(scenario: DemoScenario, folder: Path, live: LiveDisplay) -> int:
    for name in REPORT_FILES:
        (folder / name).unlink(missing_ok=True)
    found = run_deadlines(scenario, folder, live)
    deadline_page.write_report(found.plain(), folder)
    live.say(_summary(found, judged_claims(found.figures), folder))
    return FAILED if found.problems else 0


def run_deadlines(scenario: DemoScenario, folder: Path, live: LiveDisplay) -> DeadlineRuns:
    """All runs, one after the other; everything they started has ended when it returns."""
    began, runs = time.monotonic(), dict[str, PolicyRun]()
    for name, policy in policies(scenario.crisis_speed).items():
        live.say(f"--- {name}")
        resources = fleet_resources(policy, scenario.crisis_speed)
        runs[name] = run_policy(name, resources, scenario, folder / name.lower(), live)
    return DeadlineRuns(scenario, runs, time.monotonic() - began)


def run_policy(name: str, resources: Resources, scenario: DemoScenario, folder: Path, live: LiveDisplay) -> PolicyRun:
    """The run of one policy."""
    director = DepthDirector()
    found = run_audited(scenario, resources, folder, live, (), director)
    required = {tables.topic_name(n): each for n, each in required_seconds(scenario.crisis_speed).items()}
    misses = misses_of(required, found.series.start, *found.journals)
    if found.judgement.passed:
        shutil.rmtree(folder / "journals")
    moves, asked_at = _moves(found, scenario.seconds)
    depths = director.depths.of("b1", topic_hash(tables.topic_name(tables.IN_DANGER)))
    return PolicyRun(name, found, misses, moves, asked_at, depths)


def _moves(found: AuditedRun, seconds: float) -> tuple[list[TopicMove], list[float]]:
    """What moved, and when the sessions were asked for that moved some, in seconds of the traffic."""
    records = [record for item in found.sessions if (record := item.get("status", {}).get("record"))]
    sessions = [decode(record) for record in records]
    moves = [
        TopicMove(each.at - found.began_at, each.ended_at - found.began_at, each.source, each.target, each.topics)
        for each in topic_moves(sessions, found.began_at + seconds)
    ]
    asked = [one.requested_at - found.began_at for one in sessions if not one.parent and one.counts()["moved"]]
    return moves, sorted(asked)


def _summary(found: DeadlineRuns, claims: Sequence[MeasuredClaim], folder: Path) -> str:
    counts = found.counts
    said = "FAILED" if found.problems else "passed"
    lines = [f"{said}: {counts['lost']:,} lost, {counts['duplicated']:,} duplicated, {counts['reordered']:,} reordered"]
    lines += found.problems
    for one in found.runs.values():
        lines += one.found.judgement.cases[:SHOWN_CASES]
    lines.append(f"published {counts['published']:,}   delivered {counts['delivered']:,}   gaps {counts['gaps']:,}")
    lines += deadline_page.late_lines(found.plain())
    lines += [claim.line() for claim in claims]
    lines.append(
        f"{sum(claim.held for claim in claims)} of {len(claims)} claims held; {found.wall_seconds:.0f} s in all"
    )
    return "\n  ".join([*lines, f"report: {folder / REPORT_FILES[1]} and {folder / REPORT_FILES[0]}"])


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m plimsoll.demo.deadline_demo",
        description="A burst that endangers a deadline, under DelaySensitive, Padres and no policy.",
    )
    option: Callable[..., Any] = parser.add_argument
    option("--seed", type=int, default=DEADLINE_SCENARIO.seed, help="of the plan (default %(default)s)")
    option(
        "--report", type=Path, default=Path("deadlines-report"), metavar="DIR",
        help="where it goes (default %(default)s)",
    )  # fmt: skip
    return parser


if __name__ == "__main__":
    sys.exit(main())
