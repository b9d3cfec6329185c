"""Changes of sessions that wait for the engine: one for each session, the urgent ones first, and no status."""

from __future__ import annotations

from typing import Any

from plimsoll.core.session import Session
from plimsoll.operator.mediator.session_changes import SessionChanges


def asked(name: str, generation: int = 1, created: str = "2027-01-15T08:00:00Z", **spec: Any) -> dict[str, Any]:
    metadata = {"name": name, "uid": name, "generation": generation, "creationTimestamp": created}
    return {"metadata": metadata, "spec": spec}


def known(*sessions: Session) -> SessionChanges:
    return SessionChanges({session.uid: session for session in sessions}.get)


def test_of_several_changes_of_one_session_the_last_is_taken_and_a_deletion_stays():
    changes = known()
    first, later = asked("one"), asked("one", 2)
    for item in (first, later, first):
        changes.put("MODIFIED", item)
    assert changes.waiting["one"].item is later
    changes.put("DELETED", later)
    changes.put("MODIFIED", later)
    assert changes.waiting["one"].type == "DELETED"


def test_deleted_ones_come_first_then_those_of_users_then_triggers():
    queued = Session(uid="b", name="b", requested_at=0.0, queued_at=0.0, phase_at=0.0, deadline_at=9.0)
    changes = known(queued)
    changes.put("ADDED", asked("t", created="2026-01-15T08:00:00Z", trigger={"broker": "e"}))
    changes.put("ADDED", asked("a"))
    changes.put("ADDED", asked("b"))
    changes.put("DELETED", asked("z"))
    assert changes.in_turn() == ["z", "b", "a", "t"]


def test_a_generation_is_news_once_and_its_deletion_again():
    changes = known()
    assert changes.is_news(asked("one"))
    assert not changes.is_news(asked("one"))
    assert changes.is_news(asked("one", 2))
    assert not changes.is_news(asked("one"))
    ending = asked("one", 2)
    ending["metadata"]["deletionTimestamp"] = "2027-01-15T09:00:00Z"
    assert changes.is_news(ending)
    changes.forget("one")
    assert changes.is_news(asked("one"))
    changes.restart()
    assert changes.is_news(asked("one"))
