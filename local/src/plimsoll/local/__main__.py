"""`python -m plimsoll.local FOLDER [METRICS]`: run the fleet whose state is in a folder, as `plimsoll up -d` does.

METRICS: tcp://HOST:PORT where the metrics of its feeds and channels are served; empty: nowhere.
"""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path

from plimsoll.core.printable import printable_lines
from plimsoll.local.runtime import BUSY, supervise
from plimsoll.local.storage.fleet_folder import FleetBusyError, FleetFolder, FleetLock
from plimsoll.local.storage.state_files import StateWriteError
from plimsoll.local.supervision.broker_reconciler import FleetStartError


def announce(line: str) -> None:
    """Write to the log. Where its disk is full that waits for room, and the fleet does not."""
    with contextlib.suppress(OSError):  # what could not be written is still in the buffer
        sys.stdout.write(printable_lines(line) + "\n")
        sys.stdout.flush()


def main(arguments: list[str]) -> int:
    folder = FleetFolder(Path(arguments[0]))
    try:
        with FleetLock(folder):
            supervise(folder, announce, metrics="".join(arguments[1:]))
    except FleetBusyError as error:
        announce(str(error))
        return BUSY
    except (FleetStartError, StateWriteError) as error:
        announce(str(error))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
