"""Users' commands as edits of specifications; tests/local/test_store_edits.py applies them to stored objects."""

from __future__ import annotations

from typing import Any

import pytest

from plimsoll.mediator import spec_edits

HASH = "0123456789abcdef"


def session(phase: str, **status: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": "one"}, "spec": {"scope": "Local", "approval": {"within": "1h"}},
        "status": {"phase": phase, "message": "so", "planHash": HASH, **status},
    }  # fmt: skip


def test_a_plan_is_approved_by_its_hash_or_how_it_begins():
    for given in ("", HASH, HASH[:6]):
        spec, found = spec_edits.approved_spec(session("Planned"), given)
        assert (spec["mode"], spec["approval"], found) == ("Execute", {"within": "1h", "planHash": HASH}, HASH)
    for given in ("012", "abcdef"):
        with pytest.raises(spec_edits.EditRefusedError, match=f"is {HASH}, not {given}"):
            spec_edits.approved_spec(session("Planned"), given)
    with pytest.raises(spec_edits.EditRefusedError, match="it is Draining"):
        spec_edits.approved_spec(session("Draining"))


def test_what_is_over_is_not_stopped():
    assert spec_edits.stopped_spec(session("Draining"))["stop"] is True
    with pytest.raises(spec_edits.EditRefusedError, match="is over: Failed, so"):
        spec_edits.stopped_spec(session("Failed", endedAt="2026-01-01T00:00:00Z"))


def test_what_is_so_already_is_no_change():
    edge = {"spec": {"profile": "small"}}
    assert spec_edits.cordoned_spec(edge, cordoned=False) is None
    assert spec_edits.cordoned_spec(edge, cordoned=True) == {"profile": "small", "cordoned": True}
    assert spec_edits.cordoned_spec({"spec": {"cordoned": True}}, cordoned=False) == {}
