"""Groups of the custom resources: served by the head of their cluster, stamped for by all."""

from __future__ import annotations

import msgspec
from tests.core.group_play import GROUP, GroupPlay, definition

from plimsoll.core.config import DeclaredGroup
from plimsoll.core.policies.consumer_groups.model import SliceMove
from plimsoll.core.protocol import messages as msg


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


def test_moves_of_slices_that_a_new_definition_has_no_more_are_forgotten() -> None:
    play = GroupPlay()
    declared(play, ("h", GROUP, definition(4)))
    play.group.schedule.command((SliceMove("a", "b", 3),), empties=False)
    play.group.redefine(definition(2))
    play.run(0.5)
    assert len(play.group.slices) == 2
    assert play.group.schedule.commanded == []


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
