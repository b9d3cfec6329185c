"""The names that docs and the command give."""

from plimsoll.experiments.catalogue import EXPERIMENTS


def test_the_experiments_have_the_papers_names():
    assert {"padres-local", "padres-accuracy", "padres-global"} <= set(EXPERIMENTS)
