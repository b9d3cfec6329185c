"""An arm of BAD's simulation at the level of messages: publications, subscribers and back-end subscriptions, counted.

10,000 subscribers with 200,000 front-end subscriptions need no event for each delivery: what a broker takes in and
sends in an interval follows exactly from the bytes that each back-end subscription published in it, and from how many
of the broker's subscribers ask for that. Placers and policy are the product's own, and hear those loads. Sessions and
hand-overs are not modelled: a plan is carried out by the next interval, and no look is taken while loads settle.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Iterable, Mapping
from typing import Final

from plimsoll.core.policies.bad import Bad
from plimsoll.core.policies.bad.imbalance import Imbalance
from plimsoll.core.policies.model.load import BrokerLoad
from plimsoll.core.policies.model.profile import ProfileRow, SubscriptionProfile
from plimsoll.core.policies.model.traffic import SampleBlock, SampledTraffic
from plimsoll.core.policies.placement import PlacementTarget, PlacementUnit
from plimsoll.core.policies.rebalancer import FleetLook, FleetSample, Memory, RebalancingPlan, fleet_plan
from plimsoll.core.policies.registry import placer_of_spec, rebalancer_of_spec
from plimsoll.core.spec.parser import parse_block
from plimsoll.core.spec.types.policy import PolicySpec
from plimsoll.experiments.bad.arm import ArmRun, BadArm, LoadPoint
from plimsoll.experiments.bad.channels import ChannelSubscriber, ChannelWorld

RATE_INTERVALS: Final = 60
"""A rate is counted over this many intervals, or since the beginning: 600 s, as the product's ring does."""


class CountedFleet:
    """The brokers of one arm. `asked`: for each broker, how many of its subscribers ask for each text."""

    def __init__(self, world: ChannelWorld, arm: BadArm, seed: int) -> None:
        spec = parse_block(PolicySpec, arm.policy(seed))
        policy = rebalancer_of_spec(spec)
        if not isinstance(policy, Bad):
            raise ValueError(f"the arm {arm.name} has another policy than Bad; give it one of that type")
        self.world, self.arm, self.policy = world, arm, policy
        self.interval, self.settle_seconds = policy.interval_seconds, spec.detection.stabilize_for.seconds
        self.placer = placer_of_spec(spec)
        self.ports = [PlacementTarget(name, location=at) for name, at in world.brokers.items()]
        self.texts = {one: one.text for one in world.results}
        self.asked: dict[str, Counter[str]] = {name: Counter() for name in world.brokers}
        self.homes: dict[str, str] = {}
        self.wishes: dict[str, tuple[str, ...]] = {}
        self.published: deque[Mapping[str, int]] = deque(maxlen=RATE_INTERVALS)
        self._joining = deque(sorted(world.subscribers, key=lambda each: (each.joins_at, each.name)))
        self._memory: Memory = {}
        self._rests_until = 0.0
        self.points: list[LoadPoint] = []
        self.moved = self.plans = 0

    def run(self) -> None:
        """All intervals, to the end of the world's time."""
        for published in bytes_by_interval(self.world, self.interval):
            now = (len(self.points) + 1) * self.interval
            self._join(now - self.interval)
            self.published.append(published)
            loads = self._loads()
            self._look(loads, now)
            self._note(loads, now)

    def _join(self, until: float) -> None:
        while self._joining and self._joining[0].joins_at <= until:
            one = self._joining.popleft()
            port = self.placer.place(PlacementUnit(number=len(self.homes), location=one.location), self.ports)
            if port is None:
                raise ValueError(f"there is no broker for {one.name}; the world needs one")
            self._attach(one, port.name)

    def _attach(self, one: ChannelSubscriber, broker: str) -> None:
        self.homes[one.name] = broker
        self.wishes[one.name] = tuple(each.text for each in one.parameters)
        self.asked[broker].update(self.wishes[one.name])

    # -- loads

    def _note(self, measured: tuple[BrokerLoad, ...], now: float) -> None:
        loads = {load.name: self.policy.measured(load) for load in measured}
        self.points.append(LoadPoint(now, max(loads.values()), Imbalance.of(loads.values()).cov, self.moved, loads))

    def _loads(self) -> tuple[BrokerLoad, ...]:
        """F = I + O of the last interval: each back-end subscription comes in once, and goes out to all that ask."""
        found = []
        for name, asked in sorted(self.asked.items()):
            incoming = sum(size for text, size in self.published[-1].items() if asked[text])
            outgoing = sum(size * asked[text] for text, size in self.published[-1].items())
            found.append(BrokerLoad(
                name=name, input_bytes_per_second=incoming / self.interval,
                output_bytes_per_second=outgoing / self.interval, subscribers=0,
            ))  # fmt: skip
        return tuple(found)

    # -- balancing

    def _look(self, loads: tuple[BrokerLoad, ...], now: float) -> None:
        if now < self._rests_until:
            return
        self._memory = self.policy.observe(self._memory, FleetLook(loads, now))
        if self.policy.wanted(self._memory):
            self.plans += 1
            self._carry_out(self.plan())
            self._memory, self._rests_until = {}, now + self.settle_seconds

    def plan(self) -> RebalancingPlan:
        """What the policy would move now."""
        return fleet_plan(self.policy, self.sample(), self._memory)

    def sample(self) -> FleetSample:
        """What the mediator would learn: every subscriber with its back-end subscriptions, and their rates."""
        seconds = len(self.published) * self.interval
        totals: Counter[str] = Counter()
        for published in self.published:
            totals.update(published)
        texts = sorted(self.texts.values())
        bits = {text: 1 << number for number, text in enumerate(texts)}
        traffic = SampledTraffic(SampleBlock(1, 1.0 / seconds, float(totals[text])) for text in texts)
        rows: dict[str, list[ProfileRow]] = {name: [] for name in self.asked}
        for name, broker in self.homes.items():
            wish = self.wishes[name]
            rows[broker].append(ProfileRow(name, sum(bits[text] for text in wish), (name,), len(wish), wish))
        each = tuple((text, bits[text]) for text in texts)
        profiles = {name: SubscriptionProfile(traffic, tuple(some), each=each) for name, some in rows.items()}
        return FleetSample(self._loads(), profiles, {})

    def _carry_out(self, plan: RebalancingPlan) -> None:
        for move in plan.moves:
            for name in move.subscribers:
                self.asked[move.source].subtract(self.wishes[name])
                self.asked[move.target].update(self.wishes[name])
                self.homes[name] = move.target
                self.moved += 1


def bytes_by_interval(world: ChannelWorld, interval: float) -> Iterable[Mapping[str, int]]:
    """For each interval, the bytes that each back-end subscription publishes in it."""
    found: list[Counter[str]] = [Counter() for _ in range(int(world.seconds / interval))]
    for parameters, results in world.results.items():
        text = parameters.text
        for at, size in zip(results.times, results.sizes, strict=True):
            if (number := int(at / interval)) < len(found):
                found[number][text] += size
    return found


def run_counted(world: ChannelWorld, arm: BadArm, seed: int) -> ArmRun:
    """Run one arm to the end of the world's time."""
    began = time.process_time()
    fleet = CountedFleet(world, arm, seed)
    fleet.run()
    published = sum(len(each.times) for each in world.results.values())
    return ArmRun(
        arm, fleet.points, fleet.moved, fleet.plans, published, None, time.process_time() - began
    )  # fmt: skip
