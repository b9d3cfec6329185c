"""An edge whose policy changes keeps what it has measured and promised."""

from __future__ import annotations

import json
from typing import Any

from tests.core.fleet import Publishing, resume

from plimsoll.core.edge.balancing.agent import BalancingAgent
from plimsoll.core.edge.balancing.policy_change import agent_after

PADRES: dict[str, Any] = {"type": "Padres"}


def ring_width(agent: BalancingAgent) -> int:
    """The samples that it keeps of each publisher, once it has begun."""
    agent.begin()
    return 0 if agent.ring is None else agent.ring.width


def test_the_same_policy_keeps_the_same_agent(balanced: Any):
    edge = balanced(2).edge("e1")
    assert agent_after(edge, edge.config, edge.balancing_agent, json.dumps(PADRES)) is edge.balancing_agent


def test_samples_the_reservation_and_the_loads_stay(balanced: Any):
    fleet = balanced(2)
    edge = fleet.edge("e1")
    client = fleet.client("c", "h", "e1")
    client.tell("e1", resume(1, "s", "[n,>,0]"))
    publishing = Publishing(client, "h", "one", 1)
    fleet.run(0.5)
    for _ in range(5):
        publishing.publish(n=1)
        fleet.run(0.1)
    old = edge.balancing_agent
    assert old is not None
    assert old.ring is not None
    assert len(old.ring) == 5
    old.load_monitor.reservation.session = "3.1"
    new = agent_after(edge, edge.config, old, json.dumps({"type": "Bad"}))
    assert new is not None
    assert new is not old
    assert new.ring is old.ring
    assert new.state == "BUSY"
    assert new.load_monitor.others.keys() == {"e2"}
    new.begin()
    assert new.ring is old.ring, "sampling goes on with the same samples"


def test_samples_that_are_taken_in_another_way_begin_anew(balanced: Any):
    edge = balanced(2).edge("e1")
    wider = {**PADRES, "estimation": {"ring": {"samples": 8}}}
    new = agent_after(edge, edge.config, edge.balancing_agent, json.dumps(wider))
    assert new is not None
    assert (new.ring is None, ring_width(new)) == (True, 8)


def test_a_text_that_cannot_be_read_changes_nothing(balanced: Any):
    edge = balanced(2).edge("e1")
    odd = [f'{{"type": "Padres", "maxOffload": {number}}}' for number in ("NaN", "Infinity", "1e400", "1" * 5000)]
    texts = ("{", "[1]", '{"type": "Newer"}', "[" * 20_000, *odd)
    for text in texts:
        assert agent_after(edge, edge.config, edge.balancing_agent, text) is edge.balancing_agent
    assert edge.counters["policies_refused"] == len(texts)


def test_without_a_policy_there_is_no_agent(balanced: Any):
    edge = balanced(2).edge("e1")
    assert agent_after(edge, edge.config, edge.balancing_agent, "") is None
    again = agent_after(edge, edge.config, None, json.dumps(PADRES))
    assert again is not None
    assert again.policy.type == "Padres"


def test_under_a_policy_that_plans_for_the_cluster_no_edge_triggers(balanced: Any):
    fleet = balanced(2, policy={"type": "Bad"}, seconds_each=0.05)
    client = fleet.client("c", "h", "e1")
    client.tell("e1", *(resume(number, f"s{number}", "[n,>,0]") for number in range(1, 5)))
    mediator = fleet.mediator("h")
    fleet.run(0.5)
    publishing = Publishing(client, "h", "one", 1)
    fleet.run(0.5)
    agent = fleet.edge("e1").balancing_agent
    assert agent is not None
    seen = []
    for _ in range(40):
        publishing.publish(n=1)
        fleet.run(0.05)
        seen.append(agent.load_monitor.own[-1].input_utilization)
    assert max(seen) > 1.0
    assert agent.state == "OK"
    assert [said for said in mediator.heard["h"] if type(said).__name__ == "Trigger"] == []
