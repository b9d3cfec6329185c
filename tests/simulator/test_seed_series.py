"""A series that is stopped and resumed has the same totals as one that was not."""

from __future__ import annotations

from pathlib import Path

import pytest

from plimsoll.simulator.run import run_seed
from plimsoll.simulator.seed_series import ScenarioTotals, SeedSeries, load_series, save_series

NAMES = ["calm", "storm"]


def test_a_series_resumes_from_its_file(tmp_path: Path):
    file = tmp_path / "series.json"
    whole = SeedSeries(NAMES, 5)
    for work in whole.work(6):
        whole.add(run_seed(*work))
    for most in (2, 5, 6):
        part = load_series(file, NAMES, 5)
        for work in part.work(most):
            part.add(run_seed(*work))
        save_series(file, part)
    assert load_series(file, NAMES, 5) == whole
    assert list(whole.work(6)) == []
    assert list(whole.work(8)) == [("calm", 8), ("storm", 8)]
    assert whole.total().runs == 6
    assert [row.split()[0] for row in list(whole.table())[1:4]] == ["calm", "storm", "all"]


def test_the_file_of_another_series_is_refused(tmp_path: Path):
    file = tmp_path / "series.json"
    save_series(file, SeedSeries(NAMES, 5))
    with pytest.raises(ValueError, match="another series: from seed 5, over calm storm"):
        load_series(file, NAMES, 6)
    file.write_text("{}")
    with pytest.raises(ValueError, match="not a state file"):
        load_series(file, NAMES, 5)


def test_failed_seeds_are_listed():
    one = ScenarioTotals()
    broken = run_seed("calm", 1)
    object.__setattr__(broken, "error", "it raised")
    one.add(broken)
    assert one.failed == [("calm", 1, ["I0"])]
    assert one.violations == 1
