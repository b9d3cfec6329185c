"""Detection: both of its steps, the states, and what is remembered. PADRES 2006, 3.2."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from plimsoll.core.policies.detection import DetectionResult, Detector, DetectorState
from plimsoll.core.policies.model.load import (
    BalancingState,
    BrokerLoad,
    OverloadThreshold,
    Resource,
    ResourceThresholds,
    combined_load,
)
from plimsoll.core.policies.model.parameters import BalancingParameters
from plimsoll.core.policies.model.plan import BrokerAction

DETECTOR = Detector()


def broker(name: str, **measured: Any) -> BrokerLoad:
    return BrokerLoad(name=name, **measured)


AT_FIRST = DetectorState()


def look(own: BrokerLoad, *others: BrokerLoad, memory: DetectorState = AT_FIRST, now: float = 0.0) -> DetectionResult:
    return DETECTOR.run(own, others, memory, now)[1]


def asked(found: DetectionResult) -> list[tuple[str, str]]:
    return [(action.target, action.metric) for action in found.actions]


# -- step one: overload


@pytest.mark.parametrize("resource", ["input_utilization", "output_utilization", "cpu_ratio", "memory_ratio"])
def test_between_its_thresholds_a_broker_neither_takes_nor_asks(resource: str):
    """3.2: N/A from 0.9, relief from 0.95. Both are exceeded, not reached."""
    idle = broker("t")
    assert look(broker("s", **{resource: 0.9}), idle).state == "OK"
    between = look(broker("s", **{resource: 0.95}), idle)
    assert (between.state, between.actions) == ("N/A", ())
    over = look(broker("s", **{resource: 0.951}), idle)
    assert over.state == "N/A"
    assert over.actions
    assert "overloaded" in over.reason


@pytest.mark.parametrize(
    ("resource", "metrics"),
    [
        ("input_utilization", ["match", "input"]),
        ("output_utilization", ["output"]),
        ("cpu_ratio", ["match"]),
        ("memory_ratio", ["match"]),
    ],
)
def test_what_is_overloaded_is_relieved_by_its_own_algorithm(resource: str, metrics: list[str]):
    """Table 2 and 5.2: input by match, or else by input; processor and memory by match, output by output."""
    found = look(broker("s", **{resource: 1.0}), broker("t"))
    assert asked(found) == [("t", metric) for metric in metrics]
    assert found.actions[0].overloaded == (resource.split("_")[0],)
    assert found.actions[0].difference == pytest.approx(1.0)


def test_each_resource_may_have_thresholds_of_its_own():
    """3.2: all utilisation ratios can be associated with different overload threshold values."""
    detector = Detector(BalancingParameters(thresholds=ResourceThresholds(memory=OverloadThreshold(0.5, 0.6))))
    own = broker("s", memory_ratio=0.55, cpu_ratio=0.55)
    assert detector.run(own, [], DetectorState(), 0.0)[1].state == "N/A"
    assert look(own).state == "OK"
    assert detector.run(replace(own, memory_ratio=0.61), [broker("t")], DetectorState(), 0.0)[1].actions


# -- step two: imbalance


def test_differences_above_the_trigger_are_listed_largest_first():
    """3.2: input and output by magnitude; delays by N_f = 0.1 s, eq. 1: 0.05 s are 0.5."""
    own = broker("s", input_utilization=0.6, output_utilization=0.5, match_delay_seconds=0.06)
    near = broker("near", input_utilization=0.5, output_utilization=0.41, match_delay_seconds=0.06)
    far = broker("far", input_utilization=0.2, output_utilization=0.3, match_delay_seconds=0.01)
    found = look(own, near, far)
    assert asked(found) == [("far", "match"), ("far", "input"), ("far", "output")]
    assert [action.difference for action in found.actions] == pytest.approx([0.5, 0.4, 0.2])
    assert found.state == "OK"
    assert found.balanced == {"near"}


def test_who_carries_less_asks_nothing():
    assert look(broker("s"), broker("t", input_utilization=0.5)).actions == ()


def test_between_clusters_the_triggers_are_wider():
    """3.2: 0.15 for averages of clusters; a cluster is N/A if one of its edges is."""
    own = combined_load("c", [broker("a", input_utilization=0.2), broker("b", input_utilization=0.4)])
    other = combined_load("d", [broker("x", input_utilization=0.16)])
    assert own.input_utilization == pytest.approx(0.3)
    assert asked(look(own, other)) == [("d", "input")]
    assert Detector(scope="Global").run(own, [other], DetectorState(), 0.0)[1].actions == ()
    full = replace(broker("y"), state="N/A")
    assert combined_load("e", [full, broker("z")]).state == "N/A"


# -- which brokers are asked


@pytest.mark.parametrize("state", ["BUSY", "N/A", "STABILIZING"])
def test_who_would_refuse_is_passed_over(state: BalancingState):
    found = look(broker("s", input_utilization=0.5), replace(broker("t"), state=state))
    assert found.actions == ()
    assert found.passed_over == (("t", f"it is {state}"),)


def test_an_old_report_counts_for_nothing():
    memory, found = DETECTOR.run(broker("s", input_utilization=0.5), [broker("t", time=0.0)], DetectorState(), 16.0)
    assert found.actions == ()
    assert found.balanced == frozenset()
    assert found.passed_over == (("t", "its load report is 16.0 s old"),)
    assert memory.last is not None


# -- states


def test_nothing_is_found_during_a_session():
    """3.2: detection runs if the state is OK, N/A or STABILIZING."""
    memory = DETECTOR.session_began(DetectorState())
    found = look(broker("s", input_utilization=2.0), broker("t"), memory=memory)
    assert (found.state, found.actions) == ("BUSY", ())


def test_after_a_session_load_is_given_time():
    """3.2: STABILIZING for 30 s, and until no metric changes by more than 0.05 between two runs."""
    memory = DETECTOR.session_ended(DETECTOR.session_began(DetectorState()), 100.0, moved=True)
    states = []
    for now, utilization in ((105.0, 0.5), (129.0, 0.3), (131.0, 0.4), (136.0, 0.44), (141.0, 0.45)):
        memory, found = DETECTOR.run(broker("s", input_utilization=utilization, time=now), [], memory, now)
        states.append(found.state)
    assert states == ["STABILIZING", "STABILIZING", "STABILIZING", "OK", "OK"]


def test_stabilising_ends_in_any_case():
    """Not the paper's: load that never settles would exclude a broker permanently. After 4 times as long it ends."""
    memory = DETECTOR.session_ended(DetectorState(), 0.0, moved=True)
    states = {}
    for step in range(1, 26):
        now = 5.0 * step
        own = broker("s", input_utilization=0.2 + 0.3 * (step % 2), time=now)
        memory, found = DETECTOR.run(own, [], memory, now)
        states[now] = found.state
    assert states[115.0] == "STABILIZING"
    assert states[120.0] == "OK"


def test_overload_ends_stabilising_for_the_overloaded():
    """3.2: a STABILIZING broker cannot invoke load balancing unless it is overloaded."""
    memory = DETECTOR.session_ended(DetectorState(), 0.0, moved=True)
    assert look(broker("s", input_utilization=0.94), broker("t"), memory=memory).actions == ()
    found = look(broker("s", input_utilization=0.96), broker("t"), memory=memory)
    assert (found.state, asked(found)) == ("N/A", [("t", "match"), ("t", "input")])


def test_a_session_without_moves_leaves_nothing_to_stabilise():
    memory = DETECTOR.session_ended(DETECTOR.session_began(DetectorState()), 0.0, moved=False)
    assert look(broker("s"), memory=memory).state == "OK"


# -- what came to nothing


def test_what_came_to_nothing_is_not_asked_for_again_at_the_same_loads():
    own, other = broker("s", input_utilization=0.5), broker("t")
    action = BrokerAction("t", "input", 0.5)
    memory = DETECTOR.session_ended(DetectorState(), 0.0, moved=False, tried=[(action, own, other)])
    found = look(own, other, memory=memory)
    assert found.actions == ()
    assert found.passed_over == (("t input", "came to nothing, and nothing has changed since"),)
    assert asked(look(replace(own, output_utilization=0.3), other, memory=memory)) == [("t", "input"), ("t", "output")]
    assert look(own, replace(other, input_utilization=0.04), memory=memory).actions == ()
    assert asked(look(own, replace(other, output_utilization=0.06), memory=memory)) == [("t", "input")]


def test_it_is_not_tried_again_while_nothing_changes():
    """However long: a plan for the same loads and subscriptions would move nothing either."""
    own, other, third = broker("s", input_utilization=0.5, subscriptions=40), broker("t"), broker("u")
    state = DETECTOR.session_ended(
        DetectorState(), 0.0, moved=False, tried=[(BrokerAction("t", "input", 0.5), own, other)]
    )
    for now in (5.0, 119.0, 120.0, 1e6):
        loads = [replace(load, time=now) for load in (other, replace(third, input_utilization=0.45))]
        state, found = DETECTOR.run(replace(own, time=now), loads, state, now)
        assert found.actions == (), now


@pytest.mark.parametrize(
    ("own", "target", "third", "is_asked"),
    [
        ({"subscriptions": 42}, {}, {}, False),
        ({"subscriptions": 43}, {}, {}, True),
        ({}, {"subscriptions": 1}, {}, True),
        ({}, {}, {"match_delay_seconds": 0.004}, False),
        ({}, {}, {"match_delay_seconds": 0.006}, True),
    ],
)
def test_what_a_plan_depends_on_is_a_reason_to_try_again(
    own: dict[str, Any], target: dict[str, Any], third: dict[str, Any], is_asked: bool
):
    """Subscriptions of either by more than a twentieth, or the load of any broker of the cluster."""
    first = broker("s", input_utilization=0.5, subscriptions=40), broker("t"), broker("u", input_utilization=0.45)
    state = DETECTOR.session_ended(
        DetectorState(), 0.0, moved=False, tried=[(BrokerAction("t", "input", 0.5), *first[:2])]
    )
    state, found = DETECTOR.run(first[0], first[1:], state, 0.0)
    assert found.actions == ()
    changed = [replace(load, **more) for load, more in zip(first, (own, target, third), strict=True)]
    assert bool(DETECTOR.run(changed[0], changed[1:], state, 0.0)[1].actions) == is_asked


@pytest.mark.parametrize(
    ("now", "moved_by", "is_asked"), [(119.0, 0.04, False), (120.0, 0.024, False), (120.0, 0.026, True)]
)
def test_after_a_while_a_slight_change_is_reason_enough(now: float, moved_by: float, is_asked: bool):
    """Four times 30 s later the samples are others; half of 0.05 is enough."""
    own, other = broker("s", input_utilization=0.5), broker("t")
    memory = DETECTOR.session_ended(
        DetectorState(), 0.0, moved=False, tried=[(BrokerAction("t", "input", 0.5), own, other)]
    )
    own, other = replace(own, time=now, input_utilization=0.5 + moved_by), replace(other, time=now)
    assert bool(look(own, other, memory=memory, now=now).actions) == is_asked


def test_one_memory_is_kept_of_each_action():
    own, other = broker("s"), broker("t")
    tried = [(BrokerAction("t", "input", 0.5), own, other)]
    memory = DETECTOR.session_ended(DetectorState(), 0.0, moved=False, tried=tried)
    assert len(DETECTOR.session_ended(memory, 1.0, moved=False, tried=tried).futile) == 1


def test_all_durations_scale_together():
    """N_f is one of them: at half the speed a delay of 0.012 s is what 0.006 s is, 0.06 of N_f and no reason to ask."""
    slow = BalancingParameters().scaled(2.0)
    assert (slow.stabilize_seconds, slow.detection_seconds, slow.fresh_seconds) == (60.0, 10.0, 30.0)
    own = broker("s", match_delay_seconds=0.012)
    assert asked(look(own, broker("t"))) == [("t", "match")]
    assert Detector(slow).run(own, [broker("t")], DetectorState(), 0.0)[1].actions == ()


def test_resources_are_named_in_reasons():
    resource: Resource = "output"
    found = look(broker("s", output_utilization=0.97), broker("t"))
    assert found.reason == f"overloaded: {resource} at 0.970"


def test_the_inert_period_ends_where_it_would_last():
    """3.2: between the thresholds a broker neither accepts nor invokes. After four stabilise durations it gives, and
    still accepts nothing: if relief has ended there, and nothing changes, it would otherwise stay there permanently.
    """
    memory, patience = DetectorState(), 4 * DETECTOR.parameters.stabilize_seconds
    for at, gives in ((0.0, False), (patience - 1.0, False), (patience, True)):
        own, other = broker("s", input_utilization=0.93, time=at), broker("t", time=at)
        memory, found = DETECTOR.run(own, [other], memory, at)
        assert (found.state, bool(found.actions)) == ("N/A", gives), at
    assert not found.actions[0].overloaded
    memory, _ = DETECTOR.run(broker("s", input_utilization=0.5, time=at), [], memory, at)
    assert memory.inert_since is None
