"""Claims say what was measured, and hold only if something was."""

from plimsoll.demo.analysis.measured_claims import MeasuredClaim, at_most, between, claim_line, held_of


def test_a_claim_says_whether_it_held():
    assert claim_line(MeasuredClaim("lost", 0, "<= 0", True)) == "held      lost: 0, bound <= 0"
    assert claim_line(MeasuredClaim("pause", None, "<= 2", False)) == "NOT HELD  pause: not measured, bound <= 2"


def test_bounds_are_part_of_what_is_allowed():
    assert at_most("a", 2.0, 2.0).held
    assert not at_most("a", 2.1, 2.0).held
    assert not at_most("a", None, 2.0).held
    assert all(between("b", value, 0.5, 0.7).held for value in (0.5, 0.7))
    assert not any(between("b", value, 0.5, 0.7).held for value in (0.4, 0.8, None))


def test_the_report_rounds_and_counts():
    claim = at_most("a", 0.123456, 1)
    assert claim.plain() == {"claim": "a", "value": 0.1235, "bound": "<= 1", "held": True}
    assert held_of([claim, at_most("b", 2, 1)]) == "1 of 2 claims held"
