"""Who may make a group, who may join it, and what a head shows of it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from tests.core.group_play import GROUP, GroupPlay, definition

from plimsoll.core.config import DeclaredGroup
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
    shown = play.fleet.head().groups.by_group()[GROUP]
    assert (shown["slices"], shown["without_consumer"]) == (4, 0)
    assert shown["consumers"]["a"]["slices"] == 4
    assert 0 < shown["consumers"]["a"]["backlog"] <= 40
    assert shown["consumers"]["a"]["items_per_second"] > 0
    assert play.fleet.head().status()["groups"] == [GROUP]


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


def declared(play: GroupPlay, *groups: tuple[str, str, msg.GroupDefinition]) -> None:
    play.fleet.mediator("h").say_control(
        "h", msg.ClusterGroups([msg.DeclaredGroupItem(cluster, name, what) for cluster, name, what in groups])
    )
    play.run(0.5)


def test_a_declared_group_needs_no_definition_of_its_members() -> None:
    play = GroupPlay()
    declared(play, ("h", GROUP, definition(4)))
    play.join("a", defines=False)
    play.run(1.0)
    play.run(1.0, rate=50)
    play.check()


def test_what_is_declared_for_another_cluster_is_stamped_and_not_served() -> None:
    play = GroupPlay()
    declared(play, ("other", GROUP, definition(4)))
    play.join("a", defines=False)
    play.run(1.0)
    assert not play.consumers["a"].member.is_member
    stamps = play.fleet.head().groups.stamps
    assert list(stamps.by_group) == [GROUP]
    declared(play)
    assert stamps.by_group == {}


def test_slices_stay_while_there_are_members_and_balancing_may_change() -> None:
    play = GroupPlay()
    declared(play, ("h", GROUP, definition(4)))
    play.join("a", defines=False)
    play.run(1.0)
    declared(play, ("h", GROUP, definition(4, balancing="Pairing")))
    assert play.group.definition.balancing == "Pairing"
    declared(play, ("h", GROUP, definition(5)))
    assert len(play.group.slices) == 4
    assert play.fleet.head().counters["groups_refused"] == 1
    play.leave("a")
    play.run(1.0)
    declared(play, ("h", GROUP, definition(5)))
    assert len(play.group.slices) == 5


def test_a_declared_group_stays_without_members_and_ends_when_it_is_declared_no_longer() -> None:
    play = GroupPlay()
    declared(play, ("h", GROUP, definition(4)))
    play.group._without_members_since = -1e9  # long ago
    play.run(0.5)
    assert GROUP in play.fleet.head().groups.by_name
    declared(play)
    play.run(0.5)
    assert GROUP not in play.fleet.head().groups.by_name


def test_a_declared_group_survives_a_restart_of_its_head_without_losing_stamps() -> None:
    play = GroupPlay()
    what = definition(4)
    play.fleet.configs["h"] = msgspec.structs.replace(
        play.fleet.configs["h"],
        groups=(DeclaredGroup(cluster="h", name=GROUP, filter=what.filter, count=4, function="Modulo", by="sensor"),),
    )
    play.fleet.crash("h")
    play.fleet.start("h")
    play.run(2.0)
    play.join("a", defines=False)
    play.join("b", defines=False)
    play.run(8.0)
    before = play.has("a"), play.has("b")
    play.fleet.crash("h")
    play.run(0.5)
    play.fleet.start("h")
    play.run(1.0, rate=50)
    play.run(8.0)
    assert (play.has("a"), play.has("b")) == before
    # What was sent to the head that died has no answer; all that the new one has logged is processed.
    assert len({each.item for each in play.given}) == play.fleet.head().log.last >= play.said - 1
