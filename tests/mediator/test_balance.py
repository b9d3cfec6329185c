"""The `Balanced` condition, the reasons for doing nothing, and the summary of a cluster's load."""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime
from typing import Any

from plimsoll.core.spec import Resources, SourceDocument, parse
from plimsoll.mediator.balance import SessionOutline, balanced_condition, cluster_summary, session_outline
from plimsoll.mediator.resource_status import ObservedBroker

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC).timestamp()
NIGHT = {"name": "night", "schedule": "0 2 * * *", "duration": "2h"}


def make(kind: str, name: str, **spec: Any) -> SourceDocument:
    return SourceDocument(
        {"apiVersion": "plimsoll.dev/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec}
    )


def resources(**east: Any) -> Resources:
    edges = [{"name": "e", "profile": "p", "replicas": 2}, {"name": "f", "profile": "p"}]
    spec = {"head": {"profile": "p"}, "edges": edges, "policy": {"type": "Padres"}, **east}
    return parse([make("HardwareProfile", "p"), make("BrokerCluster", "east", **spec)])


def edge(name: str, load: float = 0.1, **report: Any) -> ObservedBroker:
    told = {"input_utilization": load, "output_utilization": 0.2, "state": "OK", "subscribers": 4, **report}
    return ObservedBroker(name, "edge", "east", "p", "", "", "", report_age=1.0, report=told)


EVEN = [edge("e-0", 0.30), edge("e-1", 0.35), edge("f", 0.25)]
UNEVEN = [edge("e-0", 0.70), edge("e-1", 0.1), edge("f", 0.2)]
FULL = [edge("e-0", 0.99), edge("e-1", 0.98), edge("f", 0.97)]


def session(name: str = "s", *, source: str = "e-0", **status: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"source": {"name": source}}, "status": status}


def judge(edges: list[ObservedBroker], *sessions: dict[str, Any], **east: Any) -> tuple[str, str, str]:
    found = balanced_condition(resources(**east), "east", edges, [session_outline(item) for item in sessions], NOW)
    return found.status, found.reason, found.message


def test_no_edge_differs_by_more_than_the_trigger():
    assert judge(EVEN)[:2] == ("True", "NoTrigger")
    assert judge(UNEVEN, policy={"type": "Padres", "detection": {"localTrigger": {"ratio": "900m"}}})[1] == "NoTrigger"


def test_one_edge_carries_more_than_another():
    status, reason, message = judge(UNEVEN)
    assert (status, reason) == ("False", "Unbalanced")
    assert message == "e-0: input differs from that of e-1 by 0.600"


def test_an_overloaded_edge_is_reported_though_no_edge_carries_less():
    status, reason, message = judge(FULL)
    assert (status, reason) == ("False", "Overloaded")
    assert message == "e-0: overloaded: input at 0.990"
    alike = [edge(name, 0.99) for name in ("e-0", "e-1", "f")]
    assert judge(alike)[:2] == ("False", "Overloaded"), "no edge to ask, and yet not balanced"


def test_what_an_edge_says_of_its_sessions_does_not_count():
    busy = [edge("e-0", 0.7), edge("e-1", 0.1, state="STABILIZING"), edge("f", 0.1, state="BUSY")]
    assert judge(busy)[:2] == ("False", "Unbalanced")


def test_a_session_is_going_on():
    assert judge(EVEN, session(phase="Cutting"))[:2] == ("False", "Balancing")
    assert judge(EVEN, session(source="elsewhere", phase="Cutting"))[:2] == ("True", "NoTrigger")
    assert judge(EVEN, session(source="east", phase="Cutting"))[:2] == ("False", "Balancing")


ENDED: dict[str, Any] = {
    "phase": "Rejected",
    "reason": "NobodyTakes",
    "message": "b is BUSY",
    "endedAt": "2026-11-20T11:59:00Z",
}


def test_the_last_session_says_why_nothing_was_done():
    earlier = session("zero", **{**ENDED, "reason": "NoLoad", "endedAt": "2026-11-20T11:00:00Z"})
    status, reason, message = judge(UNEVEN, session(**ENDED), earlier)
    assert (status, reason) == ("False", "NobodyTakes")
    assert message.endswith("; session s ended as Rejected: b is BUSY")
    assert judge(UNEVEN, session(**{**ENDED, "phase": "Succeeded"}))[1] == "Unbalanced"


def test_outside_of_a_window_it_says_when_one_opens():
    status, reason, message = judge(UNEVEN, session(**ENDED), maintenanceWindows=[NIGHT])
    assert (status, reason) == ("False", "OutsideWindow")
    assert message.endswith("; the next window opens at 2026-11-21T02:00:00Z")
    assert judge(EVEN, maintenanceWindows=[NIGHT])[:2] == ("True", "NoTrigger")
    assert judge(UNEVEN, maintenanceWindows=[{**NIGHT, "schedule": "0 11 * * *"}])[1] == "Unbalanced"


def test_what_cannot_be_said():
    assert judge(UNEVEN, policy=None)[:2] == ("Unknown", "NoPolicy")
    assert judge(UNEVEN[:1])[:2] == ("True", "OneEdge")
    silent = ObservedBroker("f", "edge", "east", "p", "", "", "")
    assert judge([*EVEN[:2], silent]) == ("Unknown", "NoReports", "no load report from f for 15 s")
    long_ago = dataclasses.replace(EVEN[2], report_age=15.1)
    assert judge([*EVEN[:2], long_ago])[:2] == ("Unknown", "NoReports")
    assert judge([*EVEN[:2], dataclasses.replace(long_ago, report_age=14.9)])[:2] == ("True", "NoTrigger")
    assert judge([*EVEN[:2], edge("f", 0.1, state="ASLEEP")])[:2] == ("Unknown", "NoReports")


def brief_of(edges: list[ObservedBroker], *sessions: dict[str, Any], **east: Any) -> dict[str, Any]:
    return cluster_summary(resources(**east), "east", edges, [session_outline(item) for item in sessions], NOW)


def test_a_cluster_in_brief():
    status: dict[str, Any] = {**ENDED, "progress": {"moved": 3}}
    found = brief_of(UNEVEN, session(**status), session("t", phase="Cutting"), maintenanceWindows=[NIGHT])
    assert found == {
        "replicas": 2,
        "load": {"inputUtilizationPercent": 33, "outputUtilizationPercent": 20},
        "imbalancePercent": 60,
        "lastSession": {
            "name": "s", "phase": "Rejected", "reason": "NobodyTakes", "moved": 3, "endedAt": "2026-11-20T11:59:00Z",
        },
        "nextWindow": "2026-11-21T02:00:00Z",
    }  # fmt: skip


def test_unknown_fields_are_left_out():
    assert brief_of([ObservedBroker("e-0", "edge", "east", "p", "", "", "")]) == {"replicas": 1}
    assert "imbalancePercent" not in brief_of(EVEN[:1])
    assert "nextWindow" not in brief_of(EVEN, maintenanceWindows=[{**NIGHT, "schedule": "0 11 * * *"}])


def test_replicas_are_those_of_the_group_that_scaling_means():
    assert brief_of(EVEN)["replicas"] == 2
    assert brief_of(EVEN, scale={"replicas": 2})["replicas"] == 2
    assert brief_of(EVEN, scale={"group": "e", "replicas": 1})["replicas"] == 2, "as many as there are"
    single = resources(edges=[{"name": name, "profile": "p"} for name in ("e-0", "f")])
    assert cluster_summary(single, "east", EVEN, [], NOW)["replicas"] == 3, "without any such group all of them"


def test_a_session_that_no_mediator_has_seen_yet():
    assert session_outline({"metadata": {"name": "s"}, "spec": {}}) == SessionOutline("s", frozenset(), over=False)


def bad(*loads: float) -> list[ObservedBroker]:
    """Edges that take in and send these bytes per second together."""
    half = {name: f / 2 for name, f in zip(("e-0", "e-1", "f"), loads, strict=True)}
    return [edge(name, 0.1, input_bytes_per_second=f, output_bytes_per_second=f) for name, f in half.items()]


def test_a_policy_that_plans_for_the_cluster_judges_all_loads_at_once():
    policy = {"type": "Bad", "bad": {"beta": "10"}}
    assert judge(bad(40, 34, 36), policy=policy)[:2] == ("True", "NoTrigger")
    status, reason, message = judge(bad(70, 12, 4), policy=policy)
    assert (status, reason) == ("False", "Unbalanced")
    assert message == "east: cov 1.026, mean F 28.67 B/s: above gamma 0.5, shuffle"
    assert judge(UNEVEN, policy=policy)[0] == "True", "utilisations do not matter to it"


def test_a_session_of_another_cluster_is_not_its_own_last_one():
    theirs = {**session("theirs", source="elsewhere", phase="Rejected", reason="Refused", endedAt="2026-01-02"),
              "spec": {"source": {"name": "elsewhere"}, "target": {"name": "e-0"}}}  # fmt: skip
    own = session("own", phase="Succeeded", reason="Done", endedAt="2026-01-01")
    assert brief_of(EVEN, own, theirs)["lastSession"]["name"] == "own"
    assert "lastSession" not in brief_of(EVEN, theirs)
    is_open = {**theirs, "status": {"phase": "Cutting"}}
    assert judge(EVEN, is_open)[:2] == ("False", "Balancing"), "it is a party of it"
