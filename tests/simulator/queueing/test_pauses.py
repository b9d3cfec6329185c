"""Pauses are counted by the way in which subscribers changed their edge."""

import pytest

from plimsoll.simulator.queueing.pauses import Pauses


def test_number_mean_and_longest_by_way():
    pauses = Pauses()
    pauses.add("drain", 1.0, 1.02)
    pauses.add("drain", 2.0, 2.06)
    pauses.add("lookup", 3.0, 2.5)  # the new edge was ready before the old one's last delivery
    rows = pauses.rows()
    assert (rows["drain"]["count"], rows["lookup"]["count"]) == (2, 1)
    assert rows["drain"]["mean_seconds"] == pytest.approx(0.04)
    assert rows["drain"]["longest_seconds"] == pytest.approx(0.06)
    assert rows["lookup"]["longest_seconds"] == 0.0
    assert "replay" not in rows
