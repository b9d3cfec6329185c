"""What a head asks its neighbours for on behalf of declared groups."""

from __future__ import annotations

from tests.core.group_play import GROUP, GroupPlay, definition
from tests.core.head.groups.test_removal import declare

from plimsoll.core.head.groups.group_covers import GROUPS_KEY, GroupCovers

ASKED = ["[class,=,'R'],[slice.readings,exists]"]


def test_a_neighbour_is_asked_for_the_stream_of_a_declared_group_until_that_has_ended() -> None:
    play = GroupPlay(west=True)
    head, west = play.fleet.head(), play.fleet.head("w")
    assert head.routes.texts(GROUPS_KEY) == west.routes.texts("h") == ASKED
    assert west.routes.texts(GROUPS_KEY) == [], "it is the head of the group that asks"
    assert head.routes.match({"class": "R", "slice.readings": 1}) == set(), "the log has all of it"
    declare(play, definition(2))
    assert west.routes.texts("h") == ASKED, "other slices of the same stream"
    declare(play)
    play.run(1.0)
    assert west.routes.texts("h") == ASKED, "what others have stamped may still be on its way"
    play.run(6.0)
    assert (head.routes.texts(GROUPS_KEY), west.routes.texts("h")) == ([], [])


def test_another_filter_takes_the_place_of_the_one_before() -> None:
    head = GroupPlay().fleet.head()
    covers = GroupCovers(head.covers)
    covers.ask(GROUP, "[a,=,1]")
    covers.ask("other", "")
    covers.ask(GROUP, "[a,=,2]")
    assert sorted(head.routes.texts(GROUPS_KEY)) == ["[a,=,2],[slice.readings,exists]", "[slice.other,exists]"]
    covers.end(GROUP)
    covers.end("none")
    assert head.routes.texts(GROUPS_KEY) == ["[slice.other,exists]"]
