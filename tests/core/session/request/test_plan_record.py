"""What is stored of a plan: pairs in waves, and bounded reasons."""

from __future__ import annotations

import pytest

from plimsoll.core.policies.model.plan import PlanMove, PlanRejection
from plimsoll.core.session.inputs import EdgeView
from plimsoll.core.session.request.plan_record import (
    KEY_CHARACTERS_AT_MOST,
    REASONS_AT_MOST,
    in_order,
    move_groups,
    pairs_of,
    session_plan,
    shorten_key,
    stop_sentence,
)

WAVES = [
    [
        PlanMove("k", ("s1",), "a", "b", "one"),
        PlanMove("k", ("s2",), "a", "c", "two"),
        PlanMove("l", ("s3",), "a", "b", ""),
    ],
    [PlanMove("k", ("s4",), "b", "c", "later")],
]


def edge(name: str) -> EdgeView:
    return EdgeView(name=name, head=f"head-of-{name}", cluster="c")


def test_moves_of_a_wave_between_two_edges_are_one_pair():
    edges = {name: edge(name) for name in "abc"}
    pairs = pairs_of(WAVES, edges)
    assert [(pair.source, pair.target, pair.members, pair.wave) for pair in pairs] == [
        ("a", "b", ["s1", "s3"], 0), ("a", "c", ["s2"], 0), ("b", "c", ["s4"], 1),
    ]  # fmt: skip
    assert (pairs[0].source_head, pairs[0].target_head) == ("head-of-a", "head-of-b")
    members = [name for pair in pairs for name in pair.members]
    assert [name for move in in_order(WAVES) for name in move.subscribers] == members, "reasons are in this order"


def test_a_plan_says_what_moves_and_what_stays():
    edges = {name: edge(name) for name in "abc"}
    stays = [PlanRejection("NotNeeded", "k", 1, "stays")] * (REASONS_AT_MOST + 1)
    kept = {"s9": "Excluded", "s8": "Excluded", "s7": "NotServed"}
    made = session_plan("Bad", "F", pairs_of(WAVES, edges), in_order(WAVES), stays, kept, "Balanced", 7.0)
    assert [each.reason for each in made.moves] == ["one", "", "two", "later"]
    assert len(made.stays) == REASONS_AT_MOST
    assert made.rejected == {"Excluded": ["s8", "s9"], "NotServed": ["s7"]}
    assert (made.policy, made.metric, made.stop, made.made_at) == ("Bad", "F", "Balanced", 7.0)
    assert made.hash != session_plan("Bad", "F", [], [], [], {}, "", 7.0).hash


@pytest.mark.parametrize(("stopped", "told"), [("", "Exhausted"), ("no more moves", "Exhausted: no more moves")])
def test_why_a_plan_is_no_more(stopped: str, told: str):
    assert stop_sentence("Exhausted", stopped) == told


def test_what_subscribers_ask_for_is_cut_beyond_a_length():
    for length in (KEY_CHARACTERS_AT_MOST - 1, KEY_CHARACTERS_AT_MOST):
        assert shorten_key("x" * length) == "x" * length
    assert shorten_key("x" * (KEY_CHARACTERS_AT_MOST + 1)) == "x" * (KEY_CHARACTERS_AT_MOST - 3) + "..."


def test_reasons_are_bounded():
    moves = [PlanMove(f"{'x' * 500}{number}", ("s", "t"), "a", "b", f"because {number}") for number in range(150)]
    told = move_groups(moves)
    assert len(told) == REASONS_AT_MOST + 1
    assert sum(one.count for one in told) == 300
    assert max(len(one.what) for one in told) == KEY_CHARACTERS_AT_MOST
    assert told[-1].reason == "50 more sets of subscriptions; the first: because 100"
