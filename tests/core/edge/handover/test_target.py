"""The target of a hand-over: slots, standby attachments, the cut and the buffer."""

from __future__ import annotations

import pytest
from tests.core.fleet import STOCK, resume
from tests.core.head.handover.script import S, Stage, at, attach, is_empty, members

from plimsoll.core.protocol import messages as msg

OTHER = "7.2"
# -- places


def test_a_place_is_kept_and_the_head_is_told_where():
    stage = Stage()
    stage.prepare("x", "y")
    assert stage.head.of("b", msg.Slot) == [msg.Slot(S, ["x", "y"], "mem://b", "")]
    assert stage.edge("b").status()["slots"] == 2


def test_no_slot_for_a_subscriber_with_an_attachment_or_another_slot():
    stage = Stage()
    stage.ask("b", resume(1, "x"))
    stage.prepare("y", session=OTHER)
    stage.prepare("x", "y", "z")
    naks = stage.head.of("b", msg.HandoverRejected)
    assert [(nak.session, nak.members) for nak in naks] == [(S, ["x"]), (S, ["y"])]
    assert all(nak.reason for nak in naks)
    assert stage.head.of("b", msg.Slot)[-1].members == ["z"]


def test_no_place_in_a_full_or_a_leaving_edge_and_places_count_for_newcomers():
    stage = Stage(max_subscribers=2)
    stage.ask("b", resume(1, "w"))
    stage.prepare("x", "y")
    assert [nak.members for nak in stage.head.of("b", msg.HandoverRejected)] == [["y"]]
    stage.ask("b", resume(2, "v"))
    assert stage.shuts("b") == [(2, "full")]
    stage.ask("b", attach(3, "x"))
    assert stage.state("b") == "dark"
    stage.edge("b").leave(stage.fleet.now)
    stage.prepare("y")
    assert [nak.members for nak in stage.head.of("b", msg.HandoverRejected)] == [["y"], ["x"], ["y"]]


def test_who_has_a_record_finds_room_in_a_full_edge():
    stage = Stage(max_subscribers=1)
    stage.ask("b", resume(1, "x", n=2))
    stage.ask("b", resume(2, "x", n=4))
    assert stage.shuts("b") == [(1, "replaced")]
    assert (stage.record("b").id, stage.state("b")) == (2, "live")


def test_a_place_is_freed_by_its_own_session_only():
    stage = Stage()
    stage.prepare("x", "y")
    stage.tell(
        "b",
        msg.Abort(OTHER, members("x", "y")),
        msg.ForceDetach(OTHER, members("x", "y")),
        msg.Orphan(OTHER, ["x", "y"]),
    )
    assert stage.edge("b").status()["slots"] == 2
    stage.tell("b", msg.ForceDetach(S, members("x")), msg.Orphan(S, ["y"]))
    assert stage.edge("b").status()["slots"] == 0


def test_who_is_in_its_place_counts_once():
    stage = Stage(max_subscribers=3)
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
    stage.tell("b", msg.Abort(S, members("x")))
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
    stage.tell("b", msg.Install(S, ["x"]))
    assert stage.head.of("b", msg.HandoverRejected)[-1].members == ["x"]


def test_preparing_again_renews_the_time_of_the_same_session():
    stage = Stage()
    stage.prepare("x", seconds=1.0)
    stage.run(0.7)
    stage.ask("b", attach(11, "x"))
    stage.prepare("x", seconds=1.0)
    assert stage.head.of("b", msg.Slot)[-1].members == ["x"]
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
    assert stage.head.of("b", msg.Slot)[-1].members == ["x"]
    assert stage.edge("b").status()["slots"] == 0
    stage.run(1.0)
    assert stage.state("b") == state


# -- attaching


def test_who_attaches_is_matched_and_covered_and_is_given_nothing():
    stage = Stage()
    stage.dark("x", texts=(STOCK, "[n,>,0]"))
    assert stage.said("b", msg.Held) == [msg.Held([msg.HeldItem(11, 1)])]
    stage.publish("b", count=3)
    edge = stage.edge("b")
    assert stage.client.items("b", 11) == []
    assert len(edge.index) == len(edge.subscription_table.cover) == 2
    (cover,) = stage.head.of("b", msg.Cover)
    assert (cover.seq, len(cover.adds)) == (2, 2)
    assert stage.said("b", msg.Suback) == []
    assert edge.reporter.last["subscribers"] == 0


@pytest.mark.parametrize("state", ["dark", "cutting"])
def test_what_another_edge_delivers_is_no_output_here(state: str):
    stage = at(state)
    stage.ask("b", resume(1, "w"))
    stage.edge("b").meter.deliveries = 0
    stage.publish("b", count=3)
    meter = stage.edge("b").meter
    assert (meter.deliveries, meter.silent_matches) == (3, 3)
    if state == "cutting":
        stage.installed("x")
        stage.publish("b")
        assert (meter.deliveries, meter.silent_matches) == (5, 3)


def test_many_that_attach_in_a_round_are_told_of_at_once():
    stage = Stage()
    stage.dark("x", "y", "z")
    assert stage.head.of("b", msg.TargetAttached) == [msg.TargetAttached(S, ["x", "y", "z"])]


def test_those_that_attach_together_are_answered_together_and_each_for_itself():
    stage = Stage()
    stage.prepare("x", "y")
    members = [attach(number, name).members[0] for number, name in ((11, "x"), (12, "z"), (13, "y"))]
    stage.ask("b", msg.Attach(S, members))
    assert stage.said("b", msg.Held) == [msg.Held([msg.HeldItem(11, 1), msg.HeldItem(13, 1)])]
    assert stage.shuts("b") == [(12, "session")]


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
def test_who_cannot_attach_is_shut_and_the_head_knows_if_it_waits_for_it(asked: msg.Attach, code: str, told: bool):
    stage = Stage(max_subscriptions_per_subscriber=2)
    stage.prepare("x")
    stage.ask("b", asked)
    assert stage.shuts("b") == [(11, code)]
    assert [nak.members for nak in stage.head.of("b", msg.HandoverRejected)] == ([["x"]] if told else [])
    assert stage.said("b", msg.Held) == []
    stage.tell("b", msg.Abort(S, members("x")))
    assert is_empty(stage.edge("b"))


def test_lists_that_wait_count_towards_the_subscriptions_of_the_edge():
    stage = Stage(max_subscriptions=2)
    stage.prepare("x", "y")
    stage.ask("b", attach(11, "x", STOCK, "[n,>,1]"), attach(12, "y"))
    assert stage.shuts("b") == [(12, "session")]
    stage.tell("b", msg.Install(S, ["x"]))
    assert len(stage.edge("b").index) == 2


def test_attaching_twice_keeps_the_first_unless_its_number_is_used_again():
    stage = at("dark")
    stage.ask("b", attach(12, "x"))
    assert stage.shuts("b") == [(12, "session")]
    assert stage.record("b").id == 11
    assert stage.head.of("b", msg.HandoverRejected) == []
    stage.ask("b", attach(11, "x", version=4))
    assert stage.shuts("b")[1:] == [(11, "replaced")]
    assert stage.said("b", msg.Held)[-1] == msg.Held([msg.HeldItem(11, 4)])
    assert len(stage.edge("b").subscription_table) == 1


# -- a list that waits


def test_a_list_that_waits_is_changed_and_held():
    stage = at("dark")
    stage.ask("b", msg.Subs(11, 2, [msg.SubscriptionItem(2, "[n,>,4]")], [1]))
    stage.ask("b", msg.Subs(11, 2, [], [2]))
    stage.ask("b", msg.Subs(11, 1, [], [2]))
    assert stage.said("b", msg.Held) == [msg.Held([msg.HeldItem(11, version)]) for version in (1, 2, 2, 2)]
    assert stage.said("b", msg.Suback) == []
    added, changed = stage.head.of("b", msg.Cover)
    assert ([item.text for item in changed.adds], changed.removes) == (["[n,>,4]"], [added.adds[0].id])
    assert [str(s) for _, s in stage.edge("b").subscription_table.cover.items()] == ["[n,>,4]"]
    assert len(stage.edge("b").index) == 1
    stage.tell("b", msg.Install(S, ["x"]))
    assert len(stage.head.of("b", msg.CutRequest)) == 1


def test_a_change_that_cannot_be_taken_ends_the_attachment_and_not_the_subscription():
    stage = at("dark")
    stage.ask("b", msg.Subs(11, 2, [msg.SubscriptionItem(2, "[n,>")], []))
    assert stage.shuts("b") == [(11, "session")]
    assert stage.said("b", msg.SubRefused) == []
    assert stage.edge("b").counters["subscriptions_refused"] == 1
    assert stage.head.of("b", msg.HandoverRejected)[-1].members == ["x"]
    assert is_empty(stage.edge("b"))


# -- the cut


def test_install_asks_for_the_cut_of_all_in_one_update():
    stage = Stage()
    stage.prepare("x", "y", "z")
    stage.ask("b", attach(11, "x", "[n,>,1]"), attach(12, "y", "[n,<,1]"))
    stage.tell("b", msg.Install(S, ["x", "y", "z"]))
    (asked,) = stage.head.of("b", msg.CutRequest)
    assert asked.members == members("x", "y", n=3)
    assert [(cover.seq, len(cover.adds)) for cover in stage.head.of("b", msg.Cover)] == [(2, 1), (3, 1)]
    assert (asked.cover.seq, asked.cover.adds, asked.cover.removes) == (4, [], [])
    assert [nak.members for nak in stage.head.of("b", msg.HandoverRejected)] == [["z"]]


def test_the_cut_is_asked_for_even_when_the_cover_does_not_change():
    stage = Stage()
    stage.ask("b", resume(1, "wide"))
    stage.cutting("x")
    (asked,) = stage.head.of("b", msg.CutRequest)
    assert (asked.cover.adds, asked.cover.removes) == ([], [])
    assert asked.cover.seq == stage.head.of("b", msg.Cover)[-1].seq + 1


def test_install_again_says_nothing_of_those_on_their_way():
    stage = at("cutting")
    stage.tell("b", msg.Install(S, ["x"]))
    stage.installed("x")
    stage.tell("b", msg.Install(S, ["x"]))
    assert len(stage.head.of("b", msg.CutRequest)) == 1
    assert stage.head.of("b", msg.HandoverRejected) == []


def test_what_the_cut_asks_for_is_promised_when_it_is_acknowledged():
    stage = at("cutting")
    stage.ask("b", msg.Subs(11, 2, [msg.SubscriptionItem(2, "[n,>,4]")], []))
    assert stage.said("b", msg.Held) == [msg.Held([msg.HeldItem(11, 1)])]
    assert stage.said("b", msg.Suback) == [msg.Suback(11, 1, []), msg.Suback(11, 2, [])]


def test_nothing_is_promised_by_the_update_before_the_cut():
    stage = at("dark")
    stage.tell("b", msg.CoverAck(2, []))
    assert stage.said("b", msg.Suback) == []
    stage.tell("b", msg.Install(S, ["x"]), msg.CoverAck(2, []))
    assert stage.said("b", msg.Suback) == []
    stage.tell("b", msg.CoverAck(3, []))
    assert stage.said("b", msg.Suback) == [msg.Suback(11, 1, [])]


def test_what_comes_behind_installed_is_held_until_go_and_then_comes_in_order():
    stage = at("cutting")
    assert stage.edge("b").status()["slots"] == 0
    stage.publish("b", count=3)
    stage.installed("x")
    stage.publish("b", count=3)
    assert stage.client.items("b", 11) == []
    stage.head.publish("b", count=2)
    stage.client.tell("b", msg.Go(S, [msg.GoItem(11)]))
    stage.publish("b", count=2)
    assert stage.numbers("b", 11) == [4, 5, 6, 7, 8, 9, 10]
    assert stage.state("b") == "live"
    assert stage.head.of("b", msg.Done) == [msg.Done(S, ["x"])]
    assert stage.record("b").out is stage.record("b").link.buffer


@pytest.mark.parametrize("state", ["dark", "cutting", "hold"])
def test_progress_names_it_as_behind_until_what_was_held_has_gone(state: str):
    stage = at(state)
    stage.publish("b", count=3)
    stage.run(0.5)
    assert stage.said("b", msg.Progress)[-1] == msg.Progress(3, [11])


def test_the_first_progress_that_does_not_name_it_is_behind_what_was_held():
    stage = at("hold")
    stage.publish("b", count=3)
    stage.ask("b", msg.Go(S, [msg.GoItem(11)]))
    stage.publish("b", count=1)
    stage.run(0.5)
    free = [record.position for record in stage.said("b", msg.Progress) if 11 not in record.behind]
    assert free
    assert min(free) >= 3
    assert stage.numbers("b", 11) == [1, 2, 3, 4]


def test_many_that_go_in_a_round_are_told_of_at_once():
    stage = Stage()
    stage.hold("x", "y", "z")
    stage.ask("b", msg.Go(S, [msg.GoItem(11)]), msg.Go(S, [msg.GoItem(13)]), msg.Go(S, [msg.GoItem(12)]))
    assert stage.head.of("b", msg.Done) == [msg.Done(S, ["x", "z", "y"])]


def test_an_unknown_number_does_not_delay_those_after_it():
    stage = Stage()
    stage.hold("x", "y")
    stage.ask("b", msg.Go(S, [msg.GoItem(11), msg.GoItem(99), msg.GoItem(12)]))
    assert stage.head.of("b", msg.Done) == [msg.Done(S, ["x", "y"])]


def test_go_ahead_of_installed_is_remembered():
    stage = at("cutting")
    stage.ask("b", msg.Go(S, [msg.GoItem(11)]))
    assert stage.state("b") == "cutting"
    assert stage.head.of("b", msg.Done) == []
    stage.publish("b", count=2)
    stage.installed("x")
    stage.publish("b", count=2)
    assert stage.numbers("b", 11) == [3, 4]
    assert stage.head.of("b", msg.Done) == [msg.Done(S, ["x"])]


def test_go_of_another_session_or_of_no_attachment_moves_none():
    stage = at("hold")
    stage.ask("b", msg.Go(OTHER, [msg.GoItem(11)]), msg.Go(S, [msg.GoItem(99)]))
    assert stage.state("b") == "hold"
    stage.ask("b", msg.Go(S, [msg.GoItem(11)]), msg.Go(S, [msg.GoItem(11)]))
    assert stage.head.of("b", msg.Done) == [msg.Done(S, ["x"])]


def test_done_is_not_overtaken_by_what_the_subscriber_does_next():
    stage = at("hold")
    stage.ask("b", msg.Go(S, [msg.GoItem(11)]), resume(12, "x", n=5))
    said = [type(record) for record in stage.head.heard["b"]]
    assert said.index(msg.Done) < said.index(msg.ResumeUp)


def test_gaps_are_held_in_their_place_and_those_before_installed_are_not():
    stage = at("cutting")
    gap = msg.Gap("h", 100, 1, 100, 1, [], "log")
    stage.head.position = 1
    stage.tell("b", gap)
    stage.installed("x")
    stage.publish("b")
    stage.head.position += 1
    later = msg.Gap("h", 100, 3, 100, 3, [], "log")
    stage.tell("b", later)
    stage.publish("b")
    stage.ask("b", msg.Go(S, [msg.GoItem(11)]))
    items = stage.client.items("b", 11)
    assert [item if isinstance(item, msg.Gap) else item.position for item in items] == [2, later, 4]


def test_several_subscriptions_hold_a_publication_once():
    stage = Stage()
    stage.hold("x", texts=(STOCK, "[n,>,0]", "[n,<,9]"))
    stage.publish("b", count=3)
    stage.ask("b", msg.Go(S, [msg.GoItem(11)]))
    assert stage.numbers("b", 11) == [1, 2, 3]


def test_changes_of_the_list_count_from_their_place_in_what_is_held():
    stage = at("hold")
    stage.publish("b", count=2)
    stage.ask("b", msg.Subs(11, 2, [msg.SubscriptionItem(2, "[n,>,4]")], [1]))
    stage.publish("b", count=4)
    stage.ask("b", msg.Go(S, [msg.GoItem(11)]))
    assert stage.numbers("b", 11) == [1, 2, 5, 6]


def test_a_pause_is_heeded_in_hold_and_after():
    stage = at("hold")
    stage.publish("b", count=2)
    stage.ask("b", msg.Pause(11))
    stage.ask("b", msg.Continue(11), msg.Pause(11))
    stage.ask("b", msg.Go(S, [msg.GoItem(11)]))
    stage.publish("b", count=2)
    assert stage.client.items("b", 11) == []
    assert stage.state("b") == "live"
    stage.ask("b", msg.Continue(11))
    stage.publish("b")
    assert stage.numbers("b", 11) == [1, 2, 3, 4, 5]


def test_what_is_dropped_after_a_hold_is_told_in_the_epoch_of_its_head():
    stage = Stage()
    stage.hold("x", slow="drop-oldest", queue_bytes=3000)
    stage.publish("b", count=2, size=1000)
    stage.ask("b", msg.Pause(11), msg.Go(S, [msg.GoItem(11)]))
    stage.publish("b", count=4, size=1000)
    stage.ask("b", msg.Continue(11))
    gap, *_ = stage.client.items("b", 11)
    epoch = stage.edge("b").head_epoch
    assert isinstance(gap, msg.Gap)
    assert (gap.low_epoch, gap.low, gap.epoch) == (epoch, 1, epoch)


def test_to_go_on_after_a_pause_is_not_to_go():
    stage = at("hold")
    stage.ask("b", msg.Pause(11))
    stage.publish("b", count=2)
    stage.ask("b", msg.Continue(11))
    stage.run(1.0)
    assert stage.client.items("b", 11) == []


def test_progress_does_not_speak_for_those_on_their_way():
    stage = Stage()
    stage.ask("b", resume(1, "w"))
    stage.dark("x")
    for step in (None, msg.Install(S, ["x"]), msg.Installed(S, ["x"], 9, [(100, 9)])):
        if step is not None:
            stage.tell("b", step)
        stage.publish("b")
        stage.run(0.2)
        assert stage.said("b", msg.Progress)[-1].behind == [11]
    stage.ask("b", msg.Go(S, [msg.GoItem(11)]))
    stage.head.position = 20
    stage.publish("b")
    stage.run(0.2)
    assert stage.said("b", msg.Progress)[-1] == msg.Progress(21, [])


def test_installed_says_how_far_the_log_is():
    stage = Stage()
    stage.ask("b", resume(1, "w"))
    stage.cutting("x")
    stage.tell("b", msg.Installed(S, ["x"], 9, [(100, 9)]))
    stage.run(0.2)
    assert stage.said("b", msg.Progress)[-1] == msg.Progress(9, [11])


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
    assert len(edge.subscription_table.cover) == 1
    assert edge.counters["holds_full"] == 1
    assert edge.counters["deliveries_dropped"] == 0
    assert stage.client.items("b", 11) == []
    stage.run(3.0)
    assert stage.head.of("b", msg.Expire) == [msg.Expire("x", (1, 3))]
    stage.tell("b", msg.Release("x", (1, 4)))
    assert is_empty(edge)


def test_what_is_held_is_counted_in_the_load_report():
    stage = at("hold")
    stage.publish("b", count=2, size=1000)
    stage.run(1.5)
    report = stage.edge("b").reporter.last
    assert report["output_queue_messages"] == 2
    assert report["output_queue_bytes"] > 2000
    assert report["subscribers"] == 1
