"""What an earlier run has left. It goes whole, or no run begins: old state would be taken for that of the new run."""

from __future__ import annotations

import contextlib
import shutil
from pathlib import Path


def remove_folder(folder: Path) -> None:
    """Delete a folder with its content, if there is one."""
    with contextlib.suppress(FileNotFoundError):  # the first run here
        shutil.rmtree(folder)
