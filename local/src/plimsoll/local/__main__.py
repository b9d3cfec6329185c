"""`python -m plimsoll.local FOLDER`: run the fleet whose state is in a folder. `plimsoll up --detach` starts it so."""

from __future__ import annotations

import sys
from pathlib import Path

from plimsoll.local.home import FleetBusyError, FleetFolder, Lock
from plimsoll.local.runtime import supervise
from plimsoll.local.supervisor import StartError


def announce(line: str) -> None:
    """One line into the log."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main(arguments: list[str]) -> int:
    folder = FleetFolder(Path(arguments[0]))
    try:
        with Lock(folder):
            supervise(folder, announce)
    except (FleetBusyError, StartError) as error:
        announce(str(error))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
