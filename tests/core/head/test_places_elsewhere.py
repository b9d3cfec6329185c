"""Of two places that a subscriber has at two heads one goes: the earlier, and a guest's while the source serves it."""

from __future__ import annotations

from itertools import pairwise

import msgspec
import pytest
from msgspec.structs import replace
from tests.core.fleet import LIMITS, Client, Fleet, tree
from tests.core.head.test_durable_places import DAY, away, durable, places

from plimsoll.core.head import places_elsewhere
from plimsoll.core.head.durability.records import PlaceKept
from plimsoll.core.head.durable_places import DurablePlaces
from plimsoll.core.head.ownership import AWAY_KEY
from plimsoll.core.protocol import messages as msg

LEASE = float(LIMITS["lease_seconds"])
AGAIN = 5 * LEASE
"""A place that no edge serves is asked about more than once meanwhile."""


def two_places(first: int, second: int) -> tuple[Fleet, Client, DurablePlaces, DurablePlaces]:
    """`s` attaches at `a` with the first number, and at `c`, two links off, with the second; at `a` it is away."""
    fleet = tree([("a", "b"), ("b", "c")])
    client = fleet.client("k", "a", "a1", "c1")
    client.tell("a1", durable(1, "s", n=first))
    client.tell("c1", durable(2, "s", n=second))
    fleet.run(1.0)
    client.tell("a1", msg.Detach([1], False))
    fleet.run(1.0)
    assert (sorted(places(fleet, "a").kept), sorted(places(fleet, "c").kept)) == (["s"], ["s"])
    return fleet, client, places(fleet, "a"), places(fleet, "c")


def make_guest(kept: DurablePlaces) -> None:
    """As a head knows a place that a hand-over made, and of which it has had no DONE before it ended."""
    kept.kept["s"] = replace(kept.kept["s"], is_guest=True)


def test_the_earlier_place_goes_once_another_head_serves_its_subscriber():
    fleet, client, at_a, at_c = two_places(2, 4)
    fleet.run(AGAIN)
    assert (sorted(at_a.kept), sorted(at_c.kept)) == ([], ["s"])
    assert "s" not in fleet.head("a").owners.entries
    assert fleet.head("a").counters["places_elsewhere"] == 1
    client.tell("c1", msg.Detach([2], False))
    fleet.run(AGAIN)
    assert sorted(at_c.kept) == ["s"], "the only one stays, whether it is served or not"


def test_the_earlier_place_goes_too_if_its_subscriber_is_away_from_both():
    fleet, client, at_a, at_c = two_places(2, 4)
    client.tell("c1", msg.Detach([2], False))
    fleet.run(AGAIN)
    assert (sorted(at_a.kept), sorted(at_c.kept)) == ([], ["s"])


def test_a_guest_s_place_does_not_end_the_one_of_its_source():
    fleet, client, at_a, at_c = two_places(2, 3)
    make_guest(at_c)
    client.tell("c1", msg.Detach([2], False))
    fleet.run(AGAIN)
    assert (sorted(at_a.kept), sorted(at_c.kept)) == (["s"], ["s"]), "the subscriber may come back to either"


def test_a_guest_s_place_goes_while_its_source_serves_the_subscriber():
    fleet, _, at_a, at_c = two_places(3, 2)
    make_guest(at_a)
    fleet.run(AGAIN)
    assert (sorted(at_a.kept), sorted(at_c.kept)) == ([], ["s"])


def test_a_guest_s_place_stays_while_a_session_of_its_source_is_open(monkeypatch: pytest.MonkeyPatch):
    fleet, _, at_a, _ = two_places(3, 2)
    make_guest(at_a)
    monkeypatch.setattr(fleet.head("c").coordinator.table, "is_busy", lambda subscriber: subscriber == "s")
    fleet.run(AGAIN)
    assert sorted(at_a.kept) == ["s"]


def test_a_place_of_another_identity_is_another_place():
    fleet, _, at_a, at_c = two_places(2, 4)
    for head in "abc":  # no head has had room for the name: else one of the two had lost it
        fleet.head(head).subscriber_claims.by_name.clear()
        fleet.head(head).subscriber_claims.most = 0
    for kept, identity in ((at_a, "one"), (at_c, "other")):
        kept.kept["s"] = replace(kept.kept["s"], identity=identity)
        owners = kept.host.owners
        owners.entries["s"] = owners.entries["s"]._replace(identity=identity)
    fleet.run(AGAIN)
    assert (sorted(at_a.kept), sorted(at_c.kept)) == (["s"], ["s"])


def test_a_place_that_is_served_by_now_outlasts_an_answer():
    fleet, client, at_a, _ = two_places(2, 4)
    client.tell("a1", durable(3, "s", n=6))
    fleet.run(1.0)
    fleet.head("a").places_elsewhere.on_reply("c", "", msg.PlaceReply([msg.PlaceItem("s", (1, 8))]))
    assert sorted(at_a.kept) == ["s"]
    assert fleet.head("a").owners.entries["s"].key != AWAY_KEY


def test_a_head_asks_less_and_less_often(monkeypatch: pytest.MonkeyPatch):
    fleet = tree([("a", "b")])
    client = fleet.client("k", "a", "a1")
    asked: list[float] = []
    monkeypatch.setattr(fleet.head("b").places_elsewhere, "on_query", lambda *_: asked.append(fleet.now))
    fleet.head("b").handlers.of_heads[msg.PlaceQuery] = fleet.head("b").places_elsewhere.on_query
    client.tell("a1", durable(1, "s", lease=DAY))
    fleet.run(1.0)
    began = fleet.now
    away(fleet, client, "a1")
    fleet.run(16 * LEASE)
    waits = [round((later - earlier) / LEASE) for earlier, later in pairwise([began, *asked])][1:]
    assert waits == [1, 2, 4, 8][: len(waits)]
    assert len(waits) >= 3


@pytest.mark.parametrize(("letter", "least"), [("a", 100), ("\u2693", 50)])
def test_a_query_is_short_however_long_the_names_are(letter: str, least: int):
    places = [PlaceKept(f"{n:03d}{letter * 250}", letter * 60, (1, 1), (1, 1), 9.0, []) for n in range(900)]
    found = places_elsewhere._of_one_query(places)
    assert found == places[: len(found)]
    assert least < len(found) < places_elsewhere.PLACES_OF_A_QUERY
    query = msg.PlaceQuery([places_elsewhere._item(place) for place in found])
    assert len(msgspec.msgpack.encode(query)) <= places_elsewhere.QUERY_BYTES
    assert len(places_elsewhere._of_one_query([replace(places[0], identity=letter * 65_000)])) == 1


def test_a_round_answers_a_bounded_number_of_places():
    fleet, *_ = two_places(2, 4)
    head = fleet.head("c").places_elsewhere
    asked = msg.PlaceQuery([msg.PlaceItem("s", (1, 2))] * 16_000)
    for _ in range(50):
        head.on_query("a", "", asked)
    assert sum(len(query.places) for _, query in head._queries) <= places_elsewhere.PLACES_AT_MOST
    head.tick()
    head.on_query("a", "", asked)
    assert len(head._queries) == 1, "the next round has its own bound"
