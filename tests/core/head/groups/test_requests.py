"""Who may make a group, who may join it, and what a head shows of it."""

from __future__ import annotations

from typing import Any

import pytest
from tests.core.group_play import GROUP, GroupPlay, definition

from plimsoll.core.permissions import ClientPermissions
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol.slice_names import slice_name


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


def test_status_has_consumers_with_their_slices_and_backlog() -> None:
    play = GroupPlay()
    play.join("a", work=0.05)
    play.run(1.0)
    for n in range(40):
        play.publish(n)
    play.run(1.2)
    shown = play.fleet.head().status()["groups"][GROUP]
    assert (shown["slices"], shown["without_consumer"]) == (4, 0)
    assert shown["consumers"]["a"]["slices"] == 4
    assert 0 < shown["consumers"]["a"]["backlog"] <= 40
    assert shown["consumers"]["a"]["items_per_second"] > 0


def test_a_group_without_members_is_forgotten_with_the_places_of_its_slices() -> None:
    play = GroupPlay(count=1)
    play.join("a")
    play.run(1.0)
    play.leave("a")
    play.run(1.0)
    head = play.fleet.head()
    assert slice_name(GROUP, 0) in head.owners.entries
    play.group._without_members_since = -1e9  # an hour ago, and more
    play.run(1.0)
    assert head.groups.by_name == {}
    assert slice_name(GROUP, 0) not in head.owners.entries


@pytest.mark.parametrize("resumes", ["g@@9", "none@@0"])
def test_a_slice_that_is_none_is_refused(resumes: str) -> None:
    play = GroupPlay()
    play.run(8.0)
    head = play.fleet.head()
    head.groups.define("g", definition(4))
    cover = msg.Cover(1, [], [])
    assert head.groups.refusal(msg.ResumeUp(resumes, (1, 2), cover, None)) is not None
    assert head.groups.refusal(msg.ResumeUp("desk-7", (1, 2), cover, None)) is None
