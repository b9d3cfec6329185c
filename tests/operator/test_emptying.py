"""An edge has been emptied when it says so, and not when time has passed."""

from typing import Any

from plimsoll.mediator.evacuation import LONGEST_SECONDS
from plimsoll.operator.emptying import HEARING_SECONDS, Moment, Serves, attempts, emptying
from plimsoll.operator.observed import Observed, rfc3339

AT = 1_800_000_000.0
LATE = AT + LONGEST_SECONDS + 1
NAME, NEXT = attempts("s")


def session(name: str = NAME, ended: float | None = None, phase: str = "Succeeded") -> dict[str, Any]:
    status = {} if ended is None else {"endedAt": rfc3339(ended), "phase": phase}
    metadata = {"name": name, "creationTimestamp": rfc3339(AT)}
    return {"kind": "LoadBalancingSession", "metadata": metadata, "status": status}


def found(*sessions: dict[str, Any], **moment: Any) -> Any:
    objects = {(item["kind"], item["metadata"]["name"]): item for item in sessions}
    return emptying(
        Observed(objects), "e", NAME, Moment(**{"now": AT, "mediated_seconds": 1.0, "serves": {}, **moment})
    )


def serving(count: int, at: float) -> dict[str, Serves]:
    return {"e": Serves(count, at)}


def test_it_is_asked_for():
    assert found().wanted == NAME


def test_it_goes_on_while_nobody_mediates_however_long_that_is():
    assert not found(session(), now=LATE + 36000, mediated_seconds=0.0).over
    assert not found(session(), now=LATE + 36000, mediated_seconds=100.0, serves=serving(3, LATE)).over
    assert found(session(), now=LATE, serves=serving(0, LATE)).over
    assert found(session(), now=LATE, mediated_seconds=LONGEST_SECONDS + 1, serves=serving(3, LATE)).over


def test_a_clock_that_goes_half_as_fast():
    alone = {"now": LATE, "mediated_seconds": 1000.0, "serves": None}
    assert found(session(), **alone).over
    assert not found(session(), **alone, factor=2.0).over


def test_it_is_over_when_the_edge_says_after_its_end_that_nobody_is_there():
    ended = session(ended=AT)
    assert not found(ended, now=AT + 3, serves=serving(0, AT - 1)).over, "said before the end"
    assert found(ended, now=AT + 3, serves=serving(0, AT + 2)).over
    assert found(ended, now=AT + 3, serves=None).reason == "Succeeded"


def test_who_is_left_is_moved_by_another_one_and_only_once():
    ended = session(ended=AT, phase="Failed")
    again = found(ended, now=AT + 3, serves=serving(2, AT + 2))
    assert (again.wanted, again.over) == (NEXT, False)
    assert again.reason == "2 are left after Failed"
    assert found(ended, session(NEXT), now=AT + 3, serves=serving(2, AT + 2)).name == NEXT
    last = found(ended, session(NEXT, ended=AT + 1), now=AT + 5, serves=serving(2, AT + 4))
    assert last.over
    assert last.reason == "Succeeded; 2 are left, and go on from the head's log"


def test_an_edge_that_says_nothing_is_heard_for_a_while_first():
    ended = session(ended=AT)
    later = AT + 1 + HEARING_SECONDS + 1
    assert not found(ended, now=AT + 2 + HEARING_SECONDS, mediated_seconds=1.0).over, "nobody has listened for so long"
    assert not found(ended, now=AT + HEARING_SECONDS, mediated_seconds=1000.0).over
    assert found(ended, now=later, mediated_seconds=HEARING_SECONDS + 1).over
