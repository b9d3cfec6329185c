"""The index against an independent brute force, its tiers against one another, and what is promised about results."""

import itertools
import math
import random
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from plimsoll.core.matching import Index, StaleResultError, compiled_plan, index, kernel, template_table, warm_up
from plimsoll.core.matching.template import BoundSide
from plimsoll.core.predicates import Predicate, Subscription, Unsatisfiable, conjunction, parse

BIG = 2**53
NAN = math.nan
Triple = tuple[str, str, Any]


def kind(value: object) -> str:
    return "bool" if value is True or value is False else "str" if type(value) is str else "number"


def holds(triple: Triple, attributes: dict[str, Any]) -> bool:
    """One predicate, straight from its definition: the oracle shares no code with what it judges."""
    name, operator, operand = triple
    if name not in attributes:
        return False
    value = attributes[name]
    if operator == "exists":
        return True
    if operator == "in":
        return any(kind(value) == kind(one) and value == one for one in operand)
    if kind(value) != kind(operand) or value != value:
        return False
    return {
        "=": lambda: value == operand,
        "!=": lambda: value != operand,
        "<": lambda: value < operand,
        "<=": lambda: value <= operand,
        ">": lambda: value > operand,
        ">=": lambda: value >= operand,
        "prefix": lambda: value[: len(operand)] == operand,
        "suffix": lambda: value[len(value) - len(operand) :] == operand,
        "contains": lambda: operand in value,
    }[operator]()


def brute_force(live: dict[Any, list[Triple]], attributes: dict[str, Any]) -> list[Any]:
    return sorted((i for i, triples in live.items() if all(holds(t, attributes) for t in triples)), key=repr)


def made(triples: list[Triple]) -> Subscription:
    return conjunction(Predicate(*triple) for triple in triples)  # type: ignore[arg-type]  # operators are drawn as text


@contextmanager
def small_limits(few: int, smallest: int, merge: int, block: int, probe: float, step: int = 256) -> Iterator[None]:
    """Limits so small that a handful of subscriptions reaches every tier, promotion, merge and split."""
    with (
        mock.patch.multiple(
            index,
            FEW_TEMPLATES=few,
            SMALLEST_TEMPLATE=smallest,
            SMALLEST_MERGE=merge,
            PROBE_IN_SCANS=probe,
            PROBE_IN_CHECKS=probe,
            MERGE_FRACTION=0,
            STEP=step,
            MOST_PLANS=3,
        ),
        mock.patch.object(template_table, "BLOCK_LIMIT", block),
    ):
        yield


WORDS = ["", "x", "y", "xy", "yx", "xxy", "xyx", "é"]
REALS: list[Any] = [0, -0.0, 1, 1.0, 1.5, 2, -1, math.inf, -math.inf, BIG - 1, BIG, float(BIG), BIG + 1, 10**400]
words, reals, booleans = st.sampled_from(WORDS), st.sampled_from(REALS), st.booleans()
names = st.sampled_from("aabbcd")


def listed(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(values, min_size=1, max_size=3).map(tuple)


triples = st.one_of(
    st.tuples(names, st.just("="), st.one_of(words, reals, booleans)),
    st.tuples(names, st.sampled_from(["<", "<=", ">", ">="]), reals),
    st.tuples(names, st.just("!="), st.one_of(words, reals, booleans)),
    st.tuples(names, st.just("in"), st.one_of(listed(words), listed(reals), listed(booleans))),
    st.tuples(names, st.sampled_from(["prefix", "suffix", "contains"]), words),
    st.tuples(names, st.just("exists"), st.none()),
)


def satisfiable(drawn: list[Triple]) -> bool:
    try:
        made(drawn)
    except Unsatisfiable:
        return False
    return True


asked = st.lists(triples, min_size=1, max_size=3).filter(satisfiable)
# Every kind of value under every name, few distinct ones, so that publications hit; some lack an attribute.
values = st.sampled_from(["", "x", "xy", "xyx", 0, 1, 1.0, 1.5, math.inf, float(BIG), BIG + 1, True, False, NAN])
published = st.fixed_dictionaries({"a": values, "b": values}, optional={"c": values, "d": values, "e": values})
limits = st.tuples(
    st.sampled_from([0, 2, 16]),  # few templates
    st.sampled_from([1, 2]),  # smallest template
    st.sampled_from([1, 1, 4, 1024]),  # smallest merge
    st.sampled_from([2, 3, 8192]),  # block limit
    st.sampled_from([0.0, 1.5, 30.0]),  # price of a probe
    st.sampled_from([1, 2, 256]),  # moved between tiers by one change
)
steps = st.lists(
    st.tuples(st.sampled_from(["add", "add", "load", "remove"]), st.integers(0, 99)), min_size=3, max_size=24
)


class Judged:
    """An index and what is in it; `check` compares the two on every publication and counts the comparisons."""

    cases = 0

    def __init__(self, *, compile_rows: bool, text_ids: bool) -> None:
        self.index = Index(compiled=compile_rows)
        self.live: dict[Any, list[Triple]] = {}
        self.ids: Iterator[Any] = (f"id{n}" if text_ids and n % 2 else n for n in itertools.count())

    def step(self, what: str, pick: int, pool: list[list[Triple]]) -> None:
        if what == "remove" and self.live:
            item = list(self.live)[pick % len(self.live)]
            self.index.remove(item)
            del self.live[item]
        elif what == "load":
            batch = {next(self.ids): pool[(pick + n) % len(pool)] for n in range(pick % 7)}
            self.index.load((item, made(chosen)) for item, chosen in batch.items())
            self.live.update(batch)
        elif what == "add":
            item = next(self.ids)
            self.live[item] = pool[pick % len(pool)]
            self.index.add(item, made(self.live[item]))

    def check(self, publications: list[dict[str, Any]]) -> None:
        for attributes in publications:
            expected = brute_force(self.live, attributes)
            assert sorted(self.index.match(attributes), key=repr) == expected
            groups = self.index.match_groups(attributes)
            assert sorted(groups.ids(), key=repr) == expected
            assert groups.count() == len(expected)
            assert all(start < stop for _, start, stop in groups)
            Judged.cases += 1


PROGRAMS = [
    pytest.param(190, 20_000, id="20,000 cases"),
    pytest.param(900, 100_000, id="100,000 cases", marks=pytest.mark.sweep),
]


@pytest.mark.slow
@pytest.mark.timeout(1200)  # up to 100,000 judged cases
@pytest.mark.parametrize(("programs", "cases"), PROGRAMS)
def test_the_index_answers_as_asking_every_subscription(programs: int, cases: int):
    """Adds, loads and removes interleaved; after each every publication is judged."""
    Judged.cases = 0

    @settings(max_examples=programs, deadline=None, suppress_health_check=list(HealthCheck))
    @given(
        st.lists(asked, min_size=1, max_size=10),
        st.lists(published, min_size=16, max_size=24),
        steps,
        limits,
        st.sampled_from([True, True, False]),
        st.booleans(),
    )
    def program(
        pool: list[list[Triple]],
        publications: list[dict[str, Any]],
        steps: list[tuple[str, int]],
        limits: tuple[int, int, int, int, float, int],
        compile_rows: bool,
        text_ids: bool,
    ) -> None:
        with small_limits(*limits):
            judged = Judged(compile_rows=compile_rows, text_ids=text_ids)
            for what, pick in steps:
                judged.step(what, pick, pool)
                judged.check(publications)
            assert len(judged.index) == len(judged.live)
            for item in list(judged.live):
                judged.index.remove(item)
            judged.live.clear()
            judged.check(publications)
            assert not any(count for name, count in judged.index.stats().items() if name != "plans")

    program()
    assert Judged.cases >= cases, "the programs have become too short"


@pytest.mark.parametrize("compile_rows", [True, False])
@pytest.mark.parametrize("seed", range(4))
def test_larger_sets_with_real_limits(seed: int, compile_rows: bool):
    """Thousands of subscriptions, so that templates, merges and blocks arise by the real limits."""
    seeded = random.Random(seed)
    print("seed", seed)

    def ask() -> list[Triple]:
        chosen: list[Triple] = [
            (n, "=", f"v{seeded.randrange(4)}") for n in seeded.sample("stuv", seeded.randint(0, 2))
        ]
        if seed % 2:
            return [*chosen[:1], ("p", seeded.choice("<>"), round(seeded.random(), 2))]
        return chosen + [(n, seeded.choice("<>"), seeded.random()) for n in seeded.sample("pqrw", 2)]

    live = {n: ask() for n in range(3000)}
    tested = Index(compiled=compile_rows)
    with mock.patch.object(template_table, "BLOCK_LIMIT", 300):
        tested.load((n, made(t)) for n, t in live.items() if n < 2000)
        for n in range(2000, 3000):
            tested.add(n, made(live[n]))
        for n in seeded.sample(range(3000), 1200):
            tested.remove(n)
            del live[n]
    stats = tested.stats()
    assert stats["filed"] > 0 if seed % 2 else stats["compiled" if compile_rows else "residual"] > 0
    for _ in range(40):
        attributes: dict[str, Any] = {n: f"v{seeded.randrange(4)}" for n in "stuv"} | {
            n: seeded.random() for n in "pqrw"
        }
        assert sorted(tested.match(attributes), key=repr) == brute_force(live, attributes)
        assert sorted(tested.match_groups(attributes).ids(), key=repr) == brute_force(live, attributes)


@pytest.mark.parametrize("filed", ["compiled", "filed"])
def test_one_change_moves_a_bounded_number_of_subscriptions(filed: str):
    """A merge and a promotion are spread over the changes that follow; every publication is answered meanwhile."""
    tested, live = Index(), dict[Any, list[Triple]]()
    with mock.patch.multiple(index, FEW_TEMPLATES=0, PROBE_IN_SCANS=1000.0, STEP=64):
        for n in range(2400):
            # Two bounds have no table. A template of one bound has one as soon as its price is exceeded.
            triples: list[Triple] = [
                ("a", "=", "x") if filed == "filed" else ("q", "<", float(n)),
                ("p", ">", float(n)),
            ]
            before, live[n] = tested.stats()[filed], triples
            tested.add(n, made(triples))
            assert tested.stats()[filed] - before <= 65
            if n % 97 == 0:
                sample: dict[str, Any] = {"a": "x", "p": n / 2, "q": n / 4}
                assert sorted(tested.match(sample), key=repr) == brute_force(live, sample)
    assert tested.stats()[filed] > 1024


# --------------------------------------------------------------------------------------------------- the compiled loop


def test_the_compiled_loop_is_its_twin():
    """`kernel.scan` run as Python and as machine code, on rows that no subscription would make too."""
    fast = kernel.load()
    assert fast is not None
    for seed in range(200):
        drawn = np.random.default_rng(seed)
        rows, columns, buckets = int(drawn.integers(0, 30)), int(drawn.integers(1, 6)), int(drawn.integers(1, 8))
        starts = np.concatenate([[0], np.cumsum(drawn.integers(0, 4, rows))]).astype(np.int64)
        cuts = np.sort(drawn.integers(0, rows + 1, buckets - 1))
        offsets = np.concatenate([[0], cuts, [rows]]).astype(np.int64)
        values = np.array([-math.inf, -1.0, 0.0, 1.0, 2.0, math.inf])
        heads = (
            drawn.integers(0, columns, 2 * rows).astype(np.int32),
            drawn.choice(values, 2 * rows),
            drawn.choice(values, 2 * rows),
        )
        others = (
            drawn.integers(-columns, columns, int(starts[-1])).astype(np.int32),
            drawn.choice(values, int(starts[-1])),
            drawn.choice(values, int(starts[-1])),
        )
        vector = drawn.choice(np.array([math.nan, 0.0, 1.0, 2.0, float(buckets - 1)]), columns)
        vector = np.where(vector < buckets, vector, 0.0)  # a code names a bucket
        access = np.arange(columns, dtype=np.int32)
        labels = drawn.integers(-(2**62), 2**62, rows)
        out_a, out_b = np.zeros(rows * columns, np.int64), np.zeros(rows * columns, np.int64)
        arrays = (vector, access, offsets, *heads, starts, *others, labels)
        count = kernel.scan(*arrays, out_a)
        assert fast(*arrays, out_b) == count, seed
        assert out_a.tolist() == out_b.tolist(), seed


def test_bounds_between_doubles_stay_exact_in_arrays():
    bounds = [0, 5e-324, -5e-324, 1, 1.5, BIG - 1, BIG, BIG + 1, -BIG - 1, 10**308, 2**1024, -(2**1024), 10**400]
    values = [*bounds, *(-b for b in bounds), float(BIG), math.inf, -math.inf, NAN, math.nextafter(1, 2), True, "x"]
    with small_limits(few=0, smallest=10**6, merge=1, block=2, probe=30.0):
        tested = Index()
        live: dict[Any, list[Triple]] = {}
        for n, (operator, bound) in enumerate(itertools.product(["<", "<=", ">", ">=", "=", "!="], bounds)):
            live[n] = [("a", operator, bound), ("b", "exists", None)]
            tested.add(n, made(live[n]))
        assert tested.stats()["compiled"] == len(live)
        for value in values:
            attributes: dict[str, Any] = {"a": value, "b": 0}
            assert sorted(tested.match(attributes), key=repr) == brute_force(live, attributes), value


def test_churn_of_values_does_not_grow_the_codes():
    with (
        small_limits(few=0, smallest=10**6, merge=1, block=2, probe=30.0),
        mock.patch.object(index, "MERGE_FRACTION", 0),
    ):
        tested = Index()
        tested.add("stays", parse("[s,=,'kept'],[a,>,0],[b,>,0]"))
        for n in range(10_000):
            tested.add(n, parse(f"[s,=,'value {n}'],[a,>,0],[b,>,0]"))
            tested.remove(n)
    assert tested._compiled is not None
    assert tested._compiled._code_count < 5000
    assert tested.match({"s": "kept", "a": 1, "b": 1}) == ["stays"]


def test_without_numba_the_answers_are_the_same():
    with mock.patch.object(kernel, "import_module", side_effect=ImportError("no numba here")):
        kernel.load.cache_clear()
        try:
            assert not warm_up()
            tested = Index()
            with small_limits(few=0, smallest=10**6, merge=2, block=2, probe=30.0):
                tested.load((n, parse(f"[a,=,'x'],[b,>,{n}],[c,<,9]")) for n in range(9))
                tested.add(9, parse("[a,=,'x'],[b,>,9],[c,<,9]"))
        finally:
            kernel.load.cache_clear()
    assert tested.stats()["residual"] == 10
    assert sorted(tested.match({"a": "x", "b": 2.5, "c": 0})) == [0, 1, 2]


@pytest.fixture
def nothing_writable() -> Iterator[None]:
    """A root on which no file can be created; the kernel is loaded again before and after."""
    assert warm_up()
    assert kernel.cached_files(), "warming up keeps the machine code beside the module"
    kernel.load.cache_clear()
    with mock.patch.object(tempfile, "TemporaryFile", side_effect=OSError(30, "Read-only file system")):
        yield
    kernel.load.cache_clear()


@pytest.mark.usefixtures("nothing_writable")
def test_kept_machine_code_is_used_on_a_read_only_root():
    compiled_loop: Any = kernel.load()
    assert sum(compiled_loop.stats.cache_hits.values()) == 1


@pytest.mark.usefixtures("nothing_writable")
def test_with_nothing_kept_and_nothing_writable_it_compiles_in_memory():
    with mock.patch.object(kernel, "cached_files", return_value=[]):
        compiled_loop: Any = kernel.load()
    assert compiled_loop is not None
    assert not sum(compiled_loop.stats.cache_hits.values())


# -------------------------------------------------------------------------------------------------- results and changes


def test_groups_are_refused_after_any_change_and_lists_are_not():
    tested = Index()
    tested.load((n, parse("[a,=,'x']")) for n in range(20))
    changes = [
        lambda: tested.add(99, parse("[a,=,'y']")),
        lambda: tested.remove(99),
        lambda: tested.load([(100, parse("[a,=,'z']"))]),
    ]
    for change in changes:
        listed, groups = tested.match({"a": "x"}), tested.match_groups({"a": "x"})
        assert groups.ids() == listed
        change()
        uses = [groups.ids, groups.slices, groups.count, lambda g=groups: len(g), lambda g=groups: list(g)]
        for use in uses:
            with pytest.raises(StaleResultError, match="match again"):
                use()
        assert sorted(listed) == list(range(20))


def test_equal_subscriptions_are_a_run_of_one_leaf():
    tested = Index()
    tested.load((n, parse(f"[class,=,'STOCK'],[high,>,{n // 5}]")) for n in range(100))
    ((ids, start, stop),) = tested.match_groups({"class": "STOCK", "high": 9.5})
    assert (start, stop) == (0, 50)
    assert [sorted(ids[at : at + 5]) for at in range(0, 100, 5)] == [list(range(n, n + 5)) for n in range(0, 100, 5)]


def test_ids_are_unique_and_refusals_change_nothing():
    tested = Index()
    tested.add(1, parse("[a,=,1]"))
    before = tested.generation
    with pytest.raises(ValueError, match="id 1 is in the index already"):
        tested.add(1, parse("[a,=,2]"))
    with pytest.raises(ValueError, match="nothing was loaded"):
        tested.load([(2, parse("[a,=,2]")), (1, parse("[a,=,2]"))])
    with pytest.raises(ValueError, match="nothing was loaded"):
        tested.load([(2, parse("[a,=,2]")), (2, parse("[a,=,3]"))])
    with pytest.raises(KeyError):
        tested.remove(2)
    assert (len(tested), tested.generation, tested.match({"a": 2})) == (1, before, [])
    assert 1 in tested
    assert tested[1] == parse("[a,=,1]")


def test_plans_are_bounded():
    tested = Index()
    tested.add(1, parse("[a,=,1]"))
    for n in range(3 * index.MOST_PLANS):
        assert tested.match({"a": 1, f"extra{n}": 0}) == [1]
    assert tested.stats()["plans"] <= index.MOST_PLANS


def test_blocks_hold_their_order_through_inserts_and_deletes():
    seeded = random.Random(7)
    with mock.patch.object(template_table, "BLOCK_LIMIT", 4):
        leaf = template_table.BoundLeaf("a", BoundSide.AT_LEAST)
        kept: list[tuple[float, int]] = []
        for n in range(600):
            if kept and seeded.random() < 0.45:
                pair = kept.pop(seeded.randrange(len(kept)))
                leaf.delete(*pair)
            else:
                pair = (float(seeded.randrange(12)), n)  # equal keys run over several blocks
                kept.append(pair)
                leaf.insert(*pair)
            assert len(leaf) == len(kept)
            if leaf.blocks is not None:
                assert all(0 < len(keys) <= 4 for keys in leaf.blocks.keys)
                assert leaf.blocks.lows == [keys[0] for keys in leaf.blocks.keys]
                flat = [
                    (key, item)
                    for keys, ids in zip(leaf.blocks.keys, leaf.blocks.ids, strict=True)
                    for key, item in zip(keys, ids, strict=True)
                ]
            else:
                flat = list(zip(leaf.keys, leaf.ids, strict=True))
            assert sorted(flat) == sorted(kept)
            assert [key for key, _ in flat] == sorted(key for key, _ in kept)


@pytest.mark.parametrize("at_once", [True, False])
@pytest.mark.parametrize(
    ("bounds", "forms"),
    [
        ([3, 1, 2**62, 2.5, BIG + 1, 10**400], ["q", "q", "q", "d", "list", "list"]),
        ([3, 2**63, 0], ["q", "list", "list"]),
        ([0.5, 3, -math.inf, BIG, BIG + 1, 2], ["d", "d", "d", "d", "list", "list"]),
    ],
)
def test_a_leaf_packs_its_keys_until_one_has_no_such_form(bounds: list[Any], forms: list[str], at_once: bool):
    tested = Index()
    values = [0, 2, 2.5, 3.5, float(BIG), BIG + 1, BIG + 2, 2**62, 2**62 + 1, float(2**63), 2**63 + 1, math.inf]
    with small_limits(few=16, smallest=1, merge=1024, block=8192, probe=0.0):
        for n, (bound, form) in enumerate(zip(bounds, forms, strict=True)):
            if at_once:
                tested.load([(n, made([("a", ">", bound)]))])
            else:
                tested.add(n, made([("a", ">", bound)]))
            (leaf,) = tested._tables[()].cells[()].leaves
            assert getattr(leaf.keys, "typecode", "list") == form
            for value in values:
                expected = [m for m, known in enumerate(bounds[: n + 1]) if value > known]
                assert sorted(tested.match({"a": value})) == expected
    for n in range(len(bounds)):
        tested.remove(n)
    assert tested.stats()["cells"] == 0


def test_numbers_as_doubles_know_which_are_exact():
    assert compiled_plan.is_double(BIG)
    assert compiled_plan.is_double(2**1023)
    assert compiled_plan.is_double(-math.inf)
    assert not compiled_plan.is_double(BIG + 1)
    assert not compiled_plan.is_double(2**1024)
    assert not compiled_plan.is_double(10**400)
