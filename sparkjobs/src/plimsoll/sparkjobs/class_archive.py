"""The archive of Spark's classes on this machine, from which a Java virtual machine maps them instead of loading each.

Most of a job's processor time is the start of Spark: finding, checking and compiling its classes. `prepare` makes the
archive; local jobs use it if it is there. A virtual machine that does not fit to it ignores it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Final

ARCHIVE_VARIABLE: Final = "PLIMSOLL_CLASS_ARCHIVE"
"""An environment variable: the file of the archive, in place of the one in `~/.cache/plimsoll`; empty: use none."""
_QUIET: Final = "-Xlog:cds=off -Xlog:cds+dynamic=off -Xlog:class+path=off"


def archive_path(environment: Mapping[str, str] = os.environ) -> Path | None:
    """The file of the archive, which need not exist; None if none is wanted."""
    if ARCHIVE_VARIABLE in environment:
        return Path(environment[ARCHIVE_VARIABLE]) if environment[ARCHIVE_VARIABLE] else None
    home = environment.get("HOME", "")
    return Path(home) / ".cache" / "plimsoll" / f"spark-{version('pyspark')}.jsa" if home else None


def use_options(environment: Mapping[str, str] = os.environ) -> str:
    """Options with which a Java virtual machine uses the archive; empty if there is none."""
    path = archive_path(environment)
    return f"-XX:SharedArchiveFile={path} {_QUIET}" if path is not None and path.is_file() else ""


def make_options(path: Path) -> str:
    """Options with which a Java virtual machine writes the archive when it ends."""
    return f"-XX:ArchiveClassesAtExit={path} {_QUIET}"
