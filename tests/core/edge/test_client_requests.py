"""What subscribers ask of their edge: to attach, to change their list, to wait, to go on, to detach."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace
from tests.core.fleet import STOCK, Client, Fleet, Publishing, one_cluster, resume
from tests.core.head.handover.script import S, Stage, is_empty, members

from plimsoll.core.edge.client_requests import ClientRequests
from plimsoll.core.permissions import NOT_PERMITTED, ClientPermissions
from plimsoll.core.protocol import messages as msg


def start(fleet: Fleet, *attach: msg.Resume | msg.Subs) -> tuple[Client, Publishing]:
    """A client at `e1` with these attachments, and a publisher of another client."""
    client = fleet.client("c", "e1")
    other = fleet.client("pub", "h")
    client.tell("e1", *attach)
    publisher = Publishing(other, "h")
    fleet.run(0.5)
    return client, publisher


# -- between a head and its subscribers


def test_attach_subscribe_change_and_withdraw():
    fleet = one_cluster()
    client, publisher = start(fleet, resume(1, "s", "[n,=,1]"))
    assert client.of("e1", msg.Resumed) == [msg.Resumed(1, "h", fleet.head().epoch, 0, None, False)]
    assert client.of("e1", msg.Suback) == [msg.Suback(1, 1, [])]
    client.tell("e1", msg.Subs(1, 2, [msg.SubscriptionItem(2, "[n,>,2]")], [1]))
    fleet.run(0.2)
    assert client.of("e1", msg.Suback)[-1] == msg.Suback(1, 2, [])
    publisher.publish(4)
    fleet.run(0.2)
    assert client.numbers("e1", 1) == [3, 4]
    client.tell("e1", msg.Detach([1], True))
    fleet.run(0.2)
    publisher.publish(1)
    fleet.run(0.2)
    assert client.numbers("e1", 1) == [3, 4]
    assert fleet.head().owners.entries == {}
    assert fleet.edge("e1").attachments.by_subscriber == {}
    assert sum(fleet.head().routes.size(key) for key in fleet.head().outboxes.by_key) == 0


def test_the_list_before_stays_covered_until_all_of_the_next_one_is():
    """Its client goes in the middle of a RESUME: it may come back with a token that the list before makes whole."""
    fleet = one_cluster()
    start(fleet, resume(1, "s", STOCK))
    edge, head = fleet.edge("e1"), fleet.head()
    link = edge.attachments.by_subscriber["s"].link
    requests = ClientRequests(edge, edge.attachments, edge.handover_target)
    steps = requests.on_resume(link, resume(2, "s", *(f"[k{i},=,{i}]" for i in range(300)), n=4))
    next(steps)
    edge.attachments.close(edge.attachments.by_subscriber["s"])
    assert list(steps) == []
    fleet.run(1.0)
    assert head.routes.match({"class": "STOCK"}) != set(), "the head still sends what it asks for"
    edge.attachments.drop([edge.attachments.by_subscriber["s"]])
    fleet.run(1.0)
    assert head.routes.match({"class": "STOCK"}) == set()


def test_a_list_in_parts_needs_a_higher_version_for_each():
    """RESUME with a part, SUBS with the rest, in one frame: what SUBS adds counts from its SUBACK."""
    fleet = one_cluster()
    client, publisher = start(
        fleet, resume(1, "s", "[n,=,4]"), msg.Subs(1, 1, [msg.SubscriptionItem(8, "[n,=,5]")], []),
        msg.Subs(1, 2, [msg.SubscriptionItem(9, "[n,=,6]")], []),
    )  # fmt: skip
    assert [suback.version for suback in client.of("e1", msg.Suback)][-1] == 2
    publisher.publish(6)
    fleet.run(0.2)
    assert client.numbers("e1", 1) == [4, 6]


@pytest.mark.parametrize("version", [1, 2])
def test_a_list_that_is_not_newer_is_answered_with_the_version_that_counts(version: int):
    fleet = one_cluster()
    client, publisher = start(fleet, resume(1, "s", "[n,=,1]"))
    client.tell("e1", msg.Subs(1, 2, [msg.SubscriptionItem(2, "[n,>,2]")], [1]))
    fleet.run(0.2)
    client.tell("e1", msg.Subs(1, version, [msg.SubscriptionItem(3, STOCK)], [2]))
    fleet.run(0.2)
    assert client.of("e1", msg.Suback) == [msg.Suback(1, 1, []), msg.Suback(1, 2, []), msg.Suback(1, 2, [])]
    assert client.of("e1", msg.SubRefused) == []
    publisher.publish(4)
    fleet.run(0.2)
    assert client.numbers("e1", 1) == [3, 4], "the list is as it was"


def test_a_list_that_is_repeated_before_its_answer_is_answered_once_it_counts():
    fleet = one_cluster()
    client, _ = start(fleet)
    client.tell("e1", resume(1, "s"), msg.Subs(1, 1, [], []))
    fleet.run(0.2)
    heard = client.heard["e1"]
    assert [type(record).__name__ for record in heard] == ["Resumed", "Suback", "Suback"]
    assert client.of("e1", msg.Suback) == [msg.Suback(1, 1, [])] * 2


def test_a_publication_that_matches_several_subscriptions_comes_once():
    fleet = one_cluster()
    client, publisher = start(fleet, resume(1, "s", STOCK, "[n,>,0]", "[n,<,9]"))
    publisher.publish(3)
    fleet.run(0.2)
    assert client.numbers("e1", 1) == [1, 2, 3]


@pytest.mark.parametrize(
    ("text", "limits"),
    [
        ("[n,>", {}),
        ("[n,>,5],[n,<,3]", {}),
        (STOCK, {"max_subscriptions_per_subscriber": 1}),
        (STOCK, {"max_subscriptions": 1}),
    ],
)
def test_a_subscription_that_cannot_be_taken_is_refused_alone(text: str, limits: Any):
    fleet = one_cluster(**limits)
    client, publisher = start(fleet, resume(1, "s", "[n,=,1]", text))
    (refused,) = client.of("e1", msg.SubRefused)
    assert (refused.attachment, refused.version, refused.id) == (1, 1, 2)
    assert refused.text
    publisher.publish(2)
    fleet.run(0.2)
    assert client.numbers("e1", 1) == [1]
    assert client.of("e1", msg.Suback) == [msg.Suback(1, 1, [])]


def test_an_older_epoch_is_shut_out_and_a_newer_one_replaces():
    fleet = one_cluster()
    client, _ = start(fleet, resume(1, "s", n=4), resume(2, "s", n=4), resume(3, "s", n=2), resume(4, "s", n=6))
    shuts = [(s.attachment, s.code) for s in client.of("e1", msg.AttachmentClosed)]
    assert shuts == [(2, "epoch"), (3, "epoch"), (1, "replaced")]
    assert fleet.edge("e1").attachments.by_subscriber["s"].id == 4


def test_who_comes_behind_a_life_whose_clock_was_ahead_is_told_its_incarnation_once_it_has_gone():
    fleet = one_cluster()
    client, late = fleet.client("c", "e1", "h"), fleet.client("d", "e1")
    ahead, behind = resume(1, "s"), resume(1, "s", n=8)
    client.tell("e1", replace(ahead, epoch=(90, 2)))
    late.tell("e1", replace(behind, epoch=(5, 2)))
    fleet.run(0.3)
    client.tell("e1", msg.Detach([1], False))
    late.tell("e1", replace(behind, epoch=(5, 4)), replace(behind, epoch=(90, 1)))
    fleet.run(0.3)
    shuts = [(s.code, s.used) for s in late.of("e1", msg.AttachmentClosed)]
    assert shuts == [("epoch", 0), ("epoch", 90), ("epoch", 0)]


def test_an_attachment_number_that_is_used_again_closes_the_older_one():
    fleet = one_cluster()
    client, publisher = start(fleet, resume(1, "s"), resume(1, "t", "[n,>,1]"))
    assert [(s.attachment, s.code) for s in client.of("e1", msg.AttachmentClosed)] == [(1, "replaced")]
    publisher.publish(2)
    fleet.run(0.2)
    assert client.numbers("e1", 1) == [2]


def test_an_unknown_policy_is_refused():
    fleet = one_cluster()
    client, _ = start(fleet, resume(1, "s", slow="never-mind"), resume(2, "t", block_seconds=-1.0))
    assert [(s.attachment, s.code) for s in client.of("e1", msg.AttachmentClosed)] == [(1, "policy"), (2, "policy")]
    assert fleet.edge("e1").attachments.by_subscriber == {}


def test_a_number_that_is_none_is_refused_before_its_request_and_others_go_on():
    fleet = one_cluster()
    client, _ = start(fleet, resume(1, "s", block_seconds=float("nan")), resume(2, "t"))
    assert [(s.attachment, s.code) for s in client.of("e1", msg.AttachmentClosed)] == [(1, "malformed")]
    assert list(fleet.edge("e1").attachments.by_subscriber) == ["t"]
    assert fleet.edge("e1").counters["records_refused_malformed"] == 1


def test_numbers_from_which_no_broker_could_count_on_are_refused():
    fleet = one_cluster()
    client, _ = start(fleet, resume(1, "s", n=2**62), resume(2, "t", token=("h", 1, 2**63 - 1)))
    assert [(s.attachment, s.code) for s in client.of("e1", msg.AttachmentClosed)] == [(1, "range"), (2, "range")]


# -- what is sent to the head


def test_cover_and_owner_go_up_in_one_step():
    stage = Stage()
    asked = resume(1, "x", STOCK, "[n,>,3]", n=4, token=("h", 100, 7))
    stage.ask("a", asked)
    [up] = stage.head.of("a", msg.ResumeUp)
    assert (up.subscriber, up.epoch, up.token, up.session) == ("x", (1, 4), ("h", 100, 7), None)
    assert [item.text for item in up.cover.adds] == [STOCK, "[n,>,3]"]
    stage.ask("a", resume(2, "x", "[n,>,9]", n=6))
    up = stage.head.of("a", msg.ResumeUp)[-1]
    assert ([item.text for item in up.cover.adds], sorted(up.cover.removes)) == (["[n,>,9]"], [1, 2])
    assert stage.edge("a").subscription_table.cover.member_count == 1


def test_the_session_that_brings_a_subscriber_is_named():
    stage = Stage()
    asked = resume(1, "x")
    stage.ask("a", msg.Resume(1, "x", (1, 2), 1, asked.subscriptions, asked.policy, None, [], S))
    assert stage.head.of("a", msg.ResumeUp)[0].session == S


# -- refusals


@pytest.mark.parametrize("code", ["full", "leaving"])
def test_an_edge_that_takes_no_subscribers_gives_a_reason_and_keeps_nothing(code: str):
    stage = Stage(max_subscribers=0 if code == "full" else 5)
    if code == "leaving":
        stage.edge("a").leave(stage.fleet.now)
    stage.ask("a", resume(1, "x"))
    assert stage.shuts("a") == [(1, code)]
    assert "ask the head for another one" in stage.said("a", msg.AttachmentClosed)[0].text
    assert is_empty(stage.edge("a"))


def test_who_is_refused_for_its_epoch_leaves_the_other_as_it_is():
    stage = Stage()
    stage.attach("x")
    stage.ask("a", resume(5, "x", n=2))
    assert stage.shuts("a") == [(5, "epoch")]
    stage.publish("a")
    assert stage.numbers("a", 1) == [1]


# -- the list


def subs(stage: Stage, version: int, *adds: tuple[int, str], removes: tuple[int, ...] = (), number: int = 1) -> None:
    items = [msg.SubscriptionItem(i, text) for i, text in adds]
    stage.ask("a", msg.Subs(number, version, items, list(removes)))


def covers(stage: Stage) -> int:
    return len(stage.head.of("a", msg.Cover))


def test_a_change_is_one_update_and_is_promised():
    stage = Stage()
    stage.attach("x", text="[n,=,1]")
    subs(stage, 2, (2, "[n,=,2]"), removes=(1,))
    [update] = stage.head.of("a", msg.Cover)
    assert ([item.text for item in update.adds], update.removes) == (["[n,=,2]"], [1])
    assert stage.said("a", msg.Suback)[-1] == msg.Suback(1, 2, [])
    stage.publish("a", count=3)
    assert stage.numbers("a", 1) == [2]


def test_what_comes_again_changes_nothing():
    stage = Stage()
    stage.attach("x", text="[n,=,1]")
    subs(stage, 3, (2, "[n,=,2]"))
    before = covers(stage)
    for version in (3, 2, 1):
        subs(stage, version, (3, "[n,=,3]"), removes=(1,))
    said = [cover for cover in stage.head.of("a", msg.Cover) if cover.adds or cover.removes]
    assert len(said) == before, "updates that only ask for another SUBACK are empty"
    stage.publish("a", count=3)
    assert stage.numbers("a", 1) == [1, 2]


def test_a_list_of_no_attachment_is_refused_and_other_changes_of_it_are_ignored():
    stage = Stage()
    stage.attach("x")
    subs(stage, 2, (2, "[n,=,2]"), number=7)
    stage.ask("a", msg.Pause(7), msg.Continue(7), msg.Detach([7], True))
    assert covers(stage) == 0
    assert stage.state("a") == "live"
    (refused,) = stage.said("a", msg.SubRefused)
    assert (refused.attachment, refused.version, refused.id) == (7, 2, 0)
    assert "no attachment 7 is open on this link: RESUME with the list" in refused.text
    stage.ask("a", msg.Detach([1], False))
    subs(stage, 2, (2, "[n,=,2]"))
    assert [one.attachment for one in stage.said("a", msg.SubRefused)] == [7, 1], "nor of one that has gone"


@pytest.mark.parametrize("behind", [False, True])
def test_behind_the_cut_it_is_the_target_that_answers(behind: bool):
    stage = Stage()
    if behind:  # what is before its cut is still to come from the log
        stage.publish(count=4)
        stage.head.fetches = False
        stage.ask("a", resume(1, "x", n=2, token=("h", stage.head.epoch, 1)))
    else:
        stage.attach("x")
    stage.tell(
        "a", msg.StartMove(S, members("x"), "b", "mem://b", ""), msg.Cut(S, members("x"), stage.head.token(), False)
    )
    assert stage.state("a") == ("catchup" if behind else "ending")
    before = covers(stage)
    subs(stage, 2, (2, "[n,=,2]"))
    assert covers(stage) == before
    assert [one.version for one in stage.said("a", msg.Suback)] == [1]


# -- waiting, and going


def test_a_pause_holds_one_attachment_and_continue_brings_what_was_held():
    stage = Stage()
    stage.attach("x", "y")
    stage.ask("a", msg.Pause(1))
    stage.publish("a", count=3)
    assert (stage.numbers("a", 1), stage.numbers("a", 2)) == ([], [1, 2, 3])
    stage.ask("a", msg.Continue(1))
    assert stage.numbers("a", 1) == [1, 2, 3]
    stage.publish("a")
    assert stage.numbers("a", 1) == [1, 2, 3, 4]
    assert not stage.record("a").queue


def test_who_detaches_keeps_its_place_unless_it_withdraws():
    stage = Stage()
    stage.attach("x", "y")
    stage.ask("a", msg.Detach([1], False))
    assert stage.state("a", "x") == "closed"
    assert stage.head.of("a", msg.Forget) == []
    stage.ask("a", msg.Detach([2], True))
    assert stage.state("a", "y") == ""
    assert stage.head.of("a", msg.Forget) == [msg.Forget("y", (1, 2))]
    assert stage.edge("a").subscription_table.cover.member_count == 1
    stage.ask("a", msg.Detach([1], True))
    assert stage.state("a", "x") == "closed", "it is not attached any more, and has no say"


def test_an_unknown_number_does_not_stop_those_after_it():
    stage = Stage()
    stage.attach("x", "y")
    stage.ask("a", msg.Detach([1, 99, 2], True))
    assert stage.head.of("a", msg.Forget) == [msg.Forget("x", (1, 2)), msg.Forget("y", (1, 2))]


# -- what an identity may do


def test_who_may_not_subscribe_is_shut_out_and_others_are_not():
    fleet = one_cluster()
    fleet.edge("e1").grant_of = lambda peer: ClientPermissions("ann", subscribes=False)
    client, _ = start(fleet, resume(1, "s", STOCK))
    (shut,) = client.of("e1", msg.AttachmentClosed)
    assert (shut.attachment, shut.code) == (1, NOT_PERMITTED)
    assert "may not subscribe" in shut.text
    assert fleet.edge("e1").attachments.by_subscriber == {}
    assert fleet.edge("e1").counters["roles_refused"] == 1


def test_who_may_not_subscribe_any_more_is_shut_out():
    fleet = one_cluster()
    client, publisher = start(fleet, resume(1, "s", STOCK), resume(2, "t", STOCK))
    edge = fleet.edge("e1")
    edge.grant_of = lambda peer: ClientPermissions("ann", publishes=False)
    edge.regrant(fleet.now)
    fleet.run(0.2)
    assert client.of("e1", msg.AttachmentClosed) == []
    edge.grant_of = lambda peer: ClientPermissions("ann", subscribes=False)
    edge.regrant(fleet.now)
    fleet.run(0.2)
    assert sorted((shut.attachment, shut.code) for shut in client.of("e1", msg.AttachmentClosed)) == [
        (1, "role"),
        (2, "role"),
    ]
    publisher.publish(3)
    fleet.run(0.2)
    assert client.numbers("e1", 1) == client.numbers("e1", 2) == []
    assert edge.counters["roles_refused"] == 2


def test_subscriptions_of_an_identity_have_its_own_bound():
    fleet = one_cluster(max_subscriptions_per_subscriber=3)
    fleet.edge("e1").grant_of = lambda peer: ClientPermissions("ann", max_subscriptions=2)
    client, _ = start(fleet, resume(1, "s", *(f"[n,=,{n}]" for n in range(4))))
    assert [refused.id for refused in client.of("e1", msg.SubRefused)] == [3, 4]
    assert "at most 2 subscriptions" in client.of("e1", msg.SubRefused)[0].text
