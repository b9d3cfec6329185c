"""The codes of reasons by which a source says whether it serves a member."""

from __future__ import annotations

import pytest

from plimsoll.core.protocol.departures import UNCUT_OUTCOMES, Departure, departure


@pytest.mark.parametrize(
    ("reason", "found"),
    [
        ("away: its client is not connected", Departure("away", "its client is not connected")),
        ("left: is not known here", Departure("gone", "is not known here")),
        ("source: a is not an edge of h, or is down", Departure("away", "a is not an edge of h, or is down")),
        ("served: is served as before", Departure("stayed", "is served as before")),
        ("full: 1024 sessions are under way here", Departure("", "full: 1024 sessions are under way here")),
        ("is away", Departure("", "is away")),
        ("", Departure("", "")),
    ],
)
def test_the_code_decides_and_only_known_codes_are_taken_off(reason: str, found: Departure):
    assert departure(reason) == found
    assert found.outcome in (*UNCUT_OUTCOMES, "")
    assert found.is_coded is (found.outcome != "")
