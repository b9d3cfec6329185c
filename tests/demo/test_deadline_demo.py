"""The demo of deadlines: its fleets, its figures in seconds of the text, its verdict. `make demo-deadlines` runs it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from plimsoll.demo import crisis_tables as tables
from plimsoll.demo import deadline_demo as demo
from plimsoll.demo.analysis.deadline_claims import NONE, OWN, PADRES, judged_claims
from plimsoll.demo.analysis.deadline_misses import TopicLateness
from plimsoll.demo.analysis.topic_moves import TopicMove

BURST = demo.DEADLINE_SCENARIO.step_seconds
COUNTS = {"published": 9, "expected": 8, "delivered": 8, "lost": 0, "duplicated": 0, "reordered": 0, "gaps": 0}


def run(name: str, *, late: int = 0, lost: int = 0, **own: Any) -> demo.PolicyRun:
    verdict = SimpleNamespace(**{**COUNTS, "lost": lost})
    judgement = SimpleNamespace(verdict=verdict, problems=["1 deliveries were lost"] if lost else [], cases=[])
    found: Any = SimpleNamespace(judgement=judgement)
    fields: dict[str, Any] = {"moves": [], "asked_at": [], "depths": [], **own}
    return demo.PolicyRun(name, found, {"t8": TopicLateness(delivered=100, late=late)}, **fields)


def runs(**own: Any) -> demo.DeadlineRuns:
    others = {PADRES: run(PADRES, late=10), NONE: run(NONE, late=50)}
    return demo.DeadlineRuns(demo.DEADLINE_SCENARIO, {OWN: run(OWN, **own), **others}, 1.0)


def test_each_run_has_the_same_fleet_under_another_policy():
    fleets = {name: demo.fleet_resources(policy, demo.SPEED) for name, policy in demo.policies(demo.SPEED).items()}
    found = {name: each.fleet.spec.defaults.policy for name, each in fleets.items()}
    types = {name: None if each is None else each.type for name, each in found.items()}
    assert types == {OWN: "DelaySensitive", PADRES: "Padres", NONE: None}
    for each in fleets.values():
        assert each.fleet.spec.time_scale_percent == 50, "fleets run at the text's clock"
        for name, row in {"head": tables.HEAD, **tables.EDGES}.items():
            rate = each.profiles[name].spec.bandwidth.output_bytes_per_second
            assert rate is not None
            assert float(rate.value) == round(demo.FRAMING * demo.SPEED * row.megabits * 1e6 / 8)


def test_latencies_are_compressed_without_what_the_text_gives_to_links():
    policy = demo.policies(2.0)[OWN]
    assert policy is not None
    found = {each["name"]: each["latency"] for each in policy["delaySensitive"]["topics"]}
    assert (found["t1"], found["t8"], found["t15"]) == ("0.75s", "0.4s", "49.85s")


def test_times_are_told_in_seconds_of_the_text():
    moves = [TopicMove(BURST + 2.0, BURST + 2.5, "b1", "b0", {1: 8})]
    depths = [(BURST + at, depth) for at, depth in ((-1.0, 9.0), (1.0, 5.0), (2.0, 24.0), (15.0, 3.0), (16.0, 1.0))]
    figures = runs(moves=moves, asked_at=[3.0, BURST + 2.0], depths=depths).figures
    assert figures.trigger == pytest.approx(34.0), "the session before the burst is another one"
    assert figures.clear == pytest.approx(62.0)


def test_moves_before_a_deadline_can_be_in_danger_are_counted_by_themselves():
    before = TopicMove(1.0, 1.5, "b1", "b0", {14: 3})
    figures = runs(moves=[before]).figures
    assert figures.moves == []
    assert figures.early == {OWN: 3, PADRES: 0, NONE: 0}
    in_time = TopicMove(BURST + 1.5, BURST + 2.0, "b1", "b0", {1: 8})
    assert runs(moves=[in_time]).figures.early[OWN] == 0


def test_it_fails_for_a_lost_delivery_of_any_run_and_for_no_claim():
    late = runs(late=100)
    assert late.problems == []
    assert not all(claim.held for claim in judged_claims(late.figures))
    lost = runs(lost=1)
    assert lost.problems == ["DelaySensitive: 1 deliveries were lost"]
    assert lost.counts == {**{name: 3 * count for name, count in COUNTS.items()}, "lost": 1}


def test_it_is_over_within_three_minutes():
    assert 3 * (demo.DEADLINE_SCENARIO.seconds + 25) <= 180, "start, wait and audit of a run take the rest"
