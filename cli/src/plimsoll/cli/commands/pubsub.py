"""`plimsoll pub` and `plimsoll sub`: a first try by hand, through the same client library that applications use.

`pub` reads the format that `sub` prints: one JSON object of attributes per line.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TextIO

from plimsoll.cli.exit_codes import BAD_INPUT, FAILED, OK, CommandError
from plimsoll.cli.fleet_connection import open_connection
from plimsoll.cli.output import print_error, print_line
from plimsoll.client import Connection, Delivery, GapNotice, Publisher, Subscriber, Summary, errors
from plimsoll.core.protocol.wire import Scalar

Attributes = dict[str, Scalar]

_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
"""A number as JSON has it. What else Python reads as one, such as 007, 1_000 or nan, is text."""


def pub(options: argparse.Namespace) -> int:
    """Publish one publication from arguments, or one for each line of standard input."""
    given = _numbered_lines(sys.stdin, "<stdin>")
    if options.attributes:
        given = iter([("", parse_attributes(options.attributes))])
    with open_connection(options) as connection, _open_publisher(connection, options) as publisher:
        try:
            for place, attributes in given:
                try:
                    publisher.publish(attributes, options.payload.encode())
                except errors.PublicationError as error:
                    if not place:
                        raise
                    raise CommandError(BAD_INPUT, f"{place}: {error}; no line from this one on was sent") from error
        except (CommandError, errors.PublicationError):
            # What the lines before came to; then the error says what ended it.
            _print_summary(publisher.flush(), "0 accepted")
            raise
        return _print_summary(publisher.flush())


def _print_summary(summary: Summary, empty: str = "nothing to publish") -> int:
    """Print the answers of publications, or `empty` if there was none; the exit code."""
    told = {"accepted": summary.accepted, "unconfirmed": summary.unconfirmed}
    told |= {"refused": summary.refused, "unknown": summary.unknown}
    print_line(", ".join(f"{count} {name}" for name, count in told.items() if count) or empty)
    for answer in summary.not_accepted[:5]:
        print_error(
            f"plimsoll: publications {answer.first} to {answer.last} {answer.answer}: {answer.text or answer.code}"
        )
    return FAILED if summary.not_accepted else OK


def sub(options: argparse.Namespace) -> int:
    """Print matching publications until `--count` are printed, `--seconds` have passed, or Ctrl-C.

    Raises:
        CommandError: more than one subscription with `--since`.

    """
    if options.since is not None and len(options.subscriptions) > 1:
        raise CommandError(BAD_INPUT, "--since takes one SUBSCRIPTION: others would begin when they are made")
    until = None if options.seconds is None else time.monotonic() + options.seconds
    with open_connection(options) as connection:
        subscriber = Subscriber(connection, name=options.name, since=options.since)
        try:
            for text in options.subscriptions:
                subscriber.subscribe(text, latency_seconds=options.latency)
            print_error(f"subscribed as {subscriber.name}")
            for item in _receive_items(subscriber, options.count, until):
                if isinstance(item, Delivery):
                    print_line(json.dumps(_delivery_fields(item, full=options.full)))
                else:
                    print_error(f"gap: positions {item.low} to {item.high} of {item.head} were missed: {item.reason}")
            if options.latency is not None:
                _print_lateness(subscriber.statistics())
        finally:
            subscriber.close()
    return OK


def _print_lateness(counts: Mapping[str, Any]) -> None:
    print_error(
        f"{counts['late_deliveries']} of {counts['timed_deliveries']} deliveries late, the longest delay"
        f" {counts['delay_max_seconds']:.3f} s, by the clocks of the hosts"
    )


def parse_attributes(texts: Iterable[str]) -> Attributes:
    """`class=STOCK price=25.0 open=true` as typed attributes; quotes make text: `code='007'`."""
    attributes: Attributes = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not name or not equals:
            raise CommandError(
                BAD_INPUT, f"{text!r} is not an attribute: write NAME=VALUE, as in class=STOCK price=25.0"
            )
        if name in attributes:
            raise CommandError(BAD_INPUT, f"attribute {name!r} is given twice")
        attributes[name] = parse_scalar(value)
    return attributes


def parse_scalar(text: str) -> Scalar:
    """Guess the type of a value: true and false, numbers as in JSON, else text; text in quotes is always text."""
    if len(text) >= 2 and text[0] == text[-1] and text[0] in "'\"":
        return text[1:-1]
    if text in ("true", "false"):
        return text == "true"
    if (found := _NUMBER.fullmatch(text)) is None or len(text) > 400:
        return text
    if found[1] is None and found[2] is None:
        return int(text)
    value = float(text)
    if math.isinf(value):
        raise CommandError(BAD_INPUT, f"{text} is larger than any number that can be sent: write text, '{text}'")
    return value


def read_json_lines(lines: TextIO, name: str) -> Iterator[Attributes]:
    """One flat JSON object of attributes per line; empty lines are skipped."""
    return (attributes for _, attributes in _numbered_lines(lines, name))


def _numbered_lines(lines: TextIO, name: str) -> Iterator[tuple[str, Attributes]]:
    """What `read_json_lines` reads, each behind its place: `NAME:LINE`."""
    for number, line in enumerate(lines, 1):
        if line.strip():
            place = f"{name}:{number}"
            try:
                value = json.loads(line, parse_constant=_refuse_constant, parse_float=_finite_float)
            except (ValueError, RecursionError) as error:
                raise CommandError(BAD_INPUT, f"{place}: this is not JSON: {error}") from error
            if not isinstance(value, dict) or any(not isinstance(v, Scalar) for v in value.values()):
                remedy = 'write one flat object per line, as {"class": "STOCK", "price": 25.0}'
                raise CommandError(BAD_INPUT, f"{place}: this is not an object of attributes: {remedy}")
            yield place, value


def _refuse_constant(word: str) -> float:
    raise ValueError(f"{word} is no number of JSON")


def _finite_float(text: str) -> float:
    if math.isinf(value := float(text)):
        raise ValueError(f"{text} is larger than any number that can be sent")
    return value


@contextmanager
def _open_publisher(connection: Connection, options: argparse.Namespace) -> Iterator[Publisher]:
    publisher = Publisher(connection, name=options.name, confirm=options.confirm)
    try:
        yield publisher
    finally:
        publisher.close()


def _receive_items(subscriber: Subscriber, count: int | None, until: float | None) -> Iterator[Delivery | GapNotice]:
    left = count
    while left is None or left > 0:
        try:
            item = subscriber.receive(None if until is None else max(0.0, until - time.monotonic()))
        except errors.WaitTimeoutError:
            return  # the time that the user gave is over
        if left is not None and isinstance(item, Delivery):
            left -= 1
        yield item


def _delivery_fields(item: Delivery, *, full: bool) -> dict[str, Any]:
    attributes = {name: printed_scalar(value) for name, value in item.attributes.items()}
    if not full:
        return attributes
    return {
        "attributes": attributes,
        "payload": item.payload.decode("utf-8", "replace"),
        "publisher": item.publisher,
        "seq": item.seq,
        "origin": list(item.origin),
        "position": item.position,
    }


def printed_scalar(value: Scalar) -> Scalar:
    """JSON has no infinity and no NaN: they are shown as text, so that every line can be read."""
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value
