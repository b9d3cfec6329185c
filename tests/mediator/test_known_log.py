"""How far a log is known to be safe: the last report counts, and no value of a status is trusted."""

from __future__ import annotations

from typing import Any

import pytest

from plimsoll.mediator.known_log import MOST_NUMBER, known_log, log_status


def cluster(epoch: object, position: object) -> dict[str, Any]:
    return {"status": {"head": {"logEpoch": epoch, "logPosition": position}}}


def test_it_never_goes_back_and_stays_when_the_head_ends():
    assert log_status({}, {"epoch": 5, "log_safe_last": 7}) == {"logEpoch": 5, "logPosition": 7}
    assert log_status(cluster(5, 7), {"epoch": 5, "log_safe_last": 6}) == {"logEpoch": 5, "logPosition": 7}
    assert log_status(cluster(5, 7), {"epoch": 6, "log_safe_last": 3}) == {"logEpoch": 6, "logPosition": 3}
    assert log_status(cluster(5, 7), {"epoch": 6, "log_safe_last": 0}) == {"logEpoch": 5, "logPosition": 7}
    assert log_status(cluster(5, 7), {}) == {"logEpoch": 5, "logPosition": 7}


def test_a_log_in_memory_has_none():
    assert log_status({}, {"epoch": 5}) == {}


@pytest.mark.parametrize("value", [-1, True, 1.5, "7", None, MOST_NUMBER + 1, 2**62, 2**63 - 1, float("nan"), [], {}])
def test_what_no_head_has_written_is_not_known(value: object):
    assert known_log(cluster(value, 7)) == (0, 0)
    assert known_log(cluster(7, value)) == (0, 0)


@pytest.mark.parametrize("item", [{}, {"status": {}}, {"status": {"head": 3}}])
def test_nothing_is_known_without_a_status(item: dict[str, Any]):
    assert known_log(item) == (0, 0)
