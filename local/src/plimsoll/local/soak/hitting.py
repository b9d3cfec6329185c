"""One cell of the kill matrix, in a fleet of its own: hold the step, send the signal, let go, judge what follows."""

from __future__ import annotations

import shutil
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec

from plimsoll.core import records as r
from plimsoll.core.config import Limits
from plimsoll.core.verify import Observation
from plimsoll.core.verify import observations as seen
from plimsoll.local.demo.workload import Scenario
from plimsoll.local.soak.cells import STOP_SECONDS, Cell, Found
from plimsoll.local.soak.crowd import Crowd
from plimsoll.local.soak.driver import Handover, Listings
from plimsoll.local.soak.ground import Ground, Shape, remove
from plimsoll.local.soak.judging import Judgement, judge
from plimsoll.local.soak.mediating import Mediator
from plimsoll.local.soak.moving import plan_of
from plimsoll.local.soak.residue import settle
from plimsoll.mediator.control import Told

SOURCE, HEAD, FAR_HEAD = "east-1", "east-head", "west-head"
SUBSCRIBERS, MEMBERS = 24, 16
LEASE_SECONDS = 16.0
"""Longer than anybody is frozen: by replay it begins at the cut, and who comes back after it is told of a gap."""
PREPARE_SECONDS, DRAIN_SECONDS = 10.0, 12.0
BACK_SECONDS = 1.0
"""A process that was killed comes back so much later, as a supervisor would let it."""
LEAD_SECONDS = 1.0
AFTER_SECONDS = 2.0
WAIT_SECONDS = 10.0
END_SECONDS = 45.0
LEFT_SECONDS = 30.0


class CellError(RuntimeError):
    """The step was not reached, or the hand-over has not ended."""


class CellRun:
    """One cell, from its first process to its last."""

    def __init__(self, cell: Cell, folder: Path) -> None:
        self._cell, self._folder = cell, folder
        self._is_across = cell.mode == "across"
        self._target = "west-1" if self._is_across else "east-2"
        self._brokers = {"source": SOURCE, "target": self._target, "head": HEAD, "far head": FAR_HEAD}
        self._members: list[str] = []
        self._told: r.Outcome | None = None
        self._at = ""
        self._ends: list[Observation] = []
        self._due: list[tuple[float, Callable[[], None]]] = []

    def run(self) -> Found:
        """Everything."""
        for name in ("journals", "fleet", "logs"):
            remove(self._folder / name)
        fleet = self._folder / "fleet" / "kills"
        scenario = Scenario(seconds=3600.0, publishers=8, subscribers=SUBSCRIBERS, seed=11, rate_factor=8.0)
        shape = Shape({"east": 2, "west": 2} if self._is_across else {"east": 3})
        with Ground(fleet, shape, _short_lease) as ground:
            self._ground = ground
            ground.cordon([edge for edge in ground.edges() if edge != SOURCE])
            self._wait(lambda: all(head in ground.statuses for head in ground.heads), "the heads answer")
            self._listings = Listings(ground.control.send)
            with Crowd(scenario, ground.entry(), self._folder, 2, wide=True) as crowd:
                self._crowd = crowd
                self._mediator = Mediator(ground, self._folder / "journals" / "book", self._folder / "logs")
                try:
                    found = self._play()
                finally:
                    self._mediator.kill()
        ground.keep_logs(self._folder / "logs")
        if found.is_kept:
            shutil.rmtree(self._folder / "journals")
        return found

    def _play(self) -> Found:
        ground, crowd = self._ground, self._crowd
        self._mediator.start()
        for _ in crowd.joining():
            self._round()
        ground.cordon([])
        self._choose()
        begun = crowd.begin()
        self._until(begun + LEAD_SECONDS)
        self._hold_and_hit()
        hit_at = time.monotonic()
        one = self._await_end()
        self._until(time.monotonic() + AFTER_SECONDS)
        ended_at = time.monotonic()
        for _ in crowd.ending():
            self._round()
        settling = time.monotonic()
        crowd.ask_homes(True)
        left = settle(ground, self._listings, crowd.homes, LEFT_SECONDS, self._hear_outcome)
        settled = time.monotonic() - settling
        homes = crowd.homes()
        crowd.finish()
        watched = dict.fromkeys(self._members, (hit_at - LEAD_SECONDS / 2, ended_at))
        residue = [seen.Residue("fleet", what, 1, settling) for what in left]
        links = [seen.Fleet([(HEAD, FAR_HEAD)])] if self._is_across else []
        others = [*links, *self._ends, *residue]
        judgement = judge(*crowd.journals, [one], others, watched, disturbed=self._may_die_unheard)
        return self._found(one, judgement, left, settled, Counter(homes.get(name, "") for name in self._members))

    # -- a step, held

    def _choose(self) -> None:
        """Members are of both processes, as far as possible."""
        self._listings.ask(HEAD, SOURCE, time.monotonic())
        self._wait(lambda: SOURCE in self._listings.complete, "the head says whom the source serves")
        names = self._listings.complete[SOURCE]
        if len(names) < SUBSCRIBERS:
            raise CellError(f"the source serves {len(names)} of {SUBSCRIBERS}")
        self._members = names[:MEMBERS]

    def _hold_and_hit(self) -> None:
        """Bring the hand-over to the step, and hit while those are frozen whose answer would take it on."""
        step = self._cell.step
        holders = {
            "prepare sent": ["target"], "slots taken": ["first", "second"], "attached": [], "done": [],
            "cut sent": ["source" if self._is_replay else "target"],
            "cut done": ["first", "second"], "draining": ["second"],
        }[step]  # fmt: skip
        early = step in ("prepare sent", "slots taken")
        if early:
            self._freeze(holders)
        self._begin(until="done" if early else "ready")
        if not early:
            self._await_attached()
            self._freeze(holders)
            if step != "attached":
                self._mediator.want("cut")
        self._await_step()
        self._at = self._told.state if self._told is not None else ""
        self._hit()
        for holder in holders:
            if not self._is_victim(holder):
                self._thaw(holder)
        if step == "attached":
            self._then(0.0, lambda: self._mediator.want("cut"))
            self._then(BACK_SECONDS, lambda: self._mediator.want("cut"))  # to the next one, if that one was killed

    @property
    def _is_replay(self) -> bool:
        return self._cell.mode == "replay"

    @property
    def _may_die_unheard(self) -> bool:
        """By replay a member has moved when the head says so; it, or the target, may be given up before it hears."""
        return self._is_replay and self._cell.signal != "STOP" and self._cell.victim in ("target", "subscribers")

    def _begin(self, until: str) -> None:
        plan = plan_of(
            self._ground, SOURCE, self._target, self._members, replay=self._is_replay,
            prepare_seconds=PREPARE_SECONDS, drain_seconds=DRAIN_SECONDS,
        )  # fmt: skip
        self._mediator.begin(HEAD, plan, "ready" if until == "ready" else "done")

    def _await_attached(self) -> None:
        self._wait(lambda: self._all("attached"), "all members are attached")

    def _await_step(self) -> None:
        step = self._cell.step
        if step == "prepare sent":
            self._wait(lambda: self._all("preparing"), step)
        elif step == "slots taken":
            self._wait(lambda: self._ground.statuses.get(self._target, {}).get("slots") == MEMBERS, step)
        elif step == "cut sent":
            self._wait(lambda: self._all("cut" if self._is_replay else "cutting"), step)
        elif step == "cut done":
            self._wait(lambda: self._all("cut"), step)
            self._until(time.monotonic() + 0.1)  # CUT, or REVOKE, has reached the source
        elif step == "draining":
            self._wait(lambda: self._outcomes() == {"moved": MEMBERS // 2, "cut": MEMBERS // 2}, step)
        elif step == "done":
            self._wait(lambda: self._all("moved"), step)

    def _outcomes(self) -> Counter[str]:
        return Counter(state for _, state in self._told.members) if self._told is not None else Counter()

    def _all(self, state: str) -> bool:
        return self._outcomes() == {state: MEMBERS}

    # -- signals

    def _hit(self) -> None:
        victim, kill = self._cell.victim, self._cell.signal == "KILL"
        if victim is None:
            return
        who = "first" if victim == "subscribers" else victim
        if kill:
            self._kill(who)
            self._then(BACK_SECONDS, lambda: self._start(who))
        else:
            self._freeze([who])
            self._then(STOP_SECONDS[self._cell.signal], lambda: self._thaw(who))

    def _is_victim(self, holder: str) -> bool:
        victim = self._cell.victim
        return holder == ("first" if victim == "subscribers" else victim)

    def _kill(self, who: str) -> None:
        if who == "mediator":
            self._mediator.kill()
        elif who in _PARTS:
            self._crowd.kill(_PARTS[who])
        else:
            broker = self._brokers[who]
            if who in ("head", "far head"):
                self._ends.append(seen.HeadEnded(broker, self._ground.epoch_of(broker), time.monotonic()))
            self._ground.kill(broker)

    def _start(self, who: str) -> None:
        if who == "mediator":
            self._mediator.start()
        elif who in _PARTS:
            self._crowd.start(_PARTS[who])
        else:
            self._ground.start(self._brokers[who])

    def _freeze(self, parties: list[str]) -> None:
        for who in parties:
            if who == "mediator":
                self._mediator.freeze()
            elif who in _PARTS:
                self._crowd.freeze(_PARTS[who])
            else:
                self._ground.freeze(self._brokers[who])

    def _thaw(self, who: str) -> None:
        if who == "mediator":
            self._mediator.thaw()
        elif who in _PARTS:
            self._crowd.thaw(_PARTS[who])
        else:
            self._ground.thaw(self._brokers[who])

    # -- time

    def _then(self, seconds: float, do: Callable[[], None]) -> None:
        self._due.append((time.monotonic() + seconds, do))

    def _round(self) -> None:
        """A moment: hear everybody, and do what is due."""
        for said in self._ground.poll(0.01):
            if isinstance(said, Told):
                if isinstance(said.said, r.Served):
                    self._listings.heard(said.head, said.said, time.monotonic())
                elif isinstance(said.said, r.Outcome):
                    self._hear_outcome(said.head, said.said)
        if self._cell.step == "slots taken" and not self._at:
            self._ground.control.ask(self._target)
        now = time.monotonic()
        for item in [item for item in self._due if item[0] <= now]:
            self._due.remove(item)
            item[1]()

    def _hear_outcome(self, head: str, told: r.Outcome) -> None:
        self._told = told

    def _until(self, then: float) -> None:
        while time.monotonic() < then:
            self._round()

    def _wait(self, what: Callable[[], bool], meaning: str) -> None:
        deadline = time.monotonic() + WAIT_SECONDS
        while not what():
            if time.monotonic() > deadline:
                raise CellError(f"{self._cell}: not within {WAIT_SECONDS:g} s: {meaning}; told {self._told}")
            self._round()

    def _await_end(self) -> Handover:
        """Until the mediator, in whichever life, knows how the hand-over has ended, and everybody is back."""
        deadline = time.monotonic() + END_SECONDS
        while time.monotonic() < deadline:
            self._round()
            one = self._mediator.handover()
            if one is not None and one.is_final and not self._due:
                return one
        raise CellError(f"{self._cell}: the hand-over has not ended after {END_SECONDS:g} s; told {self._told}")

    # -- judgement

    def _places(self, homes: Counter[str]) -> dict[str, int]:
        found: Counter[str] = Counter()
        for edge, count in homes.items():
            name = {SOURCE: "source", self._target: "target", "": "nowhere"}.get(edge, "others")
            found[name] += count
        return dict(found)

    def _found(
        self, one: Handover, judgement: Judgement, left: list[str], settled: float, homes: Counter[str]
    ) -> Found:
        verdict = judgement.verdict
        broken = judgement.violations
        if verdict.gaps and not self._cell.may_gap:
            broken.append(f"{verdict.gaps} gaps were told")
        if not verdict.expected:
            broken.append("nothing had to be delivered, so nothing was shown")
        return Found(
            cell=self._cell,
            at=self._at,
            state=one.state,
            reason=one.reason,
            outcomes=dict(Counter(state for _, state in one.members)),
            homes=self._places(homes),
            silence_seconds=max(judgement.silence.values()),
            session_seconds=one.seconds,
            delivered=verdict.delivered,
            lost=verdict.lost,
            duplicated=verdict.duplicated,
            reordered=verdict.reordered,
            gaps=verdict.gaps,
            excused=verdict.excused,
            orphaned=len(left),
            settle_seconds=settled,
            broken=broken[:20],
        )  # fmt: skip


_PARTS: Final = {"first": 0, "second": 1}


def _short_lease(limits: Limits) -> Limits:
    return msgspec.structs.replace(limits, lease_seconds=LEASE_SECONDS)
