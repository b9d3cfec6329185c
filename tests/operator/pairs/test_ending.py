"""The second pod of a head goes only once the store counts on the first one alone."""

from __future__ import annotations

import pytest

from plimsoll.core.head.standby.leadership import HeadLeadership, leadership_status
from plimsoll.operator.pairs.ending import is_ending


@pytest.mark.parametrize(
    ("stored", "counts_on_the_second"),
    [
        (HeadLeadership(), False),
        (HeadLeadership(3, 0, leads=5), False),
        (HeadLeadership(3, 0, standby=9, sync=1, leads=5), True),
        (HeadLeadership(3, 1, leads=9), True),
    ],
)
def test_the_store_says_whether_the_second_process_is_needed(stored: HeadLeadership, counts_on_the_second: bool):
    assert is_ending({"status": {"leadership": leadership_status(stored)}}) is counts_on_the_second


def test_a_cluster_that_has_never_had_a_standby_needs_none():
    assert not is_ending({"metadata": {"name": "east"}})
    assert not is_ending(None)
