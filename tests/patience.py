"""Patience of the client library: a busy machine is not a failing property.

As a program, `python tests/patience.py SCRIPT ARGUMENT...` or `... -m MODULE ARGUMENT...`, it runs another with that
patience.
"""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

from plimsoll.client.waiting import Timeout

PATIENT = (sys.executable, __file__)
"""The beginning of a command that has more patience than by default."""
PATIENCE_SECONDS = 300.0
LEAST_SECONDS = 10.0
"""Shorter waits stay: those for what is not to come, and of `close` where nobody answers."""


def be_patient() -> None:
    """From now on, what may wait LEAST_SECONDS, as the library does by default, may wait PATIENCE_SECONDS."""
    init = Timeout.__init__

    def patient(self: Timeout, seconds: float | None) -> None:
        init(self, seconds if seconds is None or seconds < LEAST_SECONDS else max(seconds, PATIENCE_SECONDS))

    Timeout.__init__ = patient


if __name__ == "__main__":
    be_patient()
    if sys.argv[1] == "-m":
        del sys.argv[:2]
        sys.path[0] = ""
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
    else:
        del sys.argv[0]
        sys.path[0] = str(Path(sys.argv[0]).parent)
        runpy.run_path(sys.argv[0], run_name="__main__")
