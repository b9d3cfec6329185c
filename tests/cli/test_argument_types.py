"""Arguments that are more than text: read, or refused with what to write instead."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from datetime import timedelta

import pytest

from plimsoll.cli.argument_types import parse_address, parse_count, parse_duration, parse_names, parse_share, parse_span


def test_what_is_right_is_read():
    assert (parse_share("30%"), parse_count("5"), parse_duration("2m")) == (30, 5, "2m")
    assert parse_address("127.0.0.1:9420") == "tcp://127.0.0.1:9420"
    assert parse_span("10m") == timedelta(minutes=10)
    assert parse_names("x, y,,") == ["x", "y"]


@pytest.mark.parametrize(
    ("parse", "text"),
    [
        (parse_share, "30"),
        (parse_share, "101%"),
        (parse_count, "0"),
        (parse_count, "x"),
        (parse_duration, "0s"),
        (parse_address, "9420"),
        (parse_address, "h:0"),
    ],
)
def test_what_is_wrong_is_refused(parse: Callable[[str], object], text: str):
    with pytest.raises(argparse.ArgumentTypeError, match=f"'{text}' .*write"):
        parse(text)
