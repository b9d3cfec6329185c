"""The edge that a subscriber comes to: places, silent attachments, the cut, the hold and every way out."""

from __future__ import annotations

from typing import Any

import pytest
from tests.core.fleet import STOCK, resume
from tests.core.handover.script import S, Stage, attach, is_empty, members

from plimsoll.core import records as r
from plimsoll.core.config import Emulation, Hardware

OTHER = "7.2"
STATES = ["dark", "cutting", "hold"]


def at(state: str, **limits: Any) -> Stage:
    """`x` is in this state at `b`, as attachment 11."""
    stage = Stage(**limits)
    getattr(stage, state)("x")
    assert stage.state("b") == state
    return stage


def lose_link(stage: Stage, edge: str = "b") -> None:
    """The client gives its link up."""
    stage.client.reopen(stage.client.dialled[edge], "gone")
    stage.run()


# -- places


def test_a_place_is_kept_and_the_head_is_told_where():
    stage = Stage()
    stage.prepare("x", "y")
    assert stage.head.of("b", r.Slot) == [r.Slot(S, ["x", "y"], "mem://b", "")]
    assert stage.edge("b").status()["slots"] == 2


def test_no_place_for_whom_there_is_a_record_or_another_place():
    stage = Stage()
    stage.ask("b", resume(1, "x"))
    stage.prepare("y", session=OTHER)
    stage.prepare("x", "y", "z")
    naks = stage.head.of("b", r.Nak)
    assert [(nak.session, nak.members) for nak in naks] == [(S, ["x"]), (S, ["y"])]
    assert all(nak.reason for nak in naks)
    assert stage.head.of("b", r.Slot)[-1].members == ["z"]


def test_no_place_in_a_full_or_a_leaving_edge_and_places_count_for_newcomers():
    stage = Stage(max_subscribers=2)
    stage.ask("b", resume(1, "w"))
    stage.prepare("x", "y")
    assert [nak.members for nak in stage.head.of("b", r.Nak)] == [["y"]]
    stage.ask("b", resume(2, "v"))
    assert stage.shuts("b") == [(2, "full")]
    stage.ask("b", attach(3, "x"))
    assert stage.state("b") == "dark"
    stage.edge("b").leave(stage.fleet.now)
    stage.prepare("y")
    assert [nak.members for nak in stage.head.of("b", r.Nak)] == [["y"], ["x"], ["y"]]


def test_who_is_in_its_place_counts_once():
    stage = Stage(max_subscribers=2)
    stage.dark("x")
    stage.ask("b", resume(1, "w"), resume(2, "v"))
    assert stage.state("b", "w") == "live"
    assert stage.shuts("b") == [(2, "full")]


def test_who_has_a_place_by_replay_resumes_into_it_and_does_not_attach():
    stage = Stage(max_subscribers=1)
    stage.prepare("x", replay=True)
    stage.ask("b", attach(11, "x"))
    assert stage.shuts("b") == [(11, "session")]
    stage.prepare("x", replay=True)
    stage.ask("b", resume(12, "x", n=4))
    assert stage.state("b") == "live"
    assert stage.edge("b").status()["slots"] == 1
    stage.tell("b", r.Abort(S, members("x")))
    assert stage.edge("b").status()["slots"] == 0
    assert stage.state("b") == "live"


def test_a_place_and_who_waits_in_it_expire_together():
    stage = Stage()
    stage.prepare("x", "y", seconds=1.0)
    stage.ask("b", attach(11, "x"))
    stage.run(0.7)
    assert stage.state("b") == "dark"
    stage.run(0.5)
    assert stage.shuts("b") == [(11, "session")]
    assert is_empty(stage.edge("b"))
    stage.tell("b", r.Install(S, ["x"]))
    assert stage.head.of("b", r.Nak)[-1].members == ["x"]


def test_preparing_again_renews_the_time_of_the_same_session():
    stage = Stage()
    stage.prepare("x", seconds=1.0)
    stage.run(0.7)
    stage.ask("b", attach(11, "x"))
    stage.prepare("x", seconds=1.0)
    assert stage.head.of("b", r.Slot)[-1].members == ["x"]
    stage.run(0.7)
    assert stage.state("b") == "dark"
    stage.run(0.5)
    assert stage.state("b") == ""


@pytest.mark.parametrize("state", ["cutting", "hold"])
def test_from_install_on_nothing_expires_by_itself(state: str):
    stage = at(state)
    stage.run(20.0)
    assert stage.state("b") == state
    stage.prepare("x", seconds=0.1)
    assert stage.head.of("b", r.Slot)[-1].members == ["x"]
    assert stage.edge("b").status()["slots"] == 0
    stage.run(1.0)
    assert stage.state("b") == state


# -- attaching


def test_who_attaches_is_neither_matched_nor_covered():
    stage = Stage()
    stage.dark("x")
    assert stage.said("b", r.Held) == [r.Held(11, 1)]
    stage.publish("b", count=3)
    edge = stage.edge("b")
    assert stage.client.items("b", 11) == []
    assert len(edge.index) == len(edge.holdings.cover) == 0
    assert stage.head.of("b", r.Cover) == []
    assert edge.reporter.last["subscribers"] == 0


def test_many_that_attach_in_a_round_are_told_of_at_once():
    stage = Stage()
    stage.dark("x", "y", "z")
    assert stage.head.of("b", r.Attached) == [r.Attached(S, ["x", "y", "z"])]


@pytest.mark.parametrize(
    ("asked", "code", "told"),
    [
        (attach(11, "stranger"), "session", False),
        (attach(11, "x", session=OTHER), "session", False),
        (attach(11, "x", slow="never-mind"), "policy", True),
        (attach(11, "x", n=2**62), "range", True),
        (attach(11, "x", STOCK, "[n,>"), "session", True),
        (attach(11, "x", STOCK, STOCK, STOCK), "session", True),
    ],
)
def test_who_cannot_attach_is_shut_and_the_head_knows_if_it_waits_for_it(asked: r.Attach, code: str, told: bool):
    stage = Stage(max_subscriptions_per_subscriber=2)
    stage.prepare("x")
    stage.ask("b", asked)
    assert stage.shuts("b") == [(11, code)]
    assert [nak.members for nak in stage.head.of("b", r.Nak)] == ([["x"]] if told else [])
    assert stage.said("b", r.Held) == []
    stage.tell("b", r.Abort(S, members("x")))
    assert is_empty(stage.edge("b"))


def test_lists_that_wait_count_towards_the_subscriptions_of_the_edge():
    stage = Stage(max_subscriptions=2)
    stage.prepare("x", "y")
    stage.ask("b", attach(11, "x", STOCK, "[n,>,1]"), attach(12, "y"))
    assert stage.shuts("b") == [(12, "session")]
    stage.tell("b", r.Install(S, ["x"]))
    assert len(stage.edge("b").index) == 2


def test_attaching_twice_keeps_the_first_unless_its_number_is_used_again():
    stage = at("dark")
    stage.ask("b", attach(12, "x"))
    assert stage.shuts("b") == [(12, "session")]
    assert stage.record("b").id == 11
    assert stage.head.of("b", r.Nak) == []
    stage.ask("b", attach(11, "x", version=4))
    assert stage.shuts("b")[1:] == [(11, "replaced")]
    assert stage.said("b", r.Held)[-1] == r.Held(11, 4)
    assert len(stage.edge("b").holdings) == 1


# -- a list that waits


def test_a_list_that_waits_is_changed_and_held():
    stage = at("dark")
    stage.ask("b", r.Subs(11, 2, [r.SubscriptionItem(2, "[n,>,4]")], [1]))
    stage.ask("b", r.Subs(11, 2, [], [2]))
    assert stage.said("b", r.Held) == [r.Held(11, 1), r.Held(11, 2)]
    assert stage.said("b", r.Suback) == []
    assert stage.head.of("b", r.Cover) == []
    stage.tell("b", r.Install(S, ["x"]))
    (asked,) = stage.head.of("b", r.CutRequest)
    assert [item.text for item in asked.cover.adds] == ["[n,>,4]"]


def test_a_change_that_cannot_be_taken_ends_the_attachment_and_not_the_subscription():
    stage = at("dark")
    stage.ask("b", r.Subs(11, 2, [r.SubscriptionItem(2, "[n,>")], []))
    assert stage.shuts("b") == [(11, "session")]
    assert stage.said("b", r.SubRefused) == []
    assert stage.head.of("b", r.Nak)[-1].members == ["x"]
    assert is_empty(stage.edge("b"))


# -- the cut


def test_install_asks_for_the_cut_of_all_in_one_update():
    stage = Stage()
    stage.prepare("x", "y", "z")
    stage.ask("b", attach(11, "x", "[n,>,1]"), attach(12, "y", "[n,<,1]"))
    stage.tell("b", r.Install(S, ["x", "y", "z"]))
    (asked,) = stage.head.of("b", r.CutRequest)
    assert asked.members == members("x", "y", n=3)
    assert (asked.cover.seq, len(asked.cover.adds)) == (2, 2)
    assert [nak.members for nak in stage.head.of("b", r.Nak)] == [["z"]]
    assert stage.head.of("b", r.Cover) == []


def test_the_cut_is_asked_for_even_when_the_cover_does_not_change():
    stage = Stage()
    stage.ask("b", resume(1, "wide"))
    stage.cutting("x")
    (asked,) = stage.head.of("b", r.CutRequest)
    assert (asked.cover.adds, asked.cover.removes) == ([], [])
    assert asked.cover.seq == stage.head.of("b", r.ResumeUp)[-1].cover.seq + 1


def test_install_again_says_nothing_of_those_on_their_way():
    stage = at("cutting")
    stage.tell("b", r.Install(S, ["x"]))
    stage.installed("x")
    stage.tell("b", r.Install(S, ["x"]))
    assert len(stage.head.of("b", r.CutRequest)) == 1
    assert stage.head.of("b", r.Nak) == []


def test_a_cover_too_large_for_a_record_comes_in_parts_before_the_request():
    stage = Stage()
    texts = tuple(f"[class,=,'{i:03}{'y' * 1000}']" for i in range(60))
    stage.cutting("x", texts=texts)
    said = [record for record in stage.head.heard["b"] if isinstance(record, r.Cover | r.CutRequest)]
    assert len(said) > 1
    assert all(isinstance(part, r.Cover) and part.more for part in said[:-1])
    assert isinstance(said[-1], r.CutRequest)
    assert {part.cover.seq if isinstance(part, r.CutRequest) else part.seq for part in said} == {2}


def test_what_the_cut_asks_for_is_promised_when_it_is_acknowledged():
    stage = at("cutting")
    stage.ask("b", r.Subs(11, 2, [r.SubscriptionItem(2, "[n,>,4]")], []))
    assert stage.said("b", r.Held) == [r.Held(11, 1)]
    assert stage.said("b", r.Suback) == [r.Suback(11, 1, []), r.Suback(11, 2, [])]


def test_nothing_is_promised_by_the_update_before_the_cut():
    stage = at("dark")
    stage.tell("b", r.CoverAck(1, []))
    assert stage.said("b", r.Suback) == []
    stage.tell("b", r.Install(S, ["x"]), r.CoverAck(1, []))
    assert stage.said("b", r.Suback) == []
    stage.tell("b", r.CoverAck(2, []))
    assert stage.said("b", r.Suback) == [r.Suback(11, 1, [])]


def test_what_comes_behind_installed_is_held_until_go_and_then_comes_in_order():
    stage = at("cutting")
    assert stage.edge("b").status()["slots"] == 0
    stage.publish("b", count=3)
    stage.installed("x")
    stage.publish("b", count=3)
    assert stage.client.items("b", 11) == []
    stage.head.publish("b", count=2)
    stage.client.tell("b", r.Go(11, S))
    stage.publish("b", count=2)
    assert stage.numbers("b", 11) == [4, 5, 6, 7, 8, 9, 10]
    assert stage.state("b") == "live"
    assert stage.head.of("b", r.Done) == [r.Done(S, ["x"])]
    assert stage.record("b").out is stage.record("b").link.buffer


def test_many_that_go_in_a_round_are_told_of_at_once():
    stage = Stage()
    stage.hold("x", "y", "z")
    stage.ask("b", r.Go(11, S), r.Go(13, S), r.Go(12, S))
    assert stage.head.of("b", r.Done) == [r.Done(S, ["x", "z", "y"])]


def test_go_ahead_of_installed_is_remembered():
    stage = at("cutting")
    stage.ask("b", r.Go(11, S))
    assert stage.state("b") == "cutting"
    assert stage.head.of("b", r.Done) == []
    stage.publish("b", count=2)
    stage.installed("x")
    stage.publish("b", count=2)
    assert stage.numbers("b", 11) == [3, 4]
    assert stage.head.of("b", r.Done) == [r.Done(S, ["x"])]


def test_go_of_another_session_or_of_nobody_moves_nobody():
    stage = at("hold")
    stage.ask("b", r.Go(11, OTHER), r.Go(99, S))
    assert stage.state("b") == "hold"
    stage.ask("b", r.Go(11, S), r.Go(11, S))
    assert stage.head.of("b", r.Done) == [r.Done(S, ["x"])]


def test_done_is_not_overtaken_by_what_the_subscriber_does_next():
    stage = at("hold")
    stage.ask("b", r.Go(11, S), resume(12, "x", n=5))
    said = [type(record) for record in stage.head.heard["b"]]
    assert said.index(r.Done) < said.index(r.ResumeUp)


def test_gaps_are_held_in_their_place_and_those_before_installed_are_not():
    stage = at("cutting")
    gap = r.Gap("h", 100, 1, 100, 1, [], "log")
    stage.head.position = 1
    stage.tell("b", gap)
    stage.installed("x")
    stage.publish("b")
    stage.head.position += 1
    later = r.Gap("h", 100, 3, 100, 3, [], "log")
    stage.tell("b", later)
    stage.publish("b")
    stage.ask("b", r.Go(11, S))
    items = stage.client.items("b", 11)
    assert [item if isinstance(item, r.Gap) else item.position for item in items] == [2, later, 4]


def test_several_subscriptions_hold_a_publication_once():
    stage = Stage()
    stage.hold("x", texts=(STOCK, "[n,>,0]", "[n,<,9]"))
    stage.publish("b", count=3)
    stage.ask("b", r.Go(11, S))
    assert stage.numbers("b", 11) == [1, 2, 3]


def test_changes_of_the_list_count_from_their_place_in_what_is_held():
    stage = at("hold")
    stage.publish("b", count=2)
    stage.ask("b", r.Subs(11, 2, [r.SubscriptionItem(2, "[n,>,4]")], [1]))
    stage.publish("b", count=4)
    stage.ask("b", r.Go(11, S))
    assert stage.numbers("b", 11) == [1, 2, 5, 6]


def test_a_pause_is_heeded_in_hold_and_after():
    stage = at("hold")
    stage.publish("b", count=2)
    stage.ask("b", r.Pause(11))
    stage.ask("b", r.Continue(11), r.Pause(11))
    stage.ask("b", r.Go(11, S))
    stage.publish("b", count=2)
    assert stage.client.items("b", 11) == []
    assert stage.state("b") == "live"
    stage.ask("b", r.Continue(11))
    stage.publish("b")
    assert stage.numbers("b", 11) == [1, 2, 3, 4, 5]


def test_to_go_on_after_a_pause_is_not_to_go():
    stage = at("hold")
    stage.ask("b", r.Pause(11))
    stage.publish("b", count=2)
    stage.ask("b", r.Continue(11))
    stage.run(1.0)
    assert stage.client.items("b", 11) == []


def test_progress_does_not_speak_for_those_on_their_way():
    stage = Stage()
    stage.ask("b", resume(1, "w"))
    stage.dark("x")
    for step in (None, r.Install(S, ["x"]), r.Installed(S, ["x"], 9, [(100, 9)])):
        if step is not None:
            stage.tell("b", step)
        stage.publish("b")
        stage.run(0.2)
        assert stage.said("b", r.Progress)[-1].behind == [11]
    stage.ask("b", r.Go(11, S))
    stage.head.position = 20
    stage.publish("b")
    stage.run(0.2)
    assert stage.said("b", r.Progress)[-1] == r.Progress(21, [])


def test_installed_says_how_far_the_log_is():
    stage = Stage()
    stage.ask("b", resume(1, "w"))
    stage.cutting("x")
    stage.tell("b", r.Installed(S, ["x"], 9, [(100, 9)]))
    stage.run(0.2)
    assert stage.said("b", r.Progress)[-1] == r.Progress(9, [11])


@pytest.mark.parametrize("policy", ["block", "drop-oldest", "disconnect"])
def test_a_hold_that_is_full_ends_the_attachment_and_keeps_the_place(policy: str):
    stage = Stage(lease_seconds=2.0)
    stage.hold("x", slow=policy, queue_bytes=3000)
    stage.publish("b", count=2, size=1000)
    assert stage.state("b") == "hold"
    stage.publish("b", count=2, size=1000)
    assert stage.shuts("b") == [(11, "hold")]
    assert stage.state("b") == "closed"
    edge = stage.edge("b")
    assert len(edge.holdings.cover) == 1
    assert edge.counters["holds_full"] == 1
    assert edge.counters["deliveries_dropped"] == 0
    assert stage.client.items("b", 11) == []
    stage.run(3.0)
    assert stage.head.of("b", r.Expire) == [r.Expire("x", (1, 3))]
    stage.tell("b", r.Release("x", (1, 4)))
    assert is_empty(edge)


def test_what_is_held_is_counted_in_the_load_report():
    stage = at("hold")
    stage.publish("b", count=2, size=1000)
    stage.run(1.5)
    report = stage.edge("b").reporter.last
    assert report["output_queue_messages"] == 2
    assert report["output_queue_bytes"] > 2000
    assert report["subscribers"] == 1


# -- ends


@pytest.mark.parametrize("state", STATES)
def test_abort_leaves_nothing(state: str):
    stage = at(state)
    stage.publish("b", count=2)
    stage.tell("b", r.Abort(OTHER, members("x")))
    assert stage.state("b") == state
    stage.tell("b", r.Abort(S, members("x")))
    assert stage.shuts("b") == [(11, "session")]
    assert is_empty(stage.edge("b"))
    assert stage.client.items("b", 11) == []


def test_abort_does_not_reach_who_has_gone_live():
    stage = at("hold")
    stage.ask("b", r.Go(11, S))
    stage.tell("b", r.Abort(S, members("x")), r.Orphan(S, ["x"]), r.Part(S, members("x")))
    assert stage.state("b") == "live"


@pytest.mark.parametrize("end", ["detach", "link"])
@pytest.mark.parametrize("state", STATES)
def test_who_is_lost_on_the_way_keeps_its_place_from_install_on(state: str, end: str):
    stage = at(state)
    if end == "detach":
        stage.ask("b", r.Detach(11, False))
    else:
        lose_link(stage)
    edge = stage.edge("b")
    if state == "dark":
        assert stage.state("b") == ""
        assert edge.status()["slots"] == 1
        assert len(edge.holdings) == 0
        stage.tell("b", r.Abort(S, members("x")))
    else:
        assert stage.state("b") == "closed"
        assert len(edge.holdings.cover) == 1
        stage.installed("x")
        assert stage.state("b") == "closed"
        stage.tell("b", r.Abort(S, members("x")))
    assert is_empty(edge)


def test_who_has_detached_in_the_dark_may_attach_again():
    stage = at("dark")
    stage.ask("b", r.Detach(11, True))
    assert stage.head.of("b", r.Forget) == []
    stage.ask("b", attach(12, "x", version=3))
    assert stage.said("b", r.Held)[-1] == r.Held(12, 3)
    stage.tell("b", r.Install(S, ["x"]))
    assert len(stage.head.of("b", r.CutRequest)) == 1


def test_who_withdraws_from_hold_has_gone_for_good():
    stage = at("hold")
    stage.ask("b", r.Detach(11, True))
    assert stage.head.of("b", r.Forget) == [r.Forget("x", (1, 3))]
    assert is_empty(stage.edge("b"))


@pytest.mark.parametrize("state", STATES)
def test_resume_wins_over_the_session_at_the_same_edge(state: str):
    stage = at(state)
    stage.publish("b", count=2)
    stage.ask("b", resume(12, "x", "[n,>,3]", n=4))
    assert stage.shuts("b") == [(11, "replaced")]
    edge = stage.edge("b")
    assert [str(s) for _, s in edge.holdings.cover.items()] == ["[n,>,3]"]
    stage.tell("b", r.Abort(S, members("x")))
    assert edge.status()["slots"] == 0
    stage.publish("b", count=2)
    assert stage.numbers("b", 12) == [4]
    stage.ask("b", r.Detach(12, True))
    assert is_empty(edge)


@pytest.mark.parametrize("state", STATES)
def test_release_ends_it_when_the_subscriber_is_served_elsewhere(state: str):
    stage = at(state)
    stage.tell("b", r.Release("x", (1, 4)))
    assert stage.shuts("b") == [(11, "released")]
    stage.tell("b", r.Abort(S, members("x")))
    assert is_empty(stage.edge("b"))


def test_part_closes_what_is_held_and_keeps_its_place():
    stage = at("hold")
    stage.tell("b", r.Part(S, members("x", n=7)), r.Part(OTHER, members("x")))
    assert stage.state("b") == "hold"
    stage.tell("b", r.Part(S, members("x")))
    assert stage.shuts("b") == [(11, "parted")]
    assert stage.state("b") == "closed"
    assert len(stage.edge("b").holdings.cover) == 1


@pytest.mark.parametrize("state", ["live", "blocked", "closed"])
def test_part_of_who_has_gone_live_says_done_again(state: str):
    stage = Stage(queue_bytes=500)
    stage.hold("x", slow="block")
    stage.ask("b", r.Go(11, S))
    if state == "blocked":
        stage.ask("b", r.Pause(11))
        stage.publish("b", size=1000)
    elif state == "closed":
        stage.ask("b", r.Detach(11, False))
    assert stage.state("b") == state
    stage.tell("b", r.Part(S, members("x")))
    assert stage.state("b") == state
    assert stage.head.of("b", r.Done) == [r.Done(S, ["x"]), r.Done(S, ["x"])]


@pytest.mark.parametrize(("state", "left"), [("dark", ""), ("cutting", ""), ("hold", "closed")])
def test_orphans_are_dropped_but_for_those_that_are_owned_here(state: str, left: str):
    stage = at(state)
    stage.prepare("y")
    stage.tell("b", r.Orphan(OTHER, ["x", "y"]))
    assert stage.state("b") == state
    stage.tell("b", r.Orphan(S, ["x", "y"]))
    assert stage.shuts("b") == [(11, "session")]
    assert stage.state("b") == left
    assert stage.edge("b").status()["slots"] == 0
    assert len(stage.edge("b").holdings.cover) == (left == "closed")


@pytest.mark.parametrize("state", STATES)
def test_a_new_head_knows_of_no_session(state: str):
    stage = at(state)
    stage.ask("b", resume(1, "w"))
    stage.prepare("y")
    stage.tell("b", r.Mediator(5), r.Mediator(3))
    stage.new_head(200)
    assert stage.shuts("b") == [(11, "head")]
    edge = stage.edge("b")
    assert set(edge.records) == {"w"}
    assert edge.status()["slots"] == 0
    report = stage.head.heard["b"][0]
    assert isinstance(report, r.Report)
    assert [item.subscriber for item in report.owned] == ["w"]
    assert report.mediator == edge.status()["mediator"] == 5


def test_who_has_come_is_reported_with_where_its_cover_began():
    stage = at("cutting")
    stage.head.position = 30
    stage.installed("x")
    stage.ask("b", r.Go(11, S))
    stage.new_head(200)
    report = stage.head.heard["b"][0]
    assert report.owned == [r.ReportItem("x", (1, 3), (100, 30))]


@pytest.mark.parametrize(("state", "left"), [("dark", ""), ("cutting", "closed"), ("hold", "closed")])
def test_an_edge_that_leaves_takes_nobody_in(state: str, left: str):
    stage = at(state)
    stage.prepare("y")
    stage.edge("b").leave(stage.fleet.now)
    stage.run()
    assert stage.shuts("b") == [(11, "leaving")]
    assert stage.state("b") == left
    told = {x for nak in stage.head.of("b", r.Nak) for x in nak.members}
    assert told == ({"x", "y"} if state == "dark" else {"y"})
    stage.ask("b", attach(12, "y"))
    assert stage.shuts("b")[-1] == (12, "leaving")
    stage.tell("b", r.Abort(S, members("x")))
    assert is_empty(stage.edge("b"))
    assert stage.edge("b").done()


def test_the_places_of_hand_over_keep_to_the_order_of_a_slow_server():
    slow = Hardware(emulation=Emulation(base_seconds=0.02))
    stage = Stage(hardware={"b": slow})
    stage.dark("x")
    stage.head.publish("b", count=5)
    stage.head.tell("b", r.Install(S, ["x"]))
    stage.head.publish("b", count=5)
    stage.head.tell("b", r.Installed(S, ["x"], 10, [(100, 10)]))
    stage.head.publish("b", count=5)
    stage.run(0.15)
    assert stage.state("b") == "cutting"
    stage.run(0.15)
    assert stage.state("b") == "hold"
    stage.ask("b", r.Go(11, S))
    stage.run(0.5)
    assert stage.numbers("b", 11) == [11, 12, 13, 14, 15]
