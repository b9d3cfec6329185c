"""Which bundles go where."""

from __future__ import annotations

from dataclasses import replace

from tests.core.policies.pulsar.small import names, sample

from plimsoll.core.policies.model.hash_ranges import Partition
from plimsoll.core.policies.pulsar import Pulsar
from plimsoll.core.policies.pulsar.bundle_moves import GATHERED, BundleMoves
from plimsoll.core.policies.pulsar.fleet import pulsar_fleet
from plimsoll.core.policies.pulsar.placer import LeastLongTermMessageRate
from plimsoll.core.policies.pulsar.shedding import Relief
from plimsoll.core.policies.pulsar.usage import UsageWeights
from plimsoll.core.policies.rebalancer import FleetSample, StepsEnd, fleet_plan
from plimsoll.core.verify.pulsar_plan_checker import PulsarPlanContext, pulsar_plan_faults


def plan(
    given: FleetSample, *reliefs: Relief, is_letter: bool = False, is_by_lookup: bool = False
) -> tuple[list[tuple[str, str, str]], StepsEnd]:
    """(bundle, source, target) of each move in order, and the end."""
    moves = BundleMoves(LeastLongTermMessageRate(), UsageWeights(), is_letter=is_letter, is_by_lookup=is_by_lookup)
    steps = moves.steps(pulsar_fleet(given, Partition.of_count(8)), reliefs)
    found: list[tuple[str, str, str]] = []
    while True:
        try:
            step = next(steps)
        except StopIteration as over:
            return found, over.value
        (move,) = step.moves
        assert step.owners == ((move.key, move.target),)
        found.append((move.key, move.source, move.target))


def kinds(end: StepsEnd) -> list[tuple[str, str]]:
    """Why bundles stay for which there was a reason to move."""
    return [(each.kind, each.key) for each in end.rejected if each.kind != "NotNeeded"]


def test_the_highest_throughput_first_until_the_share_is_reached():
    given = sample(a={0: 500.0, 1: 300.0, 2: 100.0}, b={3: 50.0})
    moves, end = plan(given, Relief("a", 0.2, "usage is high"))
    assert moves == [(names(0)[0], "a", "b")]
    assert end.ended == "Shed"
    moves, _ = plan(given, Relief("a", 0.9, "usage is high"), is_letter=True)
    assert moves == [(name, "a", "b") for name in names({0: 0, 1: 0, 2: 0})]


def test_ours_moves_only_what_lowers_the_higher_usage():
    """By the letter the highest goes, and its new edge is as hot as the old one was."""
    given = sample(a={0: 900.0, 1: 50.0}, b={2: 100.0})
    letter, _ = plan(given, Relief("a", 0.4, "hot"), is_letter=True)
    ours, end = plan(given, Relief("a", 0.4, "hot"))
    assert letter == [(names(0)[0], "a", "b")]
    assert ours == [(names(1)[0], "a", "b")]
    assert kinds(end) == [("NoBetter", names(0)[0])]
    assert "with it b would be at 1.000, and a is at 0.950" in end.rejected[0].reason


def test_lighter_bundles_leave_a_hot_one_that_would_make_its_target_shed():
    given = sample(a={0: 600.0, 1: 150.0, 2: 100.0}, b={3: 100.0}, c={4: 100.0})
    moves, end = plan(given, Relief("a", 0.4, "hot"))
    assert moves == [(names(1)[0], "a", "c"), (names(2)[0], "a", "b")]
    assert kinds(end) == [("WouldShed", names(0)[0])]
    assert "with it c would be at 0.700, and have to shed above 0.510" in end.rejected[0].reason


def test_where_only_hot_bundles_are_one_goes_if_the_higher_usage_falls_for_sure():
    given = sample(a={0: 450.0, 1: 440.0}, b={3: 300.0})
    moves, _ = plan(given, Relief("a", 0.3, "hot"))
    assert moves == [(names(0)[0], "a", "b")]
    close = sample(a={0: 450.0, 1: 440.0}, b={3: 430.0})
    moves, end = plan(close, Relief("a", 0.3, "hot"))
    assert (moves, {kind for kind, _ in kinds(end)}) == ([], {"TooLittle"})
    assert "it would bring 0.890 down to 0.880 only" in end.rejected[0].reason


def test_the_only_bundle_of_an_edge_stays_since_only_a_split_relieves_it():
    moves, end = plan(sample(a={0: 900.0}, b={1: 1.0}), Relief("a", 0.5, "hot"))
    assert (moves, kinds(end)) == ([], [("OnlyBundle", names(0)[0])])


def test_avg_shedder_takes_what_fits_and_goes_to_its_pair():
    given = sample(a={0: 500.0, 1: 200.0, 2: 100.0}, b={3: 1.0}, c={4: 50.0})
    moves, end = plan(given, Relief("a", 0.4, "apart", "c", hits_all=False))
    assert moves == [(names(1)[0], "a", "c"), (names(2)[0], "a", "c")]
    assert kinds(end) == [("TooLarge", names(0)[0])]


def test_avg_shedder_gives_an_idle_edge_many_small_bundles_each_of_which_helps_a_little():
    given = sample(a={0: 600.0, **dict.fromkeys(range(1, 8), 20.0)}, b={})
    moves, _ = plan(given, Relief("a", 0.1, "apart", "b", hits_all=False))
    assert [move[1:] for move in moves] == [("a", "b")] * 3, "each lowers the higher usage by less than a twentieth"


def test_units_that_came_late_follow_their_bundle_first():
    given = replace(sample(a={0: 100.0}, b={0: 40.0, 1: 10.0}), owners={names(0)[0]: "a", names(1)[0]: "b"})
    moves, _ = plan(given, Relief("b", 0.9, "hot"))
    assert moves == [(names(0)[0], "b", "a")]
    moves, end = plan(replace(given, takes=frozenset({"b"})))
    assert (moves, kinds(end)) == ([], [("NotReady", names(0)[0])])


def test_by_lookup_units_that_came_late_are_a_plan_of_their_own():
    """Released with others, their bundle would get another edge, and units would come late there again."""
    given = replace(sample(a={0: 100.0}, b={0: 40.0, 1: 10.0}), owners={names(0)[0]: "a", names(1)[0]: "b"})
    moves, end = plan(given, Relief("a", 0.9, "hot"), is_by_lookup=True)
    assert (moves, end.ended) == ([(names(0)[0], "b", "a")], "Gathered")
    moves, end = plan(replace(given, unload=(names(1)[0],), target="a"), is_by_lookup=True)
    assert (moves, end.ended) == ([(names(1)[0], "b", "a")], "Unloaded"), "a user's bundle does not wait for others"
    moves, end = plan(replace(given, takes=frozenset({"b"})), is_by_lookup=True)
    assert (moves, end.ended) == ([], "Shed")


def test_what_is_to_be_unloaded_goes_to_the_edge_that_the_user_names_or_the_placer_draws():
    given = replace(sample(a={0: 100.0, 1: 10.0}, b={2: 500.0}, c={3: 5.0}), unload=tuple(names({0: 0, 1: 0})))
    moves, end = plan(given)
    assert (moves, kinds(end)) == ([(names(0)[0], "a", "c")], [("BestPlace", names(1)[0])]), "c has 210 then, a has 20"
    moves, end = plan(replace(given, target="b"))
    assert moves == [(names(0)[0], "a", "b"), (names(1)[0], "a", "b")]
    assert end.ended == "Unloaded"
    moves, end = plan(replace(given, target="a"))
    assert (moves, {kind for kind, _ in kinds(end)}) == ([], {"BestPlace"})


def test_a_bundle_whose_unit_may_not_move_stays_with_the_reason():
    given = sample(a={0: 500.0, 1: 300.0}, b={3: 50.0})
    name = given.profiles["a"].rows[0].names[0]
    moves, end = plan(replace(given, staying={name: "moved just now"}), Relief("a", 0.5, "hot"))
    assert moves == [(names(1)[0], "a", "b")]
    assert end.rejected[0].reason == f"a: {name}: moved just now"


def test_late_units_whose_bundle_is_unloaded_to_their_edge_stay_with_a_reason():
    """They go to the owner, and all of the bundle goes to where they were: what is left is the owner's part."""
    given = replace(
        sample(a={0: 100.0}, b={0: 40.0, 1: 10.0}), owners={names(0)[0]: "a", names(1)[0]: "b"},
        unload=(names(0)[0],), target="b",
    )  # fmt: skip
    policy = Pulsar(bundles=8)
    made = fleet_plan(policy, given, {})
    assert [(move.source, move.target, len(move.subscribers)) for move in made.moves] == [("a", "b", 1)]
    assert [(each.kind, each.key, each.subscribers) for each in made.rejected] == [
        ("BestPlace", names(0)[0], 1), ("NotNeeded", names(1)[0], 1)
    ]  # fmt: skip
    assert pulsar_plan_faults(made, PulsarPlanContext(given.profiles, frozenset("ab"))) == []


def test_by_lookup_units_that_came_late_are_gathered_if_nothing_can_be_unloaded():
    """The owner serves none of the bundle that is to be unloaded: without this its units would stay late for ever."""
    given = replace(
        sample(a={0: 100.0}, b={1: 10.0}), owners={names(0)[0]: "b", names(1)[0]: "b"}, unload=(names(0)[0],)
    )
    made = fleet_plan(Pulsar(bundles=8, unload="Lookup"), given, {})
    assert [(move.source, move.target) for move in made.moves] == [("a", "b")]
    assert made.ended == GATHERED
    assert pulsar_plan_faults(made, PulsarPlanContext(given.profiles, frozenset("ab"))) == []
