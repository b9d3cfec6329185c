"""A session between two clusters, rule by rule: which requests are one, its begin, the loads shown, and its end."""

from __future__ import annotations

from dataclasses import replace as replaced
from typing import Any

import pytest
from msgspec.structs import replace
from tests.core.session.made import context_of, fleet, request, session

from plimsoll.core.policies.detection import DetectorState
from plimsoll.core.protocol import messages as msg
from plimsoll.core.session import EmitEvent, FleetView, SendMessage, Session, SessionRequest
from plimsoll.core.session.batch import Batch
from plimsoll.core.session.context.engine_context import EngineContext
from plimsoll.core.session.context.watched_clusters import WatchedCluster
from plimsoll.core.session.kinds import cluster_session
from plimsoll.core.session.request.session_kind import requested_clusters
from plimsoll.core.session.state import ChildSession, SessionVerdict

EAST = ["a", "b", "c"]
ALL = [*EAST, "w"]


def view_of(policies: str = "east west", balanced: list[str] | None = None, **changes: dict[str, Any]) -> FleetView:
    """East (a, b, c) and west (w), all with a report; who is balanced with `balanced` says so."""
    reports = {
        name: {"broker": name, "state": "OK", "output_utilization": 0.1, "balanced_set": balanced or [], "counters": {}}
        for name in ALL
    }
    seen = fleet(**{name: {"report": reports[name], **changes.get(name, {})} for name in ALL})
    policy = seen.policies["east"]
    return FleetView(seen.heads, seen.edges, dict.fromkeys(policies.split(), policy))


def asked(parent: str = "", **fields: Any) -> SessionRequest:
    given = {"scope": "Global", "source": "east", "target": "west", "action": "Rebalance", **fields}
    return replaced(request("s", **given), parent=parent)


def joined(phase: Any = "Draining", **fields: Any) -> Session:
    return session("s", **{
        "phase": phase, "phase_at": 90.0, "moving_at": 90.0, "started_at": 90.0, "deadline_at": 1090.0,
        "kind": "clusters", "between": ["east", "west"], **fields,
    })  # fmt: skip


def told(context: EngineContext) -> list[tuple[str, str]]:
    return [(effect.reason, effect.message) for effect in context.outbox.effects if isinstance(effect, EmitEvent)]


# -- which requests are one


@pytest.mark.parametrize(
    ("wanted", "is_one"),
    [
        (asked(), True),
        (asked(scope="Local"), False),
        (asked(action="Drain"), False),
        (asked(select={"count": 1}), False),
        (asked("parent"), False),
        (asked(target=None), False),
        (asked(target="w"), False),
        (asked(target="south"), False),
    ],
)
def test_a_session_is_between_two_clusters_that_have_edges_and_policies(wanted: SessionRequest, is_one: bool):
    assert requested_clusters(wanted, view_of("east west south w")) == (["east", "west"] if is_one else [])


def test_without_a_policy_or_a_view_no_session_is_between_clusters():
    context = context_of(view=view_of("east"))
    assert requested_clusters(asked(), context.fleet) == []
    context.fleet, context.fleet_observed_at = FleetView(), float("-inf")
    assert requested_clusters(asked(), context.fleet) == []


# -- the queue


@pytest.mark.parametrize(("now", "phase"), [(104.9, "Requested"), (105.0, "Negotiating")])
def test_another_attempt_begins_at_its_time(now: float, phase: str):
    before = session("s", retry_at=105.0)
    after = cluster_session.step_requested(context_of(view=view_of(), now=now), asked(deadline="10m"), before)
    assert after.phase == phase
    if phase == "Requested":
        assert after is before
    else:
        assert (after.started_at, after.deadline_at, after.retry_at) == (now, now + 600.0, None)


@pytest.mark.parametrize("trigger", [None, {"broker": "east-head"}])
def test_what_it_is_is_stored(trigger: dict[str, str] | None):
    after = cluster_session.step_requested(context_of(view=view_of()), asked(trigger=trigger), session("s"))
    assert (after.between, after.kind, after.triggered) == (["east", "west"], "clusters", trigger is not None)


@pytest.mark.parametrize(
    ("fields", "waits"),
    [
        ({"phase": "Draining"}, True),
        ({"phase": "Draining", "queued_at": 60.0}, True),
        ({"phase": "Requested"}, True),
        ({"phase": "Requested", "queued_at": 60.0}, False),
        ({"phase": "Draining", "between": ["north", "south"]}, False),
        ({"phase": "Draining", "between": []}, False),
    ],
)
def test_a_cluster_takes_part_in_one_such_session_at_a_time(fields: dict[str, Any], waits: bool):
    other = session("other", **{"between": ["west", "south"], "queued_at": 40.0, **fields})
    own = session("s", queued_at=50.0, deadline_at=110.0)
    context = context_of(own, other, view=view_of(), now=109.9)
    after = cluster_session.step_requested(context, asked(), own)
    assert (after.phase, after.reason) == (("Requested", "Queued") if waits else ("Negotiating", ""))
    if waits:
        assert after.message == "waits for other"
        context.outbox.now = 110.0
        late = cluster_session.step_requested(context, asked(), own)
        assert (late.phase, late.reason, late.may_retry) == ("Rejected", "QueueTimeout", True)


# -- the handshake


def refused(context: EngineContext, **fields: Any) -> tuple[str, str]:
    """The phase and the reason at the handshake."""
    after = cluster_session.step_negotiating(context, asked(), joined("Negotiating", phase_at=100.0, **fields))
    return after.phase, after.reason


@pytest.mark.parametrize("deadline", [1090.0, 107.0])
def test_an_edge_that_cannot_give_is_waited_for(deadline: float):
    until = min(115.0, deadline)
    for name in ("a", "w"):
        for now, phase in ((until - 0.1, "Negotiating"), (until, "Rejected")):
            context = context_of(
                view=view_of(a={"ready": False}) if name == "a" else view_of(w={"ready": False}), now=now
            )
            assert refused(context, deadline_at=deadline) == (phase, "SourceNotReady")


def test_a_mediator_that_just_began_gives_brokers_their_time_again():
    for now, phase in ((124.9, "Negotiating"), (125.0, "Rejected")):
        context = context_of(view=view_of(a={"ready": False}), now=now)
        context.started_at = 110.0
        assert refused(context) == (phase, "SourceNotReady")


def test_who_takes_must_be_known_and_able():
    view = view_of()
    silent = FleetView(view.heads, {**view.edges, "w": replaced(view.edges["w"], report={})}, view.policies)
    for seen, resting, reason, message in (
        (silent, False, "NoLoad", "the load of west is not known"),
        (
            view_of(w={"report": {"broker": "w", "state": "N/A"}}),
            False,
            "NobodyTakes",
            "west accepts no load: it is N/A",
        ),
        (view, True, "NobodyTakes", "west accepts no load: it is STABILIZING"),
    ):
        context = context_of(view=seen, now=115.0)
        context.watched_clusters["west"] = WatchedCluster(memory=DetectorState(since=99.0 if resting else None))
        after = cluster_session.step_negotiating(context, asked(), joined("Negotiating", phase_at=100.0))
        assert (after.phase, after.reason, after.message, after.may_retry) == ("Rejected", reason, message, True)


def test_both_agree_and_edges_are_joined_or_would_be():
    context = context_of(view=view_of())
    after = cluster_session.step_negotiating(context, asked(), joined("Negotiating", moving_at=None))
    assert (after.phase, after.moving_at, after.is_over) == ("Preparing", 100.0, False)
    assert told(context) == [("Joined", "edges of east and west balance with one another")]
    context = context_of(view=view_of())
    after = cluster_session.step_negotiating(context, asked(mode="DryRun"), joined("Negotiating", moving_at=None))
    assert (after.phase, after.reason, after.ended_at, after.moving_at) == ("Planned", "DryRun", 100.0, None)
    assert [reason for reason, _ in told(context)] == ["DryRun"]


# -- while edges balance


def child(uid: str, phase: Any = "Draining", **fields: Any) -> Session:
    return session(uid, **{"phase": phase, "parent": "s", "sources": ["a"], "targets": ["w"], **fields})


def over(uid: str, at: float, moved: int = 0) -> Session:
    batch = Batch(
        id="2.1", head="east-head", head_epoch=1, source="a", target="w", target_head="west-head", replay=False,
        prepare_seconds=1.0, drain_seconds=1.0, begun_at=90.0, ended_at=at,
        members={f"{uid}{number}": "moved" for number in range(moved)},
    )  # fmt: skip
    return child(uid, "Succeeded", ended_at=at, batches=[batch])


@pytest.mark.parametrize(("now", "reason"), [(1087.4, ""), (1087.5, "DeadlineExceeded")])
def test_nothing_more_begins_shortly_before_its_deadline(now: float, reason: str):
    """A child closes before that; its parent has half as long."""
    after = cluster_session.step_moving(context_of(child("one"), view=view_of(), now=now), asked(), joined())
    assert ((after.verdict.reason, after.verdict.again) if after.verdict is not None else ("", True)) == (reason, True)
    assert not after.is_over, "its child is not"


STOPPED = SessionVerdict(reason="Stopped", message="stopped as requested")


@pytest.mark.parametrize(
    ("children", "now", "is_over"),
    [
        ([child("one")], 100.0, False),
        ([child("one")], 1090.0, True),
        ([], 100.0, True),
        ([over("one", 95.0)], 100.0, True),
    ],
)
def test_stopped_it_waits_for_its_children_until_its_deadline(children: list[Session], now: float, is_over: bool):
    after = cluster_session.step_moving(
        context_of(*children, view=view_of(), now=now), asked(), joined(verdict=STOPPED)
    )
    assert after.is_over == is_over
    if is_over:
        assert (after.phase, after.reason) == ("RolledBack", "Stopped")


@pytest.mark.parametrize(("phase", "phase_at"), [("Preparing", 100.0), ("Draining", 90.0)])
def test_it_drains_once_a_child_is_there(phase: Any, phase_at: float):
    after = cluster_session.step_moving(
        context_of(child("one"), view=view_of()), asked(), joined(phase, moving_at=95.0)
    )
    assert (after.phase, after.phase_at) == ("Draining", phase_at)
    alone = cluster_session.step_moving(context_of(view=view_of()), asked(), joined(phase, moving_at=95.0))
    assert alone.phase == phase


def test_it_is_over_when_all_edges_are_balanced_with_one_another():
    context = context_of(over("one", 95.0, moved=2), over("two", 99.0, moved=1), view=view_of(balanced=ALL))
    after = cluster_session.step_moving(context, asked(), joined())
    assert (after.phase, after.reason) == ("Succeeded", "AllBalanced")
    assert after.message == "all edges are balanced; 3 moved in 2 sessions"


QUIET = 2 * (4.0 + 1.0)
"""Twice as long as an edge of this policy stabilises and looks again."""


@pytest.mark.parametrize(
    ("ended", "moving_at", "since"),
    [([], 90.0, 90.0), ([95.0], 90.0, 95.0), ([97.0, 95.0], 90.0, 97.0), ([], None, 80.0), ([85.0], 90.0, 90.0)],
)
def test_it_ends_when_no_edge_triggers_any_more(ended: list[float], moving_at: float | None, since: float):
    children = [over(f"c{number}", at) for number, at in enumerate(ended)]
    one = joined(phase_at=80.0, moving_at=moving_at)
    waiting = cluster_session.step_moving(
        context_of(*children, view=view_of(balanced=EAST), now=since + QUIET - 0.1), asked(), one
    )
    assert not waiting.is_over
    after = cluster_session.step_moving(
        context_of(*children, view=view_of(balanced=EAST), now=since + QUIET), asked(), one
    )
    assert (after.phase, after.reason) == ("Succeeded", "NothingMore")
    assert after.message == (f"a, b, c still differ, but trigger no more sessions; 0 moved in {len(ended)} sessions")


def test_an_edge_need_not_name_itself_and_a_value_that_is_no_list_names_none():
    view = view_of(balanced=ALL)
    for name in ALL:
        others = [other for other in ALL if other != name]
        view.edges[name].report["balanced_set"] = others  # type: ignore[index]  # read-only for the product
    assert cluster_session.step_moving(context_of(view=view), asked(), joined()).reason == "AllBalanced"
    view.edges["w"].report["balanced_set"] = "abc"  # type: ignore[index]  # read-only for the product
    assert cluster_session._unbalanced_edges(context_of(view=view), joined()) == ["w"]


def test_without_a_policy_loads_settle_as_for_people():
    context = context_of(view=view_of(""))
    assert cluster_session._quiet_seconds(context, joined()) == context.timings.settle
    assert cluster_session._quiet_seconds(context_of(view=view_of("west")), joined()) == QUIET


def test_children_are_as_they_are_now_and_those_that_have_gone_as_they_were():
    gone = ChildSession(
        name="gone", source="b", target="w", members=1, uid="gone", phase="Succeeded", counts={"moved": 1}
    )
    was = ChildSession(name="one", source="a", target="w", members=0, uid="one")
    parent = joined(children=[gone, was])
    one = over("one", 95.0, moved=2)
    after = cluster_session._with_children(context_of(replace(one, targets=[]), view=view_of()), parent)
    now = ChildSession(name="one", source="a", target="w", members=0, uid="one", phase="Succeeded", counts={"moved": 2})
    assert after.children == [gone, now]
    again = cluster_session._with_children(context_of(replace(one, targets=[]), view=view_of()), after)
    assert again is after
    for sources, targets, ends in (([], [], ("", "")), (["a", "b"], ["w", "c"], ("a", "w"))):
        new = cluster_session._with_children(
            context_of(replace(one, sources=sources, targets=targets), view=view_of()), joined()
        )
        assert [(each.source, each.target) for each in new.children] == [ends]
    other = cluster_session._with_children(context_of(replace(one, targets=["b"]), view=view_of()), parent)
    assert other.children[-1].target == "b", "it was negotiated meanwhile"


# -- what is shown


def shown(context: EngineContext, one: Session) -> list[tuple[str, str, list[Any]]]:
    """The receiving head, the cluster, and the edges whose loads are shown."""
    context.outbox.effects = []
    cluster_session.send_peer_loads(context, one)
    sent = [(effect.head, effect.message) for effect in context.outbox.effects if isinstance(effect, SendMessage)]
    return [
        (head, record.cluster, [load["broker"] for load in record.reports])
        for head, record in sent
        if isinstance(record, msg.PeerClusterLoads)
    ]


def test_the_edges_of_each_cluster_are_shown_the_loads_of_the_other_again_and_again():
    context = context_of(view=view_of())
    both = [("east-head", "west", ["w"]), ("west-head", "east", ["a", "b", "c"])]
    counts = []
    for now in (100.0, 100.9, 101.0):
        context.outbox.now = now
        found = shown(context, joined())
        assert found in ([], both)
        counts.append(len(found))
    assert counts == [2, 0, 2]
    [first, _] = context.outbox.effects
    assert isinstance(first, SendMessage)
    assert isinstance(first.message, msg.PeerClusterLoads)
    assert (first.message.mediator, first.message.seconds) == (3, 5.0)
    assert "counters" not in first.message.reports[0]
    assert first.message.reports[0]["output_utilization"] == 0.1


def test_what_is_shown_holds_for_five_times_as_long_as_it_takes_to_be_said_again():
    context = context_of(view=view_of(), time_factor=0.5)
    shown(context, joined())
    records = [effect.message for effect in context.outbox.effects if isinstance(effect, SendMessage)]
    assert [record.seconds for record in records if isinstance(record, msg.PeerClusterLoads)] == [2.5, 2.5]


def test_what_is_stopped_shows_nothing_more():
    assert shown(context_of(view=view_of()), joined(verdict=STOPPED)) == []


def test_many_loads_are_shown_in_parts(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(cluster_session, "REPORTS_AT_ONCE", 2)
    found = shown(context_of(view=view_of()), joined())
    assert found == [("east-head", "west", ["w"]), ("west-head", "east", ["a", "b"]), ("west-head", "east", ["c"])]


def test_a_removed_cluster_is_shown_no_loads_and_a_silent_edge_has_none_to_show():
    view = view_of()
    quiet = FleetView(view.heads, {**view.edges, "b": replaced(view.edges["b"], report={})}, view.policies)
    assert shown(context_of(view=quiet), joined())[1] == ("west-head", "east", ["a", "c"])
    gone = FleetView(view.heads, {name: view.edges[name] for name in EAST}, view.policies)
    assert shown(context_of(view=gone), joined()) == []
    context = context_of(view=view)
    context.fleet, context.fleet_observed_at = FleetView(), float("-inf")
    assert shown(context, joined()) == []
