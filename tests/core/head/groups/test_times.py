"""Times of groups: a member stops before it is taken to be gone, and that before its places end."""

from __future__ import annotations

import pytest

from plimsoll.core.head.groups.times import GroupTimes


@pytest.mark.parametrize("lease", [0.5, 5.0, 30.0, 600.0])
@pytest.mark.parametrize("factor", [0.1, 1.0])
def test_the_order_of_leases(lease: float, factor: float) -> None:
    times = GroupTimes.of(lease, factor)
    assert 2 * times.beat < times.lease < times.gone < lease * factor < times.unused < times.kept
    assert times.gone <= 6.0 * factor
