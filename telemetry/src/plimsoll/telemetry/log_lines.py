"""Log lines of processes: on standard error, each on one line, with what is unprintable in a message as escapes.

Names and reasons from the wire are logged; none of them may forge a line or reach a terminal as a command.
"""

from __future__ import annotations

import contextlib
import logging
import sys
from typing import TextIO

from plimsoll.core.printable import printable, printable_lines

LINE = "%(asctime)s %(levelname)s %(message)s"


class LogLineFormatter(logging.Formatter):
    """Formats a record as one line; a traceback below it keeps its own lines."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802  # the name is logging's
        return printable(super().formatMessage(record))

    def format(self, record: logging.LogRecord) -> str:
        return printable_lines(super().format(record))


def log_to_stderr(level: int | str = logging.INFO, stream: TextIO | None = None) -> None:
    """Send this process's log to standard error."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(LogLineFormatter(LINE))
    logging.basicConfig(level=level, handlers=[handler])


def tell(text: str) -> None:
    """Write lines to standard error, for a person. Where its disk is full they are lost; the exit code is not."""
    with contextlib.suppress(OSError):  # there is nowhere else to say it, and the exit code still tells
        print(printable_lines(text), file=sys.stderr, flush=True)  # noqa: T201  # a person is meant to read it
