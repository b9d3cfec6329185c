"""The covering set by samples, against its definition."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from plimsoll.core.policies.model.profile import ProfileRow
from plimsoll.core.policies.padres.maximal_rows import MaximalRows


def row(key: str, bits: int) -> ProfileRow:
    return ProfileRow(key, bits, (key,))


def test_what_another_matches_all_of_is_covered():
    tops = MaximalRows([row("all", 7), row("ab", 3), row("a", 1), row("d", 8)])
    assert set(tops.rows) == {"all", "d"}
    assert {(each.key, by) for each, by in tops.covered()} == {("ab", "all"), ("a", "all")}
    tops.remove("all")
    assert set(tops.rows) == {"ab", "d"}


def test_equals_do_not_cover_each_other():
    assert set(MaximalRows([row("a", 1), row("b", 1)]).rows) == {"a", "b"}


@given(st.lists(st.integers(0, 31), max_size=8), st.data())
def test_they_are_those_that_no_other_covers(bits: list[int], data: st.DataObject):
    left = {str(number): row(str(number), each) for number, each in enumerate(bits)}
    tops = MaximalRows(left.values())
    while left:
        expected = {
            key
            for key, one in left.items()
            if not any(one.bits != other.bits and one.bits & ~other.bits == 0 for other in left.values())
        }
        assert set(tops.rows) == expected
        gone = data.draw(st.sampled_from(sorted(expected)))
        tops.remove(gone)
        del left[gone]
