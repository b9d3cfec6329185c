"""Places that a head keeps itself: they count with their owner, outlast edge and lease, and end by limits."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace
from tests.core.fleet import STOCK, Client, Fleet, Publishing, one_cluster, resume, tree

from plimsoll.core.head.durable_places import DurablePlaces
from plimsoll.core.head.ownership import AWAY_KEY
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol import wire

DAY = 86_400.0
"""Longer than any test."""


def durable(number: int, name: str, *texts: str, n: int = 2, lease: float = DAY, **more: Any) -> msg.Resume:
    asked = resume(number, name, *texts, n=n)
    token, since = more.get("token"), more.get("since")
    return msg.Resume(
        asked.attachment, name, asked.epoch, 1, asked.subscriptions, asked.policy, token, [], None, lease, since
    )


def places(fleet: Fleet, head: str = "h") -> DurablePlaces:
    return fleet.head(head).durable_places


def away(fleet: Fleet, client: Client, edge: str = "e1") -> None:
    """The client detaches all that it has at this edge, and the lease there passes."""
    numbers = [each.attachment for each in client.of(edge, msg.Resumed)]
    client.tell(edge, msg.Detach(numbers, False))
    fleet.run(40.0)


def test_a_place_outlasts_the_lease_of_its_edge_and_what_came_meanwhile_is_delivered():
    fleet = one_cluster()
    client = fleet.client("c", "h", "e1", "e2")
    client.tell("e1", durable(1, "s"))
    fleet.run(1.0)
    (resumed,) = client.of("e1", msg.Resumed)
    assert resumed.lease_seconds == DAY
    away(fleet, client)
    assert fleet.head().owners.entries["s"].key == AWAY_KEY
    assert "s" not in fleet.edge("e1").attachments.by_subscriber
    Publishing(client, "h").publish(5)
    fleet.run(1.0)
    said = msg.decode(msg.control, wire.encode(msg.LoadUpdate(fleet.head().reporter.last)))
    assert isinstance(said, msg.LoadUpdate), "a report that nothing can read tells a mediator nothing"
    listed = said.report["away"]
    assert isinstance(listed, list)
    assert [each["name"] for each in listed if isinstance(each, dict)] == ["s"]
    (told,) = places(fleet).report()["away"]
    assert (told["name"], told["behind"], told["missed"]) == ("s", 5, 0)
    client.tell("e2", durable(2, "s", n=4, token=("h", fleet.head().epoch, resumed.position)))
    fleet.run(1.0)
    (resumed,) = client.of("e2", msg.Resumed)
    assert (resumed.gap, resumed.lapsed) == (None, False)
    assert client.numbers("e2", 2) == [1, 2, 3, 4, 5]
    assert places(fleet).away() == []


def test_a_neighbour_goes_on_sending_what_a_place_asks_for():
    fleet = tree([("a", "b")])
    client = fleet.client("c", "a", "a1", "b")
    client.tell("a1", durable(1, "s"))
    fleet.run(1.0)
    away(fleet, client, "a1")
    Publishing(client, "b").publish(3)
    fleet.run(1.0)
    assert fleet.head("a").log.last == 3
    places(fleet, "a").end("s")
    fleet.run(1.0)
    assert fleet.head("b").routes.size("a") == 0, "what is kept for none is not asked for"


def test_one_that_asks_for_no_lease_gives_its_place_up_and_so_does_one_that_withdraws():
    fleet = one_cluster()
    client = fleet.client("c", "h", "e1")
    client.tell("e1", durable(1, "s"))
    client.tell("e1", durable(2, "t"))
    fleet.run(1.0)
    assert sorted(places(fleet).kept) == ["s", "t"]
    client.tell("e1", durable(3, "s", n=4, lease=0.0))
    client.tell("e1", msg.Detach([2], True))
    fleet.run(1.0)
    assert places(fleet).kept == {}
    assert fleet.head().routes.size(AWAY_KEY) == 0


def test_a_place_ends_in_the_round_in_which_its_subscriber_has_moved_to_another_head():
    fleet = one_cluster()
    client = fleet.client("c", "h", "e1")
    client.tell("e1", durable(1, "s"))
    fleet.run(1.0)
    head = fleet.head()
    head.owners.forget("s", head.now)  # as DONE of a session to another head does
    head.durable_places.tick()
    assert places(fleet).kept == {}, "a crash from here on does not bring it back"
    assert head.routes.size(AWAY_KEY) == 0


def test_a_place_ends_with_its_lease():
    fleet = one_cluster()
    client = fleet.client("c", "h", "e1")
    client.tell("e1", durable(1, "s", lease=60.0))
    fleet.run(1.0)
    away(fleet, client)
    assert "s" in places(fleet).kept
    fleet.run(30.0)
    assert places(fleet).kept == {}
    assert "s" not in fleet.head().owners.entries
    assert fleet.head().counters["places_expired"] == 1


@pytest.mark.parametrize(("lease", "granted"), [(DAY, 3600.0), (100.0, 100.0), (1.0, 0.0)])
def test_a_lease_is_capped_and_one_that_edges_keep_anyway_needs_no_place(lease: float, granted: float):
    fleet = one_cluster(longest_lease_seconds=3600.0)
    client = fleet.client("c", "h", "e1")
    client.tell("e1", durable(1, "s", lease=lease))
    fleet.run(1.0)
    assert client.of("e1", msg.Resumed)[0].lease_seconds == granted


def test_an_identity_has_at_most_so_many_places():
    fleet = one_cluster(max_durable_subscribers=2)
    client = fleet.client("c", "h", "e1")
    for number in (1, 2, 3):
        client.tell("e1", durable(number, f"s{number}"))
        fleet.run(0.5)
    assert sorted(places(fleet).kept) == ["s1", "s2"]
    assert [each.lease_seconds for each in client.of("e1", msg.Resumed)] == [DAY, DAY, 0.0]
    assert fleet.head().counters["places_refused"] == 1


def test_one_that_holds_back_too_much_loses_its_place():
    fleet = one_cluster(max_held_back_bytes=10_000)
    client = fleet.client("c", "h", "e1")
    client.tell("e1", durable(1, "s"))
    fleet.run(1.0)
    away(fleet, client)
    Publishing(client, "h").publish(8, payload=b"x" * 100)
    fleet.run(1.0)
    assert "s" in places(fleet).kept
    Publishing(client, "h", "q", 2).publish(60, payload=b"x" * 200)
    fleet.run(2.0)
    assert places(fleet).kept == {}
    assert fleet.head().counters["places_over_bytes"] == 1


def test_a_list_of_an_epoch_that_never_owned_is_dropped():
    fleet = one_cluster()
    client = fleet.client("c", "h", "e1", "e2")
    client.tell("e1", durable(1, "s", n=8))
    fleet.run(1.0)
    client.tell("e2", durable(2, "s", STOCK, "[other,=,1]", n=4))
    fleet.run(2.0)
    assert places(fleet).kept["s"].texts == [STOCK]
    assert not places(fleet)._lists.staged


def test_a_new_subscriber_begins_at_a_time_or_a_position():
    fleet = one_cluster()
    client = fleet.client("c", "h", "e1")
    publisher = Publishing(client, "h")
    publisher.publish(3)
    fleet.run(10.0)
    between = fleet.now
    fleet.run(10.0)
    publisher.publish(4)
    fleet.run(2.0)
    client.tell("e1", durable(1, "at", since=between))
    client.tell("e1", durable(2, "first", since=0.0))
    client.tell("e1", durable(3, "behind", since=("h", fleet.head().epoch, 5)))
    fleet.run(1.0)
    starts = {each.attachment: (each.position, each.gap) for each in client.of("e1", msg.Resumed)}
    assert starts == {1: (3, None), 2: (0, None), 3: (5, None)}
    assert [len(client.items("e1", number)) for number in (1, 2, 3)] == [4, 7, 2]


def test_what_the_log_has_no_more_is_a_gap_that_names_the_range():
    fleet = one_cluster(log_bytes=3_000)
    client = fleet.client("c", "h", "e1")
    Publishing(client, "h").publish(40)
    fleet.run(1.0)
    first = fleet.head().log.first
    client.tell("e1", durable(1, "s", since=0.0))
    fleet.run(1.0)
    (resumed,) = client.of("e1", msg.Resumed)
    assert resumed.gap is not None
    assert (resumed.gap.low, resumed.gap.high, resumed.gap.reason) == (1, first - 1, "log")


@pytest.mark.parametrize("is_lease_over", [False, True], ids=["edge-keeps-it", "head-keeps-it"])
def test_a_place_left_by_a_life_whose_clock_was_ahead_is_taken_by_the_next_one(is_lease_over: bool):
    fleet = one_cluster()
    ahead, late = fleet.client("c", "h", "e1", "e2"), fleet.client("d", "h", "e2")
    ahead.tell("e1", replace(durable(1, "s"), epoch=(90, 2)))
    late.tell("e2", replace(durable(1, "s"), epoch=(5, 2)))
    fleet.run(1.0)
    assert [(s.code, s.used) for s in late.of("e2", msg.AttachmentClosed)] == [("released", 0)], "it is alive"
    ahead.tell("e1", msg.Detach([1], False))
    fleet.run(40.0 if is_lease_over else 1.0)
    late.tell("e2", replace(durable(2, "s"), epoch=(5, 4)))
    fleet.run(1.0)
    assert [(s.code, s.used) for s in late.of("e2", msg.AttachmentClosed)][1:] == [("epoch", 90)]
    token = ("h", fleet.head().epoch, ahead.of("e1", msg.Resumed)[0].position)
    late.tell("e2", replace(durable(3, "s", token=token), epoch=(91, 6)))
    fleet.run(1.0)
    (resumed,) = late.of("e2", msg.Resumed)
    assert (resumed.gap, resumed.lapsed) == (None, False)
    ahead.tell("e1", replace(durable(2, "s"), epoch=(90, 4)))
    fleet.run(1.0)
    assert [(s.code, s.used) for s in ahead.of("e1", msg.AttachmentClosed)] == [("released", 0)], "the old one yields"
    assert fleet.head().owners.entries["s"].epoch == (91, 6)
