"""The laws of a scenario beside those that every run is held to: of its policy, its sessions and its consumer group."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from plimsoll.core.verify import observations as seen
from plimsoll.simulator.checks.bundle_laws import BundleLaws
from plimsoll.simulator.checks.group_laws import GroupLaws
from plimsoll.simulator.checks.head_laws import HeadLaws
from plimsoll.simulator.checks.topic_laws import TopicLaws
from plimsoll.simulator.mediators.session_mediator import SessionBackend
from plimsoll.simulator.mediators.succession import MediatorBackend
from plimsoll.simulator.scenarios.scenario import SimulationScenario
from plimsoll.simulator.world.applications import SimulatedApplications
from plimsoll.simulator.world.brokers import SimulatedFleet
from plimsoll.simulator.world.consumers import GROUP, GROUP_ATTRIBUTE


class ScenarioLaws:
    """`bundles`, `topics`, `heads`, `group`: None if the scenario has nothing that they are about."""

    def __init__(
        self,
        scenario: SimulationScenario,
        fleet: SimulatedFleet,
        apps: SimulatedApplications,
        backend: MediatorBackend,
        observe: Callable[[seen.Observation], None],
    ) -> None:
        self.bundles: BundleLaws | None = None
        self.topics: TopicLaws | None = None
        self.heads: HeadLaws | None = None
        self.group: GroupLaws | None = None
        if scenario.policy is not None and isinstance(backend, SessionBackend):
            if scenario.policy.pulsar is not None:
                self.bundles = BundleLaws(fleet, backend.memory_of, observe)
            if (deadlines := scenario.policy.deadlines) is not None:
                self.topics = TopicLaws(fleet, backend.plans, is_disturbed=scenario.is_disturbed)
                if deadlines.heads is not None:
                    self.heads = HeadLaws(backend.sessions, deadlines.heads.lower)
        if scenario.group is not None:
            observe(seen.GroupObserved(GROUP, scenario.group.slices, GROUP_ATTRIBUTE, 0.0))
            self.group = GroupLaws(fleet, scenario.shape.heads()[0], apps.consumers.values, observe)

    def measure(self, at: float) -> None:
        """Report what breaks a law that holds at all times."""
        for laws in (self.bundles, self.group):
            if laws is not None:
                laws.measure(at)

    def are_settled(self) -> bool:
        """Whether all that has to settle has settled."""
        laws = (self.bundles, self.topics, self.group)
        return all(next(each.leftovers(0.0), None) is None for each in laws if each is not None)

    def leftovers(self, at: float) -> Iterator[seen.ResidueObserved]:
        """What is left over at the end."""
        for laws in (self.bundles, self.topics, self.heads, self.group):
            if laws is not None:
                yield from laws.leftovers(at)
