"""Started as a script between the supervisor and a broker: asks the system to end this process with its parent.

    python parent_death_signal.py PARENT-PID PROGRAM ARGUMENT...

The request outlives the `exec` that follows, so the broker dies with the supervisor even when that is killed. Only
Linux has it; elsewhere the broker watches its parent itself (`--parent-pid`). This script imports the standard library
only, and runs without `site`, because every start of a broker waits for it.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def main(arguments: list[str]) -> None:
    parent = int(arguments[0])
    if sys.platform == "linux":
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
            sys.exit(f"prctl: {os.strerror(ctypes.get_errno())}")
    if os.getppid() != parent:  # the parent ended before the request
        sys.exit(f"process {parent}, which started this one, has ended")
    os.execv(arguments[1], arguments[1:])  # noqa: S606  # no shell is wanted


if __name__ == "__main__":
    main(sys.argv[1:])
