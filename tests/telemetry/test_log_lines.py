"""A log has one line for each record, even where a name has line ends in it."""

from __future__ import annotations

import errno
import io
import logging
import sys

import pytest

from plimsoll.telemetry.log_lines import LINE, LogLineFormatter, log_to_stderr, tell

HOSTILE = "x\n2026-01-01 INFO forged\x1b[2J\x07\u202e"


def logged(name: str, *, fails: bool = False) -> list[str]:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(LogLineFormatter(LINE))
    log = logging.Logger("test")  # of no concern to the logging of the test run
    log.addHandler(handler)
    try:
        raise ValueError(name)
    except ValueError:
        log.error("client %s", name, exc_info=fails)
    return stream.getvalue().split("\n")


def test_a_record_is_one_printable_line():
    (line, rest) = logged(HOSTILE)
    assert line.endswith("ERROR client x\\n2026-01-01 INFO forged\\x1b[2J\\x07\\u202e")
    assert rest == ""


def test_a_traceback_keeps_its_lines_and_nothing_else():
    lines = logged(HOSTILE, fails=True)
    assert lines[1] == "Traceback (most recent call last):"
    assert all(line.isprintable() for line in lines)


def test_the_log_of_a_process_goes_to_standard_error(monkeypatch):
    monkeypatch.setattr(logging, "root", logging.RootLogger(logging.WARNING))
    stream = io.StringIO()
    log_to_stderr("INFO", stream)
    logging.root.info("\x1b")
    assert stream.getvalue().endswith(" INFO \\x1b\n")


class Full(io.StringIO):
    """A stream on a full disk."""

    def write(self, text: str, /) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")


def test_what_cannot_be_written_to_standard_error_ends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", Full())
    tell("the disk is full")
