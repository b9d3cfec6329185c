"""What people ask, as changes of specifications; tests/local/test_asking.py asks it of stored objects."""

from __future__ import annotations

from typing import Any

import pytest

from plimsoll.mediator import asking

HASH = "0123456789abcdef"


def session(phase: str, **status: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": "one"}, "spec": {"scope": "Local", "approval": {"within": "1h"}},
        "status": {"phase": phase, "message": "so", "planHash": HASH, **status},
    }  # fmt: skip


def test_a_plan_is_approved_by_its_hash_or_how_it_begins():
    for given in ("", HASH, HASH[:6]):
        spec, found = asking.approved(session("Planned"), given)
        assert (spec["mode"], spec["approval"], found) == ("Execute", {"within": "1h", "planHash": HASH}, HASH)
    for given in ("012", "abcdef"):
        with pytest.raises(asking.NotAskableError, match=f"is {HASH}, not {given}"):
            asking.approved(session("Planned"), given)
    with pytest.raises(asking.NotAskableError, match="it is Draining"):
        asking.approved(session("Draining"))


def test_what_is_over_is_not_stopped():
    assert asking.stopped(session("Draining"))["stop"] is True
    with pytest.raises(asking.NotAskableError, match="is over: Failed, so"):
        asking.stopped(session("Failed", endedAt="2026-01-01T00:00:00Z"))


def test_what_is_so_already_is_no_change():
    edge = {"spec": {"profile": "small"}}
    assert asking.cordoned(edge, cordoned=False) is None
    assert asking.cordoned(edge, cordoned=True) == {"profile": "small", "cordoned": True}
    assert asking.cordoned({"spec": {"cordoned": True}}, cordoned=False) == {}
