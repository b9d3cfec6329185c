"""pub and sub by hand, through real brokers; and how attributes are written."""

import io
import json
import math
from pathlib import Path

import pytest

from plimsoll.cli.commands.pubsub import parse_attributes, printed_scalar, read_json_lines
from plimsoll.cli.exit_codes import CommandError

EXAMPLES = Path(__file__).parents[3] / "examples"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("x=STOCK", "STOCK"), ("x=5", 5), ("x=-5", -5), ("x=25.0", 25.0), ("x=1e3", 1000.0), ("x=true", True),
        ("x=false", False), ("x='007'", "007"), ('x="true"', "true"), ("x=", ""), ("x=a=b", "a=b"), ("x='", "'"),
        ("x=007", "007"), ("x=1_000", "1_000"), ("x=\u0661\u0662", "\u0661\u0662"), ("x=nan", "nan"), ("x=inf", "inf"),
    ],
)  # fmt: skip
def test_attributes_have_the_types_that_were_meant(text, value):
    [(name, read)] = parse_attributes([text]).items()
    assert (name, read, type(read)) == ("x", value, type(value))


@pytest.mark.parametrize("texts", [["x"], ["=5"], ["x=1", "x=2"], ["x=1e400"]])
def test_attributes_that_are_none(texts):
    with pytest.raises(CommandError) as caught:
        parse_attributes(texts)
    assert caught.value.code == 2


def test_lines_of_json():
    assert list(read_json_lines(io.StringIO('{"a": 1}\n\n{"b": "x"}\n'), "f")) == [{"a": 1}, {"b": "x"}]


@pytest.mark.parametrize(
    "line", ["{", "[1]", '{"a": {"b": 1}}', '{"a": null}', '{"a": [1]}', "[" * 100_000, '{"a": NaN}', '{"a": 1e400}']
)
def test_lines_that_are_no_attributes_are_located(line):
    with pytest.raises(CommandError, match="f:2: this is not") as caught:
        list(read_json_lines(io.StringIO("{}\n" + line), "f"))
    assert caught.value.code == 2


def test_a_file_names_the_line_at_which_it_stops(program, shared_fleet):
    publisher = program("pub", text='{"a": 1}\n\n{"' + "a" * 70_000 + '": 2}\n{"a": 3}\n')
    out, err = publisher.communicate(timeout=300)
    assert (publisher.returncode, out) == (2, "1 accepted\n")
    assert "<stdin>:3: " in err
    assert "no line from this one on was sent" in err


@pytest.mark.parametrize(
    ("value", "shown"), [(math.inf, "Infinity"), (-math.inf, "-Infinity"), (math.nan, "NaN"), (1.5, 1.5), ("x", "x")]
)
def test_what_is_no_number_of_json_is_printed_as_text(value, shown):
    assert printed_scalar(value) == shown


def test_what_is_published_is_delivered_as_it_was_asked_for(run, program, shared_fleet):
    subscriber = program("sub", "[class,=,'STOCK'],[price,>,20.0]", "--count", "3")
    assert subscriber.stderr is not None
    assert "subscribed as" in subscriber.stderr.readline()
    assert run("pub", "class=STOCK", "price=25.5", "symbol='007'") == (0, "1 accepted\n", "")
    assert run("pub", "class=STOCK", "price=19.0", "--confirm", "edges")[0] == 0
    lines = '{"class": "STOCK", "price": 21}\n{"class": "BOND", "price": 99}\n{"class": "STOCK", "price": 30.0}\n'
    publisher = program("pub", text=lines)
    out, err = publisher.communicate(timeout=300)
    assert (publisher.returncode, out, err) == (0, "3 accepted\n", "")
    out, _ = subscriber.communicate(timeout=300)
    assert subscriber.returncode == 0
    assert [json.loads(line) for line in out.splitlines()] == [
        {"class": "STOCK", "price": 25.5, "symbol": "007"},
        {"class": "STOCK", "price": 21},
        {"class": "STOCK", "price": 30.0},
    ]


def test_what_is_published_in_one_cluster_is_delivered_in_another(run, program):
    assert run("up", "-d", "-f", str(EXAMPLES / "three-clusters.yaml"))[0] == 0
    assert ["east-spare", "east", "fast", "True"] in [line.split()[:4] for line in run("get", "eb")[1].splitlines()]
    subscriber = program("sub", "[price,>,20.0]", "--cluster", "east", "--count", "1", "--full")
    assert subscriber.stderr is not None
    assert "subscribed as" in subscriber.stderr.readline()
    assert run("pub", "price=21.0", "--cluster", "west", "--confirm", "edges") == (0, "1 accepted\n", "")
    told = json.loads(subscriber.communicate(timeout=300)[0])
    assert told["origin"][0] == "west-head"
    # a newcomer is not placed on a cordoned edge
    edges = {line.split()[0]: line.split()[5:7] for line in run("get", "eb")[1].splitlines()[1:]}
    assert edges["east-spare"] in (["yes", "-"], ["yes", "0"])


def test_everything_about_a_delivery(run, program, shared_fleet):
    subscriber = program("sub", "[a,exists]", "--full", "--count", "1", "--name", "me")
    assert subscriber.stderr is not None
    assert subscriber.stderr.readline() == "subscribed as me\n"
    assert run("pub", "a=1", "--name", "you", "--payload", "hello")[0] == 0
    out, _ = subscriber.communicate(timeout=300)
    told = json.loads(out)
    assert (told["attributes"], told["payload"], told["publisher"], told["seq"]) == ({"a": 1}, "hello", "you", 1)
    assert told["origin"][0] == "east-head"


def test_bad_input_of_pub_and_sub(run, shared_fleet):
    code, _, err = run("sub", "[class,=")
    assert code == 2
    assert "column 9: found the end of the text" in err
    assert run("pub", "class")[0] == 2
    code, _, err = run("pub", "a=1", "--cluster", "eats")
    assert code == 3
    assert 'Did you mean "east"?' in err
    assert run("sub", "[a,exists]", "--seconds", "0.3")[0] == 0
    assert run("sub", "[a,exists]", "--seconds", "0.3", "--since", "10m")[0] == 0
    code, _, err = run("sub", "[a,exists]", "[b,exists]", "--since", "10m")
    assert code == 2
    assert "--since takes one SUBSCRIPTION" in err


def test_lines_before_a_bad_one_are_published_and_counted(run, program, shared_fleet):
    for bad, said in (("{", "<stdin>:3: this is not JSON"), (f'{{"a": {2**70}}}', "64 bits")):
        publisher = program("pub", text=f'{{"a": 1}}\n{{"a": 2}}\n{bad}\n{{"a": 3}}\n')
        out, err = publisher.communicate(timeout=300)
        assert (publisher.returncode, out) == (2, "2 accepted\n")
        assert said in err


def test_what_looks_like_an_attribute_is_shown_as_a_subscription(run, shared_fleet):
    code, _, err = run("sub", "class=STOCK")
    assert code == 2
    assert "as in [class,=,'STOCK']" in err


def test_a_fleet_that_does_not_run(run, fleet):
    run("down")
    code, _, err = run("pub", "a=1")
    assert code == 3
    assert "fleet quickstart does not run: start it with" in err
