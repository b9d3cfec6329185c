"""One run: a scenario under a seed, from the first process to the verdict.

A run starts a fleet and applications, lets them speak while faults happen, heals everything, lets time pass until
nothing can be under way any more, lets every publisher speak once more, and asks the laws. So what is still missing
then is lost, and what is still held then is left over.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from plimsoll.core import client as c
from plimsoll.core import records as r
from plimsoll.core.config import Hardware
from plimsoll.core.edge import Edge
from plimsoll.core.head import Head
from plimsoll.core.node import link_limits
from plimsoll.core.verify import Verdict, audit
from plimsoll.core.verify import observations as seen
from plimsoll.simulator.apps import Apps, client_limits
from plimsoll.simulator.bounds import marks
from plimsoll.simulator.faults import Faults
from plimsoll.simulator.fleet import Fleet, Journal
from plimsoll.simulator.network import Network
from plimsoll.simulator.scenarios import SCENARIOS, Scenario
from plimsoll.simulator.schedule import Schedule
from plimsoll.simulator.workload import Change, Saying, attributes, changes, sayings, subscription

START_SECONDS = 0.8
"""When publications begin: by then most are attached, and some are not."""

MEASURE_SECONDS = 0.5
FLOOD = 600
"""So many publications more has the flooding publisher to say."""

LARGEST_RECORD_BYTES = 2_000


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run comes to. The digest covers every frame and its time: equal digests are equal runs."""

    scenario: str
    seed: int
    verdict: Verdict
    events: int
    frames: int
    frames_lost: int
    suppressed: int
    faults: dict[str, int]
    digest: int

    @property
    def ok(self) -> bool:
        return self.verdict.ok


class Run:
    """One run. `trace` is called with a line of text for everything that happens."""

    def __init__(self, scenario: Scenario, seed: int, trace: Callable[[str], None] | None = None) -> None:
        self.scenario, self.seed = scenario, seed
        self.schedule = Schedule()
        self.network = Network(self.schedule, self._draw("network"), scenario.weather)
        self.journal = Journal(self.schedule)
        self.plan = self._draw("plan")
        limits = scenario.limits()
        shape = scenario.shape
        self.victim = self._victim()
        hardware = {self.victim: Hardware(output_bytes_per_second=4_000)} if scenario.victim == "edge" else {}
        self.fleet = Fleet(shape, limits, hardware, self.schedule, self.network, self.journal, self._draw("fleet"))
        links = link_limits(self.fleet.heads()[0].config)
        self.apps = Apps(self.schedule, self.network, self.journal, self._draw("apps"), client_limits(links))
        self._populate()
        self.faults = Faults(
            scenario.chances, self.fleet, self.apps, self.network, self.schedule, self._draw("faults")
        )  # fmt: skip
        if trace is not None:
            self._trace_to(trace)

    def _draw(self, what: str) -> random.Random:
        """A source of its own for each part, so that a change in one does not shift the others."""
        return random.Random(f"{self.scenario.name}/{self.seed}/{what}")

    def _trace_to(self, trace: Callable[[str], None]) -> None:
        def stamped(text: str) -> None:
            trace(f"{self.schedule.now:10.6f} {text}")

        self.network.trace = self.journal.trace = stamped

    # -- the plan

    def _victim(self) -> str:
        draw, scenario = self._draw("victim"), self.scenario
        if scenario.victim == "edge":
            return draw.choice([e for h in scenario.shape.heads() for e in scenario.shape.edges_of(h)])
        if scenario.victim == "subscriber":
            return f"s{draw.randrange(scenario.load.subscribers)}"
        return "p0" if scenario.victim else ""

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
                subscription(plan, zero) for _ in range(1 if zero else plan.choice([1, 1, 2]))
            ]
            process.policies[f"s{i}"] = r.Policy(slow=self._policy(plan))
            self.apps.of[f"s{i}"] = process

    def _policy(self, plan: random.Random) -> str:
        return plan.choice(["", "block", "drop-oldest", "drop-oldest", "disconnect"])

    # -- the course of events

    def go(self) -> Outcome:
        scenario, plan, load = self.scenario, self.plan, self.scenario.load
        for name in self.fleet.brokers:
            self.schedule.at(plan.uniform(0, 0.1), self.fleet.start, name)
        for name in self.apps.processes:
            self.schedule.at(plan.uniform(0, 0.4), self.apps.start, name)
        end = START_SECONDS + load.seconds
        publishers = [f"p{i}" for i in range(load.publishers)]
        subscribers = [f"s{i}" for i in range(load.subscribers)]
        for saying in sayings(load, plan, START_SECONDS, publishers):
            self.schedule.at(saying.at, self._publish, saying)
        for change in changes(load, plan, START_SECONDS, subscribers):
            self.schedule.at(change.at, self._change, change)
        self._strike_the_victim(START_SECONDS, end)
        self.faults.plan(START_SECONDS / 2, end)
        self._measure(end + scenario.settle_seconds)
        self.schedule.run(end)
        self.faults.heal()
        self.schedule.run(end + scenario.settle_seconds)
        self._speak_once_more(publishers)
        self.schedule.run(self.schedule.now + scenario.last_seconds)
        return self._judge()

    def _publish(self, saying: Saying) -> None:
        self.apps.publish(saying, b"x" * self.scenario.load.payload_bytes)

    def _change(self, change: Change) -> None:
        if change.predicates is None:
            self.apps.withdraw(change.subscriber)
        else:
            self.apps.subscribe(change.subscriber, change.predicates)

    def _speak_once_more(self, publishers: list[str]) -> None:
        for publisher in publishers:
            for _ in range(3):
                self._publish(Saying(self.schedule.now, publisher, attributes(self.plan), False))

    def _measure(self, until: float) -> None:
        """Law I6, now and then."""
        at = self.schedule.now
        for broker in self.fleet.brokers.values():
            if broker.host.node is not None:
                for mark in marks(broker.name, broker.host.node, at, LARGEST_RECORD_BYTES):
                    if mark.value > mark.bound:
                        self.journal.see(mark)
        if at < until:
            self.schedule.after(MEASURE_SECONDS, self._measure, until)

    # -- victims

    def _strike_the_victim(self, start: float, end: float) -> None:
        if self.scenario.victim == "subscriber":
            process = self.apps.of[self.victim]
            if self.plan.random() < 0.5:
                self.schedule.at(start, process.host.pause)
                self.schedule.at(end, process.host.go_on)
            else:
                self.schedule.at(start, self._hold, True)
                self.schedule.at(end, self._hold, False)
        elif self.scenario.victim == "publisher":
            for i in range(FLOOD):
                at = start + i * (end - start) / FLOOD
                self.schedule.at(at, self._publish_flood, at)

    def _hold(self, hold: bool) -> None:
        process = self.apps.of[self.victim]
        if process.client is not None and (subscriber := process.client.subscribers.get(self.victim)) is not None:
            subscriber.pause() if hold else subscriber.resume()
            process.host.wake()

    def _publish_flood(self, at: float) -> None:
        self._publish(Saying(at, self.victim, attributes(self.plan), False))

    def _exempt(self) -> list[str]:
        """Whom the claim to be undisturbed is not about."""
        if self.scenario.victim == "edge":
            owned = [
                one.subscriber for one in self.journal.all if isinstance(one, seen.Owned) and one.edge == self.victim
            ]
            return sorted(set(owned))
        if self.scenario.victim == "subscriber":
            return sorted(self.apps.of[self.victim].subscribers) + sorted(self.apps.of[self.victim].publishers)
        return [self.victim]

    # -- the end

    def _judge(self) -> Outcome:
        self._look_for_leftovers()
        self.apps.finish()
        claim = self.scenario.undisturbed_seconds
        if claim:
            end = START_SECONDS + self.scenario.load.seconds
            self.journal.see(seen.Undisturbed(START_SECONDS, end, claim, self._exempt()))
        return Outcome(
            scenario=self.scenario.name,
            seed=self.seed,
            verdict=audit(self.journal.all),
            events=self.schedule.events,
            frames=self.network.frames,
            frames_lost=self.network.lost,
            suppressed=self._suppressed(),
            faults=dict(sorted(self.faults.happened.items())),
            digest=self.network.digest,
        )

    def _suppressed(self) -> int:
        """Deliveries that the client library had to hold back because the application had had them."""
        clients = [process.client for process in self.apps.processes.values()]
        return sum(s.duplicates for client in clients if client for s in client.subscribers.values())

    def _look_for_leftovers(self) -> None:
        """Law I5: everything healed long ago, so whoever lives is served by one edge, and nothing else is kept."""
        now, see = self.schedule.now, self.journal.see
        homes: dict[str, int] = {}
        for process in self.apps.processes.values():
            client = process.client
            if client is None:
                continue
            for name, subscriber in client.subscribers.items():
                homes[process.head] = homes.get(process.head, 0) + 1
                live = subscriber.current is not None and subscriber.current.state is c.attachment.State.LIVE
                if not live:
                    see(seen.Residue(name, f"subscriber not served, {subscriber.phase.value}", 1, now))
                if not subscriber.is_settled:
                    see(seen.Residue(name, "subscriptions that were never acknowledged", 1, now))
        for broker in self.fleet.brokers.values():
            node = broker.host.node
            if isinstance(node, Head):
                extra = len(node.owners.entries) - homes.get(broker.name, 0)
                see(seen.Residue(broker.name, "owner entries too many or too few", abs(extra), now))
                see(seen.Residue(broker.name, "unreported edges or neighbours", len(node.missing), now))
            elif isinstance(node, Edge):
                states = [a.state.value for a in node.records.values() if a.state.value != "live"]
                see(seen.Residue(broker.name, f"records that are not live: {states}", len(states), now))


def run(scenario: str, seed: int, trace: Callable[[str], None] | None = None) -> Outcome:
    """Run one scenario by name under a seed."""
    return Run(SCENARIOS[scenario], seed, trace).go()
