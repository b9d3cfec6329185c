"""Who is in a run: processes over the heads, and publishers, subscribers and consumers over the processes."""

from __future__ import annotations

import random
from collections.abc import Callable

from plimsoll.core.protocol import messages as msg
from plimsoll.simulator.scenarios.scenario import SimulationScenario
from plimsoll.simulator.world.applications import SimulatedApplications
from plimsoll.simulator.world.consumers import GroupLoad, PlannedChange
from plimsoll.simulator.world.workload import draw_subscription, of_topic

SLOW_POLICIES = ("", "block", "drop-oldest", "drop-oldest", "disconnect")
"""What is to happen to a subscriber that does not keep up."""


class Population:
    """The applications of a scenario. `rng_of`: a generator for each part of the run, by name."""

    def __init__(
        self, scenario: SimulationScenario, apps: SimulatedApplications, rng_of: Callable[[str], random.Random]
    ) -> None:
        self._scenario, self._apps, self._rng_of = scenario, apps, rng_of

    def settle(self, rng: random.Random) -> None:
        """Spread processes over the heads, and publishers and subscribers over the processes."""
        scenario, load, apps = self._scenario, self._scenario.load, self._apps
        heads = scenario.shape.heads()
        names = [f"c{i}" for i in range(scenario.processes)]
        for i, name in enumerate(names):
            apps.add(name, heads[i % len(heads)])
        for i in range(load.publishers):
            process = apps.processes[names[-1 - i % len(names)]]
            process.publishers.append(f"p{i}")
            apps.process_of[f"p{i}"] = process
        for i in range(load.subscribers):
            process = apps.processes[names[i % len(names)]]
            zero = rng.random() < load.zero_traffic and i > 0
            process.subscribers[f"s{i}"] = [
                draw_subscription(rng, zero) for _ in range(1 if zero else rng.choice([1, 1, 2]))
            ]
            if load.topics:
                process.subscribers[f"s{i}"] = [of_topic(one, i % load.topics) for one in process.subscribers[f"s{i}"]]
            process.policies[f"s{i}"] = msg.Policy(slow=rng.choice(SLOW_POLICIES))
            apps.process_of[f"s{i}"] = process
        if scenario.group is not None:
            for i in range(scenario.group.consumers):
                self._add_consumer(f"g{i}", scenario.group)

    def change(self, change: PlannedChange, load: GroupLoad) -> None:
        """Let a consumer join, or leave."""
        if change.joins:
            self._add_consumer(change.consumer, load)
            self._apps.start(change.consumer)
        elif change.consumer in self._apps.processes:
            self._apps.leave(change.consumer)

    def _add_consumer(self, name: str, load: GroupLoad) -> None:
        home = load.home(name, self._scenario.shape.heads())
        self._apps.add_consumer(name, home, load, self._rng_of(f"consumer {name}"))
