"""What a command's error comes to: a message that says where the fault is and what to do, and an exit code."""

from __future__ import annotations

from plimsoll.cli.exit_codes import BAD_INPUT, CONFLICT, FAILED, CommandError
from plimsoll.cli.output import print_error, print_error_lines
from plimsoll.core.spec import InvalidResourcesError
from plimsoll.local.runtime import FleetChangeRefusedError
from plimsoll.local.storage.object_store import ObjectConflictError
from plimsoll.local.storage.state_files import StateWriteError

EXTRA_OF_MODULE = {
    "kubernetes": "cluster",
    "urllib3": "cluster",
    "prometheus_client": "broker",
    "pyarrow": "telemetry",
    "numba": "kernel",
    "pyspark": "spark",
}
"""The extra of the wheel that installs a module which a command may lack."""


def report(error: Exception) -> int | None:
    """Print an error; its exit code. None for one that is a fault of this program."""
    if isinstance(error, CommandError):
        print_error(f"plimsoll: {error}")
        if error.details:
            print_error_lines(error.details)
        return error.code
    if isinstance(error, ObjectConflictError):
        print_error(f"plimsoll: {error}")
        return CONFLICT
    if isinstance(error, StateWriteError):
        print_error(f"plimsoll: {error}, and repeat the command; nothing was started or changed")
        return FAILED
    if isinstance(error, FleetChangeRefusedError):
        print_error_lines(str(error))
        print_error(f"plimsoll: {_count_text(len(error.problems), 'change')} refused; nothing was changed")
        return CONFLICT
    if isinstance(error, InvalidResourcesError):
        print_error_lines(str(error))
        print_error(f"plimsoll: {_count_text(len(error.problems), 'problem')}; nothing was started or changed")
        return BAD_INPUT
    if isinstance(error, ModuleNotFoundError):
        return _report_missing_module(error)
    if isinstance(error, UnicodeEncodeError) or isinstance(error.__cause__, UnicodeEncodeError):
        print_error(f"plimsoll: an argument or an input is not valid Unicode: {error}")
        return BAD_INPUT
    return None


def _report_missing_module(error: ModuleNotFoundError) -> int | None:
    module = (error.name or "").partition(".")[0]
    if module not in EXTRA_OF_MODULE:
        return None
    line = f"pip install 'plimsoll-operator[{EXTRA_OF_MODULE[module]}]'"
    print_error(f"plimsoll: this command needs the Python package {module}, which is not installed: run {line}")
    return FAILED


def _count_text(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
