"""Who may make a group, who may join it, and what a head shows of it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from tests.core.group_play import GroupPlay, definition

from plimsoll.core.head.groups import requests
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


def bounded(play: GroupPlay, **limits: Any) -> GroupMaker:
    """A client of ann's, who makes groups, at a head with these limits."""
    head = play.fleet.head()
    config = head.config
    head.config = msgspec.structs.replace(config, limits=msgspec.structs.replace(config.limits, **limits))
    return GroupMaker(play)


class GroupMaker:
    """Makes groups, and says why it could not."""

    def __init__(self, play: GroupPlay, name: str = "maker") -> None:
        self.play, self.client = play, play._client(name)

    def make(self, group: str, count: int = 1) -> str:
        member = self.client.group_member(group, "m", definition(count))
        self.play.run(0.5)
        return f"{member.failed.code}: {member.failed.text}" if member.failed is not None else ""


def test_an_identity_makes_a_bounded_number_of_groups_and_others_theirs() -> None:
    play = GroupPlay()
    maker = bounded(play, max_consumer_groups=2)
    assert [maker.make("a"), maker.make("b")] == ["", ""]
    assert maker.make("c").startswith("full: maker has its 2 consumer groups here; a group ends 120 s after")
    assert GroupMaker(play, "other").make("c") == ""
    assert maker.make("d")
    head = play.fleet.head()
    head.groups.declare(head.groups.by_name["a"])
    assert maker.make("e") == "", "declared groups count for nobody"
    head.grant_of = lambda peer: ClientPermissions("ann", max_consumer_groups=3)
    ann = GroupMaker(play, "ann")
    assert [bool(ann.make(each)) for each in "vwxyz"] == [False, False, False, True, True]


def test_slices_of_an_identity_and_of_a_head_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    play = GroupPlay()
    maker = bounded(play, max_group_slices=10)
    assert [maker.make("a", 6), maker.make("b", 4)] == ["", ""]
    assert maker.make("c", 1) == "full: 1 slices: maker has 10 of its 10 slices of consumer groups here"
    monkeypatch.setattr(requests, "SLICES_AT_MOST", 12)
    assert (
        GroupMaker(play, "other").make("d", 3)
        == "full: 3 slices: this head has 10 of its 12 slices of consumer groups here"
    )


def test_a_group_that_a_restarted_head_is_told_of_counts_for_the_member_that_tells() -> None:
    play = GroupPlay()
    play.join("a")
    play.run(1.0)
    assert play.group.maker == "a"
    play.fleet.crash("h")
    play.fleet.start("h")
    play.run(12.0)
    assert play.group.maker == "a"
