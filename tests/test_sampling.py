"""Samples: which cases the default run has."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.sampling import spread

PAGE = """
import pytest

@pytest.mark.sampled(2)
@pytest.mark.parametrize("number", range(5))
def test_some(number): pass

@pytest.mark.sampled(without=("large",))
@pytest.mark.parametrize("name", ["small", "large", "too large"])
def test_others(name): pass

@pytest.mark.sampled(1)
@pytest.mark.parametrize("number", [pytest.param(0, marks=pytest.mark.sweep), 1])
def test_of_those_that_are_no_sweeps(number): pass
"""


@pytest.mark.parametrize(
    ("count", "most", "kept"), [(5, 2, {0, 2}), (6, 3, {0, 2, 4}), (3, 1, {0}), (2, 5, {0, 1}), (3, 3, {0, 1, 2})]
)
def test_a_sample_is_spread_evenly(count: int, most: int, kept: set[int]):
    assert spread(count, most) == kept


def test_the_other_cases_are_sweeps(tmp_path: Path, capfd: pytest.CaptureFixture[str]):
    """In a run of its own, with the hooks of all tests."""
    (tmp_path / "test_page.py").write_text(PAGE)
    (tmp_path / "conftest.py").write_text("from tests.conftest import pytest_collection_modifyitems\n")
    given = ["-c", "pyproject.toml", "--rootdir", ".", "--collect-only", "-q", "-p", "no:cacheprovider", str(tmp_path)]
    assert pytest.main(given) == 0
    found = [line.rpartition("::")[2] for line in capfd.readouterr().out.splitlines() if "::" in line]
    kept = ["test_some[0]", "test_some[2]", "test_others[small]", "test_of_those_that_are_no_sweeps[1]"]
    assert found == kept
