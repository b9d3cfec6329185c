"""What an earlier run has left. It goes whole, or no run begins: old state would be taken for that of the new run."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Sequence
from pathlib import Path

from plimsoll.local.storage.fleet_folder import FleetBusyError, FleetFolder


def empty_report_folder(folder: Path, state: FleetFolder, reports: Sequence[str]) -> Path:
    """The folder of the report, without what an earlier run has written there; other files of the user stay.

    `state`: the fleet of the run, below the folder; `reports`: the names of the files that are the report. Raises
    `FleetBusyError` while an earlier run goes on.
    """
    if pid := state.running_pid():
        raise FleetBusyError(
            f"process {pid} runs a demo that reports to {folder}; wait for it, or name another --report"
        )
    remove_folder(state.path)
    folder.mkdir(parents=True, exist_ok=True)
    for name in reports:
        (folder / name).unlink(missing_ok=True)
    for name in ("journals", "logs"):
        remove_folder(folder / name)
        (folder / name).mkdir()
    return folder


def remove_folder(folder: Path) -> None:
    """Delete a folder with its content, if there is one."""
    with contextlib.suppress(FileNotFoundError):  # the first run here
        shutil.rmtree(folder)
