"""Sessions in which giver and taker cache (`inSession: Cache`), of real heads, edges and client machines in virtual
time: the same laws as by Deliver, and what is merged.
"""

from __future__ import annotations

from typing import Any

import pytest
from tests.core.group_play import GroupPlay

from plimsoll.core.policies.consumer_groups.model import SliceMove


def playing(edges: int = 2, count: int = 1, work: float = 0.0, **fields: Any) -> GroupPlay:
    """Two consumers, of which the first has all slices; nothing is balanced."""
    play = GroupPlay(edges=edges, count=count, balancing="None", in_session="Cache", **fields)
    play.join("a", work)
    play.run(1.0)
    play.join("b", work)
    play.run(1.0, rate=50.0)
    return play


def move(play: GroupPlay, giver: str, taker: str, *numbers: int) -> None:
    play.group._sessions = [tuple(SliceMove(giver, taker, number) for number in numbers)]


def caches(play: GroupPlay) -> dict[str, int]:
    return dict(play.group.caches.counts)


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
