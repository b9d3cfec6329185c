"""The reported outcomes of hand-overs are compared with the owners that heads made."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from plimsoll.core.verify import audit_journal
from plimsoll.core.verify import observations as seen

BEGAN = seen.HandoverStartObserved("1.1", "a", "b", ["x"], False, 1.0, 10.0)
OWNED_BEFORE = seen.OwnerObserved("x", (1, 2), "a", 1.0, "resume")
CUT = seen.OwnerObserved("x", (1, 3), "b", 11.0, "cut")
RESUMED = seen.OwnerObserved("x", (1, 4), "b", 11.0, "resume")
ATTACHED = seen.AttachmentObserved("x", 1, "b", 11.5)


def told(outcome: str, at: float = 12.0, state: str = "done") -> seen.HandoverResultObserved:
    return seen.HandoverResultObserved("1.1", state, [("x", outcome)], at)


def laws(*observations: seen.Observation) -> Sequence[str]:
    return list(audit_journal([OWNED_BEFORE, *observations]).violated)


@pytest.mark.parametrize(
    "story",
    [
        [BEGAN, CUT, ATTACHED, told("moved")],
        [BEGAN, told("stayed")],
        [BEGAN, told("away")],
        [BEGAN, told("gone")],
        [BEGAN, RESUMED, told("stayed")],
        [BEGAN, RESUMED, told("returned")],
        [BEGAN, CUT, told("detached")],
        [BEGAN, seen.HandoverResultObserved("1.1", "aborted", [], 12.0)],
        [BEGAN],
    ],
)
def test_what_is_true_is_no_violation(story: list[seen.Observation]):
    assert laws(*story) == []


@pytest.mark.parametrize(
    "story",
    [
        [BEGAN, told("moved")],
        [BEGAN, CUT, told("moved")],
        [BEGAN, seen.OwnerObserved("x", (1, 3), "c", 11.0, "cut"), ATTACHED, told("moved")],
        [BEGAN, told("moved", 10.9), CUT, ATTACHED],
        [BEGAN, CUT, told("stayed")],
        [BEGAN, CUT, told("away")],
        [BEGAN, CUT, told("gone")],
        [BEGAN, CUT, told("returned")],
        [BEGAN, CUT, told("detached", 10.5)],
        [BEGAN, told("elsewhere")],
        [BEGAN, told("stayed"), told("moved")],
        [told("stayed")],
    ],
)
def test_a_false_report_breaks_law_i8(story: list[seen.Observation]):
    assert "I8" in laws(*story)


@pytest.mark.parametrize(
    ("outcome", "served_at", "missed_at", "heard_at", "is_true"),
    [
        ("stayed", 12.0, 1.0, 12.0, True),
        ("stayed", 11.8, 12.0, 12.0, True),
        ("stayed", 10.5, 12.0, 12.0, False),
        ("stayed", 10.5, 12.0, 10.7, False),
        ("stayed", 10.5, 12.0, float("-inf"), False),
        ("away", 10.5, 12.0, 12.0, True),
        ("away", 12.0, 10.5, 12.0, False),
        ("gone", 12.0, 10.5, 12.0, False),
        ("gone", 12.0, 11.8, 12.0, True),
        ("gone", 12.0, 1.0, float("-inf"), True),
    ],
)
def test_an_outcome_without_a_cut_says_what_the_source_knows(
    outcome: str, served_at: float, missed_at: float, heard_at: float, is_true: bool
):
    one = seen.UncutMemberObserved("1.1", "x", "a", outcome, served_at, missed_at, heard_at, 12.0)
    assert laws(BEGAN, one) == ([] if is_true else ["I8"])


def test_by_replay_the_owner_counts_and_not_who_was_told_first():
    began = seen.HandoverStartObserved("1.1", "a", "b", ["x"], True, 1.0, 10.0)
    assert laws(began, RESUMED, told("moved")) == []
    assert laws(began, told("moved")) == ["I8"]


def test_a_member_without_an_outcome_is_left_over():
    story = seen.HandoverStartObserved("1.1", "a", "b", ["x", "y"], False, 1.0, 10.0)
    assert laws(story, told("stayed")) == ["I5"]


def test_another_session_to_the_same_target_may_have_moved_it():
    other = seen.HandoverStartObserved("1.2", "a", "b", ["x"], False, 1.0, 10.0)
    moved = seen.HandoverResultObserved("1.2", "done", [("x", "moved")], 12.0)
    assert laws(BEGAN, other, CUT, ATTACHED, moved, told("stayed")) == []


def test_one_edge_serves_at_a_time():
    def serving(edge: str, at: float = 5.0, n: int = 2) -> seen.ServingEdgeObserved:
        return seen.ServingEdgeObserved(edge, "x", (1, n), at)

    assert laws(serving("a"), serving("b", n=3), serving("b", 6.0)) == []
    assert laws(serving("a"), serving("b")) == ["I4"]


def test_a_gap_where_no_bound_was_met_comes_from_the_move():
    gap = seen.GapObserved("x", 1, "h", 1, 3, 1, 4, [], "log", 5.0)
    assert laws(gap) == []
    assert laws(gap, seen.GapFreeClaim(0.0, ["x"])) == []
    assert laws(gap, seen.GapFreeClaim(6.0, [])) == []
    assert laws(gap, seen.GapFreeClaim(0.0, [])) == ["I1"]


def test_across_clusters_the_owner_comes_before_the_decision():
    guest = seen.OwnerObserved("x", (1, 3), "b", 11.0, "guest")
    assert laws(BEGAN, guest, told("stayed")) == []
    assert laws(BEGAN, guest, CUT, told("stayed")) == ["I8"]
    other = seen.OwnerObserved("x", (1, 3), "c", 12.0, "cut")
    assert laws(guest, other) == []
    assert laws(CUT, other) == ["I4"]
