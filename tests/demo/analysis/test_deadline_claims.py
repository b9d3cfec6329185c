"""What the demo of deadlines claims: a figure that is missing, or as bad as without the policy, holds no claim."""

from __future__ import annotations

from dataclasses import replace

from plimsoll.demo.analysis.deadline_claims import NONE, OWN, PADRES, DeadlineFigures, judged_claims
from plimsoll.demo.analysis.topic_moves import TopicMove

MOVE = TopicMove(34.0, 35.0, "b1", "b0", {1: 8})
GOOD = DeadlineFigures(
    {"lost": 0, "duplicated": 0, "reordered": 0, "delivered": 3000},
    {OWN: 2, PADRES: 50, NONE: 100}, [MOVE], 34.0, 62.0, {OWN: 0, PADRES: 9, NONE: 0},
)  # fmt: skip


def unmet(figures: DeadlineFigures) -> list[str]:
    return [each.claim for each in judged_claims(figures) if not each.held]


def test_the_course_of_the_text_holds_every_claim():
    assert unmet(GOOD) == []


def test_each_claim_can_fail():
    found = set()
    for worse in (
        replace(GOOD, counts={"lost": 1, "duplicated": 1, "reordered": 1, "delivered": 3000}),
        replace(GOOD, trigger=None),
        replace(GOOD, moves=[replace(MOVE, topics={1: 7, 14: 1})]),
        replace(GOOD, clear=75.5),
        replace(GOOD, late={OWN: 100, PADRES: 50, NONE: 100}),
        replace(GOOD, early={OWN: 1, PADRES: 0, NONE: 0}),
    ):
        assert unmet(worse)
        found |= set(unmet(worse))
    assert found == {each.claim for each in judged_claims(GOOD)}


def test_the_topic_of_the_text_at_another_edge_is_a_wrong_move():
    away = replace(GOOD, moves=[replace(MOVE, target="b3")])
    assert len(unmet(away)) == 2


def test_nothing_is_compared_with_a_run_without_late_deliveries():
    assert unmet(replace(GOOD, late={OWN: 0, PADRES: 0, NONE: 0})) == [
        "late deliveries, as a share of those without balancing"
    ]


def test_padres_may_keep_every_deadline_too_but_ours_may_not_be_worse():
    assert unmet(replace(GOOD, late={OWN: 0, PADRES: 0, NONE: 100})) == []
    assert unmet(replace(GOOD, late={OWN: 4, PADRES: 0, NONE: 100})) == [
        "late deliveries more than with Padres, as a share of all"
    ]
