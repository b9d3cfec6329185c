"""Exit codes of `plimsoll`, and the errors that lead to them."""

from __future__ import annotations

OK = 0
FAILED = 1
BAD_INPUT = 2
NOT_FOUND = 3
CONFLICT = 4
INTERRUPTED = 130

EXIT_CODE_HELP = """exit codes:
  0    done
  1    failed: a requested action did not happen; the message says which
  2    bad input: invalid arguments or files; nothing was changed
  3    not found: there is no such fleet, kind or object
  4    conflict: the fleet is already running, or cannot be changed in this way while it runs
  130  interrupted
"""


class CommandError(Exception):
    """Ends the command with a message of one line, lines of details, and an exit code."""

    def __init__(self, code: int, message: str, details: str = "") -> None:
        super().__init__(message)
        self.code, self.details = code, details
