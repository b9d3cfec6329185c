"""A member's machine by itself: it is one, it stands still, it is refused, and it ends."""

from __future__ import annotations

from typing import Any

import pytest
from tests.core.client.members import SpokenClient, member_of
from tests.core.group_play import GroupPlay

from plimsoll.core.client import GroupFailed
from plimsoll.core.protocol import messages as msg


def test_a_client_is_a_member_of_a_group_once() -> None:
    client = SpokenClient()
    client.group_member("g", "m")
    with pytest.raises(ValueError, match="in use"):
        client.group_member("g", "n")
    client.group_member("h", "m")


def test_one_that_stood_still_for_longer_than_its_lease_does_not_claim_its_slices(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    play = GroupPlay(count=1)
    play.join("a")
    play.run(1.0)
    member, client = play.consumers["a"].member, play.consumers["a"].client
    said: list[Any] = []
    monkeypatch.setattr(client, "say", lambda link, record: said.append(record))
    client.now += 2.1
    member.join()  # over a new link, before its own look at the time
    assert member.slices == {}
    [joining] = [record for record in said if isinstance(record, msg.GroupJoin)]
    assert [(place.is_released, place.was_cut_off) for place in joining.places] == [(True, True)]


def test_one_that_is_refused_asks_again_when_it_may_and_ends_when_it_may_not() -> None:
    client = SpokenClient()
    member = member_of(client, 2)
    member.on_record(msg.GroupRefused("g", "busy", "later", 0.5))
    assert (member.is_member, list(member.slices)) == (False, [2])
    client.said.clear()
    client.now += 0.4
    member.on_tick()
    assert client.said == []
    client.now += 0.1
    member.on_tick()
    assert client.said_last(msg.GroupJoin).places[0].number == 2
    member.on_record(msg.GroupRefused("g", "forbidden", "not you", 0.0))
    assert (member.slices, member.has_left, member.failed) == ({}, True, GroupFailed("forbidden", "not you"))
    assert client.members == {}


def test_one_without_slices_ends_as_soon_as_it_leaves_and_has_no_head() -> None:
    client = SpokenClient()
    member = client.group_member("g", "m")
    member.leave()
    assert (member.has_left, client.members) == (True, {})
