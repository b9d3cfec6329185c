"""A slice at its head: whose word counts, and what is remembered of holders that have gone."""

from __future__ import annotations

from plimsoll.core.head.groups.slices import GroupSlice
from plimsoll.core.protocol.messages import SlicePlace


def test_only_its_holder_under_its_epoch_is_believed() -> None:
    each = GroupSlice(3)
    each.begin("a", 7)
    assert each.is_held("a", 7)
    assert not each.is_held("a", 6)
    assert not each.is_held("b", 7)


def test_progress_without_a_token_changes_nothing() -> None:
    each = GroupSlice(3)
    each.progress(SlicePlace(3, 7, ("h", 1, 9), [("h", 1, 5)]))
    each.progress(SlicePlace(3, 7, None))
    assert (each.token, each.marks) == (("h", 1, 9), [("h", 1, 5)])


def test_an_end_says_who_was_to_get_it_and_keeps_what_may_have_been_given() -> None:
    each = GroupSlice(3)
    each.begin("a", 7)
    each.is_revoked, each.taker = True, "b"
    assert each.end(("h", 1, 20)) == "b"
    assert (each.holder, each.is_revoked, each.given_to) == ("", False, ("h", 1, 20))
    each.begin("b", 8)
    assert each.end(None) == ""
    assert each.given_to == ("h", 1, 20)
