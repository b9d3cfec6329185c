"""Who may make a group, who may join it, and what a head shows of it."""

from __future__ import annotations

from typing import Any

from tests.core.group_play import GroupPlay

from plimsoll.core.permissions import ClientPermissions


def refused(play: GroupPlay, name: str) -> str:
    failed = play.consumers[name].member.failed
    return "" if failed is None else failed.text


def grant(play: GroupPlay, **fields: Any) -> None:
    play.fleet.head().grant_of = lambda peer: ClientPermissions("ann", **fields)


def test_a_group_is_made_by_one_that_may_and_joined_by_others() -> None:
    play = GroupPlay()
    grant(play, groups=False)
    play.join("a")
    play.run(1.0)
    assert "roles lack group" in refused(play, "a")
    grant(play)
    play.join("b")
    play.run(1.0)
    grant(play, groups=False)
    play.join("c", defines=False)
    play.run(1.0)
    assert play.consumers["c"].member.is_member


def test_one_that_may_not_subscribe_may_not_join() -> None:
    play = GroupPlay()
    grant(play, subscribes=False)
    play.join("a")
    play.run(1.0)
    assert "roles lack subscribe" in refused(play, "a")
