"""One cell of the kill matrix, in a fleet of its own: hold the step, send the signal, release it, audit the run."""

from __future__ import annotations

import shutil
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import get_args

import msgspec

from plimsoll.core.config import BrokerLimits
from plimsoll.core.protocol import messages as msg
from plimsoll.core.verify import observations as seen
from plimsoll.demo.leftovers import remove_folder
from plimsoll.demo.workload import DemoScenario
from plimsoll.mediator.control_plane import HeadMessageReceived
from plimsoll.soak.handover_audit import SoakAudit, audit_handovers
from plimsoll.soak.harness.clients import SoakClients
from plimsoll.soak.harness.fleet_harness import FleetHarness, HarnessLayout
from plimsoll.soak.harness.handover_driver import DrivenHandover, SoakListings
from plimsoll.soak.harness.mediator_worker import SoakMediatorProcess
from plimsoll.soak.harness.residue import await_no_residue
from plimsoll.soak.kill_matrix.cells import STOP_SECONDS, KillMatrixCell, KillMatrixResult, Victim
from plimsoll.soak.kill_matrix.parties import CellParties
from plimsoll.soak.session_series.lanes import handover_plan

SOURCE, HEAD, FAR_HEAD = "east-1", "east-head", "west-head"
SUBSCRIBERS, MEMBERS = 24, 16
LEASE_SECONDS = 16.0
"""Longer than any freeze. By replay it starts at the cut; a subscriber that resumes after its end gets a gap."""
PREPARE_SECONDS, DRAIN_SECONDS = 10.0, 12.0
RESTART_SECONDS = 1.0
"""Seconds until a killed process is restarted, as by a supervisor."""
LEAD_SECONDS = 1.0
TRAIL_SECONDS = 2.0
WAIT_SECONDS = 10.0
END_SECONDS = 45.0
RESIDUE_SECONDS = 30.0


class KillMatrixCellError(RuntimeError):
    """The step was not reached, or the hand-over did not end."""


class KillMatrixCellRun:
    """One cell, from the start of its fleet to its audit: a hand-over, held at the step at which a process is hit."""

    def __init__(self, cell: KillMatrixCell, folder: Path) -> None:
        self._cell, self._folder = cell, folder
        self._is_across = cell.mode == "across"
        self._target = "west-1" if self._is_across else "east-2"
        heads = {victim: FAR_HEAD if "far head" in victim else HEAD for victim in get_args(Victim) if "head" in victim}
        self._brokers = {"source": SOURCE, "target": self._target, **heads}
        self._members: list[str] = []
        self._last_outcome: msg.Outcome | None = None
        self._state_at_signal = ""
        self._due: list[tuple[float, Callable[[], None]]] = []

    def run(self) -> KillMatrixResult:
        """Run the cell. Its journals are kept if it failed."""
        for name in ("journals", "fleet", "logs"):
            remove_folder(self._folder / name)
        fleet = self._folder / "fleet" / "kills"
        scenario = DemoScenario(seconds=3600.0, publishers=8, subscribers=SUBSCRIBERS, seed=11, rate_factor=8.0)
        clusters = {"east": 2, "west": 2} if self._is_across else {"east": 3}
        shape = HarnessLayout(
            clusters, disk_log="64Mi" if self._cell.is_durable else None, has_standbys=self._cell.has_standbys
        )
        with FleetHarness(fleet, shape, _short_lease) as harness:
            self._harness = harness
            harness.cordon([edge for edge in harness.edges() if edge != SOURCE])
            self._await(lambda: all(head in harness.statuses for head in harness.heads), "the heads answer")
            self._listings = SoakListings(harness.control.send)
            with SoakClients(scenario, harness.entry(), self._folder, 2, wide=True) as clients:
                self._clients = clients
                self._mediator = SoakMediatorProcess(
                    harness, self._folder / "journals" / "ledger", self._folder / "logs"
                )
                self._parties = CellParties(harness, clients, self._mediator, self._brokers)
                try:
                    found = self._play()
                finally:
                    self._mediator.kill()
        harness.keep_logs(self._folder / "logs")
        if found.is_passed:
            shutil.rmtree(self._folder / "journals")
        return found

    def _play(self) -> KillMatrixResult:
        harness, clients = self._harness, self._clients
        self._mediator.start()
        for _ in clients.joining():
            self._poll()
        harness.cordon([])
        self._choose()
        begun = clients.begin()
        self._run_until(begun + LEAD_SECONDS)
        self._hold_and_hit()
        hit_at = time.monotonic()
        one = self._await_end()
        self._run_until(time.monotonic() + TRAIL_SECONDS)
        ended_at = time.monotonic()
        for _ in clients.ending():
            self._poll()
        settling = time.monotonic()
        clients.report_homes(True)
        left = await_no_residue(harness, self._listings, clients.homes, RESIDUE_SECONDS, self._on_outcome)
        settled = time.monotonic() - settling
        homes = clients.homes()
        clients.finish()
        watched = dict.fromkeys(self._members, (hit_at - LEAD_SECONDS / 2, ended_at))
        residue = [seen.ResidueObserved("fleet", what, 1, settling) for what in left]
        links = [seen.HeadTreeObserved([(HEAD, FAR_HEAD)])] if self._is_across else []
        others = [*links, *self._parties.ends, *residue]
        audit = audit_handovers(*clients.journals, [one], others, watched, disturbed=self._may_miss_outcome)
        return self._result(one, audit, left, settled, Counter(homes.get(name, "") for name in self._members))

    # -- holding a step

    def _choose(self) -> None:
        """Take the first subscribers of the source as members; they are of both processes."""
        self._listings.request(HEAD, SOURCE, time.monotonic())
        self._await(lambda: SOURCE in self._listings.complete, "the head lists the subscribers of the source")
        names = self._listings.complete[SOURCE]
        if len(names) < SUBSCRIBERS:
            raise KillMatrixCellError(f"the source serves {len(names)} of {SUBSCRIBERS} subscribers")
        self._members = names[:MEMBERS]

    def _hold_and_hit(self) -> None:
        """Reach the step and send the signal, while the processes whose answers would end the step are frozen."""
        step = self._cell.step
        holders = {
            "prepare sent": ["target"], "slots taken": ["first", "second"], "attached": [], "done": [],
            "cut sent": ["source" if self._is_replay else "target"],
            "cut done": ["first", "second"], "draining": ["second"],
        }[step]  # fmt: skip
        early = step in ("prepare sent", "slots taken")
        if early:
            self._parties.freeze(holders)
        self._begin(until="done" if early else "ready")
        if not early:
            self._await_attached()
            self._parties.freeze(holders)
            if step != "attached":
                self._mediator.request_step("cut")
        self._await_step()
        self._state_at_signal = self._last_outcome.state if self._last_outcome is not None else ""
        self._hit()
        for holder in holders:
            if not self._is_hit(holder):
                self._parties.thaw(holder)
        if step == "attached":
            self._schedule(0.0, lambda: self._mediator.request_step("cut"))
            # Again for the restarted mediator, if it was the victim.
            self._schedule(RESTART_SECONDS, lambda: self._mediator.request_step("cut"))

    @property
    def _is_replay(self) -> bool:
        return self._cell.mode == "replay"

    @property
    def _may_miss_outcome(self) -> bool:
        """Whether applications may see an attachment in another order than the mediator sees the outcomes.

        By replay a member has moved when the head has its RESUME. The member or the target may be killed or given up
        before the member learns of it. A head that hangs is given up by its edges, which close all links of clients:
        once it wakes, a client may attach anywhere before the mediator has the outcome.
        """
        if self._cell.victim == "head":
            return self._cell.signal == "HANG"
        return self._is_replay and self._cell.signal != "STOP" and self._cell.victim in ("target", "subscribers")

    def _begin(self, until: str) -> None:
        plan = handover_plan(
            self._harness, SOURCE, self._target, self._members, replay=self._is_replay,
            prepare_seconds=PREPARE_SECONDS, drain_seconds=DRAIN_SECONDS,
        )  # fmt: skip
        self._mediator.begin(HEAD, plan, "ready" if until == "ready" else "done")

    def _await_attached(self) -> None:
        self._await(lambda: self._all_members_are("attached"), "all members are attached")

    def _await_step(self) -> None:
        step = self._cell.step
        if step == "prepare sent":
            self._await(lambda: self._all_members_are("preparing"), step)
        elif step == "slots taken":
            self._await(lambda: self._harness.statuses.get(self._target, {}).get("slots") == MEMBERS, step)
        elif step == "cut sent":
            self._await(lambda: self._all_members_are("cut" if self._is_replay else "cutting"), step)
        elif step == "cut done":
            self._await(lambda: self._all_members_are("cut"), step)
            self._run_until(time.monotonic() + 0.1)  # CUT, or REVOKE, has reached the source
        elif step == "draining":
            self._await(lambda: self._outcomes() == {"moved": MEMBERS // 2, "cut": MEMBERS // 2}, step)
        elif step == "done":
            self._await(lambda: self._all_members_are("moved"), step)

    def _outcomes(self) -> Counter[str]:
        return (
            Counter(state for _, state in self._last_outcome.members) if self._last_outcome is not None else Counter()
        )

    def _all_members_are(self, state: str) -> bool:
        return self._outcomes() == {state: MEMBERS}

    # -- signals

    def _hit(self) -> None:
        victim, kill = self._cell.victim, self._cell.signal == "KILL"
        if victim is None:
            return
        process = "first" if victim == "subscribers" else victim
        if kill:
            self._parties.kill(process)
            self._schedule(RESTART_SECONDS, lambda: self._parties.start(process))
        else:
            self._parties.freeze([process])
            self._schedule(STOP_SECONDS[self._cell.signal], lambda: self._parties.thaw(process))

    def _is_hit(self, holder: str) -> bool:
        victim = self._cell.victim
        return holder == ("first" if victim == "subscribers" else victim)

    # -- time

    def _schedule(self, seconds: float, do: Callable[[], None]) -> None:
        self._due.append((time.monotonic() + seconds, do))

    def _poll(self) -> None:
        """Read the control plane, and carry out scheduled actions that are due."""
        for event in self._harness.poll(0.01):
            if isinstance(event, HeadMessageReceived):
                if isinstance(event.said, msg.SubscriberPage):
                    self._listings.on_page(event.head, event.said, time.monotonic())
                elif isinstance(event.said, msg.Outcome):
                    self._on_outcome(event.head, event.said)
        if self._cell.step == "slots taken" and not self._state_at_signal:
            self._harness.control.ask(self._target)
        now = time.monotonic()
        for item in [item for item in self._due if item[0] <= now]:
            self._due.remove(item)
            item[1]()

    def _on_outcome(self, head: str, outcome: msg.Outcome) -> None:
        self._last_outcome = outcome

    def _run_until(self, then: float) -> None:
        while time.monotonic() < then:
            self._poll()

    def _await(self, what: Callable[[], bool], meaning: str) -> None:
        deadline = time.monotonic() + WAIT_SECONDS
        while not what():
            if time.monotonic() > deadline:
                raise KillMatrixCellError(
                    f"{self._cell}: not within {WAIT_SECONDS:g} s: {meaning}; last outcome: {self._last_outcome}"
                )
            self._poll()

    def _await_end(self) -> DrivenHandover:
        """Wait until the mediator, in any of its lives, knows the outcome, and all scheduled actions are done."""
        deadline = time.monotonic() + END_SECONDS
        while time.monotonic() < deadline:
            self._poll()
            one = self._mediator.handover()
            if one is not None and one.is_final and not self._due:
                return one
        raise KillMatrixCellError(
            f"{self._cell}: the hand-over has not ended after {END_SECONDS:g} s; last outcome: {self._last_outcome}"
        )

    # -- the result

    def _members_by_place(self, homes: Counter[str]) -> dict[str, int]:
        found: Counter[str] = Counter()
        for edge, count in homes.items():
            name = {SOURCE: "source", self._target: "target", "": "nowhere"}.get(edge, "others")
            found[name] += count
        return dict(found)

    def _result(
        self, one: DrivenHandover, audit: SoakAudit, left: list[str], settled: float, homes: Counter[str]
    ) -> KillMatrixResult:
        verdict = audit.verdict
        broken = audit.violations
        if verdict.gaps and not self._cell.may_gap:
            broken.append(f"{verdict.gaps} gaps were reported")
        if not verdict.expected:
            broken.append("no delivery was expected, so nothing was tested")
        return KillMatrixResult(
            cell=self._cell,
            at=self._state_at_signal,
            state=one.state,
            reason=one.reason,
            outcomes=dict(Counter(state for _, state in one.members)),
            homes=self._members_by_place(homes),
            silence_seconds=max(audit.silence.values()),
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


def _short_lease(limits: BrokerLimits) -> BrokerLimits:
    return msgspec.structs.replace(limits, lease_seconds=LEASE_SECONDS)
