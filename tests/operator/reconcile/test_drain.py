"""An edge has been emptied when it reports no subscribers, not when some time has passed."""

from typing import Any

from plimsoll.mediator.evacuation import LONGEST_SECONDS
from plimsoll.operator.reconcile.drain import (
    REPORT_WAIT_SECONDS,
    UNSEEN_SECONDS,
    ReconcileContext,
    ReportedSubscribers,
    drain_progress,
    drain_session_names,
)
from plimsoll.operator.reconcile.observed import ObservedObjects, rfc3339

AT = 1_800_000_000.0
LATE = AT + LONGEST_SECONDS + 1
NAME, NEXT = drain_session_names("s")


def session(name: str = NAME, ended: float | None = None, phase: str = "Succeeded") -> dict[str, Any]:
    status = {"requestedAt": rfc3339(AT)}
    if ended is not None:
        status |= {"endedAt": rfc3339(ended), "phase": phase}
    metadata = {"name": name, "creationTimestamp": rfc3339(AT)}
    return {"kind": "LoadBalancingSession", "metadata": metadata, "status": status}


def found(*sessions: dict[str, Any], **context: Any) -> Any:
    objects = {(item["kind"], item["metadata"]["name"]): item for item in sessions}
    return drain_progress(
        ObservedObjects(objects),
        "e",
        NAME,
        ReconcileContext(**{"now": AT, "mediating_seconds": 1.0, "subscribers": {}, **context}),
    )


def serving(count: int, at: float) -> dict[str, ReportedSubscribers]:
    return {"e": ReportedSubscribers(count, at)}


def test_it_is_asked_for():
    assert found().next_session == NAME


def test_it_waits_for_any_time_without_a_mediator():
    assert not found(session(), now=LATE + 36000, mediating_seconds=0.0).is_over
    assert not found(session(), now=LATE + 36000, mediating_seconds=100.0, subscribers=serving(3, LATE)).is_over
    assert found(session(), now=LATE, subscribers=serving(0, LATE)).is_over
    assert found(session(), now=LATE, mediating_seconds=LONGEST_SECONDS + 1, subscribers=serving(3, LATE)).is_over


def test_a_session_that_the_mediator_has_not_taken_is_not_late():
    unseen = {**session(), "status": {}}
    alone = {"now": LATE + 1000, "subscribers": serving(3, LATE)}
    assert not found(unseen, **alone, mediating_seconds=LONGEST_SECONDS + 1).is_over
    taken = {**session(), "status": {"requestedAt": rfc3339(LATE + 900)}}
    assert not found(taken, **alone, mediating_seconds=LONGEST_SECONDS + 1).is_over
    assert found(unseen, **alone, mediating_seconds=UNSEEN_SECONDS + 1).reason == "the session is not taken up"


def test_a_clock_that_goes_half_as_fast():
    alone = {"now": LATE, "mediating_seconds": 1000.0, "subscribers": None}
    assert found(session(), **alone).is_over
    assert not found(session(), **alone, time_factor=2.0).is_over


def test_it_is_over_when_the_edge_reports_no_subscribers_after_its_end():
    ended = session(ended=AT)
    assert not found(ended, now=AT + 3, subscribers=serving(0, AT - 1)).is_over, "said before the end"
    assert found(ended, now=AT + 3, subscribers=serving(0, AT + 2)).is_over
    assert found(ended, now=AT + 3, subscribers=None).reason == "Succeeded"


def test_who_is_left_is_moved_by_another_one_and_only_once():
    ended = session(ended=AT, phase="Failed")
    again = found(ended, now=AT + 3, subscribers=serving(2, AT + 2))
    assert (again.next_session, again.is_over) == (NEXT, False)
    assert again.reason == "2 subscribers are left after Failed"
    assert found(ended, session(NEXT), now=AT + 3, subscribers=serving(2, AT + 2)).name == NEXT
    last = found(ended, session(NEXT, ended=AT + 1), now=AT + 5, subscribers=serving(2, AT + 4))
    assert last.is_over
    assert last.reason == "Succeeded; 2 subscribers are left, and resume from the head's log"


def test_an_edge_that_says_nothing_is_heard_for_a_while_first():
    ended = session(ended=AT)
    later = AT + 1 + REPORT_WAIT_SECONDS + 1
    assert not found(ended, now=AT + 2 + REPORT_WAIT_SECONDS, mediating_seconds=1.0).is_over, (
        "the mediator has not run for that long"
    )
    assert not found(ended, now=AT + REPORT_WAIT_SECONDS, mediating_seconds=1000.0).is_over
    assert found(ended, now=later, mediating_seconds=REPORT_WAIT_SECONDS + 1).is_over
