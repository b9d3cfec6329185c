"""The names that docs and the command give."""

import pytest

from plimsoll.experiments.catalogue import EXPERIMENTS, run_experiment
from plimsoll.experiments.stock_world import PolicyPlan


def test_the_experiments_have_the_papers_names():
    assert {"padres-local", "padres-accuracy", "padres-global", "bad-prototype", "bad-simulation"} <= set(EXPERIMENTS)


def test_an_experiment_with_quotes_asks_for_them():
    with pytest.raises(ValueError, match="replays stock quotes"):
        run_experiment("padres-local", None, PolicyPlan(), 1, quick=True)
