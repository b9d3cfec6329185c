"""cov: the standard deviation over the mean."""

from __future__ import annotations

import pytest

from plimsoll.core.policies.bad.imbalance import Imbalance


@pytest.mark.parametrize(
    ("loads", "mean", "cov"),
    [([70, 12, 4], 28.667, 1.026), ([40, 34, 36], 36.667, 0.068), ([5, 5], 5, 0), ([0, 0], 0, 0), ([], 0, 0)],
)
def test_imbalance(loads: list[float], mean: float, cov: float):
    found = Imbalance.of(loads)
    assert found.mean == pytest.approx(mean, abs=5e-4)
    assert found.cov == pytest.approx(cov, abs=5e-4)
