"""A head passes on loads, states, triggers and profiles: only to their receivers, and only from permitted senders."""

from __future__ import annotations

from typing import Any

from tests.core.fleet import Fleet, Mediator, one_cluster, resume

from plimsoll.core.head.load_exchange import REPORTS_AT_ONCE
from plimsoll.core.protocol import messages as msg


def said(mediator: Mediator, kind: Any) -> list[Any]:
    return [record for record in mediator.heard["h"] if isinstance(record, kind)]


def with_mediator(fleet: Fleet) -> Mediator:
    mediator = fleet.mediator("h")
    fleet.run(0.3)
    return mediator


def test_edges_hear_of_the_others_and_not_of_themselves(balanced: Any):
    fleet = balanced(3)
    for name in ("e1", "e2", "e3"):
        watch = fleet.edge(name).balancing_agent
        assert watch is not None
        assert sorted(watch.load_monitor.others) == sorted({"e1", "e2", "e3"} - {name})


def test_loads_go_without_counters_and_in_frames_that_fit(balanced: Any):
    fleet = balanced(2)
    head = fleet.head()
    head.control_to_send()
    report = dict(fleet.edge("e1").reporter.last)
    exchange = head.load_exchange
    assert exchange is not None
    exchange._loads = {f"x{i}": (head.now, report) for i in range(REPORTS_AT_ONCE + 1)} | {"e1": (head.now, report)}
    head.edges.update({f"x{i}": head.edges["e1"] for i in range(REPORTS_AT_ONCE + 1)})
    exchange.tell_loads()
    frames = [frame for peer, frame in head.control_to_send() if peer == head.reporter.brokers["e2"]]
    assert len(frames) == 2
    assert all("counters" not in load for _, load in exchange._loads.values() if load is not report)


def test_an_edge_that_falls_silent_is_not_told_of_any_more(balanced: Any):
    fleet = balanced(2)
    fleet.freeze("e1")
    fleet.run(2.5)
    watch = fleet.edge("e2").balancing_agent
    assert watch is not None
    last = watch.load_monitor.others["e1"][-1].seq if "e1" in watch.load_monitor.others else None
    fleet.run(3.0)
    assert fleet.head().load_exchange is not None
    assert "e1" not in fleet.head().load_exchange._loads
    assert "e1" not in watch.load_monitor.others or watch.load_monitor.others["e1"][-1].seq == last


def test_a_state_reaches_its_edge_and_the_answer_comes_back(balanced: Any):
    fleet = balanced(2)
    mediator = with_mediator(fleet)
    mediator.say_control("h", msg.Reservation(5, 1, "e2", "s", "ASK", 10.0))
    fleet.run(0.2)
    [answer] = said(mediator, msg.ReservationReply)
    assert (answer.mediator, answer.number, answer.edge, answer.session, answer.state) == (5, 1, "e2", "s", "OK")
    assert answer.report["broker"] == "e2"
    mediator.say_control("h", msg.Reservation(5, 2, "e2", "t", "ASK", 10.0))
    fleet.run(0.2)
    assert said(mediator, msg.ReservationReply)[-1].state == "BUSY"


def test_an_older_mediator_is_not_passed_on(balanced: Any):
    fleet = balanced(2)
    mediator = with_mediator(fleet)
    mediator.say_control("h", msg.Reservation(5, 1, "e2", "s", "ASK", 10.0))
    mediator.say_control("h", msg.Reservation(4, 9, "e1", "s", "ASK", 10.0))
    fleet.run(0.2)
    assert [answer.edge for answer in said(mediator, msg.ReservationReply)] == ["e2"]
    assert fleet.head().mediator_fence.epoch == 5


def test_only_mediators_command_and_no_edge_reports_for_another(balanced: Any):
    fleet = balanced(2)
    mediator = with_mediator(fleet)
    stranger = Mediator("stranger", fleet.ids())
    stranger.now = fleet.now
    fleet.nodes["stranger"] = stranger
    stranger.dial_control("h", "ctl://h")
    stranger.say_control("h", msg.Reservation(5, 1, "e2", "s", "BUSY", 10.0))
    stranger.say_control("h", msg.Trigger("e1", 1, 1, [], "no"))
    fleet.edge("e1").to_head(msg.Trigger("e2", 1, 1, [], "no"))
    fleet.run(0.2)
    assert not said(mediator, msg.ReservationReply)
    assert not said(mediator, msg.Trigger)
    watch = fleet.edge("e2").balancing_agent
    assert watch is not None
    assert watch.state == "OK"


def test_a_profile_is_taken_against_the_cover_of_the_target(balanced: Any):
    fleet = balanced(2)
    mediator = with_mediator(fleet)
    client = fleet.client("c", "h", "e1", "e2")
    client.tell("e1", resume(1, "s"))
    client.tell("e2", resume(2, "t", "[n,>,5]"))
    fleet.run(0.5)
    heard: list[Any] = []
    watch = fleet.edge("e1").balancing_agent
    assert watch is not None
    assert watch.profiler is not None
    watch.profiler.on_query = heard.append
    mediator.say_control("h", msg.ProfileQuery(9, "e1", "e2"))
    mediator.say_control("h", msg.ProfileQuery(9, "e1", "unknown"))
    fleet.run(0.2)
    assert [(q.part, q.parts, q.accepting) for q in heard] == [(0, 1, ["[n,>,5]"]), (0, 1, [])]


def test_a_mediator_is_told_what_an_edge_takes_in_and_says_it_to_edges_of_another_head(balanced: Any):
    fleet = balanced(2)
    mediator = with_mediator(fleet)
    client = fleet.client("c", "h", "e2")
    client.tell("e2", resume(2, "t", "[n,>,5]"))
    fleet.run(0.5)
    heard: list[Any] = []
    watch = fleet.edge("e1").balancing_agent
    assert watch is not None
    assert watch.profiler is not None
    watch.profiler.on_query = heard.append
    mediator.say_control("h", msg.CoverQuery(7, "e2"))
    mediator.say_control("h", msg.CoverQuery(8, "e1"))
    mediator.say_control("h", msg.CoverQuery(9, "unknown"))
    mediator.say_control("h", msg.ProfileQuery(10, "e1", "w", 0, 1, ["[n,>,9]"]))
    fleet.run(0.2)
    told = [(one.id, one.edge, one.part, one.parts, one.texts) for one in said(mediator, msg.CoverReply)]
    assert told == [(7, "e2", 0, 1, ["[n,>,5]"]), (8, "e1", 0, 1, [])]
    assert [(q.target, q.part, q.parts, q.accepting) for q in heard] == [("w", 0, 1, ["[n,>,9]"])]


def test_without_a_policy_nothing_is_passed_on_and_nothing_is_kept():
    fleet = one_cluster(2, report_seconds=0.2)
    mediator = with_mediator(fleet)
    mediator.say_control("h", msg.Reservation(5, 1, "e2", "s", "ASK", 10.0))
    mediator.say_control("h", msg.ProfileQuery(9, "e1", "e2"))
    fleet.run(1.0)
    assert not said(mediator, msg.ReservationReply)
    assert fleet.head().load_exchange is None
    assert fleet.edge("e1").balancing_agent is None
    assert fleet.edge("e1")._record_traffic is None
    assert fleet.edge("e1").reporter.last["balanced_set"] == []
    assert "match_base_seconds" not in fleet.edge("e1").reporter.last


def load(name: str, **changes: Any) -> dict[str, Any]:
    return {"broker": name, "cluster": "west", "state": "OK", "epoch": 5, "seq": 3, "input_utilization": 0.2, **changes}


def others(fleet: Fleet, edge: str) -> set[str]:
    watch = fleet.edge(edge).balancing_agent
    assert watch is not None
    return set(watch.load_monitor.others)


def test_edges_see_those_of_another_cluster_for_as_long_as_a_mediator_says(balanced: Any):
    fleet = balanced(2)
    mediator = with_mediator(fleet)
    mediator.say_control("h", msg.PeerClusterLoads(5, "west", 3.0, [load("w1"), load("w2")]))
    fleet.run(2.0)
    assert {"w1", "w2"} <= others(fleet, "e1")
    assert {"w1", "w2"} <= others(fleet, "e2")
    fleet.run(3.0)
    assert fleet.head().load_exchange._joined == {}


def test_only_the_latest_mediator_joins_clusters(balanced: Any):
    fleet = balanced(2)
    mediator = with_mediator(fleet)
    head = fleet.head()
    assert head.load_exchange is not None
    stranger = head.reporter.brokers["e1"]
    head.on_control(stranger, msg.PeerClusterLoads(99, "west", 3.0, [load("w1")]))
    head.mediator_fence.raise_to(6)
    mediator.say_control("h", msg.PeerClusterLoads(5, "west", 3.0, [load("w2")]))
    fleet.run(0.5)
    assert head.load_exchange._joined == {}


def test_what_is_no_load_or_one_of_our_own_is_not_passed_on(balanced: Any):
    fleet = balanced(2)
    mediator = with_mediator(fleet)
    bad = [load("w1", state="WHAT"), load("w2", input_utilization=-1.0), {"seq": 1}, load("e2", input_utilization=9.0)]
    mediator.say_control("h", msg.PeerClusterLoads(5, "west", 3.0, [*bad, load("w3")]))
    fleet.run(0.5)
    assert set(fleet.head().load_exchange._joined) == {"w3"}
    assert fleet.head().counters["loads_refused"] == 3


def test_a_report_of_an_edge_that_cannot_be_read_is_counted(balanced: Any):
    fleet = balanced(2)
    head = fleet.head()
    edge = head.reporter.brokers["e1"]
    assert "loads_refused" not in head.counters
    head.on_control(edge, msg.LoadUpdate({**fleet.edge("e1").reporter.last, "match_delay_seconds": -1.0}))
    assert head.counters["loads_refused"] == 1


def test_a_head_reports_its_cluster_on_average_and_na_with_one_of_its_edges(balanced: Any):
    fleet = balanced(2)
    exchange = fleet.head().load_exchange
    assert exchange is not None
    exchange._loads = {"e1": (0.0, load("e1", input_utilization=0.4)), "e2": (0.0, load("e2", input_utilization=0.2))}
    found = exchange.cluster()
    assert found["cluster_state"] == "OK"
    assert round(found["cluster_load"]["input_utilization"], 6) == 0.3
    assert found["cluster_load"]["edges"] == 2
    exchange._loads["e2"] = (0.0, load("e2", state="N/A"))
    assert exchange.cluster()["cluster_state"] == "N/A"
    exchange._loads = {}
    assert exchange.cluster() == {}
