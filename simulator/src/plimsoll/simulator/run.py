"""One run: a scenario under a seed, from the start of the processes to the verdict.

A run starts a fleet and applications, injects faults and hand-overs while they publish, heals all faults, waits until
nothing is under way, has every publisher publish once more, and checks the laws. A publication that is missing then is
lost, and state that is kept then is left over.

Everything that is planned has a label: `saying3` (a publication), `change0` (of subscriptions), `hold1` (a pause of a
subscriber), `fault7`, `move2` (a hand-over), `aim2` (an aimed fault), `life0` (a mediator's crash or replacement),
`ask1` (a session), `member2` (a consumer that joins or leaves). A run can be limited to some labels with `only`; these
stay as the seed has drawn them.
"""

from __future__ import annotations

import random
import traceback
from collections.abc import Callable, Collection
from dataclasses import dataclass

from plimsoll.core.protocol.slice_names import slice_name
from plimsoll.core.transport.overlay_node import link_limits
from plimsoll.core.verify import AuditVerdict, audit_journal
from plimsoll.core.verify import observations as seen
from plimsoll.simulator.checks.audit_laws import disagreements
from plimsoll.simulator.checks.promotion_laws import PromotionLaws
from plimsoll.simulator.checks.queue_sizes import queue_sizes
from plimsoll.simulator.checks.quiescence import is_busy, leftovers, serving_edges
from plimsoll.simulator.checks.scenario_laws import ScenarioLaws
from plimsoll.simulator.engine.event_queue import EventQueue
from plimsoll.simulator.engine.network import SimulatedNetwork
from plimsoll.simulator.fault_injection.aimed_faults import AimedFaultInjector, draw_aimed_faults
from plimsoll.simulator.fault_injection.random_faults import FaultInjector
from plimsoll.simulator.mediators.command_mediator import CommandBackend
from plimsoll.simulator.mediators.handover_plan import draw_handovers
from plimsoll.simulator.mediators.head_replacement import HeadReplacement
from plimsoll.simulator.mediators.session_mediator import SessionBackend, draw_sessions
from plimsoll.simulator.mediators.succession import MediatorSuccession
from plimsoll.simulator.scenarios.catalogue import SCENARIOS
from plimsoll.simulator.scenarios.scenario import SimulationScenario
from plimsoll.simulator.victim import Victim
from plimsoll.simulator.world.applications import SimulatedApplications, client_limits
from plimsoll.simulator.world.brokers import ObservationJournal, SimulatedFleet
from plimsoll.simulator.world.consumers import (
    GROUP,
    draw_consumer_changes,
)
from plimsoll.simulator.world.hardware import hardware_of
from plimsoll.simulator.world.population import Population
from plimsoll.simulator.world.workload import (
    PlannedPublication,
    ReadingPause,
    SubscriptionChange,
    add_topics,
    draw_attributes,
    draw_changes,
    draw_pauses,
    draw_publications,
)

START_SECONDS = 0.8
"""When publications begin: most subscribers are attached by then, but not all."""

MEASURE_SECONDS = 0.5
QUIESCENCE_CHECK_SECONDS = 0.2
QUIET_CHECKS_NEEDED = 2
"""A run has settled when this many checks in a row, this far apart, have found nothing under way."""

LARGEST_RECORD_BYTES = 2_000


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """The result of a run. `digest` covers every frame and its time, so equal digests mean equal runs.

    `suppressed`: repeated deliveries that the client library dropped before the application received them.
    """

    scenario: str
    seed: int
    verdict: AuditVerdict
    events: int
    frames: int
    frames_lost: int
    suppressed: int
    faults: dict[str, int]
    handovers: dict[str, int]
    slices: dict[str, int]
    digest: int
    error: str = ""

    @property
    def ok(self) -> bool:
        return self.verdict.ok and not self.error

    @property
    def broken(self) -> set[str]:
        """The laws that were broken; `I0` means that a machine raised an exception."""
        return {*self.verdict.violated, *(["I0"] if self.error else [])}


class SimulationRun:
    """One run. `trace` is called with a line of text for each frame, fault and observation.

    Each phase (draw, build, disturb, heal, settle, check) is a short step over the same parts, in the order of the
    methods.
    """

    def __init__(
        self,
        scenario: SimulationScenario,
        seed: int,
        trace: Callable[[str], None] | None = None,
        only: Collection[str] | None = None,
    ) -> None:
        self.scenario, self.seed, self.only = scenario, seed, only
        self.labels: list[str] = []
        self.schedule = EventQueue()
        self.network = SimulatedNetwork(self.schedule, self._rng("network"), scenario.connection, scenario.control)
        self.journal = ObservationJournal(self.schedule)
        self.plan_rng = self._rng("plan")
        self.end = START_SECONDS + scenario.load.seconds
        self.victim = Victim(scenario, self._rng("victim"))
        hardware = self.victim.hardware() or hardware_of(scenario, self._rng("hardware"))
        self.fleet = SimulatedFleet(
            scenario.shape, scenario.limits(), hardware, self.schedule, self.network, self.journal,
            self._rng("fleet"), None if scenario.policy is None else scenario.policy.to_spec(),
            scenario.durable, () if scenario.group is None else scenario.group.declared(scenario.shape.heads()[0]),
        )  # fmt: skip
        links = link_limits(self.fleet.heads()[0].config)
        self.apps = SimulatedApplications(
            self.schedule,
            self.network,
            self.journal,
            self._rng("apps"),
            client_limits(links),
            scenario.lease_seconds,
        )
        self.population = Population(scenario, self.apps, self._rng)
        self.population.settle(self.plan_rng)
        self.faults = FaultInjector(
            scenario.fault_rates, self.fleet, self.apps, self.network, self.schedule, self._rng("faults")
        )  # fmt: skip
        promotions = PromotionLaws(self.fleet, self.apps, self.schedule, self.journal.add)
        self.faults.processes.on_node_lost = promotions.node_lost
        self.mediators = self._mediators()
        self.laws = ScenarioLaws(scenario, self.fleet, self.apps, self.mediators.backend, self.journal.add)
        if trace is not None:
            self._trace_to(trace)

    def _rng(self, what: str) -> random.Random:
        """A generator for one part of the run, so that a change in one part does not shift the others."""
        return random.Random(f"{self.scenario.name}/{self.seed}/{what}")

    def _trace_to(self, trace: Callable[[str], None]) -> None:
        def stamped(text: str) -> None:
            trace(f"{self.schedule.now:10.6f} {text}")

        self.network.trace = self.journal.trace = stamped

    def _wanted(self, label: str) -> bool:
        """Note a label; False if the run leaves it out."""
        self.labels.append(label)
        return self.only is None or label in self.only

    # -- the plan

    def _mediators(self) -> MediatorSuccession:
        """Mediators with the session engine if the scenario has sessions or a policy, else with planned commands."""
        scenario, rng = self.scenario, self._rng("moves")
        sessions = self._session_backend(rng) if scenario.sessions.sessions or scenario.policy else None
        commands = self._command_backend(rng)
        mediators = MediatorSuccession(self.schedule, self.network, self.journal, rng, sessions or commands)
        if sessions is None:
            drawn = [
                aim
                for aim in draw_aimed_faults(commands.moves, scenario.handovers, self._rng("aims"))
                if self._wanted(f"aim{aim.move.number}")
            ]
            AimedFaultInjector(drawn, commands.store, mediators, self.faults)
        return mediators

    def _command_backend(self, rng: random.Random) -> CommandBackend:
        scenario = self.scenario
        planned = [
            move
            for move in draw_handovers(
                scenario.handovers, scenario.shape, rng, START_SECONDS, scenario.load.seconds * 0.8
            )
            if self._wanted(move.label)
        ]
        healed_at = self.end if scenario.is_disturbed else 0.0
        names = sorted(name for process in self.apps.processes.values() for name in process.subscribers)
        if scenario.group is not None:
            sides = (0, 1) if scenario.group.in_session == "Cache" else (0,)
            names += [slice_name(GROUP, number, side) for number in range(scenario.group.slices) for side in sides]
        return CommandBackend(scenario.shape.heads(), planned, names, healed_at, self.journal.add)

    def _session_backend(self, rng: random.Random) -> SessionBackend:
        scenario = self.scenario
        planned = [
            one
            for one in draw_sessions(scenario.sessions, scenario.shape, rng, START_SECONDS, scenario.load.seconds * 0.8)
            if self._wanted(one.label)
        ]
        replacement = HeadReplacement(self.fleet, self._rng("replaced")) if scenario.sessions.replace else None
        return SessionBackend(self.fleet, planned, self.journal.add, scenario.policy, replacement)

    # -- the phases of a run

    def go(self) -> RunOutcome:
        """Run all phases, and check the laws."""
        publishers = self.draw_plan()
        self._measure()
        self.schedule.run(self.end)
        self.faults.heal()
        self.apps.resume_all()
        self.mediators.restart()
        self._settle(self.scenario.settle_seconds)
        self._publish_last(publishers)
        self._settle(self.scenario.last_seconds)
        return self._check_laws()

    def draw_plan(self) -> list[str]:
        """Schedule everything that is planned; returns the publishers."""
        scenario, rng, end = self.scenario, self.plan_rng, self.end
        for name in self.fleet.brokers:
            self.schedule.at(rng.uniform(0, 0.1), self.fleet.start, name)
        for name in self.apps.processes:
            self.schedule.at(rng.uniform(0, 0.4), self.apps.start, name)
        publishers = self._plan_load()
        self.victim.plan(self.schedule, self.apps, self._publish, rng, START_SECONDS, end)
        self.faults.plan(START_SECONDS / 2, end, self._wanted)
        if scenario.has_handovers:
            self.schedule.at(START_SECONDS / 2, self.mediators.start)
            lives = self._rng("lives")
            self.mediators.plan(scenario.handovers.lives, lives, START_SECONDS, end, self._wanted)
        return publishers

    def _plan_load(self) -> list[str]:
        """Schedule what applications do; returns the publishers."""
        rng, load, at = self.plan_rng, self.scenario.load, self.schedule.at
        publishers = [f"p{i}" for i in range(load.publishers)]
        subscribers = [f"s{i}" for i in range(load.subscribers)]
        for i, publication in enumerate(draw_publications(load, rng, START_SECONDS, publishers)):
            if self._wanted(f"saying{i}"):
                at(publication.at, self._publish, publication)
        for i, change in enumerate(draw_changes(load, rng, START_SECONDS, subscribers)):
            if self._wanted(f"change{i}"):
                at(change.at, self._change, change)
        for i, hold in enumerate(draw_pauses(load, rng, START_SECONDS, subscribers)):
            if self._wanted(f"hold{i}"):
                self._schedule_pauses(hold)
        if (group := self.scenario.group) is not None:
            changes = draw_consumer_changes(group, self._rng("members"), START_SECONDS, load.seconds * 0.8)
            for i, each in enumerate(changes):
                if self._wanted(f"member{i}"):
                    at(each.at, self.population.change, each, group)
        return publishers

    def _schedule_pauses(self, hold: ReadingPause) -> None:
        self.schedule.at(hold.at, self.apps.set_paused, hold.subscriber, True)
        self.schedule.at(min(hold.until, self.end), self.apps.set_paused, hold.subscriber, False)

    def _settle(self, at_most_seconds: float) -> None:
        """Let time pass until nothing is under way or left over, but at most `at_most_seconds`."""
        until, quiet_checks = self.schedule.now + at_most_seconds, 0
        while quiet_checks < QUIET_CHECKS_NEEDED and self.schedule.now < until:
            self.schedule.run(self.schedule.now + QUIESCENCE_CHECK_SECONDS)
            quiet_checks = quiet_checks + 1 if self._is_settled() else 0

    def _is_settled(self) -> bool:
        return (
            self.mediators.backend.is_settled()
            and not is_busy(self.fleet, self.apps)
            and next(leftovers(self.fleet, self.apps, 0.0), None) is None
            and self.laws.are_settled()
        )

    def _publish(self, publication: PlannedPublication) -> None:
        self.apps.publish(publication, b"x" * self.scenario.load.payload_bytes)

    def _change(self, change: SubscriptionChange) -> None:
        if change.predicates is None:
            self.apps.withdraw(change.subscriber)
        else:
            self.apps.subscribe(change.subscriber, change.predicates)

    def _publish_last(self, publishers: list[str]) -> None:
        for publisher in publishers:
            for _ in range(3):
                attributes = add_topics(draw_attributes(self.plan_rng), self.scenario.load.topics, self.plan_rng)
                self._publish(PlannedPublication(self.schedule.now, publisher, attributes, False))

    def _measure(self) -> None:
        """Sample the state that laws I6 and I4 are about."""
        at = self.schedule.now
        for broker in self.fleet.brokers.values():
            if broker.host.node is not None:
                for size in queue_sizes(broker.name, broker.host.node, at, LARGEST_RECORD_BYTES):
                    if size.value > size.bound:
                        self.journal.add(size)
        self.laws.measure(at)
        if self.scenario.has_handovers:
            self.fleet.presence.measure()
            for one in serving_edges(self.fleet, at):
                self.journal.add(one)
        self.schedule.after(MEASURE_SECONDS, self._measure)

    # -- the checks

    def _check_laws(self) -> RunOutcome:
        for residue in leftovers(self.fleet, self.apps, self.schedule.now):
            self.journal.add(residue)
        for residue in self.laws.leftovers(self.schedule.now):
            self.journal.add(residue)
        self.mediators.leftovers()
        self.apps.finish()
        if self.scenario.is_always_answered:
            self._claim_answers()
        if self.scenario.is_gap_free:
            self.journal.add(seen.GapFreeClaim(0.0, []))
        claim = self.scenario.undisturbed_seconds
        if claim:
            exempt = self.victim.exempt(self.apps, self.journal.all)
            self.journal.add(seen.LatencyClaim(START_SECONDS, self.end, claim, exempt))
        return self._outcome(self._judge())

    def _judge(self) -> AuditVerdict:
        """The verdict over the journal; what audits of sessions say besides is judged with it."""
        verdict, backend = audit_journal(self.journal.all), self.mediators.backend
        found = list(disagreements(backend.sessions(), verdict)) if isinstance(backend, SessionBackend) else []
        for what in found:
            self.journal.add(seen.ResidueObserved("sessions", what, 1, self.schedule.now))
        return audit_journal(self.journal.all) if found else verdict

    def _claim_answers(self) -> None:
        """Report publications whose answer is `unknown`, where heads end only once they have no publisher."""
        unknown = sum(isinstance(one, seen.AnswerObserved) and one.answer == "unknown" for one in self.journal.all)
        if unknown:
            self.journal.add(seen.ResidueObserved("publishers", "answers are unknown", unknown, self.schedule.now))

    def _outcome(self, verdict: AuditVerdict, error: str = "") -> RunOutcome:
        return RunOutcome(
            scenario=self.scenario.name,
            seed=self.seed,
            verdict=verdict,
            events=self.schedule.events,
            frames=self.network.frames,
            frames_lost=self.network.lost,
            suppressed=self._suppressed(),
            faults=dict(sorted(self.faults.happened.items())),
            handovers=self.mediators.backend.counts(),
            slices={} if self.laws.group is None else self.laws.group.counts(),
            digest=self.network.digest,
            error=error,
        )

    def _suppressed(self) -> int:
        clients = [process.client for process in self.apps.processes.values()]
        return sum(s.stream.duplicates for client in clients if client for s in client.subscribers.values())


def run_seed(
    scenario: str, seed: int, trace: Callable[[str], None] | None = None, only: Collection[str] | None = None
) -> RunOutcome:
    """Run one scenario by name under a seed. An exception of a machine is part of the outcome, with its traceback."""
    run = SimulationRun(SCENARIOS[scenario], seed, trace, only)
    try:
        return run.go()
    except Exception:  # noqa: BLE001  # any exception of a machine is a failed run, and a series goes on
        return run._outcome(audit_journal([]), traceback.format_exc())
