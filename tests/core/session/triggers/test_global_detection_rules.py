"""Clusters beside their neighbours, rule by rule: which are near, what each carries, which are balanced together."""

from __future__ import annotations

from dataclasses import replace as replaced
from typing import Any

import pytest
from tests.core.session.made import context_of, fleet, request, session

from plimsoll.core.policies.detection import DetectionResult, DetectorState
from plimsoll.core.policies.model.plan import BrokerAction
from plimsoll.core.session import ClusterComparison, CreateSession, FleetView, HeadView, Session
from plimsoll.core.session.batch import Batch
from plimsoll.core.session.context.cluster_loads import cluster_load, cluster_state
from plimsoll.core.session.context.engine_context import EngineContext
from plimsoll.core.session.context.watched_clusters import WatchedCluster
from plimsoll.core.session.state import SessionVerdict
from plimsoll.core.session.triggers import global_detection
from plimsoll.core.spec.parser import parse_block
from plimsoll.core.spec.quantities import Duration
from plimsoll.core.spec.types.cluster import MaintenanceWindow
from plimsoll.core.spec.types.policy import PolicySpec

SECONDS = 10.0
"""How often clusters are looked at."""

NEAR = {"east": frozenset({"west"}), "west": frozenset({"east"})}


def view_of(east: float = 0.8, west: float = 0.1, **fields: Any) -> FleetView:
    """East (a, b, c) and west (w), side by side, with a policy each; with these output utilisations of their edges."""
    used = dict.fromkeys("abc", east) | {"w": west}
    reports: dict[str, dict[str, Any]] = {
        name: {"report": {"broker": name, "state": "OK", "output_utilization": share}} for name, share in used.items()
    }
    seen = fleet(**reports)
    given = {"neighbors": NEAR, "overview": ClusterComparison(SECONDS), **fields}
    return FleetView(seen.heads, seen.edges, dict.fromkeys(("east", "west"), seen.policies["east"]), **given)


def with_report(view: FleetView, edge: str, **report: Any) -> FleetView:
    """Another report of an edge; without fields: none."""
    known = view.edges[edge]
    said = {**known.report, **report} if report else {}
    return replaced(view, edges={**view.edges, edge: replaced(known, report=said)})


def joined(**fields: Any) -> Session:
    return session("s", **{"phase": "Draining", "between": ["east", "west"], "moving_at": 90.0, **fields})


def moved(at: float = 95.0) -> dict[str, Any]:
    batch = Batch(
        id="2.1", head="east-head", head_epoch=1, source="a", target="w", target_head="west-head", replay=False,
        prepare_seconds=1.0, drain_seconds=1.0, begun_at=90.0, ended_at=at, members={"x": "moved"},
    )  # fmt: skip
    return {"phase": "Succeeded", "ended_at": at, "batches": [batch]}


# -- near clusters


@pytest.mark.parametrize(
    ("neighbors", "near"),
    [
        ({}, []),
        ({"east": {"west"}}, ["west"]),
        ({"east": {"middle"}, "middle": {"east", "west"}}, ["west"]),
        ({"east": {"middle"}, "middle": {"east", "further"}, "further": {"middle", "west"}}, ["west"]),
        ({"east": {"west", "north"}}, ["north", "west"]),
        ({"east": {"north"}, "north": {"east", "west"}}, ["north"]),
        ({"east": {"middle"}, "middle": {"east", "other"}, "other": {"middle", "east"}}, []),
    ],
)
def test_what_lies_behind_clusters_without_edges_is_near(neighbors: dict[str, set[str]], near: list[str]):
    view = view_of(neighbors={name: frozenset(others) for name, others in neighbors.items()})
    edges = {**view.edges, "n": replaced(view.edges["w"], name="n", cluster="north")}
    assert replaced(view, edges=edges).nearby_clusters("east") == near


# -- what a cluster carries


def used(view: FleetView, cluster: str = "east") -> float | None:
    found = cluster_load(context_of(view=view), cluster)
    return None if found is None else round(found.output_utilization, 6)


def test_a_cluster_carries_what_its_edges_do_on_average():
    view = with_report(with_report(view_of(), "a", output_utilization=0.3), "b", output_utilization=0.4)
    found = cluster_load(context_of(view=view), "east")
    assert found is not None
    assert (found.name, found.state, found.time, round(found.output_utilization, 6)) == ("east", "OK", 100.0, 0.5)


def test_of_a_cluster_with_a_silent_edge_or_none_nothing_is_known():
    assert used(with_report(view_of(), "b")) is None
    assert used(view_of(), "north") is None
    context = context_of(view=view_of())
    context.fleet, context.fleet_observed_at = FleetView(), float("-inf")
    assert cluster_load(context, "east") is None


def test_the_overview_comes_before_the_head_and_the_head_before_the_edges():
    head = HeadView("east-head", "east", 1, report={"cluster_load": {"output_utilization": 0.25}})
    view = view_of()
    by_head = replaced(view, heads={**view.heads, "east-head": head})
    assert used(by_head) == 0.25
    assert used(by_head, "west") == 0.1
    whole = ClusterComparison(SECONDS, {"east": {"output_utilization": 0.125}})
    assert used(replaced(by_head, overview=whole)) == 0.125
    assert used(replaced(by_head, overview=ClusterComparison(SECONDS, {"west": {"output_utilization": 0.5}}))) == 0.25
    assert used(replaced(by_head, overview=None)) == 0.25


@pytest.mark.parametrize("told", [{"output_utilization": "much"}, {"output_utilization": -1.0}, "much", None])
def test_what_makes_no_sense_of_a_cluster_is_as_good_as_none(told: Any):
    view = view_of()
    head = HeadView("east-head", "east", 1, report={"cluster_load": told})
    assert used(replaced(view, heads={**view.heads, "east-head": head})) == 0.8


def test_the_state_of_a_cluster():
    context = context_of(view=view_of())
    assert (
        cluster_state(context, "east"),
        cluster_state(context, "east", "N/A"),
    ) == (
        "OK",
        "N/A",
    )
    context.watched_clusters["east"] = WatchedCluster()
    assert cluster_state(context, "east") == "OK"
    context.watched_clusters["east"] = WatchedCluster(memory=DetectorState(since=99.0))
    assert cluster_state(context, "east") == "STABILIZING"
    assert cluster_state(context, "east", "N/A") == "N/A"
    context.table.put(joined())
    assert (
        cluster_state(context, "east"),
        cluster_state(context, "east", "N/A"),
    ) == (
        "BUSY",
        "BUSY",
    )


# -- joined clusters


@pytest.mark.parametrize(
    ("fields", "other"),
    [
        ({}, "west"),
        ({"moving_at": None}, ""),
        ({"verdict": SessionVerdict(reason="Stopped", message="stopped")}, ""),
        ({"phase": "Requested"}, ""),
        ({"phase": "Succeeded", "ended_at": 95.0}, ""),
        ({"between": ["north", "west"]}, ""),
    ],
)
def test_a_cluster_is_joined_while_its_session_moves(fields: dict[str, Any], other: str):
    context = context_of(joined(**fields), view=view_of())
    assert context.table.joined_cluster("east") == other
    if other:
        assert context.table.joined_cluster("west") == "east"


# -- looking


def looked(context: EngineContext, *moments: float) -> list[CreateSession]:
    """The sessions that detection at these times creates."""
    context.outbox.effects = []
    for now in moments:
        context.outbox.now = context.fleet_observed_at = now
        global_detection.detect_imbalance(context)
    return [effect for effect in context.outbox.effects if isinstance(effect, CreateSession)]


def test_who_is_found_wanting_twice_running_gets_a_session():
    context = context_of(view=view_of())
    assert looked(context, 100.0, 105.0, 109.9) == [], "one look only"
    [create] = looked(context, 110.0)
    assert create.parent == ""
    assert create.name.startswith("global-east-west-")
    assert create.spec["trigger"]["broker"] == "east-head"
    assert create.spec["trigger"]["reason"].endswith("(by heads)")
    told = {name: create.spec[name] for name in ("scope", "source", "target", "action", "mode", "limits")}
    assert told == {
        "scope": "Global", "source": {"name": "east"}, "target": {"name": "west"}, "action": "Rebalance",
        "mode": "Execute", "limits": {"queueFor": "1m"},
    }  # fmt: skip


def test_detections_that_find_nothing_reset_the_count():
    context = context_of(view=view_of())
    looked(context, 100.0)
    context.fleet = view_of(east=0.1)
    assert looked(context, 110.0) == []
    context.fleet = view_of()
    assert looked(context, 120.0) == []
    assert len(looked(context, 130.0)) == 1


@pytest.mark.parametrize(
    "fields",
    [{"overview": None}, {"neighbors": {}}, {"overview": ClusterComparison(SECONDS, {"east": {}, "west": {}})}],
)
def test_without_an_overview_neighbours_or_a_difference_nothing_is_wanted(fields: dict[str, Any]):
    assert looked(context_of(view=view_of(**fields)), 100.0, 110.0, 120.0) == []


def test_without_a_view_there_is_nothing_to_look_at():
    context = context_of()
    context.fleet, context.fleet_observed_at = FleetView(), float("-inf")
    assert looked(context, 100.0) == []


def test_looks_keep_to_the_clock_of_the_fleet():
    context = context_of(view=view_of(), time_factor=0.1)
    assert len(looked(context, 100.0, 101.0)) == 1


@pytest.mark.parametrize(("state", "wants"), [("OK", True), ("BUSY", False), ("STABILIZING", False), ("N/A", False)])
def test_a_cluster_helps_itself_first_unless_it_is_overloaded(state: str, wants: bool):
    """One of the three edges of the east is in this state."""
    assert bool(looked(context_of(view=with_report(view_of(), "b", state=state)), 100.0, 110.0)) == wants
    full = with_report(view_of(east=0.99), "b", state=state)
    assert looked(context_of(view=full), 100.0, 110.0)


@pytest.mark.parametrize(
    ("third", "rules", "wants"), [(0.84, {}, False), (0.86, {}, True), (0.86, {"rules": "Paper"}, False)]
)
def test_a_cluster_that_is_n_a_asks_others_if_none_of_its_edges_has_room(
    third: float, rules: dict[str, str], wants: bool
):
    """Two edges at 0.93, of which one is N/A; by the letter of the paper it asks only above 0.95 on average."""
    view = with_report(with_report(view_of(east=0.93), "b", state="N/A"), "c", output_utilization=third)
    policy = parse_block(PolicySpec, {"type": "Padres", "padres": rules})
    view = replaced(view, policies=dict.fromkeys(view.policies, policy))
    context = context_of(view=view)
    context.watched_clusters["east"] = WatchedCluster(memory=DetectorState(inert_since=-1e3))
    assert bool(looked(context, 100.0, 110.0)) == wants


def test_a_session_makes_its_clusters_busy_and_one_that_moved_lets_them_rest():
    context = context_of(joined(), view=view_of())
    assert looked(context, 100.0, 110.0) == []
    watched = context.watched_clusters["east"]
    assert (watched.session, watched.memory.is_busy) == ("s", True)
    context.table.put(joined(**moved()))
    looked(context, 120.0)
    assert (watched.session, watched.memory.is_busy, watched.memory.since) == ("", False, 120.0)


def test_a_session_that_moved_no_subscriber_or_was_deleted_leaves_none_resting():
    for ended in (joined(phase="Failed", ended_at=115.0), None):
        context = context_of(joined(), view=view_of())
        looked(context, 100.0)
        context.table.drop("s")
        if ended is not None:
            context.table.put(ended)
        looked(context, 120.0)
        assert (context.watched_clusters["east"].session, context.watched_clusters["east"].memory.since) == ("", None)


# -- what is wanted already


def wanted(other: Session, **asked: Any) -> bool:
    """Whether east is left alone because of another session."""
    fields = {"scope": "Global", "source": "east", "target": "west", **asked}
    context = context_of(other, view=view_of(), requests=(request(other.uid, **fields),), now=100.0)
    return global_detection._is_known_or_fruitless(context, "east", "west")


@pytest.mark.parametrize(
    ("fields", "is_wanted"),
    [
        ({}, True),
        ({"between": ["north", "west"]}, True),
        ({"between": ["north", "south"]}, False),
        ({"phase": "Failed", "ended_at": 60.1, "triggered": True}, True),
        ({"phase": "Failed", "ended_at": 60.0, "triggered": True}, False),
        ({"phase": "Failed", "ended_at": 99.0, "triggered": False}, False),
        ({**moved(99.0), "triggered": True}, False),
    ],
)
def test_a_session_that_runs_or_came_to_nothing_keeps_others_from_its_clusters(fields: dict[str, Any], is_wanted: bool):
    assert wanted(joined(**fields)) == is_wanted


def test_what_has_not_begun_is_known_by_what_it_asks_for():
    new = session("s")
    assert wanted(new)
    assert wanted(new, target="north")
    assert wanted(new, source="north")
    assert not wanted(new, source="north", target="south")
    assert not wanted(new, source="north", target=None)
    assert not wanted(new, scope="Local")
    context = context_of(new, view=view_of())
    assert not global_detection._is_known_or_fruitless(context, "east", "west"), "its object is not known"


def test_the_pause_keeps_to_the_clock_of_the_fleet():
    failed = joined(phase="Failed", ended_at=90.0, triggered=True)
    for factor, is_wanted in ((1.0, True), (0.5, True), (0.25, False)):
        context = context_of(failed, view=view_of(), time_factor=factor)
        assert global_detection._is_known_or_fruitless(context, "east") == is_wanted


def test_a_second_session_is_not_made_while_the_first_is():
    context = context_of(view=view_of())
    [create] = looked(context, 100.0, 110.0)
    context.table.put(session("s", name=create.name))
    spec = {name: create.spec[name] for name in ("scope", "source", "target", "action")}
    context.requests["s"] = request("s", **spec)
    assert looked(context, 120.0) == []


def test_a_session_says_whose_numbers_it_was_wanted_by():
    finding = DetectionResult("OK", (BrokerAction("west", "output", 0.5),), "apart")
    for view, who in (
        (view_of(overview=ClusterComparison(SECONDS, source="collector")), "collector"),
        (view_of(), "heads"),
    ):
        assert global_detection._session_spec(view, "east", finding)["trigger"]["reason"] == f"apart (by {who})"
    assert (
        global_detection._session_spec(view_of(overview=None), "east", finding)["trigger"]["reason"]
        == "apart (by heads)"
    )


def test_names_are_cut_and_differ():
    """Names of clusters may be long, those of objects may not."""
    context = context_of(view=view_of())
    finding = DetectionResult("OK", (BrokerAction("w" * 40, "output", 0.5),), "a reason " * 100)
    names = {global_detection._session_name(context.outbox, "e" * 19 + "-" + "e" * 20, "w" * 40) for _ in range(2)}
    assert len(names) == 2
    assert all(name.startswith(f"global-{'e' * 19}-{'w' * 20}-") and len(name) <= 63 for name in names)
    assert len(global_detection._session_spec(view_of(), "east", finding)["trigger"]["reason"]) == 500


@pytest.mark.parametrize("cluster", ["east", "west"])
def test_outside_the_windows_of_either_cluster_nothing_is_made(cluster: str):
    """Times here are shortly after midnight."""
    for schedule, count in (("0 3 * * *", 0), ("0 0 * * *", 1)):
        window = MaintenanceWindow(name="w", schedule=schedule, duration=Duration.parse("1h"))
        assert len(looked(context_of(view=view_of(windows={cluster: (window,)})), 100.0, 110.0)) == count
