"""The object that a step is about."""

from plimsoll.operator.reconcile.steps import (
    Apply,
    Delete,
    Evacuate,
    NameTaken,
    Patch,
    ReconcileStep,
    Restart,
    StepBlocked,
    subject_of,
)

ITEM = {"kind": "Service", "metadata": {"name": "s"}}
EDGE = {"kind": "EdgeBroker", "metadata": {"name": "e-0"}}


def test_each_says_what_it_is_about():
    of_item: list[ReconcileStep] = [Apply(ITEM, "r"), Patch(ITEM, {}, "r"), Delete(ITEM, "r")]
    assert {subject_of(step) for step in of_item} == {("Service", "s")}
    assert subject_of(Restart("e-0", {}, "r")) == ("Pod", "e-0")
    assert subject_of(Evacuate(EDGE, {}, "r")) == ("EdgeBroker", "e-0")
    assert subject_of(StepBlocked(("Pod", "p"), "r")) == subject_of(NameTaken(("Pod", "p"), "r")) == ("Pod", "p")
