"""Sessions in which giver and taker cache (`inSession: Cache`), of real heads, edges and client machines in virtual
time: the same laws as by Deliver, and what is merged.
"""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from tests.core.group_play import GroupPlay

from plimsoll.core.head.groups.cache_sessions import RELAYED_BYTES_AT_MOST
from plimsoll.core.policies.consumer_groups.model import SliceMove
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol import wire


def playing(edges: int = 2, count: int = 1, work: float = 0.0, **fields: Any) -> GroupPlay:
    """Two consumers, of which the first has all slices; nothing is balanced."""
    play = GroupPlay(edges=edges, count=count, balancing="None", in_session="Cache", **fields)
    play.join("a", work)
    play.run(1.0)
    play.join("b", work)
    play.run(1.0, rate=50.0)
    return play


def move(play: GroupPlay, giver: str, taker: str, *numbers: int) -> None:
    play.group.schedule._sessions = [tuple(SliceMove(giver, taker, number) for number in numbers)]


def item(size: int) -> msgspec.Raw:
    """A publication of a cache that takes this many bytes."""

    def encoded(payload: int) -> bytes:
        body = msg.Body({"n": 1}, bytes(payload))
        return wire.encode(msg.CachedItem("h", 1, msg.PubOpen(1, "h", 1, 1, "p", 1, 1, 0, 1, body)))

    return msgspec.Raw(encoded(2 * size - len(encoded(size))))


def caches(play: GroupPlay) -> dict[str, int]:
    return dict(play.group.caches.counts)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("edges", [1, 2])
def test_a_slice_goes_back_and_forth_under_load_and_each_item_is_processed_once(edges):
    play = playing(edges)
    giver, taker = ("a", "b") if play.has("a") else ("b", "a")
    for _ in range(20):
        move(play, giver, taker, 0)
        play.run(0.4, rate=200.0)
        assert (play.has(giver), play.has(taker)) == ([], [0])
        giver, taker = taker, giver
    play.check()
    assert caches(play)["merged"] == play.group.counts["sessions"] >= 20


def test_the_takers_name_is_covered_since_the_givers_was_and_that_keeps_no_place():
    play = playing()
    owners = play.fleet.head().owners
    since = owners.entries["readings@@0"].since
    move(play, "a", "b", 0)
    play.run(0.5, rate=100.0)
    assert owners.entries["readings@@0+"].since == since
    assert "readings@@0" not in owners.entries
    play.check()


def test_a_session_that_takes_too_long_goes_on_from_the_log():
    play = playing()
    play.consumers["a"].is_paused = True
    play.run(0.5, rate=50.0)
    play.consumers["a"].hand = play.consumers["a"].member.items.take(1)[0]
    move(play, "a", "b", 0)
    play.run(4.0, rate=20.0)
    assert caches(play) == {"slow": 1}
    play.consumers["a"].is_paused = False
    play.check()
    assert play.has("b") == [0]


def test_a_taker_forgets_what_it_has_cached_when_the_session_is_over():
    play = playing()
    each, sessions = play.group.slices[0], play.group.caches
    giver, taker = play.group.members["a"], play.group.members["b"]
    assert sessions.begin(each, giver, taker, play.fleet.now + 5.0)
    taken = play.consumers["b"].member.caching.taken
    assert any(play.fleet.round() and 0 in taken for _ in range(50))
    sessions.cancel(each, "slow")
    play.fleet.settle()
    assert taken == {}


def test_a_strangers_cache_is_not_passed_on_and_one_above_the_bound_of_the_head_ends_the_session():
    play = playing()
    each, sessions = play.group.slices[0], play.group.caches
    giver, taker = play.group.members["a"], play.group.members["b"]
    part = msg.SliceCache("readings", 0, each.epoch, [item(RELAYED_BYTES_AT_MOST)])
    sessions.on_cache(giver, part)
    assert sessions.begin(each, giver, taker, play.fleet.now + 5.0)
    sessions.under_way[0].step = "cache"
    sessions.on_cache(taker, part)
    assert sessions.under_way[0].relayed_bytes == 0
    sessions.on_cache(giver, part)
    assert sessions.under_way[0].relayed_bytes == RELAYED_BYTES_AT_MOST
    sessions.on_cache(giver, part)
    assert (sessions.under_way, caches(play)) == ({}, {"uncached": 1})


@pytest.mark.parametrize("raw", [b"\xc0", b"\x93\x01\x02\x03", b"\x93\xa1h\xcf" + b"\xff" * 8 + b"\x90", b"\xa1"])
def test_a_cache_that_cannot_be_read_is_refused_and_the_slice_moves_without_caches(raw: bytes):
    play = playing()
    each, sessions = play.group.slices[0], play.group.caches
    giver, taker = play.group.members["a"], play.group.members["b"]
    assert sessions.begin(each, giver, taker, play.fleet.now + 5.0)
    sessions.under_way[0].step = "cache"
    said: list[object] = []
    head = play.fleet.head()
    head.group_links.say = lambda link, record: said.append(record)
    part = msg.SliceCache("readings", 0, each.epoch, [item(100), msgspec.Raw(raw)])
    head.group_requests.on_cache(giver.link, part)
    assert (sessions.under_way, caches(play)) == ({}, {"uncached": 1})
    assert not any(isinstance(record, msg.SliceCache) for record in said), "nothing of it is passed on"
    (refused,) = (record for record in said if isinstance(record, msg.GroupRefused))
    assert refused.code == "malformed"
    assert refused.text.startswith("a publication of the cache of slice 0 cannot be read: ")


def test_what_the_giver_has_not_given_goes_to_the_taker_and_not_through_the_log():
    play = playing(work=0.0)
    play.consumers["a"].is_paused = True
    play.run(1.0, rate=300.0)
    waiting = play.consumers["a"].member.slices[0].backlog
    play.consumers["a"].is_paused = False
    move(play, "a", "b", 0)
    play.run(0.5, rate=300.0)
    assert waiting > 200
    assert play.has("b") == [0]
    assert caches(play)["relayed_bytes"] > 0
    play.check()


@pytest.mark.parametrize("replay", [False, True])
def test_a_slice_that_is_in_a_hand_over_between_edges_when_its_giver_leaves_is_gone_from_there(replay: bool):
    """The head ends the place itself and says so at once; the source hears of it one message later, and ends it."""
    play = playing()
    head, held = play.fleet.head(), "readings@@0"
    source = head.owners.entries[held].edge
    target = "e1" if source == "e2" else "e2"
    mediator = play.fleet.mediator("h")
    prepare = msg.HandoverPlan(source, target, "h", [held], replay, 5.0, 5.0)
    mediator.say_control("h", msg.Command(1, head.epoch, "1.1", "prepare", prepare))
    play.run(0.3, rate=100.0)
    move(play, "a", "b", 0)
    play.run(0.5, rate=100.0)
    mediator.say_control("h", msg.Command(1, head.epoch, "1.1", "ask"))
    play.run(0.1, rate=100.0)
    outcomes = [dict(said.members)[held] for said in mediator.heard["h"] if isinstance(said, msg.Outcome)]
    assert outcomes[-1] == "gone"
    assert outcomes[: outcomes.index("gone")], "it was in the hand-over"
    assert play.has("b") == [0]
    assert held not in head.owners.entries
    assert not any(held in play.fleet.edge(edge).attachments.by_subscriber for edge in ("e1", "e2"))
    assert not head.coordinator.sessions
    play.check()
