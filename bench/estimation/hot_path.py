"""The cost of estimation for an edge: its time per publication with a policy and without, in turns of one run.

The edge is the broker's machine between a feeder and its clients, without sockets. With the estimator Ring it samples
each publication; with Press it samples none until a profile is requested. With either policy it also compares loads
at intervals.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from bench.broker.actors import bodies_of
from bench.broker.machines import EdgeRig
from bench.matching.workloads import workload

POLICIES: dict[str, dict[str, Any] | None] = {
    "none": None,
    "ring": {"type": "Padres"},
    "press": {"type": "Padres", "estimation": {"type": "Press"}},
}
TURNS = 9


@dataclass(frozen=True)
class Case:
    """An edge with subscriptions of the paper's mix, spread over links; it gets `per_round` publications at a time."""

    subscriptions: int
    links: int
    per_round: int
    publications: int


CASES = (Case(2000, 100, 1, 400), Case(2000, 100, 64, 1280), Case(50, 50, 1, 2000), Case(50, 50, 64, 6400))


def measured(cases: Sequence[Case] = CASES) -> list[dict[str, Any]]:
    """A row for each case: seconds per publication, the fastest of all turns, and the ratios to no policy."""
    return [_measured(case) for case in cases]


def _measured(case: Case) -> dict[str, Any]:
    load = workload("paper", case.subscriptions)
    texts, bodies = [str(each) for each in load.subscriptions()], bodies_of(load.publications)
    rigs = {name: EdgeRig(texts, bodies, case.links, policy) for name, policy in POLICIES.items()}
    seconds: dict[str, list[float]] = {name: [] for name in rigs}
    for turn in range(TURNS):
        for name in sorted(rigs, reverse=turn % 2 == 1):
            rigs[name].edge_seconds = 0.0
            rigs[name].feed(case.publications, case.per_round)
            seconds[name].append(rigs[name].edge_seconds / case.publications)
    best = {name: min(each) for name, each in seconds.items()}
    deliveries = sum(client.deliveries for client in rigs["none"].clients.values()) / (TURNS * case.publications)
    return {
        "subscriptions": case.subscriptions, "links": case.links, "per_round": case.per_round,
        "deliveries_each": deliveries,
        **{f"{name}_seconds": value for name, value in best.items()},
        **{f"{name}_ratio": best[name] / best["none"] for name in best if name != "none"},
    }  # fmt: skip
