"""Groups of a head: what it shows of them, and their end."""

from __future__ import annotations

from tests.core.group_play import GROUP, GroupPlay

from plimsoll.core.protocol.slice_names import slice_name


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


def test_a_group_without_members_costs_a_round_next_to_nothing() -> None:
    play = GroupPlay(count=1)
    play.join("a")
    play.run(1.0)
    play.leave("a")
    play.run(1.0)
    looks = list[float]()
    play.group._look_at_members = looks.append
    play.group.schedule.go_on = lambda: looks.append(0.0)
    before = play.group.times.beat / 10
    for _ in range(100):
        play.fleet.head().groups.tick()
    assert len(looks) <= 2
    play.run(3 * before)
    assert len(looks) >= 4, "what is left to do for it is done"


def test_a_group_that_was_removed_is_kept_for_longer_without_members() -> None:
    play = GroupPlay(count=1)
    play.join("a")
    play.run(1.0)
    head, times = play.fleet.head(), play.group.times
    assert times.unused == 120.0
    head.groups.declare(play.group)
    head.groups.remove(play.group, head.durable_places.unix_now + times.kept)
    play.crash("a")
    play.group._without_members_since = play.fleet.now - 2 * times.unused
    assert not play.group.is_over
    play.group._without_members_since = play.fleet.now - times.kept - 1.0
    assert play.group.is_over


def test_a_group_without_members_is_forgotten_with_the_places_of_its_slices() -> None:
    play = GroupPlay(count=1)
    play.join("a")
    play.run(1.0)
    play.leave("a")
    play.run(1.0)
    head = play.fleet.head()
    assert slice_name(GROUP, 0) in head.owners.entries
    play.group._without_members_since = play.fleet.now - play.group.times.unused + 1.0
    play.run(0.9)
    assert GROUP in head.groups.by_name
    play.run(0.5)
    assert head.groups.by_name == {}
    assert slice_name(GROUP, 0) not in head.owners.entries
