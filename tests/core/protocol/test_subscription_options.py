"""The latency that a subscription requires: bounds, and who gives it twice."""

from __future__ import annotations

import math
from typing import Any

import pytest

from plimsoll.core.protocol.subscription_options import LATENCY_AT_MOST_SECONDS, required_latency, with_latency


@pytest.mark.parametrize("seconds", [0.001, 1, 0.25, LATENCY_AT_MOST_SECONDS])
def test_a_number_of_seconds_is_taken(seconds: float):
    assert required_latency({"latency_seconds": seconds}) == seconds


@pytest.mark.parametrize("seconds", [0, -1, math.nan, math.inf, True, "1", LATENCY_AT_MOST_SECONDS * 1.01])
def test_what_is_out_of_bounds_is_refused(seconds: Any):
    with pytest.raises(ValueError, match=r"latency_seconds is .* above 0"):
        required_latency({"latency_seconds": seconds})
    with pytest.raises(ValueError, match=r"latency_seconds is .* above 0"):
        with_latency(None, seconds)


def test_other_options_are_passed_over():
    assert required_latency({"group": "g"}) is None
    assert with_latency({"group": "g"}, None) == {"group": "g"}
    assert with_latency({"group": "g"}, 0.5) == {"group": "g", "latency_seconds": 0.5}


def test_a_latency_is_given_once():
    assert with_latency({"latency_seconds": 0.5}, 0.5) == {"latency_seconds": 0.5}
    with pytest.raises(ValueError, match="give it once"):
        with_latency({"latency_seconds": 0.5}, 0.6)
