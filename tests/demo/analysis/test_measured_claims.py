"""Claims with their bounds: what was not measured holds none."""

from plimsoll.demo.analysis.measured_claims import MeasuredClaim, at_least, at_most, near, no_faults


def test_a_claim_says_whether_it_held():
    assert MeasuredClaim("lost", 0, "<= 0", True).line() == "held      lost: 0, bound <= 0"
    assert MeasuredClaim("pause", None, "<= 2", False).line() == "NOT HELD  pause: not measured, bound <= 2"


def test_bounds_are_held_up_to_the_bound_and_never_without_a_value():
    assert [at_most("a", value, 2.0).held for value in (1.9, 2.0, 2.1, None)] == [True, True, False, False]
    assert [at_least("a", value, 2.0).held for value in (1.9, 2.0, 2.1, None)] == [False, True, True, False]
    assert [near("a", value, 34.0, 1.0).held for value in (32.9, 33.0, 35.0, 35.1, None)] == [
        False, True, True, False, False,
    ]  # fmt: skip
    assert near("a", 34.25, 34.0, 1.0).plain() == {"claim": "a", "value": 34.25, "bound": "34 +- 1", "held": True}


def test_each_kind_of_fault_is_a_claim_of_its_own():
    found = no_faults({"lost": 0, "duplicated": 1, "reordered": 0, "gaps": 7})
    assert [(each.claim, each.held) for each in found] == [
        ("deliveries lost", True), ("deliveries duplicated", False), ("deliveries reordered", True),
    ]  # fmt: skip
