"""The first process of a broker's container: it starts the broker, and starts it again at once after a crash.

A kubelet waits longer after each end of a container, up to five minutes. A broker that ended by a signal or by a fault
of the program is back within a second here, until it has crashed too often. Then, and with any other exit code, the
container ends as the broker has ended, so that its supervisor decides, and what it shows stays true.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import tempfile
import time
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from plimsoll.telemetry.log_lines import log_to_stderr

log = logging.getLogger("plimsoll.broker")

RESTARTS: Final = 3
WINDOW_SECONDS: Final = 60.0
"""At most this number of restarts within this time: the next crash ends the container."""
FAULT: Final = 1
"""The exit code of a fault of the program. The others say what a restart would not change, or that it was to end."""
COUNT_FILE: Final = Path(tempfile.gettempdir()) / "plimsoll-broker-restarts"
"""Outlasts a container, as the temporary folder of a pod does: the number goes on while the pod lives."""

_ENDING: Final = frozenset({signal.SIGTERM, signal.SIGINT})
_OOM_FILES: Final = (Path("/sys/fs/cgroup/memory.events"), Path("/sys/fs/cgroup/memory/memory.oom_control"))


@dataclass
class RestartLimit:
    """Which crashes are followed by a restart. Pure."""

    _at: deque[float] = field(default_factory=deque)

    def takes(self, code: int, now: float) -> bool:
        """Whether a broker that ended so is started again now. `code`: below 0 for a signal."""
        if code != FAULT and code >= 0:
            return False
        while self._at and now - self._at[0] >= WINDOW_SECONDS:
            self._at.popleft()
        if len(self._at) >= RESTARTS:
            return False
        self._at.append(now)
        return True


def how_it_ended(code: int) -> str:
    """The end of a process, as the predicate of a sentence."""
    return f"was killed by signal {-code}" if code < 0 else f"exited with {code}"


def main(arguments: list[str], program: tuple[str, ...] = (sys.executable, "-m", "plimsoll.broker")) -> int:
    """Run the broker with these arguments until it is not to be started again; returns the container's exit code."""
    log_to_stderr()
    # Taken one by one with `sigwait`: process 1 is sent no signal that it neither handles nor blocks.
    signal.pthread_sigmask(signal.SIG_BLOCK, {*_ENDING, signal.SIGCHLD})
    count, limit, last_end = read_count(COUNT_FILE), RestartLimit(), ""
    while True:
        out_of_memory = times_out_of_memory()
        told = [] if not count else ["--restarts", str(count), *(["--last-end", last_end] if last_end else [])]
        command = [*program, *arguments, "--parent-pid", str(os.getpid()), *told]
        child = os.posix_spawn(command[0], command, os.environ, setsigmask=())
        code, is_asked = _wait(child)
        count, last_end = count + 1, how_it_ended(code)
        write_count(COUNT_FILE, count)
        if is_asked or times_out_of_memory() > out_of_memory or not limit.takes(code, time.monotonic()):
            if not is_asked and (code < 0 or code == FAULT):
                log.error("the broker %s, and is not started again here: the container ends with it", last_end)
            return code if code >= 0 else 128 - code
        log.error("the broker %s, and is started again; restarts so far in this pod: %d", last_end, count)


def _wait(child: int) -> tuple[int, bool]:
    """Pass signals on until the broker has ended: its exit code, below 0 for a signal, and whether it was asked to."""
    is_asked = False
    while True:
        number = signal.sigwait({*_ENDING, signal.SIGCHLD})
        if number in _ENDING:
            is_asked = True
            os.kill(child, number)
            continue
        for pid, code in _reap():  # one SIGCHLD may stand for several ends
            if pid == child:
                return code, is_asked


def _reap() -> list[tuple[int, int]]:
    """The processes that have ended, each with its exit code; process 1 has those that lost their parent, too."""
    found: list[tuple[int, int]] = []
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return found
        if not pid:
            return found
        found.append((pid, os.waitstatus_to_exitcode(status)))


def times_out_of_memory() -> int:
    """How often a process of this container was killed for its memory. A kubelet tells it of ended containers only."""
    for path in _OOM_FILES:
        try:
            lines = path.read_text().splitlines()
        except OSError:  # another version of control groups, or none
            continue
        return next((int(line.split()[1]) for line in lines if line.startswith("oom_kill ")), 0)
    return 0


def read_count(path: Path) -> int:
    """How often this broker has been started in its pod before."""
    try:
        return max(0, int(path.read_text()))
    except (OSError, ValueError):
        return 0


def write_count(path: Path, count: int) -> None:
    try:
        path.write_text(str(count))
    except OSError as error:  # the broker comes first
        log.warning("%s cannot be written: %s; restarts of earlier containers will not be counted", path, error)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
