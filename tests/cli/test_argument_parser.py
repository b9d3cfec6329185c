"""What was probably meant, and options that stand in front of the command or behind it."""

from __future__ import annotations

import pytest

from plimsoll.cli.argument_parser import GLOBAL_OPTIONS, nearest_hint
from plimsoll.cli.parser import parser


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["gte", "eb"], "invalid choice: 'gte'. Did you mean \"get\"?"),
        (["get", "eb", "-o", "jsno"], "invalid choice: 'jsno'. Did you mean \"json\"?"),
        (["get", "eb", "--outptu", "json"], 'unrecognized arguments: --outptu json. Did you mean "--output"?'),
        (["get", "eb", "--outptu=json"], 'unrecognized arguments: --outptu=json. Did you mean "--output"?'),
        (["--flete", "q", "get", "eb"], 'unrecognized arguments: --flete. Did you mean "--fleet"?'),
        (["context", "lsit"], "invalid choice: 'lsit'. Did you mean \"list\"?"),
        (["get", "eb", "one", "two"], "unrecognized arguments: two."),
        (["qqq"], "invalid choice: 'qqq' (choose from"),
        ([], "the following arguments are required: COMMAND"),
    ],
)
def test_what_was_probably_meant(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit) as end:
        parser().parse_args(arguments)
    assert end.value.code == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [
        ["--fleet", "q", "--namespace", "s", "--context", "c", "get", "eb"],
        ["get", "eb", "--fleet", "q", "-n", "s", "--context", "c"],
        ["--fleet", "q", "get", "-n", "s", "eb", "--context", "c"],
    ],
)
def test_global_options_stand_anywhere(arguments: list[str]):
    options = parser().parse_args(arguments)
    assert (options.fleet, options.namespace, options.context) == ("q", "s", "c")


def test_an_option_behind_the_command_counts_over_one_in_front():
    assert parser().parse_args(["--fleet", "a", "get", "eb", "--fleet", "b"]).fleet == "b"


def test_options_that_were_left_out_are_none():
    options = parser().parse_args(["get", "eb"])
    assert [getattr(options, flags[-1].lstrip("-")) for flags, _ in GLOBAL_OPTIONS] == [None, None, None]


def test_a_hint_is_given_for_something_alike_only():
    assert nearest_hint("drian", ["drain", "up"]) == ' Did you mean "drain"?'
    assert nearest_hint("xyz", ["drain", "up"]) == ""
