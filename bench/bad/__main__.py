"""BAD's policy over a fleet of the size of its simulation (DEBS 2019): `python -m bench.bad`.

Ten brokers, 10,000 subscribers with 10 to 30 of 1,000 back-end subscriptions each, of ten channels that differ in rate.
Subscribers gather around three places on a plane and are placed by each placer; then each scheme plans once. It prints
the highest F, cov, the share of subscribers that move, and what a plan takes. Only the decisions run, no brokers.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Iterator

from plimsoll.core.policies.bad import Bad
from plimsoll.core.policies.bad.imbalance import Imbalance
from plimsoll.core.policies.bad.placers import NearestPlacer, RandomPlacer, RoundRobinPlacer
from plimsoll.core.policies.model.load import BrokerLoad
from plimsoll.core.policies.model.profile import ProfileRow, SubscriptionProfile
from plimsoll.core.policies.model.traffic import SampleBlock, SampledTraffic
from plimsoll.core.policies.placement import PlacementTarget, PlacementUnit, Placer
from plimsoll.core.policies.rebalancer import FleetSample, fleet_plan
from plimsoll.core.verify.bad_plan_checker import BadPlanContext, bad_plan_faults

BROKERS, SUBSCRIBERS, CHANNELS, SUBSCRIPTIONS = 10, 10_000, 10, 1_000
PLACES = ((0.2, 0.3), (0.7, 0.8), (0.8, 0.2))
PLACERS: dict[str, Placer] = {"nearest": NearestPlacer(), "random": RandomPlacer(1), "round robin": RoundRobinPlacer()}
SCHEMES = {
    "LDM": Bad(shuffle="None", rules="Paper"),
    "SDM": Bad(shuffle="None", migration="SimilarityBased", rules="Paper"),
    "shuffle": Bad(gamma=0.15, migration="None", rules="Paper"),
    "multistage": Bad(rules="Paper"),
    "multistage, ours": Bad(),
}


def wishes(drawn: random.Random) -> list[tuple[int, ...]]:
    """The back-end subscriptions of each subscriber."""
    return [tuple(sorted(drawn.sample(range(SUBSCRIPTIONS), drawn.randint(10, 30)))) for _ in range(SUBSCRIBERS)]


def placed(placer: Placer, drawn: random.Random) -> Iterator[str]:
    """The broker of each subscriber."""
    ports = [PlacementTarget(f"b{number}", location=(drawn.random(), drawn.random())) for number in range(BROKERS)]
    for number in range(SUBSCRIBERS):
        x, y = drawn.choice(PLACES)
        at = drawn.gauss(x, 0.12), drawn.gauss(y, 0.12)
        port = placer.place(PlacementUnit(number=number, location=at), ports)
        yield "" if port is None else port.name


def sample(placer: Placer, seed: int) -> FleetSample:
    """What the mediator would learn of the fleet."""
    drawn = random.Random(seed)
    rates = [10.0 * (1 + number % CHANNELS) for number in range(SUBSCRIPTIONS)]
    traffic = SampledTraffic(SampleBlock(1, rate / 450.0, 450.0) for rate in rates)
    wanted, where = wishes(drawn), list(placed(placer, drawn))
    texts = [f"[k,=,{number}]" for number in range(SUBSCRIPTIONS)]
    each = tuple((text, 1 << number) for number, text in enumerate(texts))
    rows: dict[str, list[ProfileRow]] = {f"b{number}": [] for number in range(BROKERS)}
    for number, (broker, wish) in enumerate(zip(where, wanted, strict=True)):
        bits = sum(1 << one for one in wish)
        rows[broker].append(ProfileRow(str(wish), bits, (f"s{number}",), len(wish), tuple(texts[one] for one in wish)))
    loads = tuple(BrokerLoad(name=name, subscribers=len(some)) for name, some in rows.items())
    profiles = {name: SubscriptionProfile(traffic, tuple(some), each=each) for name, some in rows.items()}
    return FleetSample(loads, profiles, {})


def figures(policy: Bad, given: FleetSample, moved: dict[str, str]) -> tuple[float, float]:
    """The highest F in kB/s, and cov, with some subscribers elsewhere."""
    fleet = policy.fleet(given)
    homes = {name: broker for broker, at in fleet.brokers.items() for name in at.subscribers} | moved
    people = {name: one for at in fleet.brokers.values() for name, one in at.subscribers.items()}
    loads = [
        broker.minus(broker.subscribers).plus(people[name] for name, home in homes.items() if home == broker.name).load
        for broker in fleet.brokers.values()
    ]
    return max(loads) / 1000.0, Imbalance.of(loads).cov


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seed", type=int, default=1)
    seed = options.parse_args().seed
    print(f"{'placement':12} {'scheme':11} {'max F kB/s':>11} {'cov':>6} {'moves':>6} {'seconds':>8}")
    for name, placer in PLACERS.items():
        given = sample(placer, seed)
        highest, cov = figures(Bad(), given, {})
        print(f"{name:12} {'nothing':11} {highest:11.0f} {cov:6.3f} {0:6} {0.0:8.2f}", flush=True)
        for scheme, policy in SCHEMES.items():
            began = time.perf_counter()
            plan = fleet_plan(policy, given, {})
            took = time.perf_counter() - began
            moved = {one: move.target for move in plan.moves for one in move.subscribers}
            known = BadPlanContext(given.profiles, set(given.profiles), dict.fromkeys(given.profiles, 1.0))
            if faults := bad_plan_faults(plan, known):
                raise SystemExit(f"{name}, {scheme}: {faults[:3]}")
            highest, cov = figures(policy, given, moved)
            print(f"{name:12} {scheme:11} {highest:11.0f} {cov:6.3f} {len(moved):6} {took:8.2f}", flush=True)


if __name__ == "__main__":
    main()
