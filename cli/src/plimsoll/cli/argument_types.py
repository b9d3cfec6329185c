"""Types of command-line arguments: each takes the text and returns its value, or says what to write instead."""

from __future__ import annotations

import argparse
import re
from datetime import datetime, timedelta

FORMATS = ("table", "wide", "json", "yaml", "name")
"""Formats of objects."""


def parse_share(text: str) -> int:
    """`30%`, as 30."""
    if (match := re.fullmatch(r"(\d{1,3})%", text)) is None or not 1 <= int(match[1]) <= 100:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a share: write a whole percentage from 1% to 100%, such as 30%"
        )
    return int(match[1])


def parse_count(text: str) -> int:
    """A number of subscribers, 1 or more."""
    if not re.fullmatch(r"\d{1,9}", text) or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of subscribers: write 1 or more")
    return int(text)


def parse_number(text: str) -> int:
    """A whole number, 1 or more."""
    if not re.fullmatch(r"\d{1,9}", text) or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1")
    return int(text)


def parse_seconds(text: str) -> float:
    """Seconds, more than zero and at most a day."""
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0.0 < seconds <= 86_400.0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds above 0, at most 86400")
    return seconds


def parse_address(text: str) -> str:
    """`HOST:PORT` to listen at, as tcp://HOST:PORT."""
    found = re.fullmatch(r"(\S+):(\d{1,5})", text)
    if found is None or not 0 < int(found[2]) < 65536:
        raise argparse.ArgumentTypeError(f"{text!r} is not an address to listen at: write HOST:PORT")
    return f"tcp://{text}"


def parse_speed(text: str) -> float | None:
    """`2x` or `2` as 2.0; `max` as None: without waiting."""
    if text == "max":
        return None
    if re.fullmatch(r"\d{1,6}(\.\d{1,6})?x?", text) is None or float(text.removesuffix("x")) <= 0.0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a speed: write one such as 1x, 0.5x or 10x, or max")
    return float(text.removesuffix("x"))


def parse_duration(text: str) -> str:
    """A duration greater than zero, as it was written."""
    from plimsoll.core.spec.quantities import Duration  # loads all kinds: not at every start

    try:
        if Duration.parse(text).seconds > 0:
            return text
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} {error}") from error
    raise argparse.ArgumentTypeError(f"{text!r} is not longer than zero: write a duration such as 30s or 2m")


def parse_span(text: str) -> timedelta:
    """A duration greater than zero, as a span of time."""
    from plimsoll.core.spec.quantities import Duration  # loads all kinds: not at every start

    return timedelta(seconds=Duration.parse(parse_duration(text)).seconds)


def parse_since(text: str) -> int | datetime | timedelta:
    """A row, as `1200`; a time, as `2026-11-25T16:00:00Z`; or how long ago, as `2h`. A time without a zone is local."""
    if re.fullmatch(r"[0-9]{1,18}", text):
        return max(1, int(text))
    if re.match(r"[0-9]{4}-", text):
        try:
            return datetime.fromisoformat(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(f"{text!r} is not a time: write it as 2026-11-25T16:00:00Z") from error
    try:
        return parse_span(text)
    except argparse.ArgumentTypeError as error:
        remedy = "write a row such as 1200, a time such as 2026-11-25T16:00:00Z, or a duration such as 2h"
        raise argparse.ArgumentTypeError(f"{text!r} is none of these: {remedy}") from error


def parse_numbers(text: str) -> list[int]:
    """`3,4` as a list of numbers."""
    try:
        return [int(part) for part in parse_names(text)]
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is not a list of numbers: write it as 3,4") from error


def parse_names(text: str) -> list[str]:
    """`x,y` as a list."""
    return [name for name in (part.strip() for part in text.split(",")) if name]
