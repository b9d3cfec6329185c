"""A head takes over the policy of its cluster while it runs, and its edges hear of it."""

from __future__ import annotations

import json
from typing import Any

from tests.core.fleet import Fleet

from plimsoll.core.protocol import messages as msg

BAD = {"type": "Bad", "bad": {"placement": "Random", "seed": 5}}


def told(fleet: Fleet, policy: dict[str, Any] | None, text: str | None = None) -> None:
    mediator = fleet.mediator("h")
    fleet.run(0.2)
    mediator.say_control(
        "h", msg.ClusterPolicy(("" if policy is None else json.dumps(policy)) if text is None else text)
    )
    fleet.run(0.5)


def placer_name(fleet: Fleet) -> str:
    return type(fleet.head("h").placement.placer).__name__


def test_the_head_places_and_the_edges_detect_by_the_new_policy(balanced: Any):
    fleet = balanced(2)
    edges = [fleet.edge(name) for name in ("e1", "e2")]
    assert placer_name(fleet) == "LeastLoadedPlacer"
    told(fleet, BAD)
    assert placer_name(fleet) == "RandomPlacer"
    assert [edge.balancing_agent.policy.type for edge in edges] == ["Bad", "Bad"]


def test_a_cluster_may_lose_its_policy_and_get_another(balanced: Any):
    fleet = balanced(2)
    told(fleet, None)
    assert fleet.edge("e1").balancing_agent is None
    assert fleet.head("h").load_exchange is None
    fleet.run(1.0)
    told(fleet, {"type": "Padres"})
    assert fleet.edge("e1").balancing_agent.policy.type == "Padres"
    assert fleet.head("h").load_exchange is not None
    fleet.run(1.0)
    assert fleet.edge("e1").balancing_agent.load_monitor.others.keys() == {"e2"}, "loads are exchanged again"


def test_what_cannot_be_read_changes_nothing(balanced: Any):
    fleet = balanced(2)
    agent = fleet.edge("e1").balancing_agent
    odd = [f'{{"type": "Padres", "maxOffload": {number}}}' for number in ("NaN", "Infinity", "1e400", "1" * 5000)]
    texts = ("{", "[1]", json.dumps({"type": "Newer"}), "[" * 20_000, *odd)
    for text in texts:
        told(fleet, None, text)
    assert fleet.head("h").counters["policies_refused"] == len(texts)
    assert fleet.edge("e1").balancing_agent is agent


def test_only_a_mediator_says_it(balanced: Any):
    fleet = balanced(2)
    stranger = fleet.client("c", "h")
    stranger.dial_control("h", "ctl://h")
    stranger.say_control("h", msg.ClusterPolicy(json.dumps(BAD)))
    fleet.run(0.5)
    assert placer_name(fleet) == "LeastLoadedPlacer"
