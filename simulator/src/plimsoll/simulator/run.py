"""One run: a scenario under a seed, from the first process to the verdict.

A run starts a fleet and applications, lets them speak and move while faults happen, heals everything, lets time pass
until nothing is under way any more, lets every publisher speak once more, and asks the laws. So what is still missing
then is lost, and what is still held then is left over.

Everything that is planned has a label: `saying3`, `change0`, `hold1`, `fault7`, `move2`, `aim2`, `life0`, `ask1`. A
run may be made of some of them `only`; they stay as the seed has them, so far as they do not follow from what is left
out.
"""

from __future__ import annotations

import random
import traceback
from collections.abc import Callable, Collection
from dataclasses import dataclass

from plimsoll.core.config import BrokerHardware, HardwareEmulation
from plimsoll.core.protocol import messages as msg
from plimsoll.core.transport.overlay_node import link_limits
from plimsoll.core.verify import AuditVerdict, audit_journal
from plimsoll.core.verify import observations as seen
from plimsoll.simulator.checks.queue_sizes import queue_sizes
from plimsoll.simulator.checks.quiescence import is_busy, leftovers, serving_edges
from plimsoll.simulator.engine.event_queue import EventQueue
from plimsoll.simulator.engine.network import SimulatedNetwork
from plimsoll.simulator.fault_injection.aimed_faults import AimedFaultInjector, draw_aimed_faults
from plimsoll.simulator.fault_injection.random_faults import FaultInjector
from plimsoll.simulator.mediators.command_mediator import CommandBackend
from plimsoll.simulator.mediators.handover_plan import draw_handovers
from plimsoll.simulator.mediators.session_mediator import SessionBackend, draw_sessions
from plimsoll.simulator.mediators.succession import MediatorSuccession
from plimsoll.simulator.scenarios.catalogue import SCENARIOS
from plimsoll.simulator.scenarios.scenario import SimulationScenario
from plimsoll.simulator.world.applications import SimulatedApplications, client_limits
from plimsoll.simulator.world.brokers import ObservationJournal, SimulatedFleet
from plimsoll.simulator.world.workload import (
    PlannedPublication,
    ReadingPause,
    SubscriptionChange,
    draw_attributes,
    draw_changes,
    draw_pauses,
    draw_publications,
    draw_subscription,
)

START_SECONDS = 0.8
"""When publications begin: by then most are attached, and some are not."""

MEASURE_SECONDS = 0.5
QUIESCENCE_CHECK_SECONDS = 0.2
QUIET_CHECKS_NEEDED = 2
"""A run has settled when nothing was under way so many times in a row, looked at so often."""

FLOOD_PUBLICATIONS = 600
"""So many publications more has the flooding publisher to say."""

LARGEST_RECORD_BYTES = 2_000

PUBLICATION_SECONDS = (0.0004, 0.0016)
"""What a publication takes for each subscription of an edge, and of a slower one, where a policy balances."""


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """What a run comes to. The digest covers every frame and its time: equal digests are equal runs."""

    scenario: str
    seed: int
    verdict: AuditVerdict
    events: int
    frames: int
    frames_lost: int
    suppressed: int
    faults: dict[str, int]
    handovers: dict[str, int]
    digest: int
    error: str = ""

    @property
    def ok(self) -> bool:
        return self.verdict.ok and not self.error

    @property
    def broken(self) -> set[str]:
        """The laws that were broken; `I0` where a machine has raised."""
        return {*self.verdict.violated, *(["I0"] if self.error else [])}


class SimulationRun:
    """One run. `trace` is called with a line of text for everything that happens.

    It has more than 25 methods because it is the script of a run: each phase (draw, build, disturb, heal, settle,
    check) is one short step over the same world, in the order in which they stand here.
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
        self.network = SimulatedNetwork(self.schedule, self._draw("network"), scenario.connection, scenario.control)
        self.journal = ObservationJournal(self.schedule)
        self.plan = self._draw("plan")
        self.end = START_SECONDS + scenario.load.seconds
        self.victim = self._victim()
        self.fleet = SimulatedFleet(
            scenario.shape, scenario.limits(), self._hardware(), self.schedule, self.network, self.journal,
            self._draw("fleet"), None if scenario.policy is None else scenario.policy.to_spec(),
        )  # fmt: skip
        links = link_limits(self.fleet.heads()[0].config)
        self.apps = SimulatedApplications(
            self.schedule, self.network, self.journal, self._draw("apps"), client_limits(links)
        )
        self._populate()
        self.faults = FaultInjector(
            scenario.fault_rates, self.fleet, self.apps, self.network, self.schedule, self._draw("faults")
        )  # fmt: skip
        self.mediators = self._mediators()
        if trace is not None:
            self._trace_to(trace)

    def _draw(self, what: str) -> random.Random:
        """A source of its own for each part, so that a change in one does not shift the others."""
        return random.Random(f"{self.scenario.name}/{self.seed}/{what}")

    def _trace_to(self, trace: Callable[[str], None]) -> None:
        def stamped(text: str) -> None:
            trace(f"{self.schedule.now:10.6f} {text}")

        self.network.trace = self.journal.trace = stamped

    def _wanted(self, label: str) -> bool:
        """Take a label; False if the run is to do without it."""
        self.labels.append(label)
        return self.only is None or label in self.only

    # -- the plan

    def _victim(self) -> str:
        draw, scenario = self._draw("victim"), self.scenario
        if scenario.victim == "edge":
            return draw.choice([e for h in scenario.shape.heads() for e in scenario.shape.edges_of(h)])
        if scenario.victim == "subscriber":
            return f"s{draw.randrange(scenario.load.subscribers)}"
        return "p0" if scenario.victim else ""

    def _hardware(self) -> dict[str, BrokerHardware]:
        if self.scenario.victim == "edge":
            return {self.victim: BrokerHardware(output_bytes_per_second=4_000)}
        if self.scenario.policy is not None:
            return self._uneven()
        if self.scenario.slow is None:
            return {}
        draw, shape = self._draw("hardware"), self.scenario.shape
        return {
            name: self.scenario.slow
            for head in shape.heads()
            for name in (head, *shape.edges_of(head))
            if draw.random() < 0.5
        }

    def _uneven(self) -> dict[str, BrokerHardware]:
        """Edges that take so long for a publication, for each of their subscriptions; the first takes longer."""
        shape = self.scenario.shape
        quick, slow = (
            BrokerHardware(emulation=HardwareEmulation(per_subscription_seconds=each)) for each in PUBLICATION_SECONDS
        )
        edges = {edge: quick for head in shape.heads() for edge in shape.edges_of(head)}
        return edges | {shape.edges_of(head)[0]: slow for head in shape.heads()}

    def _mediators(self) -> MediatorSuccession:
        """The hand-overs of the run and who asks for them."""
        scenario, draw = self.scenario, self._draw("moves")
        office = self._planning(draw) if scenario.sessions.sessions or scenario.policy else None
        commands = self._commands(draw)
        mediators = MediatorSuccession(self.schedule, self.network, self.journal, draw, office or commands)
        if office is None:
            drawn = [
                aim
                for aim in draw_aimed_faults(commands.moves, scenario.handovers, self._draw("aims"))
                if self._wanted(f"aim{aim.move.number}")
            ]
            AimedFaultInjector(drawn, commands.store, mediators, self.faults)
        return mediators

    def _commands(self, draw: random.Random) -> CommandBackend:
        scenario = self.scenario
        planned = [
            move
            for move in draw_handovers(
                scenario.handovers, scenario.shape, draw, START_SECONDS, scenario.load.seconds * 0.8
            )
            if self._wanted(move.label)
        ]
        healed_at = self.end if scenario.is_rough else 0.0
        names = sorted(name for process in self.apps.processes.values() for name in process.subscribers)
        return CommandBackend(scenario.shape.heads(), planned, names, healed_at, self.journal.add)

    def _planning(self, draw: random.Random) -> SessionBackend:
        scenario = self.scenario
        asked = [
            one
            for one in draw_sessions(
                scenario.sessions, scenario.shape, draw, START_SECONDS, scenario.load.seconds * 0.8
            )
            if self._wanted(one.label)
        ]
        return SessionBackend(self.fleet, asked, self.journal.add, scenario.policy)

    def _populate(self) -> None:
        """Processes at all heads, publishers and subscribers in all processes."""
        scenario, plan, load = self.scenario, self.plan, self.scenario.load
        heads = scenario.shape.heads()
        names = [f"c{i}" for i in range(scenario.processes)]
        for i, name in enumerate(names):
            self.apps.add(name, heads[i % len(heads)])
        for i in range(load.publishers):
            process = self.apps.processes[names[-1 - i % len(names)]]
            process.publishers.append(f"p{i}")
            self.apps.of[f"p{i}"] = process
        for i in range(load.subscribers):
            process = self.apps.processes[names[i % len(names)]]
            zero = plan.random() < load.zero_traffic and i > 0
            process.subscribers[f"s{i}"] = [
                draw_subscription(plan, zero) for _ in range(1 if zero else plan.choice([1, 1, 2]))
            ]
            process.policies[f"s{i}"] = msg.Policy(slow=self._policy(plan))
            self.apps.of[f"s{i}"] = process

    def _policy(self, plan: random.Random) -> str:
        return plan.choice(["", "block", "drop-oldest", "drop-oldest", "disconnect"])

    # -- the course of events

    def go(self) -> RunOutcome:
        """The whole run, and the verdict."""
        publishers = self.draw_plan()
        self._measure()
        self.schedule.run(self.end)
        self.faults.heal()
        self.apps.release()
        self.mediators.restart()
        self._settle(self.scenario.settle_seconds)
        self._publish_last(publishers)
        self._settle(self.scenario.last_seconds)
        return self._judge()

    def draw_plan(self) -> list[str]:
        """Lay everything onto the schedule; returns the publishers."""
        scenario, plan, end = self.scenario, self.plan, self.end
        for name in self.fleet.brokers:
            self.schedule.at(plan.uniform(0, 0.1), self.fleet.start, name)
        for name in self.apps.processes:
            self.schedule.at(plan.uniform(0, 0.4), self.apps.start, name)
        publishers = self._plan_load()
        self._strike_the_victim(START_SECONDS, end)
        self.faults.plan(START_SECONDS / 2, end, self._wanted)
        if scenario.moves:
            self.schedule.at(START_SECONDS / 2, self.mediators.start)
            lives = self._draw("lives")
            self.mediators.plan(scenario.handovers.lives, lives, START_SECONDS, end, self._wanted)
        return publishers

    def _plan_load(self) -> list[str]:
        """What applications do."""
        plan, load, at = self.plan, self.scenario.load, self.schedule.at
        publishers = [f"p{i}" for i in range(load.publishers)]
        subscribers = [f"s{i}" for i in range(load.subscribers)]
        for i, saying in enumerate(draw_publications(load, plan, START_SECONDS, publishers)):
            if self._wanted(f"saying{i}"):
                at(saying.at, self._publish, saying)
        for i, change in enumerate(draw_changes(load, plan, START_SECONDS, subscribers)):
            if self._wanted(f"change{i}"):
                at(change.at, self._change, change)
        for i, hold in enumerate(draw_pauses(load, plan, START_SECONDS, subscribers)):
            if self._wanted(f"hold{i}"):
                self._schedule_pauses(hold)
        return publishers

    def _schedule_pauses(self, hold: ReadingPause) -> None:
        self.schedule.at(hold.at, self.apps.hold, hold.subscriber, True)
        self.schedule.at(min(hold.until, self.end), self.apps.hold, hold.subscriber, False)

    def _settle(self, most_seconds: float) -> None:
        """Let time pass until nothing is under way or left over, or for so long."""
        until, calm = self.schedule.now + most_seconds, 0
        while calm < QUIET_CHECKS_NEEDED and self.schedule.now < until:
            self.schedule.run(self.schedule.now + QUIESCENCE_CHECK_SECONDS)
            calm = calm + 1 if self._is_settled() else 0

    def _is_settled(self) -> bool:
        return (
            self.mediators.office.is_settled()
            and not is_busy(self.fleet, self.apps)
            and next(leftovers(self.fleet, self.apps, 0.0), None) is None
        )

    def _publish(self, saying: PlannedPublication) -> None:
        self.apps.publish(saying, b"x" * self.scenario.load.payload_bytes)

    def _change(self, change: SubscriptionChange) -> None:
        if change.predicates is None:
            self.apps.withdraw(change.subscriber)
        else:
            self.apps.subscribe(change.subscriber, change.predicates)

    def _publish_last(self, publishers: list[str]) -> None:
        for publisher in publishers:
            for _ in range(3):
                self._publish(PlannedPublication(self.schedule.now, publisher, draw_attributes(self.plan), False))

    def _measure(self) -> None:
        """Laws I6 and I4, now and then."""
        at = self.schedule.now
        for broker in self.fleet.brokers.values():
            if broker.host.node is not None:
                for mark in queue_sizes(broker.name, broker.host.node, at, LARGEST_RECORD_BYTES):
                    if mark.value > mark.bound:
                        self.journal.add(mark)
        if self.scenario.moves:
            for one in serving_edges(self.fleet, at):
                self.journal.add(one)
        self.schedule.after(MEASURE_SECONDS, self._measure)

    # -- victims

    def _strike_the_victim(self, start: float, end: float) -> None:
        if self.scenario.victim == "subscriber":
            process = self.apps.of[self.victim]
            if self.plan.random() < 0.5:
                self.schedule.at(start, process.host.pause)
                self.schedule.at(end, process.host.resume)
            else:
                self.schedule.at(start, self.apps.hold, self.victim, True)
                self.schedule.at(end, self.apps.hold, self.victim, False)
        elif self.scenario.victim == "publisher":
            for i in range(FLOOD_PUBLICATIONS):
                at = start + i * (end - start) / FLOOD_PUBLICATIONS
                self.schedule.at(at, self._publish_flood, at)

    def _publish_flood(self, at: float) -> None:
        self._publish(PlannedPublication(at, self.victim, draw_attributes(self.plan), False))

    def _exempt(self) -> list[str]:
        """Whom the claim to be undisturbed is not about."""
        if self.scenario.victim == "edge":
            owned = [
                one.subscriber
                for one in self.journal.all
                if isinstance(one, seen.OwnerObserved) and one.edge == self.victim
            ]
            return sorted(set(owned))
        if self.scenario.victim == "subscriber":
            return sorted(self.apps.of[self.victim].subscribers) + sorted(self.apps.of[self.victim].publishers)
        return [self.victim]

    # -- the end

    def _judge(self) -> RunOutcome:
        for residue in leftovers(self.fleet, self.apps, self.schedule.now):
            self.journal.add(residue)
        self.mediators.leftovers()
        self.apps.finish()
        if self.scenario.is_steady:
            self.journal.add(seen.GapFreeClaim(0.0, []))
        claim = self.scenario.undisturbed_seconds
        if claim:
            self.journal.add(seen.LatencyClaim(START_SECONDS, self.end, claim, self._exempt()))
        return self._outcome(audit_journal(self.journal.all))

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
            handovers=self.mediators.office.counts(),
            digest=self.network.digest,
            error=error,
        )

    def _suppressed(self) -> int:
        """Deliveries that the client library had to hold back because the application had had them."""
        clients = [process.client for process in self.apps.processes.values()]
        return sum(s.stream.duplicates for client in clients if client for s in client.subscribers.values())


def run_seed(
    scenario: str, seed: int, trace: Callable[[str], None] | None = None, only: Collection[str] | None = None
) -> RunOutcome:
    """Run one scenario by name under a seed. A machine that raises is a finding, told with its place."""
    one = SimulationRun(SCENARIOS[scenario], seed, trace, only)
    try:
        return one.go()
    except Exception:  # noqa: BLE001  # any fault is a finding of the run
        return one._outcome(audit_journal([]), traceback.format_exc())
