"""Beats of a member: what they say of slices and of load, when they are due, and the lease that their answers give."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests.core.client.members import SpokenClient, member_of

from plimsoll.core.client import group_beats
from plimsoll.core.protocol import messages as msg
from plimsoll.core.transport.link import NEVER


def beats_said(client: SpokenClient) -> list[msg.GroupBeat]:
    return [each for each in client.said if isinstance(each, msg.GroupBeat)]


def said_slices(client: SpokenClient) -> list[int]:
    """Of the last beat."""
    return [place.number for place in beats_said(client)[-1].places]


def test_an_answer_counts_from_when_its_beat_was_sent() -> None:
    client = SpokenClient()
    member = member_of(client, 2)
    beats, began = member.beats, client.now
    assert beats.lease_until == began + 4.0, "the answer to the join counts as one"
    client.now += 1.0
    member.on_tick()
    client.now += 1.0
    member.on_tick()
    client.now += 1.5
    beats.on_answer(2)
    assert beats.lease_until == began + 2.0 + 4.0
    beats.on_answer(1)
    assert (beats.lease_until, beats.heard_at) == (began + 6.0, began + 2.0), "an older one takes nothing away"
    beats.on_answer(2)
    beats.on_answer(77)
    assert beats.lease_until == began + 6.0, "nor do those that were not asked for give anything"


def test_over_a_new_link_older_beats_are_not_answered() -> None:
    client = SpokenClient()
    member = member_of(client, 2)
    began = client.now
    client.now += 1.0
    member.on_tick()
    client.now += 1.0
    member.join()
    member.beats.on_answer(1)
    assert member.beats.heard_at == began
    member.on_record(msg.GroupJoined("g", msg.GroupDefinition("", 4, "Publisher"), 0.5, 2.0))
    assert (member.beats.heard_at, member.beats.lease_until) == (began + 2.0, began + 4.0)


def test_a_beat_says_slices_that_have_got_further() -> None:
    client = SpokenClient()
    member = member_of(client, 2, 3)
    beats = member.beats
    beats.say(client.home_link)
    assert said_slices(client) == [2, 3]
    beats.say(client.home_link)
    assert said_slices(client) == []
    member.slices[3].stream.set_token(("h", 1, 9))
    beats.say(client.home_link)
    assert said_slices(client) == [3]
    beats.forget(2)
    beats.say(client.home_link)
    assert said_slices(client) == [2]
    assert [each.number for each in beats_said(client)] == [1, 2, 3, 4]


def test_places_beyond_what_one_beat_may_have_follow_with_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_beats, "BEAT_PLACES_AT_MOST", 2)
    client = SpokenClient()
    member = member_of(client, 0, 1, 2)
    member.beats.say(client.home_link)
    assert said_slices(client) == [0, 1]
    member.beats.say(client.home_link)
    assert said_slices(client) == [2]


def test_of_beats_without_an_answer_the_newest_are_remembered() -> None:
    client = SpokenClient()
    member = member_of(client, 2)
    for _ in range(group_beats.UNANSWERED_AT_MOST + 1):
        client.now += 0.01
        member.beats.say(client.home_link)
    heard_at = member.beats.heard_at
    member.beats.on_answer(1)
    assert member.beats.heard_at == heard_at
    member.beats.on_answer(2)
    assert member.beats.heard_at > heard_at


def test_a_load_is_what_was_done_since_the_last_one() -> None:
    client = SpokenClient()
    member = client.group_member("g", "m", None, lambda: (0.25, 0.5))
    member.on_record(msg.GroupJoined("g", msg.GroupDefinition("", 4, "Publisher"), 1.0, 4.0))
    member.on_record(msg.SliceAssigned("g", 2, 10, ("h", 1, 5)))

    def loads() -> Iterator[Any]:
        while True:
            member.beats.say(client.home_link)
            yield beats_said(client)[-1].load

    load = loads()
    client.now += 1.9
    assert next(load) is None, "too short to be measured"
    owned = member.slices[2]
    owned.finished, owned.busy_seconds = 8, 0.4
    client.now += 0.1
    assert next(load) == msg.MemberLoad(2.0, 0.25, 0.5, [msg.SliceReport(2, 4.0, 0.05, 0)])
    assert next(load) is None
    client.now += 4.0
    assert next(load) == msg.MemberLoad(4.0, 0.25, 0.5, [msg.SliceReport(2, 0.0, 0.0, 0)])


def test_it_wakes_for_a_beat_and_for_the_end_of_the_lease_of_slices_alone() -> None:
    client = SpokenClient()
    member = member_of(client)
    began = client.now
    assert member.beats.wake_at() == began
    member.on_tick()
    assert member.beats.wake_at() == began + 1.0
    member.beats.stop()
    assert member.beats.wake_at() == NEVER
    member.on_record(msg.SliceAssigned("g", 2, 10, ("h", 1, 5)))
    assert member.beats.wake_at() == pytest.approx(began + 4.001)
