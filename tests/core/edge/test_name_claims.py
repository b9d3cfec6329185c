"""The name of a subscriber belongs to the identity that made it, as long as its place lives; others cost it nothing."""

from __future__ import annotations

from typing import Any

import pytest
from tests.core.fleet import Client, Fleet, Publishing, one_cluster, resume, tree

from plimsoll.core.edge.name_claims import REFUSED_AT_MOST, NameCheck
from plimsoll.core.permissions import INCARNATION_STEP, INCARNATIONS_BELOW, NameGrants
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol.wire import OwnerEpoch

FOREIGN = "not permitted: subscriber 's' belongs to another identity; "
HIGHEST = INCARNATIONS_BELOW - 1


def keyed(fleet: Fleet) -> Fleet:
    """Each client has a key of its own."""

    def identity_of(peer: Any) -> str:
        return next((c.dialler for c in fleet.connections if c.id == peer), "")

    for node in fleet.nodes.values():
        node.identity_of = identity_of
    return fleet


def asked(attachment: int, epoch: OwnerEpoch, subscriber: str = "s", **more: Any) -> msg.Resume:
    text = [msg.SubscriptionItem(1, "[class,=,'STOCK']")]
    return msg.Resume(attachment, subscriber, epoch, 1, text, msg.Policy(), more.get("token"), [])


def closed(client: Client, edge: str) -> list[tuple[str, str]]:
    return [(each.code, each.text) for each in client.of(edge, msg.AttachmentClosed)]


@pytest.mark.parametrize("edge", ["e1", "e2"])
def test_another_identity_is_refused_and_the_owner_notices_nothing(edge: str):
    fleet = keyed(one_cluster())
    ann, eve = fleet.client("ann", "h", "e1"), fleet.client("eve", "h", "e1", "e2")
    ann.tell("e1", asked(1, (5, 2)))
    fleet.run(0.3)
    publishing = Publishing(ann, "h")
    for n in range(1, 20):
        eve.tell(edge, asked(n, (HIGHEST if n % 2 else 5, 4)))
        publishing.publish()
        fleet.run(0.2)
    assert {code for code, _ in closed(eve, edge)} == {"role"}
    assert all(text.startswith(FOREIGN) for _, text in closed(eve, edge))
    assert len(closed(eve, edge)) == 19
    assert closed(ann, "e1") == []
    assert ann.numbers("e1", 1) == list(range(1, 20))
    assert eve.items(edge, 1) == []
    assert fleet.edge(edge).subscription_table.cover.__len__() == (1 if edge == "e1" else 0)


def test_the_place_of_an_owner_that_is_away_is_kept_for_it():
    fleet = keyed(one_cluster())
    ann, eve = fleet.client("ann", "h", "e1", "e2"), fleet.client("eve", "e1", "e2")
    ann.tell("e1", asked(1, (5, 2)))
    fleet.run(0.3)
    ann.tell("e1", msg.Detach([1], False))
    fleet.run(0.3)
    for edge in ("e1", "e2"):
        eve.tell(edge, asked(1, (HIGHEST, 2)))
    Publishing(ann, "h").publish(2)
    fleet.run(0.3)
    assert [code for edge in ("e1", "e2") for code, _ in closed(eve, edge)] == ["role", "role"]
    ann.tell("e2", asked(2, (5, 4), token=("h", fleet.head().epoch, 0)))
    fleet.run(0.3)
    assert ann.numbers("e2", 2) == [1, 2]
    assert ann.gaps("e2", 2) == []


def test_a_name_is_free_after_its_lease_even_with_a_high_incarnation():
    fleet = keyed(one_cluster(lease_seconds=5.0))
    eve, ann, bob = fleet.client("eve", "e1"), fleet.client("ann", "e2"), fleet.client("bob", "e1", "e2")
    eve.tell("e1", asked(1, (HIGHEST, 2)))
    fleet.run(0.3)
    eve.tell("e1", msg.Detach([1], False))
    fleet.run(6.0)
    ann.tell("e2", asked(1, (5, 2)))
    fleet.run(0.3)
    assert [each.attachment for each in ann.of("e2", msg.Resumed)] == [1], closed(ann, "e2")
    ann.tell("e2", msg.Detach([1], False))
    fleet.run(11.0)
    bob.tell("e1", asked(1, (1, 2)))
    fleet.run(0.3)
    assert len(bob.of("e1", msg.Resumed)) == 1


def test_an_identity_may_use_its_own_lower_incarnation_one_lease_after_its_place_has_gone():
    fleet = keyed(one_cluster(lease_seconds=5.0))
    ann = fleet.client("ann", "e1", "e2")
    ann.tell("e1", asked(1, (HIGHEST, 2)))
    fleet.run(0.3)
    ann.tell("e1", msg.Detach([1], True))
    fleet.run(0.3)
    ann.tell("e1", asked(2, (5, 2)))
    fleet.run(0.3)
    assert [code for code, _ in closed(ann, "e1")] == ["epoch"], "an older RESUME may be on its way"
    assert [each.used for each in ann.of("e1", msg.AttachmentClosed)] == [HIGHEST]
    fleet.run(6.0)
    ann.tell("e2", asked(1, (5, 4)))
    fleet.run(0.3)
    assert len(ann.of("e2", msg.Resumed)) == 1


def test_a_withdrawn_name_is_free_for_others_at_once():
    fleet = keyed(one_cluster())
    ann, bob = fleet.client("ann", "e1"), fleet.client("bob", "e2")
    ann.tell("e1", asked(1, (9, 2)))
    fleet.run(0.3)
    ann.tell("e1", msg.Detach([1], True))
    fleet.run(0.3)
    bob.tell("e2", asked(1, (1, 2)))
    fleet.run(0.3)
    assert len(bob.of("e2", msg.Resumed)) == 1


@pytest.mark.parametrize("edge", ["e1", "e2"])
def test_an_incarnation_that_jumps_is_refused_in_words(edge: str):
    fleet = keyed(one_cluster())
    ann = fleet.client("ann", "e1", "e2")
    ann.tell("e1", asked(1, (7, 2)))
    fleet.run(0.3)
    ann.tell(edge, asked(2, (8 + INCARNATION_STEP, 2)), asked(3, (INCARNATIONS_BELOW, 2)))
    fleet.run(0.3)
    assert {code for code, _ in closed(ann, edge)} == {"range"}
    assert any("more than 2^49 above the last one, 7" in text for _, text in closed(ann, edge))
    assert closed(ann, "e1") == [] or edge == "e1"
    ann.tell(edge, asked(4, (7 + INCARNATION_STEP, 2)))
    fleet.run(0.3)
    assert [each.attachment for each in ann.of(edge, msg.Resumed)][-1] == 4


def test_of_two_identities_that_ask_one_edge_at_once_the_second_asks_again():
    fleet = keyed(one_cluster())
    ann, eve = fleet.client("ann", "e1"), fleet.client("eve", "e1")
    fleet.freeze("h")
    eve.tell("e1", asked(1, (9, 2)))
    fleet.run(0.1)
    ann.tell("e1", asked(1, (5, 2)))
    fleet.run(0.1)
    assert [code for code, _ in closed(ann, "e1")] == ["undecided"]
    fleet.thaw("h")
    fleet.run(0.3)
    assert len(eve.of("e1", msg.Resumed)) == 1
    assert closed(eve, "e1") == []


def test_who_repeats_a_claim_that_was_refused_holds_up_no_owner():
    fleet = keyed(one_cluster())
    ann, eve = fleet.client("ann", "e1", "e2"), fleet.client("eve", "e2")
    ann.tell("e1", asked(1, (5, 2)))
    fleet.run(0.3)
    eve.tell("e2", asked(1, (9, 2)))
    fleet.run(0.3)
    up = fleet.edge("e2").counters["said_ResumeUp"]
    eve.tell("e2", *(asked(n, (9, 2 * n)) for n in range(2, 50)))
    fleet.run(0.3)
    assert fleet.edge("e2").counters["said_ResumeUp"] == up
    ann.tell("e2", asked(1, (5, 4)))
    fleet.run(0.3)
    assert len(ann.of("e2", msg.Resumed)) == 1
    fleet.run(2.0)
    assert not fleet.edge("e2").handover_target.claims._refused


def test_a_prefix_belongs_to_whom_it_is_granted_and_outweighs_who_came_first():
    fleet = keyed(one_cluster())
    eve, ann, bob = fleet.client("eve", "e1", "e2"), fleet.client("ann", "e1", "e2"), fleet.client("bob", "e2")
    eve.tell("e1", asked(1, (HIGHEST, 2), "desk-1"))
    fleet.run(0.3)
    assert len(eve.of("e1", msg.Resumed)) == 1
    for node in fleet.nodes.values():
        node.name_grants = NameGrants({"desk-": frozenset({"ann"}), "desk-shared-": frozenset({"ann", "bob"})})
    for name in ("h", "e1", "e2"):
        fleet.nodes[name].regrant(fleet.now)
    fleet.run(0.3)
    assert [code for code, _ in closed(eve, "e1")] == ["role"]
    eve.tell("e2", asked(2, (HIGHEST, 4), "desk-1"))
    ann.tell("e1", asked(1, (5, 2), "desk-1"), asked(2, (5, 2), "desk-shared-1"))
    fleet.run(0.3)
    assert [code for code, _ in closed(eve, "e2")] == ["role"]
    assert [each.attachment for each in ann.of("e1", msg.Resumed)] == [1, 2]
    bob.tell("e2", asked(1, (9, 2), "desk-shared-1"), asked(2, (9, 2), "desk-2"))
    fleet.run(0.3)
    assert [each.attachment for each in bob.of("e2", msg.Resumed)] == [1]
    assert [code for code, _ in closed(bob, "e2")] == ["role"]
    assert [code for code, _ in closed(ann, "e1")] == ["released"], "the same prefix, the same owner"


@pytest.mark.parametrize("reported_first", [True, False])
def test_a_head_that_restarts_believes_who_was_served_before(reported_first: bool):
    fleet = keyed(one_cluster())
    ann, eve = fleet.client("ann", "e1"), fleet.client("eve", "e2")
    ann.tell("e1", asked(1, (5, 2)))
    fleet.run(0.3)
    if not reported_first:
        fleet.cut("e1", "h")
    fleet.crash("h")
    fleet.start("h")
    fleet.run(1.0)
    eve.tell("e2", asked(1, (9, 2)))
    fleet.run(0.5)
    fleet.mend("e1", "h")
    fleet.run(1.5)
    assert fleet.head().owners.entries["s"].identity == "ann"
    assert closed(ann, "e1") == []
    assert len(closed(eve, "e2")) == 1
    Publishing(fleet.client("p", "h"), "h").publish(2)
    fleet.run(0.5)
    assert ann.numbers("e1", 1) == [1, 2]


def test_a_fleet_without_keys_goes_by_the_name_in_hello():
    fleet = one_cluster()
    fleet.identity = ""
    ann, eve = fleet.client("ann", "e1"), fleet.client("eve", "e1", "e2")
    ann.tell("e1", resume(1, "s"))
    fleet.run(0.3)
    eve.tell("e1", resume(1, "s", n=5))
    eve.tell("e2", resume(1, "s", n=7))
    fleet.run(0.3)
    assert [closed(eve, edge)[0][0] for edge in ("e1", "e2")] == ["role", "role"]
    again = fleet.client("again")
    again.handshakes.info = again.info.__class__("ann", "client", 2)
    again.dial("e2", "mem://e2")
    fleet.run(0.3)
    again.tell("e2", asked(1, (2, 2)))
    fleet.run(0.3)
    assert len(again.of("e2", msg.Resumed)) == 1


def told(client: Client) -> list[str]:
    return [text for code, text in closed(client, "e1") if code == "full"]


def test_an_identity_has_no_more_subscribers_at_an_edge_than_it_leaves():
    fleet = keyed(one_cluster(max_subscribers=8))
    ann, bob, eve = (fleet.client(name, "h", "e1") for name in ("ann", "bob", "eve"))
    for client, most in ((ann, 4), (bob, 2), (eve, 1)):
        name = client.info.name
        client.tell("e1", *(asked(n, (5, 2), f"{name}{n}") for n in range(1, most + 2)))
        fleet.run(0.3)
        assert told(client)[-1].startswith(f"this edge has {most} subscribers of this identity, and ")
        assert told(client)[-1].endswith(" places left for others; ask the head for another one")
        assert len(client.of("e1", msg.Resumed)) == most
    ann.tell("e1", asked(20, (5, 4), "ann1"), msg.Detach([2], False), asked(21, (5, 4), "ann2"))
    fleet.run(0.3)
    assert len(ann.of("e1", msg.Resumed)) == 6, "those that have their places here may attach again"
    ann.tell("e1", msg.Detach([20, 21], True))
    fleet.run(0.3)
    bob.tell("e1", asked(20, (5, 2), "bob20"))
    fleet.run(0.3)
    assert (len(told(bob)), len(bob.of("e1", msg.Resumed))) == (1, 3)


@pytest.mark.parametrize("replay", [False, True])
def test_who_is_moved_to_an_edge_may_have_any_place_that_is_left(*, replay: bool):
    fleet = keyed(one_cluster(max_subscribers=4))
    ann, eve = fleet.client("ann", "h", "e1", "e2"), fleet.client("eve", "e2")
    ann.tell("e2", asked(1, (5, 2), "a"), asked(2, (5, 2), "b"))
    ann.tell("e1", asked(1, (5, 2)))
    mediator = fleet.mediator("h")
    fleet.run(0.3)
    plan = msg.HandoverPlan("e1", "e2", "h", ["s"], replay, 3.0, 3.0)
    mediator.say_control("h", msg.Command(1, fleet.head().epoch, "1.1", "prepare", plan))
    fleet.run(0.3)
    assert set(fleet.edge("e2").handover_target.slots) == {"s"}
    ann.tell("e2", asked(3, (5, 2), "c"))
    eve.tell("e2", asked(1, (5, 2), "e"))
    fleet.run(0.3)
    assert closed(ann, "e2") == [("full", "this edge has 3 subscribers of this identity, and 1 places left for others; "
                                  "ask the head for another one")]  # fmt: skip
    assert len(eve.of("e2", msg.Resumed)) == 1
    if replay:
        again = msg.Resume(9, "s", (5, 4), 1, [msg.SubscriptionItem(1, "[n,>,1]")], msg.Policy(), None, [], "1.1")
        ann.tell("e2", again)
    else:
        item = msg.AttachItem(9, "s", (5, 3), 1, [msg.SubscriptionItem(1, "[class,=,'STOCK']")], msg.Policy())
        ann.tell("e2", msg.Attach("1.1", [item]))
    fleet.run(0.3)
    assert "s" in fleet.edge("e2").attachments.by_subscriber


def test_a_place_in_a_hand_over_is_for_the_identity_of_its_subscriber():
    fleet = keyed(one_cluster())
    ann, eve = fleet.client("ann", "h", "e1", "e2"), fleet.client("eve", "e2")
    ann.tell("e1", asked(1, (5, 2)))
    mediator = fleet.mediator("h")
    fleet.run(0.3)
    plan = msg.HandoverPlan("e1", "e2", "h", ["s"], False, 3.0, 3.0)
    mediator.say_control("h", msg.Command(1, fleet.head().epoch, "1.1", "prepare", plan))
    fleet.run(0.3)
    (move,) = ann.of("e1", msg.MoveTo)
    item = msg.AttachItem(9, "s", (5, 3), 1, [msg.SubscriptionItem(1, "[class,=,'STOCK']")], msg.Policy())
    eve.tell("e2", msg.Attach(move.session, [item]), asked(10, (HIGHEST, 2)))
    fleet.run(0.2)
    assert [code for code, _ in closed(eve, "e2")] == ["role", "role"]
    ann.tell("e2", msg.Attach(move.session, [item]))
    fleet.run(0.2)
    assert len(ann.of("e2", msg.Held)) == 1
    mediator.say_control("h", msg.Command(1, fleet.head().epoch, "1.1", "cut"))
    fleet.run(0.3)
    assert len(ann.of("e1", msg.End)) == 1
    ann.tell("e2", msg.Go("1.1", [msg.GoItem(9)]))
    fleet.run(0.3)
    assert mediator.heard["h"][-1].members == [("s", "moved")]
    assert fleet.head().owners.entries["s"].identity == "ann"


def test_a_member_of_another_cluster_takes_no_name_that_is_used_there():
    fleet = keyed(tree([("a", "b")]))
    ann, eve = fleet.client("ann", "a1", "b1"), fleet.client("eve", "b1")
    ann.tell("a1", asked(1, (5, 2)))
    mediator = fleet.mediator("a")
    fleet.run(0.3)
    plan = msg.HandoverPlan("a1", "b1", "b", ["s"], False, 3.0, 3.0)
    mediator.say_control("a", msg.Command(1, fleet.head("a").epoch, "1.1", "prepare", plan))
    fleet.run(0.3)
    eve.tell("b1", asked(1, (3, 2)))
    item = msg.AttachItem(9, "s", (5, 3), 1, [msg.SubscriptionItem(1, "[class,=,'STOCK']")], msg.Policy())
    ann.tell("b1", msg.Attach("1.1", [item]))
    fleet.run(0.3)
    assert [code for code, _ in closed(eve, "b1")] == ["role"]
    mediator.say_control("a", msg.Command(1, fleet.head("a").epoch, "1.1", "cut"))
    fleet.run(0.3)
    ann.tell("b1", msg.Go("1.1", [msg.GoItem(9)]))
    fleet.run(0.5)
    assert fleet.head("b").owners.entries["s"].identity == "ann"


def test_refusals_that_are_remembered_are_bounded():
    class Host:
        now, name_grants = 1.0, NameGrants()

    claims = NameCheck(Host(), {}, {}, 1.0)
    for i in range(REFUSED_AT_MOST + 10):
        claims.refused(f"s{i}", "eve")
    assert len(claims._refused) == REFUSED_AT_MOST


def test_the_name_of_an_owner_that_is_away_outlasts_a_restart_of_a_head_without_a_disk():
    fleet = keyed(one_cluster())
    ann, eve = fleet.client("ann", "h", "e1", "e2"), fleet.client("eve", "e1", "e2")
    ann.tell("e1", asked(1, (5, 2)))
    fleet.run(0.3)
    before = fleet.head().epoch
    ann.tell("e1", msg.Detach([1], False))
    fleet.run(0.3)
    fleet.crash("h")
    fleet.start("h")
    fleet.run(3.0)
    for edge in ("e1", "e2"):
        eve.tell(edge, asked(1, (HIGHEST, 2)))
    Publishing(ann, "h").publish(2)
    fleet.run(0.3)
    assert [code for edge in ("e1", "e2") for code, _ in closed(eve, edge)] == ["role", "role"]
    ann.tell("e2", asked(2, (5, 4), token=("h", before, 0)))
    fleet.run(0.3)
    resumed = ann.of("e2", msg.Resumed)[-1]
    assert resumed.gap is not None
    assert resumed.gap.reason == "restart"
    assert ann.numbers("e2", 2) == [1, 2], "its cover has been there since the head started"


def test_a_place_that_outlasts_a_head_without_a_disk_ends_with_its_lease():
    fleet = keyed(one_cluster(lease_seconds=5.0))
    ann, bob = fleet.client("ann", "e1"), fleet.client("bob", "e2")
    ann.tell("e1", asked(1, (5, 2)))
    fleet.run(0.3)
    ann.tell("e1", msg.Detach([1], False))
    fleet.run(0.3)
    fleet.crash("h")
    fleet.start("h")
    fleet.run(11.0)
    assert not fleet.edge("e1").attachments.by_subscriber
    bob.tell("e2", asked(1, (1, 2)))
    fleet.run(0.3)
    assert len(bob.of("e2", msg.Resumed)) == 1


def test_a_place_with_a_long_lease_outlasts_a_head_without_a_disk_from_the_start_of_its_new_log():
    fleet = keyed(one_cluster())
    ann, eve = fleet.client("ann", "h", "e1", "e2"), fleet.client("eve", "e2")
    text = [msg.SubscriptionItem(1, "[class,=,'STOCK']")]
    ann.tell("e1", msg.Resume(1, "s", (5, 2), 1, text, msg.Policy(), None, [], lease_seconds=3600.0))
    fleet.run(0.3)
    before = fleet.head().epoch
    Publishing(ann, "h").publish(5)
    fleet.run(0.3)
    ann.tell("e1", msg.Detach([1], False))
    fleet.run(0.3)
    fleet.crash("h")
    fleet.start("h")
    fleet.run(60.0)
    place = fleet.head().durable_places.kept["s"]
    assert (place.identity, place.position) == ("ann", 0)
    eve.tell("e2", asked(1, (HIGHEST, 2)))
    fleet.run(0.3)
    assert [code for code, _ in closed(eve, "e2")] == ["role"]
    ann.tell("e2", asked(2, (5, 4), token=("h", before, 5)))
    fleet.run(0.3)
    assert len(ann.of("e2", msg.Resumed)) == 1
