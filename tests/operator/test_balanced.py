"""Balanced or not, and why nothing is done about it."""

from typing import Any

from tests.operator.world import FLEET, World

from plimsoll.mediator.reports import Seen
from plimsoll.operator.balanced import balanced

POLICY = {"type": "Padres"}


def edge(name: str, load: float, state: str = "OK") -> Seen:
    report = {"input_utilization": load, "state": state}
    return Seen(name, "edge", "east", "small", "", "", "", report_age=1.0, report=report)


def session(name: str = "s", **status: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"source": {"name": "edge-0"}}, "status": status}


def judge(edges: list[Seen], *sessions: dict[str, Any], policy: bool = True) -> tuple[str, str, str]:
    world = World(FLEET)
    if policy:
        world.spec("BrokerCluster", "east", policy=POLICY)
    found = balanced(world.desired().resources, "east", edges, sessions)
    return found.status, found.reason, found.message


def test_nobody_asks_for_relief():
    status, reason, message = judge([edge("edge-0", 0.1), edge("edge-1", 0.3)])
    assert (status, reason) == ("True", "NoTrigger")
    assert "10 and 30 percent" in message


def test_a_session_is_going_on():
    assert judge([edge("edge-0", 0.1)] * 2, session(phase="Cutting"))[:2] == ("False", "Balancing")


def test_the_last_session_says_why_nothing_was_done():
    said = [{"type": "Succeeded", "status": "False", "reason": "NoGain", "message": "no move would help"}]
    ended = session(phase="Rejected", endedAt="2026-01-01T00:00:00Z", conditions=said)
    status, reason, message = judge([edge("edge-0", 0.9, "BUSY"), edge("edge-1", 0.1)], ended)
    assert (status, reason) == ("False", "NoGain")
    assert "no move would help" in message


def test_busy_and_nothing_tried_yet():
    assert judge([edge("edge-0", 0.9, "BUSY"), edge("edge-1", 0.1)])[:2] == ("False", "Overloaded")


def test_what_cannot_be_said():
    assert judge([edge("edge-0", 0.1)] * 2, policy=False)[:2] == ("Unknown", "NoPolicy")
    assert judge([edge("edge-0", 0.1)])[:2] == ("True", "OneEdge")
    silent = Seen("edge-1", "edge", "east", "small", "", "", "")
    assert judge([edge("edge-0", 0.1), silent])[:2] == ("Unknown", "NoReports")
