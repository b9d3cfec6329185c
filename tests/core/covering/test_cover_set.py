"""Covering sets against their definition, after every step of programs of adds, removes and batches."""

import itertools
import random
from typing import Any
from unittest import mock

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.core.drawn import asked, made
from tests.examples import examples

from plimsoll.core.covering import spans
from plimsoll.core.covering.cover_set import CoverDelta, CoveringSet, sorted_keys
from plimsoll.core.covering.frontier import MEETINGS_AT_MOST, CoverNode, SearchBudget
from plimsoll.core.predicates import Subscription, parse

# ------------------------------------------------------------------------------ the definition, and the delta's promise


def most_general(members: dict[Any, Subscription]) -> set[Subscription]:
    """PADRES 2006, section 2: the subscriptions whose space is not covered by any other's."""
    distinct = set(members.values())
    return {one for one in distinct if not any(other != one and other.covers(one) for other in distinct)}


class Neighbour:
    """The receiver of the deltas: checks that each is one correct step, in which nothing is uncovered."""

    def __init__(self) -> None:
        self.told: dict[Any, Subscription] = {}

    def apply(self, delta: CoverDelta[Any], members: dict[Any, Subscription]) -> None:
        assert not {key for key, _ in delta.announce} & set(delta.withdraw)
        for key, subscription in delta.announce:
            assert self.told.get(key) != subscription, "announced what was announced"
            self.told[key] = subscription
        between = set(self.told.values())
        assert all(any(general.covers(one) for general in between) for one in members.values())
        for key in delta.withdraw:
            del self.told[key]
        assert all(members[key] == subscription for key, subscription in self.told.items())
        assert set(self.told.values()) == most_general(members)
        assert len(set(self.told.values())) == len(self.told), "one representative of equal subscriptions"


# A step: how many to add (as a batch), from where in the pool, and which members to remove.
steps = st.lists(
    st.tuples(st.integers(0, 4), st.integers(0, 99), st.lists(st.integers(0, 99), max_size=3)), min_size=2, max_size=16
)


@pytest.mark.timeout(1200)
@settings(max_examples=examples(500), deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.lists(asked, min_size=2, max_size=14),
    steps,
    st.lists(asked, min_size=1, max_size=4),
    st.booleans(),
    st.sampled_from([2, 3, 64]),
)
def test_every_step_leaves_the_exact_covering_set(
    pool: list[Subscription],
    steps: list[tuple[int, int, list[int]]],
    questions: list[Subscription],
    reuse: bool,
    block_limit: int,
):
    with mock.patch.object(spans, "BLOCK_LIMIT", block_limit):
        judge(pool, steps, questions, reuse=reuse)


def judge(
    pool: list[Subscription], steps: list[tuple[int, int, list[int]]], questions: list[Subscription], *, reuse: bool
) -> None:
    tested: CoveringSet[int] = CoveringSet()
    members: dict[int, Subscription] = {}
    neighbour = Neighbour()
    fresh = itertools.count()
    for count, pick, leaving in steps:
        removes = sorted({list(members)[n % len(members)] for n in leaving} if members else ())
        keys = [*removes[: count if reuse else 0], *itertools.islice(fresh, count)][:count]
        adds = {key: pool[(pick + n) % len(pool)] for n, key in enumerate(keys)}
        for key in removes:
            del members[key]
        members.update(adds)
        neighbour.apply(tested.apply(adds.items(), removes), members)
        assert dict(tested.items()) == neighbour.told
        assert len(tested) == len(neighbour.told)
        assert all((key in tested) == (key in neighbour.told) for key in members)
        assert tested.member_count == len(members)
        for question in [*questions, *pool[:2]]:
            assert tested.is_covered(question) == any(one.covers(question) for one in members.values())
    for key in list(members):
        del members[key]
        neighbour.apply(tested.remove(key), members)
    assert len(tested) == 0
    assert not tested._frontier._tables
    assert not tested._frontier._equal
    assert not tested._frontier._constrained


@pytest.mark.timeout(1200)
@settings(max_examples=examples(500), deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.lists(asked, min_size=2, max_size=14),
    steps,
    st.booleans(),
    st.lists(st.integers(0, 200), min_size=1, max_size=8),
)
def test_bounded_steps_leave_nothing_uncovered_and_end_in_the_exact_set(
    pool: list[Subscription], steps: list[tuple[int, int, list[int]]], reuse: bool, units: list[int]
):
    tested: CoveringSet[int] = CoveringSet()
    members: dict[int, Subscription] = {}
    announced: dict[int, Subscription] = {}
    fresh, bound = itertools.count(), itertools.cycle(units)

    def take(delta: CoverDelta[int]) -> None:
        assert not {key for key, _ in delta.announce} & set(delta.withdraw)
        announced.update(delta.announce)
        assert all(any(general.covers(one) for general in announced.values()) for one in members.values())
        for key in delta.withdraw:
            del announced[key]
        assert dict(tested.items()) == announced
        assert all(any(general.covers(one) for general in announced.values()) for one in members.values())

    for count, pick, leaving in [*steps, (0, 0, list(range(99)))]:
        removes = sorted({list(members)[n % len(members)] for n in leaving} if members else ())
        keys = [*removes[: count if reuse else 0], *itertools.islice(fresh, count)][:count]
        adds = {key: pool[(pick + n) % len(pool)] for n, key in enumerate(keys)}
        for key in removes:
            del members[key]
        members.update(adds)
        take(tested.apply(adds.items(), removes, units=next(bound)))
        if pick % 3 == 0:
            take(tested.tidy(next(bound)))
        if pick % 4 == 0:
            while not tested.is_tidy:
                take(tested.tidy(1))
            assert set(announced.values()) == most_general(members)
    while not tested.is_tidy:
        take(tested.tidy(50))
    assert set(announced.values()) == most_general(members)
    assert len(announced) == len(set(announced.values()))


def test_a_broad_subscription_comes_and_goes_in_steps_of_bounded_work():
    narrow = {n: parse(f"[a,=,{n}],[b,contains,'x{n}']") for n in range(500)}
    tested: CoveringSet[int] = CoveringSet()
    tested.apply(narrow.items(), ())
    assert len(tested) == 500

    def settle() -> int:
        steps = 0
        while not tested.is_tidy:
            tested.tidy(1000)
            assert tested.units_spent < 1000 + 4200, "one search more than the bound, at most"
            steps += 1
        return steps

    tested.apply([(1000, parse("[b,exists]"))], (), units=1000)
    assert tested.units_spent < 1000 + 4200
    assert settle() > 2
    assert tested.items() == [(1000, parse("[b,exists]"))]
    tested.apply([], [1000], units=1000)
    assert tested.items() == [(1000, parse("[b,exists]"))], "it covers them until they have been announced themselves"
    assert settle() > 5
    assert {key for key, _ in tested.items()} == set(narrow)


@pytest.mark.parametrize("seed", range(3))
def test_overlapping_ranges_by_the_hundred(seed: int):
    """Ranges of two widths over few attributes: most are announced, and the blocks fill by their real limit."""
    seeded = random.Random(seed)
    print("seed", seed)

    def ask() -> Subscription:
        chosen = made(
            [
                bound
                for name in seeded.sample("abc", seeded.choice([1, 1, 2]))
                for low, width in [(seeded.randrange(2000), seeded.choice([200, 210]))]
                for bound in [(name, seeded.choice([">", ">="]), low), (name, seeded.choice(["<", "<="]), low + width)]
            ]
        )
        assert chosen is not None
        return chosen

    members = {n: ask() for n in range(600)}
    tested: CoveringSet[int] = CoveringSet()
    tested.apply(list(members.items())[:300], ())
    for n in range(300, 600):
        tested.add(n, members[n])
    for _ in range(3):
        assert {s for _, s in tested.items()} == most_general(members)
        for question in [ask() for _ in range(100)]:
            assert tested.is_covered(question) == any(one.covers(question) for one in members.values())
        for n in seeded.sample(list(members), 150):
            del members[n]
            tested.remove(n)


def test_every_pair_of_bounds_and_values():
    """All pairs over one attribute, alone and under an equality: where bounds touch, strictness decides."""
    bounds = [f"[a,{sign},{bound}]" for sign in ("<", "<=", ">", ">=", "=", "!=") for bound in (1, 1.5, 2)]
    texts = [
        *bounds,
        "[a,>,1],[a,<,2]",
        "[a,>=,1],[a,<=,2]",
        "[a,in,(1,2)]",
        "[a,exists]",
        "[a,prefix,'']",
        "[c,=,'x']",
    ]
    pool = [parse(text) for text in texts] + [parse(f"[c,=,'x'],{text}") for text in texts]
    for one, other in itertools.product(pool, repeat=2):
        tested: CoveringSet[int] = CoveringSet()
        members = {0: one}
        neighbour = Neighbour()
        neighbour.apply(tested.add(0, one), members)
        assert tested.is_covered(other) == one.covers(other), f"{one} covers {other}"
        members[1] = other
        neighbour.apply(tested.add(1, other), members)
        del members[0]
        neighbour.apply(tested.remove(0), members)


@settings(max_examples=examples(200), deadline=None)
@given(st.lists(asked, min_size=1, max_size=12), st.randoms(use_true_random=False))
def test_the_result_does_not_depend_on_the_order_of_listing(pool: list[Subscription], shuffler: random.Random):
    items = list(enumerate(pool))
    one_step = CoveringSet[int]()
    first = one_step.apply(items, ())
    expected = one_step.items()
    shuffler.shuffle(items)
    shuffled = CoveringSet[int]()
    shuffled.apply(items, ())
    assert shuffled.items() == expected == list(first.announce)
    one_by_one = CoveringSet[int]()
    for key, subscription in items:
        one_by_one.add(key, subscription)
    assert {s for _, s in one_by_one.items()} == {s for _, s in expected}
    leaving = [key for key, _ in items[: len(items) // 2]]
    other = CoveringSet[int]()
    other.apply(items, ())
    assert other.apply((), leaving) == one_step.apply((), sorted(leaving))


# -------------------------------------------------------------------------- the paper's picture, as a worked case


def test_the_covering_set_of_a_small_poset():
    """Two trees and a lone subscription: the roots are the covering set, and removing a root uncovers its children."""
    asked = {
        "stock": "[class,=,'STOCK']",
        "cheap": "[class,=,'STOCK'],[low,<,10]",
        "cheaper": "[class,=,'STOCK'],[low,<,5]",
        "ibm cheap": "[class,=,'STOCK'],[symbol,=,'IBM'],[low,<,7]",
        "busy": "[volume,>,1000]",
        "busy stock": "[class,=,'STOCK'],[volume,>,1000]",
        "stray": "[class,=,'BOND']",
    }
    tested: CoveringSet[str] = CoveringSet()
    tested.apply(((key, parse(text)) for key, text in asked.items()), ())
    assert [key for key, _ in tested.items()] == ["busy", "stock", "stray"]
    assert tested.remove("stock") == CoverDelta((("cheap", parse(asked["cheap"])),), ("stock",))
    assert tested.remove("busy") == CoverDelta((("busy stock", parse(asked["busy stock"])),), ("busy",))
    assert tested.remove("cheap").announce == (
        ("cheaper", parse(asked["cheaper"])),
        ("ibm cheap", parse(asked["ibm cheap"])),
    )


def test_what_newly_needs_announcing_comes_with_what_covered_it():
    tested: CoveringSet[int] = CoveringSet()
    tested.apply([(n, parse(f"[a,=,'x'],[b,>,{n}]")) for n in range(5)], ())
    assert tested.add(9, parse("[a,=,'x']")) == CoverDelta(((9, parse("[a,=,'x']")),), (0,))
    assert tested.remove(9) == CoverDelta(((0, parse("[a,=,'x'],[b,>,0]")),), (9,))
    assert tested.remove(3) == CoverDelta()
    assert not CoverDelta()


def test_another_of_equal_subscriptions_takes_over():
    tested: CoveringSet[int] = CoveringSet()
    same = parse("[a,>,1]")
    assert tested.apply([(5, same), (3, same)], ()) == CoverDelta(((3, same),))
    assert tested.add(1, parse("[a,>,1.0]")) == CoverDelta()
    assert tested.remove(3) == CoverDelta(((5, same),), (3,))
    assert tested.remove(1) == CoverDelta()
    assert tested.remove(5) == CoverDelta((), (5,))


def test_a_key_may_change_its_subscription_in_one_step():
    tested: CoveringSet[str] = CoveringSet()
    tested.add("k", parse("[a,=,1]"))
    assert tested.apply([("k", parse("[a,=,2]"))], ["k"]) == CoverDelta((("k", parse("[a,=,2]")),))
    assert tested.apply([("k", parse("[a,=,2]"))], ["k"]) == CoverDelta()


def test_refusals_change_nothing():
    tested: CoveringSet[int] = CoveringSet()
    tested.add(1, parse("[a,=,1]"))
    for adds, removes, error in [
        ([(1, parse("[a,=,2]"))], [], ValueError),
        ([(2, parse("[a,=,2]")), (2, parse("[a,=,3]"))], [1], ValueError),
        ([(3, parse("[a,=,2]"))], [7], KeyError),
        ([], [1, 1], ValueError),
    ]:
        with pytest.raises(error):
            tested.apply(adds, removes)
        assert tested.items() == [(1, parse("[a,=,1]"))]
        assert tested.member_count == 1


def test_keys_without_an_order_of_their_own_are_ordered_all_the_same():
    assert sorted_keys({("b", 1), 2, "a", ("b", 0), 1}) == [1, 2, "a", ("b", 0), ("b", 1)]


# ---------------------------------------------------- two defects of the published poset code, not to be repeated


def test_a_strict_bound_on_prices_is_not_moved_by_one():
    """There `> 33.5` counts as `>= 34.5`, so it is judged narrower than `>= 34.0`, which it covers."""
    wide, narrow = parse("[class,=,'STOCK'],[high,>,33.5]"), parse("[class,=,'STOCK'],[high,>=,34.0]")
    assert wide.covers(narrow)
    assert not narrow.covers(wide)
    tested: CoveringSet[str] = CoveringSet()
    tested.add("narrow", narrow)
    assert tested.add("wide", wide) == CoverDelta((("wide", wide),), ("narrow",))
    touching = parse("[class,=,'STOCK'],[high,>=,33.5]")
    assert touching.covers(wide)
    assert not wide.covers(touching)


def test_the_shape_does_not_depend_on_the_order_of_insertion():
    """There a newcomer descends into its first cover only: which cover hides it depends on the order of arrival."""
    texts = ["[a,>,0]", "[b,>,0]", "[a,>,0],[b,>,0]", "[a,>,1],[b,>,1]", "[a,>,2]", "[b,>,2],[c,=,1]"]
    pool = {n: parse(text) for n, text in enumerate(texts)}
    for order in itertools.permutations(pool):
        tested: CoveringSet[int] = CoveringSet()
        neighbour, members = Neighbour(), {}
        for key in order:
            members[key] = pool[key]
            neighbour.apply(tested.add(key, pool[key]), members)
        assert set(neighbour.told) == {0, 1}
        # A child of two covers stays hidden when one of them goes, whichever it was filed under.
        for gone in (0, 1):
            del members[gone]
            neighbour.apply(tested.remove(gone), members)
        assert set(neighbour.told) == {2, 4, 5}


def test_candidates_are_looked_up_under_a_few_constraints_only():
    """Each subscription may constrain 256 attributes; that many look-ups of each candidate leave out hardly any."""
    covering: CoveringSet[int] = CoveringSet()
    wide = [parse("[c,=,'x']," + ",".join(f"[z{i},>,{n}]" for i in range(200))) for n in range(20)]
    for n, one in enumerate(wide):
        covering.add(n, one)
    assert len(covering) == 1, "the loosest covers the others"
    budget = SearchBudget()
    node = CoverNode[int](parse(str(wide[0]).replace(">,0", ">=,0")), 99)
    assert [other.subscription for other in covering._frontier.candidate_covered(node, budget)] == [wide[0]]
    assert budget.spent <= MEETINGS_AT_MOST
