"""What the log of a head keeps of declared groups. Restarts of whole fleets are in `test_removal.py`."""

from __future__ import annotations

import itertools

import msgspec
import pytest
from tests.core.group_play import GROUP, GroupPlay
from tests.core.head.groups.test_removal import declare

from plimsoll.core.head.durability.commit import recovered_log
from plimsoll.core.head.durability.records import DiskRecord, GroupForgotten, GroupKept, SlicesKept
from plimsoll.core.head.durability.store import LogStore
from plimsoll.core.head.groups.durable_groups import SLICES_BEATS
from plimsoll.core.head.machine import Head
from plimsoll.core.head.standby.log_copy import LogCopy
from plimsoll.core.head.standby.memory_files import MemoryFiles


def written(play: GroupPlay, monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """What the head writes of groups from here on, while it lives."""
    found: list[object] = []
    commit = play.fleet.commits["h"]
    take = commit.journal.take

    def noting() -> list[DiskRecord]:
        records = take()
        found.extend(each for each in records if isinstance(each, GroupKept | GroupForgotten | SlicesKept))
        return records

    monkeypatch.setattr(commit.journal, "take", noting)
    return found


def test_each_change_is_written_once_and_places_only_where_they_have_changed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    play = GroupPlay(count=2, durable=True)
    found = written(play, monkeypatch)
    declare(play, play.definition)
    declare(play, play.definition)
    assert found == [GroupKept(GROUP, "h", "h", play.definition, since=play.group.since)]
    found.clear()
    play.join("a", defines=False)
    play.run(0.1)
    assert [type(each) for each in found] == [SlicesKept], "that a slice has begun is written at once"
    play.publish(1)
    play.run(2.5 * SLICES_BEATS * play.group.times.beat)
    assert found[1:]
    found.clear()
    play.run(2.5 * SLICES_BEATS * play.group.times.beat)
    assert found == []
    declare(play)
    until = play.group.removal.until
    assert found == [GroupKept(GROUP, "h", "h", play.definition, until, play.group.since)]
    found.clear()
    play.run(6.0)
    assert found == [GroupForgotten(GROUP)]


def test_a_group_of_members_is_written_once_it_is_declared_and_forgotten_when_it_is_theirs_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    play = GroupPlay(durable=True)
    found = written(play, monkeypatch)
    play.join("a")
    play.run(3.0)
    assert found == []
    declare(play, play.definition)
    play.run(3.0)
    assert [type(each) for each in found] == [GroupKept, SlicesKept]
    found.clear()
    play.consumers["a"].is_paused = True
    play.publish(1)
    declare(play)
    play.run(1.0)
    play.join("b")
    play.run(1.0)
    assert [type(each) for each in found] == [GroupKept, GroupForgotten]


def test_a_log_that_a_standby_gets_later_says_all_of_it_and_how_it_goes_on() -> None:
    play = GroupPlay(count=3)
    declare(play, play.definition)
    play.join("a", defines=False)
    play.run(3.0, rate=20)
    declare(play)
    head, files = play.fleet.head(), MemoryFiles()
    copy = LogCopy(head, LogStore(files, "h", 200_000, 16_384), 100_000)
    while not copy.step():
        pass
    group = play.group

    def promoted() -> Head:
        store = LogStore(files, "h", 200_000, 16_384)
        found = recovered_log(store, store.recover(), is_synced=True, is_replica=True)
        return Head(play.fleet.configs["h"], 99, itertools.count(1).__next__, found)

    again = promoted().groups.by_name[GROUP]
    assert again.removal is not None
    assert (again.definition, again.removal.until) == (group.definition, group.removal.until)
    assert [each.token for each in again.slices] == [each.token for each in group.slices]
    assert again.memory.is_recalled
    play.run(8.0)
    assert play.fleet.head().groups.by_name == {}
    assert head.journal is not None
    copy.store.write(head.journal.take())
    assert promoted().groups.by_name == {}


def test_slices_under_their_second_name_and_those_that_a_definition_no_longer_has() -> None:
    play = GroupPlay(count=3)
    declare(play, play.definition)
    play.join("a", defines=False)
    play.run(2.0)
    play.group.slices[1].side = 1
    (kept,) = play.fleet.head().durable_groups.slices()
    play.group.recall([msgspec.structs.replace(each, number=each.number + 1) for each in kept.slices])
    assert [each.side for each in play.group.slices] == [0, 0, 1]
    assert play.group.slices[1].token == kept.slices[0].token
