"""Predicates: text and errors, canonical form; matching and covering against enumeration."""

import itertools
import math
import pickle
import re
import string
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.examples import examples

from plimsoll.core import predicates
from plimsoll.core.predicates import ParseError, Predicate, Subscription, Unsatisfiable, conjunction, parse, syntax

NAN = math.nan
BIG = 2**53


@pytest.mark.parametrize(
    "text",
    [
        "[class,=,'STOCK'],[high,>,25.0]",
        "[a,>=,-inf]",
        "[a,>,-1.5e-07],[a,<=,9007199254740993]",
        "[a,>,1],[a,<,9],[a,!=,5],[a,!=,7.5]",
        "[a,in,('x','y')],[b,in,(1,2.5)],[c,in,(false,true)]",
        "[a,prefix,'ab'],[a,suffix,'z'],[a,contains,'q'],[a,!=,'abqz']",
        "[a,exists],[b,=,true]",
        "['a b,]',=,'it\\'s \\\\ \\n\\t\\r\\u{0}\\u{d800} é']",
        "[größe/m.2:$,=,'']",
    ],
)
def test_canonical_text_prints_as_it_was_written(text: str):
    assert str(parse(text)) == text
    assert parse(str(parse(text))) == parse(text)


@pytest.mark.parametrize(
    ("written", "canonical"),
    [
        (' [ b , = , "x" ] , [a,=,1] ', "[a,=,1],[b,=,'x']"),
        ("[a,>,1],[a,>=,1],[a,>,0]", "[a,>,1]"),
        ("[a,>=,1],[a,!=,1],[a,<=,2],[a,!=,2],[a,!=,3]", "[a,>,1],[a,<,2]"),
        ("[a,>=,2],[a,<=,2.0]", "[a,=,2]"),
        ("[a,in,(3,1,2,1.0)],[a,<,3]", "[a,in,(1,2)]"),
        ("[a,in,('x')]", "[a,=,'x']"),
        ("[a,!=,true]", "[a,=,false]"),
        ("[a,=,-0.0]", "[a,=,0.0]"),
        ("[a,exists],[a,<,5]", "[a,<,5]"),
        ("[a,prefix,'a'],[a,prefix,'ab'],[a,contains,'b'],[a,contains,''],[a,!=,'x']", "[a,prefix,'ab']"),
        ("[a,contains,'b'],[a,contains,'abc']", "[a,contains,'abc']"),
        ("[a,suffix,''],[a,contains,'']", "[a,prefix,'']"),
        ("[a,prefix,'ab'],[a,in,('abc','xab')]", "[a,=,'abc']"),
    ],
)
def test_equal_meaning_is_equal_and_prints_alike(written: str, canonical: str):
    assert str(parse(written)) == canonical
    assert parse(written) == parse(canonical)
    assert hash(parse(written)) == hash(parse(canonical))


def test_equality_is_of_meaning_not_of_text():
    assert parse("[a,>,25.0]") == parse("[a,>,25]")
    assert parse("[a,=,1]") != parse("[a,=,true]")
    assert parse("[a,=,1]") != parse("[a,=,'1']")
    assert parse(f"[a,=,{BIG + 1}]") != parse(f"[a,=,{float(BIG)!r}]")


@pytest.mark.parametrize(
    ("text", "column", "found", "expected"),
    [
        ("", 1, "the end of the text", "'['"),
        ("[a,=,1],", 9, "the end of the text", "'['"),
        ("[a,=,1] [b,=,2]", 9, "'['", "',' or the end"),
        ("[a,=,1", 7, "the end of the text", "']'"),
        ("[,=,1]", 2, "','", "an attribute name"),
        ("['',=,1]", 2, '"\'"', "not empty"),
        ("[a,==,1]", 5, "'='", "','"),
        ("[a,like,'x']", 4, "'like'", "an operator"),
        ("[a,inside,(1)]", 4, "'inside'", "an operator"),
        ("[a,=,STOCK]", 6, "'STOCK'", "a quoted string"),
        ("[a,=,nan]", 6, "'nan'", "a quoted string"),
        ("[a,=,1.2.3]", 6, "'1.2.3'", "a quoted string"),
        ("[a,=,1e999]", 6, "'1e999'", "a number that a float can hold"),
        ("[a,=," + "9" * 401 + "]", 6, "'" + "9" * 40 + "'", "at most 400 digits"),
        ("[a,=,'x]", 9, "the end of the text", "the closing ' of the string that starts at column 6"),
        ("[a,=,'\\q']", 8, "'q'", "an escape"),
        ("[a,=,'\\u{110000}']", 8, "'u'", "an escape"),
        ("[a,<,'x']", 6, '"\'"', "a number after '<'"),
        ("[a,>,true]", 6, "'true'", "a number after '>'"),
        ("[a,prefix,1]", 11, "'1'", "a string after 'prefix'"),
        ("[a,in,1]", 7, "'1'", "'(' of a list"),
        ("[a,in,()]", 8, "')'", "a quoted string"),
        ("[a,in,(1,'x')]", 7, "'('", "values of one kind"),
        ("[a,in,(1,true)]", 7, "'('", "values of one kind"),
        ("[a,exists,1]", 10, "','", "']'"),
    ],
)
def test_errors_name_column_found_and_expected(text: str, column: int, found: str, expected: str):
    with pytest.raises(ParseError) as caught:
        parse(text)
    assert (caught.value.column, caught.value.found) == (column, found)
    assert expected in caught.value.expected
    assert str(caught.value) == f"column {column}: found {found}, expected {caught.value.expected}"
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)  # noqa: S301  # made here


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[a,>,5],[a,<,3]", "attribute 'a': no number is > 5 and < 3"),
        ("[a,>,5],[a,<=,5]", "attribute 'a': no number is > 5 and <= 5"),
        ("[a,>=,5],[a,<=,5],[a,!=,5]", "attribute 'a': no number is > 5 and < 5"),
        ("[a,>,inf]", "attribute 'a': no number is > inf and <= inf"),
        ("[a,=,1],[a,=,2]", "attribute 'a': = 1 and = 2 have no value in common"),
        ("[a,=,1],[a,=,'1']", "attribute 'a': a value cannot be a number and a string at once"),
        ("[a,=,1],[a,=,true]", "attribute 'a': a value cannot be a boolean and a number at once"),
        ("[a,in,(1,2)],[a,>,2]", "attribute 'a': > 2 excludes every value that is left: 1, 2"),
        ("[a,!=,true],[a,!=,false]", "attribute 'a': != True, != False exclude every value that is left: False, True"),
        ("[a,prefix,'x'],[a,prefix,'yx']", "attribute 'a': no string starts with both 'x' and 'yx'"),
        ("[a,suffix,'x'],[a,suffix,'xy']", "attribute 'a': no string ends with both 'x' and 'xy'"),
        ("[b,=,1],[a,=,'x'],[a,contains,'y']", "attribute 'a': contains 'y' excludes every value that is left: 'x'"),
    ],
)
def test_the_unsatisfiable_is_refused_with_the_reason(text: str, reason: str):
    with pytest.raises(Unsatisfiable) as caught:
        parse(text)
    assert str(caught.value) == reason


@pytest.mark.parametrize(
    ("text", "yes", "no"),
    [
        ("[a,=,1]", [1, 1.0], [True, "1", 1.5, NAN]),
        ("[a,=,true]", [True], [1, 1.0, "true"]),
        ("[a,in,(0,2)]", [0, -0.0, 2.0], [False, 1]),
        ("[a,!=,1]", [0, math.inf, BIG], [1, 1.0, True, "x", "", NAN]),
        ("[a,!=,'x']", ["", "X"], ["x", 1, True]),
        ("[a,!=,true]", [False], [True, 0, 1]),
        ("[a,>,1]", [1.0000000000000002, 2, math.inf, 10**400], [1, True, "2", NAN, -(10**400)]),
        ("[a,<=,0]", [0, -0.0, False - 1, -math.inf], [False, NAN, 5e-324]),
        ("[a,<,inf]", [10**400, -math.inf], [math.inf]),
        ("[a,>=,-inf]", [-math.inf, 0, math.inf], ["", NAN, True]),
        (f"[a,>,{BIG}]", [BIG + 1, float(BIG + 2)], [BIG, float(BIG)]),
        (f"[a,=,{BIG + 1}]", [BIG + 1], [BIG, float(BIG), float(BIG + 2)]),
        (f"[a,<,{float(BIG)!r}]", [BIG - 1], [BIG, BIG + 1]),
        ("[a,prefix,'']", ["", "x"], [0, False]),
        ("[a,prefix,'ab'],[a,suffix,'ba']", ["aba", "abba"], ["ab", "ba", "ABA"]),
        ("[a,contains,'é']", ["café"], ["cafe\u0301", "É"]),  # code points, not normal forms or cases
        ("[a,=,'']", [""], ["x", 0]),
        ("[a,exists]", [0, "", False, NAN], []),
    ],
)
def test_what_each_operator_says_of_each_kind(text: str, yes: list[predicates.Value], no: list[predicates.Value]):
    subscription = parse(text)
    for value in yes:
        assert subscription.matches({"a": value, "b": 1}), value
    for value in no:
        assert not subscription.matches({"a": value}), value
    assert not subscription.matches({"b": 1})


def test_a_subscription_is_a_value():
    subscription = parse("[a,=,1]")
    with pytest.raises(AttributeError, match="immutable"):
        subscription.constraints = ()
    with pytest.raises(AttributeError, match="immutable"):
        del subscription.constraints
    assert pickle.loads(pickle.dumps(subscription)) == subscription  # noqa: S301  # made here
    assert eval(repr(subscription)) == subscription  # noqa: S307  # made here
    assert subscription != "[a,=,1]"
    assert len({parse("[a,=,1]"), parse("[a,=,1.0]"), parse("[a,<=,1],[a,>=,1]")}) == 1


@pytest.mark.parametrize(
    ("triple", "wanted"),
    [
        (("", "=", 1), "an attribute name is not empty"),
        (("a", "~", 1), "unknown operator '~'"),
        (("a", "<", NAN), None),
        (("a", "=", NAN), "a number other than NaN"),
        (("a", "in", (1, NAN)), "numbers other than NaN"),
        (("a", "in", ()), "at least one value"),
        (("a", "=", None), "a string, a number, true or false"),
        (("a", "exists", 1), "no operand"),
    ],
)
def test_predicates_made_by_hand_are_checked(triple: tuple, wanted: str | None):
    with pytest.raises(ValueError, match=wanted or "NaN"):
        Predicate(*triple)


def test_no_predicates_are_no_subscription():
    with pytest.raises(ValueError, match="at least one predicate"):
        conjunction([])


# ------------------------------------------------------------------------------- against enumeration of small domains

NUMBERS: list[predicates.Value] = [-math.inf, -1, 0, 0.5, 1, 1.5, 2, 3, math.inf]
WORDS = ["".join(w) for n in range(9) for w in itertools.product("xyz", repeat=n)]
DOMAIN: list[predicates.Value] = [*WORDS, *NUMBERS, True, False, NAN]
PIECES = ["", "x", "y", "xx", "xy", "yx", "yy"]

numbers = st.sampled_from([0, 1, 2, 1.0, 0.0])
pieces = st.sampled_from(PIECES)
booleans = st.booleans()


def of_one_kind(values: st.SearchStrategy, orders: list[str]) -> st.SearchStrategy[tuple[str, object]]:
    lists = st.lists(values, min_size=1, max_size=3).map(tuple)
    return st.one_of(
        st.tuples(st.sampled_from(["=", "!=", *orders]), values),
        st.tuples(st.just("in"), lists),
    )


terms = st.one_of(
    of_one_kind(numbers, ["<", "<=", ">", ">="]),
    of_one_kind(pieces, ["prefix", "suffix", "contains"]),
    of_one_kind(booleans, []),
    st.just(("exists", None)),
)
of_a = st.one_of(
    st.lists(of_one_kind(numbers, ["<", "<=", ">", ">="]), min_size=1, max_size=3),
    st.lists(of_one_kind(pieces, ["prefix", "suffix", "contains"]), min_size=1, max_size=3),
    st.lists(terms, min_size=1, max_size=3),
)
_bits: dict[tuple[str, object, bool], int] = {}


def kind(value: object) -> str:
    return "bool" if value is True or value is False else "str" if type(value) is str else "number"


def holds(operator: str, operand: object, value: object) -> bool:
    """The definition, written a second time and without canonical forms."""
    if operator == "exists":
        return True
    if operator == "in":
        assert isinstance(operand, tuple)
        return any(kind(value) == kind(one) and value == one for one in operand)
    if kind(value) != kind(operand) or value != value:
        return False
    if operator in ("=", "!="):
        return (value == operand) == (operator == "=")
    if isinstance(value, str):
        assert isinstance(operand, str)
        found = {"prefix": value[: len(operand)], "suffix": value[len(value) - len(operand) :]}
        return operand in value if operator == "contains" else found[operator] == operand
    tests = {"<": value < operand, "<=": value <= operand, ">": value > operand, ">=": value >= operand}  # type: ignore[operator]  # both are numbers
    return tests[operator]


def selected(term: tuple[str, object]) -> int:
    """The values of the domain that a predicate selects, as bits."""
    key = (term[0], term[1], type(term[1]) is bool or (type(term[1]) is tuple and type(term[1][0]) is bool))
    if key not in _bits:
        _bits[key] = sum(1 << at for at, value in enumerate(DOMAIN) if holds(term[0], term[1], value))
    return _bits[key]


def made(terms: list[tuple[str, object]]) -> tuple[Subscription | None, int]:
    bits = (1 << len(DOMAIN)) - 1
    for term in terms:
        bits &= selected(term)
    try:
        return conjunction(Predicate("a", *term) for term in terms), bits  # type: ignore[arg-type]  # operators are drawn as text
    except Unsatisfiable:
        return None, bits


@settings(max_examples=examples(800), deadline=None)
@given(of_a, of_a)
@example([("prefix", "xy"), ("suffix", "yx")], [("contains", "xyx")])
@example([("contains", "xy")], [("prefix", "x"), ("suffix", "y")])
@example([(">", 0), ("<", 1)], [(">", 0), ("<", 1), ("!=", 2)])
def test_covering_is_inclusion(one: list, other: list):
    """Exact both ways: where the answer is no, the domain holds a value that shows it."""
    (a, bits_a), (b, bits_b) = made(one), made(other)
    assert (a is None) == (bits_a == 0)
    assert (b is None) == (bits_b == 0)
    if a is None or b is None:
        return
    assert a.covers(b) == (bits_b & ~bits_a == 0)
    assert b.covers(a) == (bits_a & ~bits_b == 0)
    assert (a == b) == (bits_a == bits_b)
    assert parse(str(a)) == a


@pytest.mark.parametrize(
    ("operators", "operands"),
    [
        (("=", "!=", "<", "<=", ">", ">="), (0, 1, 2)),
        (("=", "!=", "prefix", "suffix", "contains"), ("", "x", "xy", "yx")),
    ],
)
def test_covering_of_all_pairs_of_up_to_two_predicates(operators: tuple, operands: tuple):
    single = list(itertools.product(operators, operands))
    some = [*([one] for one in single), *(list(pair) for pair in itertools.combinations(single, 2))]
    asked = [(subscription, bits) for subscription, bits in map(made, some) if subscription is not None]
    for (a, bits_a), (b, bits_b) in itertools.product(asked, repeat=2):
        assert a.covers(b) == (bits_b & ~bits_a == 0), f"{a} covers {b}"


@settings(max_examples=examples(300), deadline=None)
@given(of_a, st.sampled_from([*WORDS[:400], *NUMBERS, True, False, NAN]))
def test_matching_is_the_definition(one: list, value: predicates.Value):
    subscription, _ = made(one)
    assert (subscription is not None and subscription.matches({"a": value})) == all(
        holds(t[0], t[1], value) for t in one
    )


@settings(max_examples=examples(500), deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from("ab"), terms), min_size=1, max_size=3),
    st.lists(st.tuples(st.sampled_from("ab"), terms), min_size=1, max_size=3),
)
def test_attributes_are_independent_and_may_be_missing(one: list, other: list):
    small: list[object] = [None, "", "x", "xy", "zxyz", 0, 0.5, 1, 3, -math.inf, True, False, NAN]
    try:
        a = conjunction(Predicate(name, *term) for name, term in one)
        b = conjunction(Predicate(name, *term) for name, term in other)
    except Unsatisfiable:
        return  # nothing to compare
    for pair in itertools.product(small, repeat=2):
        publication = {name: value for name, value in zip("ab", pair, strict=True) if value is not None}
        both = []
        for subscription, triples in ((a, one), (b, other)):
            expected = all(name in publication and holds(term[0], term[1], publication[name]) for name, term in triples)
            assert subscription.matches(publication) == expected  # type: ignore[arg-type]  # its values are drawn
            both.append(expected)
        assert not (a.covers(b) and both[1] and not both[0])


# ------------------------------------------------------------------------------------------------------------ the fuzz

fragments = st.sampled_from(
    ["[", "]", ",", "(", ")", "'", '"', "\\", "u{", "}", "a", "=", "!=", "<", ">", "in", "prefix", "exists", "1", "-",
     ".5", "e9", "inf", "true", " ", "\n", "\x00", "\ud800", "é", "9" * 500, "'x'", "[a,=,1]"]
)  # fmt: skip


def read(text: str) -> Subscription | ParseError | Unsatisfiable:
    """Any other exception fails the test."""
    try:
        return parse(text)
    except (ParseError, Unsatisfiable) as error:
        return error


@settings(max_examples=examples(2000), deadline=None)
@given(st.one_of(st.lists(fragments, max_size=14).map("".join), st.text(max_size=40)))
@example("[n,<,1],[n,>,2]")
def test_any_text_is_read_or_refused_where_it_is_wrong(text: str):
    result = read(text)
    if isinstance(result, ParseError):
        assert 1 <= result.column <= len(text) + 1
        assert result.found
        assert result.expected
    elif isinstance(result, Unsatisfiable):
        assert result.reason
    else:
        assert parse(str(result)) == result


@settings(max_examples=examples(800), deadline=None)
@given(st.data())
def test_a_broken_canonical_text_is_never_misread_silently(data: st.DataObject):
    """Every text one edit away from a good one is refused, or is itself good and prints back."""
    good = "[class,=,'STOCK'],[high,>,25.0],[x,in,(1,2)],[y,prefix,'a\\'b']"
    at = data.draw(st.integers(0, len(good)))
    cut = data.draw(st.integers(0, 2))
    text = good[:at] + data.draw(st.sampled_from(["", *string.printable])) + good[at + cut :]
    result = read(text)
    if isinstance(result, Subscription):
        assert str(parse(str(result))) == str(result)


@settings(max_examples=examples(500), deadline=None)
@given(st.text(min_size=1), st.text(), st.floats(allow_nan=False) | st.integers())
def test_every_name_string_and_number_survives_the_text(name: str, word: str, number: float):
    subscription = conjunction([Predicate(name, "=", word), Predicate(name + "'", ">=", number)])
    assert parse(str(subscription)) == subscription
    str(subscription).encode()


# --------------------------------------------------------------------------------------- what is usual, in one step

pieces = st.sampled_from(
    ["[a,in,(", "[b,=,", "[b,>=,", "[é/x,prefix,", "[c , suffix ,", "[d,contains,", ")]", "]", ",", " , ", " ", "'x'",
     "'y z'", '"q"', "'it\\'s'", "'\\\\'", "'\\n\\u{e9}'", "'\\'", "'\x00\\n'", "1", "-2", "+3", "1.5", "2.", "1e3",
     "1e999", "-1E-3", "٣", "1_0", "inf", "true", "9" * 300, "9" * 401, "\u2003", "'a'x", "1x"]
)  # fmt: skip


def rule_by_rule(text: str) -> Subscription | tuple[type, str]:
    """What the reader makes of a text that has nothing usual in it, for all it can see."""
    nothing = re.compile("(?!)")
    with pytest.MonkeyPatch.context() as patch:
        for name in ("_USUAL", "_NUMBERS", "_STRINGS", "_RUN"):
            patch.setattr(syntax, name, nothing)
        patch.setattr(syntax._PredicateReader, "integers", lambda _: ())
        patch.setattr(syntax, "_QUOTED", {"'": nothing, '"': nothing})
        result = read(text)
    return result if isinstance(result, Subscription) else (type(result), str(result))


@settings(max_examples=examples(2000), deadline=None)
@given(st.lists(pieces, max_size=14).map("".join))
@example(f"[a,in,({','.join(map(str, range(2049)))})]")
@example(f"[a,in,({','.join(map(str, range(2048)))})],[b,in,(1,2)]")
@example("[a,in,('x','y')],[b,in,(1,2.0,-0.0,0)],[c,=,'\\\\n']")
@example("[a,in,(1,1e999)]")
@example("[a,<,'x']")
def test_what_is_usual_is_read_as_rule_by_rule(text: str):
    result = read(text)
    alike = rule_by_rule(text)
    assert (result if isinstance(result, Subscription) else (type(result), str(result))) == alike
    assert isinstance(alike, tuple) or str(result) == str(alike)


@pytest.mark.parametrize("values", [range(2040), [f"k{i}" for i in range(2040)], [i + 0.25 for i in range(2040)]])
def test_a_list_of_many_values_is_read_in_one_step(values: list, monkeypatch: pytest.MonkeyPatch):
    """Value by value it takes ten times as long, and everybody else waits for it."""
    text = f"[n,in,({','.join(map(repr, values))})]"
    with monkeypatch.context() as patch:
        patch.setattr(syntax._PredicateReader, "literal", None)
        assert str(parse(text)) == str(conjunction([Predicate("n", "in", tuple(values))]))


@pytest.mark.parametrize("count", [255, 256])
def test_usual_predicates_are_read_many_at_once(count: int, monkeypatch: pytest.MonkeyPatch):
    """One by one they take twice as long or more, at the edge and once more at the head."""
    text = ",".join(f"[z{i},>,{i}]" for i in range(count))
    calls: list[int] = []
    predicate = syntax._PredicateReader.predicate

    def watched(reader: syntax._PredicateReader) -> tuple[str, predicates.Operator, predicates.Operand]:
        calls.append(reader.at)
        return predicate(reader)

    monkeypatch.setattr(syntax._PredicateReader, "predicate", watched)
    assert len(parse(text).constraints) == count
    assert len(calls) == 1, "the last one, which has no comma behind it"


WHOLE = [
    "[a,=,1]", "[b , <= , -5 ]", " [c,prefix,'x']", "[d,suffix,'']", "[e,!=,'q w']", "[f,contains,'abc']", "[g,exists]",
    "[h,in,(1,2,3)]", "[h,in,('a','b')]", "[h,in,( 1 , -2,+3)]", "[h,in,(1,2_0)]", "[h,in,(1,)]", "[h,in,()]",
    "[h,in,(1,٣)]", "[h,in,(1,2.5)]", f"[h,in,({'9' * 350})]", f"[h,in,({'9' * 401})]", "[h,in,(1,true)]", "[i,>,'x']",
    "[j,contains,5]", f"[k,=,{'1' * 301}]", f"[k,=,{'1' * 401}]", "[l,=,true]", "[m,=,0x]", "[n,=,1.5]", "[x:y/$z,=,7]",
    "['q',=,1]", "[o,in,(1,2", "",
]  # fmt: skip


@settings(max_examples=examples(500), deadline=None)
@given(st.one_of(st.lists(st.sampled_from(WHOLE), max_size=12), st.lists(st.sampled_from(WHOLE[:7]), max_size=40)))
@example(["[a,=,1]"] * 256)
@example(["[a,=,1]"] * 257)
@example([*["[a,=,1]"] * 100, "[g,exists]", *["[b,>,1]"] * 156])
@example([*["[a,=,1]"] * 100, "[g,exists]", *["[b,>,1]"] * 157])
@example(["[f,contains,'x']"] * 16)
@example(["[f,contains,'x']"] * 17)
@example([*["[f,contains,'x']"] * 9, "[g,exists]", *["[f,contains,'y']"] * 8])
def test_a_run_of_predicates_is_read_as_one_by_one(predicates_written: list[str]):
    text = ",".join(predicates_written)
    alike = rule_by_rule(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(syntax, "RUN_CHARACTERS", 0)
        result = read(text)
    assert (result if isinstance(result, Subscription) else (type(result), str(result))) == alike
    assert isinstance(alike, tuple) or str(result) == str(alike)


@pytest.mark.parametrize("too_many", ["[f,contains,'x']," * 17, "[a,=,1]," * 100])
def test_a_run_of_too_many_is_not_matched_again_and_again(too_many: str, monkeypatch: pytest.MonkeyPatch):
    class Watched:
        times = 0

        def match(self, *at: Any) -> re.Match[str] | None:
            self.times += 1
            return run.match(*at)

    run, watched = syntax._RUN, Watched()
    monkeypatch.setattr(syntax, "_RUN", watched)
    with pytest.raises(ParseError, match="more than"):
        parse("[a,=,1]," * 100 + "[g,exists]," + "[a,=,1]," * 100 + too_many + "[a,=,1]")
    assert watched.times <= 3
