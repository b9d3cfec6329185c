"""The programs `plimsoll` and `kubectl plimsoll`: they load what a command needs, run it, and end with its exit code.

This module imports next to nothing, so that Ctrl-C is heard from the first instant: while modules are loaded there is
nothing to clean up, and the process ends at once.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any

from plimsoll.cli.exit_codes import BAD_INPUT, INTERRUPTED, OK

COMPLETION_VARIABLE = "_ARGCOMPLETE"
"""Set by a shell that asks for completions."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the exit code."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    try:
        with _ended_by_interrupt():
            from plimsoll.cli.parser import parser

            if given[:1] in (["demo"], ["experiment"]):
                given = [given[0], "--", *given[1:]]  # all of its arguments are its own, --help included
            made = parser()
            if COMPLETION_VARIABLE in os.environ:
                from plimsoll.cli.completion import complete

                complete(made)
            if not given:
                made.print_help(sys.stderr)
                return BAD_INPUT
            options = made.parse_args(given)
            command = options.load()
        return _run(command, options)
    except BrokenPipeError:
        # The reader closed the pipe, as `head` does: write nothing more to it, not even the flush at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK
    except KeyboardInterrupt:
        return INTERRUPTED


def kubectl(arguments: Sequence[str] | None = None) -> int:
    """`kubectl plimsoll`: the same commands, at the API server."""
    from plimsoll.cli.contexts import KUBERNETES_VARIABLE

    os.environ.setdefault(KUBERNETES_VARIABLE, "1")
    return main(arguments)


def _run(command: Callable[[Any], int], options: Any) -> int:
    try:
        return command(options)
    except BrokenPipeError:
        raise
    except Exception as error:
        from plimsoll.cli.error_report import report

        code = report(error)
        if code is None:
            raise
        return code


@contextmanager
def _ended_by_interrupt() -> Iterator[None]:
    """End the process at SIGINT: an exception in the middle of an import may be swallowed, or end in a traceback."""
    guards = _guards()
    try:
        yield
    finally:
        if guards:
            signal.signal(signal.SIGINT, signal.default_int_handler)


def _guards() -> bool:
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        return False  # ignored, as in the background of a shell, or handled by another
    try:
        signal.signal(signal.SIGINT, _end)
    except ValueError:
        return False  # this is not the main thread, which alone hears signals
    return True


def _end(number: int, frame: FrameType | None) -> None:
    os._exit(INTERRUPTED)


if __name__ == "__main__":
    sys.exit(main())
