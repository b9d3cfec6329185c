"""A member in a session in which both sides cache: bounds, gaps, new links, and parts that come too late."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from tests.core.client.members import SpokenClient

from plimsoll.core.client import GapNotice
from plimsoll.core.client.group_member import GroupMember
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol import wire
from plimsoll.core.protocol.wire import WireError

DEFINITION = msg.GroupDefinition("", 4, "Publisher", in_session="Cache")
PLACE = msg.SlicePlace(2, 10, ("h", 1, 5), [("h", 1, 5)], is_released=True)


def raw(position: int) -> msgspec.Raw:
    pub = msg.PubOpen(position, "h", 1, position, "p", 1, position, 0, 0, msg.Body({"n": position}))
    return msgspec.Raw(wire.encode(msg.CachedItem("h", 1, pub)))


def caching(**limits: Any) -> tuple[SpokenClient, GroupMember, Any]:
    """A member that caches slice 2 from position 7 on."""
    client = SpokenClient(**limits)
    member = client.group_member("g", "m")
    member.on_record(msg.GroupJoined("g", DEFINITION, 1.0, 4.0))
    member.on_record(msg.SliceAssigned("g", 2, 12, ("h", 1, 7), [("h", 1, 7)], None, 1, caches=True))
    return client, member, member.caching.taken[2]


def take(owned: Any, *positions: int) -> None:
    """Deliveries of an edge."""
    attachment: Any = msgspec.defstruct("At", ["stream"])(("h", 1))
    owned.current = attachment
    for n in positions:
        pub = msg.PubOpen(n, "h", 1, n, "p", 1, n, 0, 0, msg.Body({"n": n}))
        owned.stream.take(attachment, pub, 100, 1.0)
    owned.current = None


def test_nothing_is_given_before_the_givers_cache_is_there_and_then_both_in_order():
    client, member, owned = caching()
    assert list(client.subscribers) == ["g@@2+"]
    take(owned, 9, 11)
    assert (member.items.take(9), member.slices) == ([], {})
    member.on_record(msg.SliceCache("g", 2, 12, [raw(6), raw(9)]))
    assert member.items.take(9) == []
    member.on_record(msg.SliceCache("g", 2, 12, [raw(10), raw(13)]))
    member.on_record(msg.SliceCache("g", 2, 12, [], PLACE))
    assert [each.item.token[2] for each in member.items.take(9)] == [6, 9, 10, 11, 13]
    assert (owned.place().token, owned.place().side) == (("h", 1, 5), 1)
    assert (owned.counts["cached"], owned.counts["cached_twice"]) == (5, 1)
    take(owned, 13, 14)
    assert [each.item.token[2] for each in member.items.take(9)] == [14], "what the giver had cached is not taken again"


@pytest.mark.parametrize("limits", [{"slice_cache_records": 3}, {"slice_cache_bytes": 600}])
def test_a_takers_cache_above_its_bound_is_given_up(limits: dict[str, int]):
    client, member, owned = caching(**limits)
    take(owned, 8, 9, 10)
    member.on_tick()
    assert member.caching.taken
    take(owned, 11, 12)
    member.on_tick()
    assert not member.caching.taken
    released = client.said[-1] if isinstance(client.said[-1], msg.SliceReleased) else client.said[-2]
    assert (released.place.epoch, released.place.token, released.is_cached) == (12, None, False)


def test_a_gap_ends_caching_and_what_comes_too_late_is_nothing():
    _, member, owned = caching()
    owned.events.append(GapNotice(msg.Gap("h", 1, 8, 1, 9, [], "log"), 1.0))
    member.on_tick()
    member.on_record(msg.SliceCache("g", 2, 12, [raw(6)], PLACE))
    assert (member.slices, member.caching.taken) == ({}, {})


def test_a_broken_item_ends_caching_and_is_an_error():
    _, member, _ = caching()
    with pytest.raises(WireError):
        member.on_record(msg.SliceCache("g", 2, 12, [msgspec.Raw(b"\xc0")]))
    assert not member.caching.taken


def test_over_a_new_link_a_taker_forgets_and_the_head_may_end_it():
    for end in (lambda m: m.join(), lambda m: m.on_record(msg.SliceRevoked("g", 2, 12))):
        client, member, _ = caching()
        end(member)
        assert (member.caching.taken, dict(client.subscribers)) == ({}, {})


def test_of_another_epoch_nothing_counts():
    _, member, owned = caching()
    member.on_record(msg.SliceCache("g", 2, 11, [raw(6)], PLACE))
    member.on_record(msg.SliceRevoked("g", 2, 11))
    assert member.caching.taken == {2: owned}


def giving(**limits: Any) -> tuple[SpokenClient, GroupMember, Any]:
    """A member that has slice 2, with three items of which its application has one."""
    client = SpokenClient(**limits)
    member = client.group_member("g", "m")
    member.on_record(msg.GroupJoined("g", DEFINITION, 1.0, 4.0))
    member.on_record(msg.SliceAssigned("g", 2, 10, ("h", 1, 5)))
    take(member.slices[2], 6, 8, 9)
    (handed,) = member.items.take(1)
    return client, member, handed


def test_a_giver_caches_once_nothing_is_in_hand_and_sends_its_cache_when_asked_again():
    client, member, handed = giving()
    member.on_record(msg.SliceRevoked("g", 2, 10, caches=True))
    assert member.items.take(9) == []
    assert not any(isinstance(each, msg.SliceCaching) for each in client.said)
    member.items.finish(handed)
    assert client.said[-1] == msg.SliceCaching("g", 2, 10, ("h", 1, 9), [("h", 1, 9)])
    take(member.slices[2], 12)
    member.on_record(msg.SliceRevoked("g", 2, 10, caches=True))
    cache, released = client.said[-2:]
    assert [msg.cached_item.decode(each).pub.position for each in cache.items] == [8, 9, 12]
    assert (released.is_cached, released.place.token) == (True, ("h", 1, 6))
    assert not member.slices


def test_a_giver_that_is_asked_otherwise_or_above_its_bound_lets_go_as_ever():
    for is_full in (False, True):
        client, member, handed = giving(slice_cache_records=2)
        member.on_record(msg.SliceRevoked("g", 2, 10, caches=True))
        member.items.finish(handed)
        if is_full:
            take(member.slices[2], 12)
            member.on_tick()
        else:
            member.on_record(msg.SliceRevoked("g", 2, 10))
        released = next(each for each in client.said if isinstance(each, msg.SliceReleased))
        assert (released.is_cached, released.place.token) == (False, ("h", 1, 6))
        assert not any(isinstance(each, msg.SliceCache) for each in client.said)


def test_over_a_new_link_a_giver_goes_on():
    _, member, handed = giving()
    member.on_record(msg.SliceRevoked("g", 2, 10, caches=True))
    member.items.finish(handed)
    member.join()
    assert [each.item.token[2] for each in member.items.take(9)] == [8, 9]
