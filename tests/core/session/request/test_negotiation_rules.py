"""Offers rule by rule: what is offered to which edge, for which load, and for how long loads are waited for."""

from __future__ import annotations

from typing import Any

import pytest
from tests.core.session.made import context_of, fleet, request, session

from plimsoll.core.policies.model.load import BrokerLoad
from plimsoll.core.policies.model.plan import BrokerAction
from plimsoll.core.session import FleetView
from plimsoll.core.session.context.engine_context import EngineContext
from plimsoll.core.session.request import negotiation
from plimsoll.core.session.session_plan import Offer


def load(name: str, **fields: Any) -> BrokerLoad:
    return BrokerLoad(name=name, cluster="east", **fields)


def context_with(**utilizations: float) -> EngineContext:
    """Edges with this output utilisation, by name."""
    reports = {
        name: {"report": {"broker": name, "cluster": "east", "state": "OK", "output_utilization": share}}
        for name, share in utilizations.items()
    }
    return context_of(view=fleet(**reports))


def actions(own: BrokerLoad, *others: BrokerLoad, **fields: Any) -> list[BrokerAction]:
    policy = context_of().loads.policy_of("a")
    assert policy is not None
    return negotiation._action_list(
        request("s", source="a", **fields), own, {each.name: each for each in others}, policy
    )


def test_what_is_asked_for_is_offered_as_it_is():
    wanted = [
        {"name": "b", "metric": "Output", "difference": "300m", "overloaded": ["Cpu", "Output"]},
        {"name": "c", "metric": "Match", "difference": "2"},
    ]
    assert actions(load("a"), load("b"), candidates=wanted) == [
        BrokerAction("b", "output", 0.3, ("output", "cpu")),
        BrokerAction("c", "match", 2.0),
    ]


def test_without_a_list_detection_says_what_wants_relief():
    found = actions(load("a", output_utilization=0.99), load("b", output_utilization=0.1), load("c"))
    assert {each.target for each in found} == {"b", "c"}
    assert all(each.overloaded == ("output",) for each in found)


def test_where_no_trigger_is_reached_the_larger_difference_comes_first():
    own = load("a", input_utilization=0.30, output_utilization=0.30)
    found = actions(own, load("b", input_utilization=0.30, output_utilization=0.28),
                    load("c", input_utilization=0.27, output_utilization=0.31))  # fmt: skip
    assert [(each.target, each.metric) for each in found] == [("c", "input"), ("b", "output")]
    assert [each.difference for each in found] == pytest.approx([0.03, 0.02])
    assert not any(each.overloaded for each in found)


def test_a_difference_that_a_session_would_not_balance_is_not_offered():
    policy = context_of().loads.policy_of("a")
    assert policy is not None
    least = policy.parameters.balance_threshold
    own = load("a", output_utilization=least)
    assert negotiation._actions_by_difference(own, {"b": load("b")}, policy) == []
    above = load("a", output_utilization=2 * least)
    assert [each.target for each in negotiation._actions_by_difference(above, {"b": load("b")}, policy)] == ["b"]


def test_an_offer_has_its_difference_in_four_digits():
    context = context_with(a=0.5, b=0.123456, c=0.5)
    negotiating = session("s", phase="Negotiating", sources=["a"], kind="balance", phase_at=100.0)
    after = negotiation.step_negotiating(context, request("s", source="a"), negotiating)
    assert [(each.edge, each.metric, each.difference) for each in after.offers] == [("b", "output", 0.3765)]


@pytest.mark.parametrize("deadline", [1e9, 107.0])
def test_loads_are_waited_for_as_long_as_a_negotiation_may_take(deadline: float):
    context = context_with()
    until = min(100.0 + context.timings.negotiate, deadline)
    negotiating = session("s", phase="Negotiating", sources=["a"], kind="balance", phase_at=100.0, deadline_at=deadline)
    for now, phase in ((until - 0.01, "Negotiating"), (until, "Rejected")):
        context.outbox.now = context.fleet_observed_at = now
        after = negotiation.step_negotiating(context, request("s", source="a"), negotiating)
        assert (after.phase, after.reason) == (phase, "NoLoad")
    assert after.may_retry


@pytest.mark.parametrize("deadline", [1e9, 101.0])
def test_an_edge_that_is_asked_has_its_time_to_answer_and_no_more(deadline: float):
    context = context_with(a=0.5, b=0.1)
    until = min(100.0 + context.timings.answer, deadline)
    offer = Offer(edge="b", metric="output", difference=0.4, asked_at=100.0)
    asked = session("s", phase="Negotiating", sources=["a"], targets=["b"], kind="balance", phase_at=100.0,
                    deadline_at=deadline, offers=[offer])  # fmt: skip
    for now, answer in ((until - 0.01, ""), (until, "NoAnswer")):
        context.outbox.now = context.fleet_observed_at = now
        assert negotiation.step_negotiating(context, request("s", source="a"), asked).offers[0].answer == answer


def test_a_policy_that_has_gone_is_waited_for():
    context = context_with(a=0.5, b=0.1)
    context.fleet = FleetView(context.fleet.heads, context.fleet.edges)
    asked = session("s", phase="Negotiating", sources=["a"], kind="balance", phase_at=100.0)
    after = negotiation.step_negotiating(context, request("s", source="a"), asked)
    assert (after.phase, after.reason) == ("Negotiating", "NoLoad")


def test_without_an_edge_to_ask_no_load_is_waited_for():
    asked = session("s", phase="Negotiating", sources=["a"], kind="balance", phase_at=100.0)
    alone = request("s", source="a", exclusions={"brokers": ["b", "c"]})
    after = negotiation.step_negotiating(context_with(a=0.5), alone, asked)
    assert (after.phase, after.reason) == ("Rejected", "NobodyTakes")
