"""Slices as subscribers of their head: which may attach, and from where each is covered."""

from __future__ import annotations

import pytest
from tests.core.group_play import GROUP, GroupPlay, definition

from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol.slice_names import slice_name


@pytest.mark.parametrize("resumes", ["g@@9", "none@@0"])
def test_a_slice_that_is_none_is_refused(resumes: str) -> None:
    play = GroupPlay()
    play.run(8.0)
    head = play.fleet.head()
    head.groups.define("g", definition(4))
    cover = msg.Cover(1, [], [])
    assert head.slice_attachments.refusal(msg.ResumeUp(resumes, (1, 2), cover, None)) is not None
    assert head.slice_attachments.refusal(msg.ResumeUp("desk-7", (1, 2), cover, None)) is None


@pytest.mark.parametrize("west", [False, True])
def test_a_head_has_had_all_since_it_knows_the_group(west: bool) -> None:
    play = GroupPlay(west=west)
    head = play.fleet.head()
    play.join("a")
    play.run(1.0, rate=20)
    assert head.slice_attachments.covered_since(slice_name(GROUP, 1)) == head.groups.by_name[GROUP].since
    assert head.slice_attachments.covered_since(slice_name(GROUP, 4)) is None
    assert head.slice_attachments.covered_since("desk-7") is None
