"""A declared group that is removed while consumers use it: they are told, get what the log has, and then it ends."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from tests.core.group_play import GROUP, GroupPlay, definition
from tests.core.head.groups.test_group_links import losing

from plimsoll.core.head.groups.removal import Removal, ending
from plimsoll.core.head.groups.times import GroupTimes
from plimsoll.core.permissions import ClientPermissions
from plimsoll.core.protocol import messages as msg
from plimsoll.core.verify.slice_laws import judge_slices


def declare(play: GroupPlay, *definitions: msg.GroupDefinition, heads: str = "h") -> None:
    """Say which groups are declared: none, or this one, of the cluster `h`."""
    said = [msg.DeclaredGroupItem("h", GROUP, each, "h") for each in definitions]
    for head in heads:
        play.fleet.mediator(head).say_control(head, msg.ClusterGroups(said))
        play.run(0.1)


def in_use(*, west: bool = False, work: float = 0.05, durable: bool = False) -> GroupPlay:
    """A declared group with two consumers, and 60 items that they have yet to process."""
    play = GroupPlay(west=west, durable=durable)
    if not west:
        declare(play, play.definition)
    play.join("a", work, defines=False)
    play.join("b", work, defines=False, home="w" if west else "h")
    play.run(2.0)
    for n in range(60):
        play.publish(n)
    play.run(0.3)
    return play


def failed(play: GroupPlay, name: str) -> tuple[str, str]:
    found = play.consumers[name].member.failed
    return ("", "") if found is None else (found.code, found.text)


def whys(play: GroupPlay, name: str) -> list[str]:
    return [change.why for change in play.consumers[name].changes if not change.came and not change.went]


def check_given(play: GroupPlay, said: int) -> None:
    """All up to this number was processed once, and nothing behind it."""
    verdict = judge_slices(play.given, {"p": range(1, said + 1)})
    assert verdict.holds, verdict
    assert {each.item for each in play.given} == set(range(1, said + 1))
    assert (verdict.redelivered, play.gaps) == (0, [])


def test_members_of_two_clusters_are_told_and_get_what_the_log_has_and_no_head_makes_it_again() -> None:
    play = in_use(west=True)
    declare(play, heads="wh")
    said = play.said
    play.run(1.2, rate=20)
    for name in "ab":
        assert "is declared no longer" in play.consumers[name].member.over
        assert whys(play, name) == ["over"]
        assert not failed(play, name)[0]
    play.run(12.0, rate=20)
    for name in "ab":
        code, text = failed(play, name)
        assert (code, play.has(name)) == ("over", [])
        assert "all of it has been processed" in text
    for head in ("h", "w"):
        assert play.fleet.head(head).groups.by_name == {}
        assert play.fleet.head(head).groups.stamps.by_group == {}
    check_given(play, said)
    play.join("c", home="w")  # the name is free in other clusters once its time there is over
    play.run(2.0)
    assert (play.consumers["c"].member.is_member, failed(play, "c")[0]) == (False, "")
    ended = play.fleet.head("w").group_declarations._ended_elsewhere
    ended.update({name: (each, play.fleet.now) for name, (each, _) in ended.items()})
    play.run(2.0)
    assert play.consumers["c"].member.is_member


def test_a_member_that_is_lost_on_the_way_joins_again_until_the_end() -> None:
    play = in_use(west=True, work=0.2)
    declare(play, heads="wh")
    said = play.said
    play.run(1.0)
    lost = losing(play, "w", msg.GroupBeat)
    play.run(3.0)
    assert lost
    assert play.consumers["b"].member.is_member
    play.run(14.0)
    assert (failed(play, "a")[0], failed(play, "b")[0]) == ("over", "over")
    assert {each.item for each in play.given} == set(range(1, said + 1))


def test_what_a_dead_consumer_leaves_goes_to_the_next_one() -> None:
    play = in_use()
    declare(play)
    said = play.said
    play.crash("a")
    play.leave("b")
    play.run(1.0)
    play.join("c", defines=False)
    play.run(9.0)
    assert play.consumers["c"].member.over
    assert {each.item for each in play.given if each.until is not None} == set(range(1, said + 1))
    play.run(8.0)
    assert failed(play, "c")[0] == "over"


def test_it_ends_at_its_time_whatever_is_left() -> None:
    play = in_use()
    declare(play)
    play.consumers["a"].is_paused = play.consumers["b"].is_paused = True
    play.run(12.0)
    play.group.removal.until = play.fleet.now
    play.run(0.1)
    assert play.fleet.head().groups.by_name == {}
    assert "items of it were not processed" in failed(play, "a")[1]


def test_one_that_may_make_groups_brings_it_back_and_one_that_may_not_joins_it_until_its_end() -> None:
    play = in_use(work=0.4)
    play.fleet.cut("b", "h")  # which comes back with a definition, before it has been told
    declare(play)
    play.run(2.4)
    assert not play.consumers["b"].member.over
    play.fleet.mend("b", "h")
    play.run(1.5)
    assert play.consumers["b"].member.is_member
    assert play.group.removal is not None
    play.fleet.head().grant_of = lambda peer: ClientPermissions("ann", groups=False)
    play.join("c")
    play.run(1.5)
    assert play.consumers["c"].member.is_member
    assert play.group.removal is not None
    play.fleet.head().grant_of = lambda peer: ClientPermissions("ann")
    play.fleet.cut("a", "h")
    play.run(0.2)
    play.fleet.mend("a", "h")  # over a new link it brings nothing back
    play.run(1.5)
    assert play.consumers["a"].member.is_member
    assert play.group.removal is not None
    play.join("d")
    play.run(1.5)
    assert play.group.removal is None
    assert whys(play, "a") == ["over", "resumed"]
    play.run(1.0, rate=50)
    play.check(is_exact=False, seconds=16.0)


def test_it_goes_on_when_it_is_declared_again() -> None:
    play = in_use()
    declare(play)
    play.run(1.5)
    declare(play, play.definition)
    play.run(1.5)
    assert whys(play, "b") == ["over", "resumed"]
    play.run(1.0, rate=50)
    play.check(seconds=8.0)


def test_another_definition_counts_once_the_old_group_has_ended() -> None:
    play = in_use()
    declare(play)
    play.run(0.5)
    declare(play, definition(7))
    said = play.said
    play.run(12.0)
    assert failed(play, "a")[0] == "over"
    check_given(play, said)
    assert len(play.group.slices) == 7
    play.join("c", defines=False)
    play.run(1.0)
    assert play.has("c") == list(range(7))


def test_a_head_that_restarts_meanwhile_has_nothing_more_to_give() -> None:
    play = in_use()
    declare(play)
    play.run(1.2)
    play.fleet.crash("h")
    play.run(0.5)
    play.fleet.start("h")
    play.run(12.0)
    assert play.fleet.head().groups.by_name == {}
    assert failed(play, "a")[0] == "unknown"


def restart(play: GroupPlay, *heads: str, down: float = 0.5) -> None:
    for head in heads:
        play.fleet.crash(head)
    play.run(down)
    play.fleet.start(*heads)


def test_a_head_with_its_log_gives_the_rest_and_tells_the_end_though_it_restarts_meanwhile() -> None:
    play = in_use(durable=True, work=0.1)
    declare(play)
    said, until = play.said, play.group.removal.until
    play.run(1.2)
    restart(play, "h")
    play.run(2.0, rate=20)  # none of these has a stamp
    assert play.group.removal.until == until
    assert (whys(play, "a"), whys(play, "b")) == (["over"], ["over"])
    restart(play, "h")
    play.run(16.0)
    assert (failed(play, "a")[0], failed(play, "b")[0]) == ("over", "over")
    assert "all of it has been processed" in failed(play, "a")[1]
    check_given(play, said)
    restart(play, "h")
    play.run(1.0)
    assert play.fleet.head().groups.by_name == {}


def test_a_group_that_is_removed_while_its_head_is_down_is_removed_when_that_is_back() -> None:
    play = in_use(durable=True)
    said = play.said
    restart(play, "h")
    play.run(1.0)
    assert (play.group.is_declared, play.group.removal) == (True, None)
    assert play.fleet.head().groups.stamps.by_group.keys() == {GROUP}
    declare(play)
    play.run(14.0)
    assert (whys(play, "a"), failed(play, "a")[0]) == (["over"], "over")
    check_given(play, said)


def test_it_ends_at_its_time_though_its_head_was_down_then() -> None:
    play = in_use(durable=True)
    declare(play)
    play.consumers["a"].is_paused = play.consumers["b"].is_paused = True
    play.run(1.2)
    play.group.removal.until = play.fleet.now + 0.1
    play.fleet.head().groups.changes += 1
    play.run(0.05)
    restart(play, "h")
    play.run(2.0)
    assert play.fleet.head().groups.by_name == {}
    assert (failed(play, "a")[0], failed(play, "b")[0]) == ("unknown", "unknown")


@pytest.mark.parametrize("is_removed", [True, False])
def test_what_is_left_of_consumers_that_die_with_the_head_goes_to_the_next_one(*, is_removed: bool) -> None:
    play = in_use(durable=True, work=0.1)
    play.run(1.8)
    if is_removed:
        declare(play)
    said = play.said
    play.run(0.2)
    play.crash("a")
    play.crash("b")
    restart(play, "h", "e1", "e2", down=1.0)
    play.join("c", defines=False)
    play.run(16.0)
    assert {each.item for each in play.given if each.until is not None} == set(range(1, said + 1))
    verdict = judge_slices(play.given, {"p": range(1, said + 1)})
    assert verdict.holds, verdict
    assert 0 < verdict.redelivered < 50, "what had been acknowledged some time ago does not come again"
    assert play.gaps == []
    assert failed(play, "c")[0] == ("over" if is_removed else "")


def test_a_slice_that_has_begun_and_one_that_never_has_go_on_as_such() -> None:
    play = GroupPlay(durable=True)
    declare(play, play.definition)
    play.run(0.5, rate=20)
    passed = play.said  # before the first consumer: none of its slices begins there
    play.run(0.2)
    restart(play, "h")
    play.run(8.0)
    play.join("a", defines=False)
    play.run(0.3)
    play.publish(1)
    play.crash("a")  # before its first beat with a place
    play.run(0.1)
    restart(play, "h", "e1", "e2")
    play.join("b", defines=False)
    play.run(9.0)
    assert [each.item for each in play.given if each.until is not None][-1:] == [passed + 1]
    assert {each.item for each in play.given} == {passed + 1}
    assert play.gaps == []


def test_members_that_come_back_after_a_restart_do_not_bring_it_back_and_a_new_one_does() -> None:
    play = in_use(durable=True, work=0.2)
    for name in "cdef":  # more than there are slices: some say nothing of places
        play.join(name)
    play.run(1.5)
    declare(play)
    play.run(0.02)  # before a beat has told them
    restart(play, "h")
    play.run(3.0)
    assert all(play.consumers[name].member.over for name in "abcdef")
    play.run(4.0)
    play.join("g")
    play.run(1.5)
    assert play.group.removal is None
    restart(play, "h")
    play.run(8.0)
    assert GROUP not in {each.name for each in play.fleet.head().durable_groups.kept()}, "members have made it now"
    play.run(1.0, rate=20)
    play.run(12.0)
    assert {each.item for each in play.given} >= set(range(61, play.said + 1))


def test_another_definition_waits_for_members_that_come_back_after_a_restart() -> None:
    play = in_use(durable=True)
    declare(play)
    play.run(0.5)
    declare(play, definition(7))
    said = play.said
    restart(play, "h")
    declare(play, definition(7))
    assert len(play.group.slices) == 4
    play.run(14.0)
    assert failed(play, "a")[0] == "over"
    check_given(play, said)
    assert len(play.group.slices) == 7
    restart(play, "h")
    play.run(0.5)
    assert len(play.group.slices) == 7
    assert play.group.removal is None


def test_one_without_members_takes_another_definition_once_they_could_have_come_back() -> None:
    play = in_use(durable=True)
    play.leave("a")
    play.leave("b")
    play.run(4.0)
    restart(play, "h")
    declare(play, definition(7))
    assert len(play.group.slices) == 4
    play.run(8.0)
    assert len(play.group.slices) == 7
    play.fleet.head().groups.restart.recalled.clear()
    restart(play, "h")
    play.run(0.1)
    assert [each.token for each in play.group.slices] == [None] * 7, "how far the others were is not of these"


def test_the_head_of_another_cluster_makes_it_no_more_after_a_restart_than_before() -> None:
    play = in_use(west=True, durable=True, work=0.2)
    for head in "hw":
        config = play.fleet.configs[head]
        play.fleet.configs[head] = msgspec.structs.replace(config, groups=())
    declare(play, heads="wh")
    said = play.said
    play.run(1.0)
    restart(play, "w")
    play.run(1.0)
    restart(play, "h", "w")
    play.run(20.0, rate=20)
    assert play.fleet.head("w").groups.by_name == {}
    assert (failed(play, "a")[0], failed(play, "b")[0]) == ("over", "over")
    check_given(play, said)
    kept = play.fleet.head("w").durable_groups.kept()
    assert [(each.name, each.cluster, each.head, each.ends_at > 0) for each in kept] == [(GROUP, "h", "h", True)]


def test_nothing_is_left_once_that_has_held_for_a_while() -> None:
    times: Any = GroupTimes.of(30.0, 1.0)
    removal = Removal.of("g", 5000.0, times)
    assert not removal.is_over(0, 100.0, times)
    assert not removal.is_over(3, 105.0, times)  # from another head, which had not heard
    assert not removal.is_over(0, 107.0, times)
    assert removal.is_over(0, 107.1 + times.gone, times)
    assert "3 items" in ending("g", 3)
