"""What a change is about."""

from plimsoll.operator.change import Apply, Change, Delete, Evacuate, Patch, Restart, Taken, Wait, subject

ITEM = {"kind": "Service", "metadata": {"name": "s"}}
EDGE = {"kind": "EdgeBroker", "metadata": {"name": "e-0"}}


def test_each_says_what_it_is_about():
    of_item: list[Change] = [Apply(ITEM, "r"), Patch(ITEM, {}, "r"), Delete(ITEM, "r")]
    assert {subject(step) for step in of_item} == {("Service", "s")}
    assert subject(Restart("e-0", {}, "r")) == ("Pod", "e-0")
    assert subject(Evacuate(EDGE, {}, "r")) == ("EdgeBroker", "e-0")
    assert subject(Wait(("Pod", "p"), "r")) == subject(Taken(("Pod", "p"), "r")) == ("Pod", "p")
