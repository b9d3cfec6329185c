"""A failed run is shrunk to the labels that it needs to fail, and labels can be formatted and parsed."""

from __future__ import annotations

import pytest

from plimsoll.core.edge.machine import Edge
from plimsoll.core.protocol.messages import PubOpen
from plimsoll.simulator.run import SimulationRun, run_seed
from plimsoll.simulator.scenarios.catalogue import SCENARIOS
from plimsoll.simulator.shrinker import Shrinker, format_labels, parse_labels


@pytest.fixture
def _faulty_edge(monkeypatch: pytest.MonkeyPatch) -> None:
    """An edge that drops one publication of one publisher, by its number."""
    original = Edge.deliver

    def mutant(self: Edge, pub: PubOpen, piece: bytes) -> None:
        if (pub.publisher, pub.seq) != ("p0", 3):
            original(self, pub, piece)

    monkeypatch.setattr(Edge, "deliver", mutant)


@pytest.mark.usefixtures("_faulty_edge")
def test_labels_that_are_not_needed_are_left_out():
    failed = next(one for one in (run_seed("cluster", seed) for seed in range(20)) if not one.ok)
    shrinker = Shrinker(failed)
    kept = shrinker.shrink()
    assert len(kept) <= 3 < shrinker.planned, kept
    assert {label.rstrip("0123456789") for label in kept} <= {"saying"}
    assert shrinker.smallest.broken & failed.broken
    again = run_seed("cluster", failed.seed, only=parse_labels(format_labels(kept)))
    assert again == shrinker.smallest


@pytest.mark.usefixtures("_faulty_edge")
def test_shrinking_stops_after_the_given_number_of_tries():
    failed = next(one for one in (run_seed("cluster", seed) for seed in range(20)) if not one.ok)
    shrinker = Shrinker(failed, tries=3)
    kept = shrinker.shrink()
    assert shrinker.tries == 0
    assert run_seed("cluster", failed.seed, only=frozenset(kept)).broken & failed.broken


def test_a_run_without_labels_has_no_faults_and_no_handovers():
    outcome = run_seed("sessions-everything", 1, only=frozenset())
    assert outcome.faults == {}
    assert outcome.handovers == {}
    assert run_seed("sessions-everything", 1, only=frozenset(SimulationRun(SCENARIOS["calm"], 1).labels)).faults == {}


def test_labels_are_formatted_as_ranges_and_parsed_back():
    labels = ["saying0", "saying1", "saying2", "saying7", "move1", "fault10", "fault9"]
    assert format_labels(labels) == "fault9-10,move1,saying0-2,saying7"
    assert parse_labels(format_labels(labels)) == frozenset(labels)
    assert parse_labels(format_labels([])) == frozenset()
    with pytest.raises(ValueError, match="'saying' is not a label"):
        parse_labels("saying")
