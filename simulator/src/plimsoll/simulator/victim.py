"""What a scenario singles out: a slow edge, a frozen subscriber or a flooding publisher. The others must not notice."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable

from plimsoll.core.config import BrokerHardware
from plimsoll.core.verify import Observation
from plimsoll.core.verify import observations as seen
from plimsoll.simulator.engine.event_queue import EventQueue
from plimsoll.simulator.scenarios.scenario import SimulationScenario
from plimsoll.simulator.world.applications import SimulatedApplications
from plimsoll.simulator.world.workload import PlannedPublication, draw_attributes

FLOOD_PUBLICATIONS = 600
"""Publications of the flooding publisher, besides those of the workload."""


class Victim:
    """`name`: the name of the edge, subscriber or publisher; empty where a scenario singles out none."""

    def __init__(self, scenario: SimulationScenario, rng: random.Random) -> None:
        self.kind, self.name = scenario.victim, ""
        if self.kind == "edge":
            self.name = rng.choice([e for h in scenario.shape.heads() for e in scenario.shape.edges_of(h)])
        elif self.kind == "subscriber":
            self.name = f"s{rng.randrange(scenario.load.subscribers)}"
        elif self.kind:
            self.name = "p0"

    def hardware(self) -> dict[str, BrokerHardware]:
        """Of a slow edge."""
        return {self.name: BrokerHardware(output_bytes_per_second=4_000)} if self.kind == "edge" else {}

    def plan(
        self,
        schedule: EventQueue,
        apps: SimulatedApplications,
        publish: Callable[[PlannedPublication], None],
        rng: random.Random,
        start: float,
        end: float,
    ) -> None:
        """Schedule its faults."""
        if self.kind == "subscriber":
            process = apps.process_of[self.name]
            if rng.random() < 0.5:
                schedule.at(start, process.host.pause)
                schedule.at(end, process.host.resume)
            else:
                schedule.at(start, apps.set_paused, self.name, True)
                schedule.at(end, apps.set_paused, self.name, False)
        elif self.kind == "publisher":

            def flood(at: float) -> None:
                publish(PlannedPublication(at, self.name, draw_attributes(rng), False))

            for i in range(FLOOD_PUBLICATIONS):
                at = start + i * (end - start) / FLOOD_PUBLICATIONS
                schedule.at(at, flood, at)

    def exempt(self, apps: SimulatedApplications, observed: Iterable[Observation]) -> list[str]:
        """Subscribers and publishers that share a fate with the victim, so that law I7 does not cover them."""
        if self.kind == "edge":
            owned = [
                one.subscriber for one in observed if isinstance(one, seen.OwnerObserved) and one.edge == self.name
            ]
            return sorted(set(owned))
        if self.kind == "subscriber":
            process = apps.process_of[self.name]
            return sorted(process.subscribers) + sorted(process.publishers)
        return [self.name]
