"""A folder of links to the installed Spark, without the libraries that no job uses: the SPARK_HOME of local jobs.

Spark opens every file of its class path and has each of them extend every session. The extension of its library for
machine learning alone takes a second of processor time. `prepare` makes the folder beside the archive of classes,
which is of this class path.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
from collections.abc import Mapping, MutableMapping
from pathlib import Path
from typing import Final

from plimsoll.sparkjobs import class_archive

HOME_VARIABLE: Final = "SPARK_HOME"
LIBRARIES: Final = "jars"
UNUSED: Final = (
    "spark-mllib", "spark-graphx", "breeze", "spire", "cats-kernel", "algebra", "lapack", "blas", "arpack",
    "spark-connect", "connect-repl", "spark-repl", "scala-compiler", "jline", "spark-pipelines",
    "spark-hive", "hive-", "derby", "datanucleus", "libthrift", "libfb303",
    "spark-yarn", "spark-kubernetes", "kubernetes-", "curator", "zookeeper",
)  # fmt: skip
"""How the names of files begin that local jobs do not need: machine learning, Spark Connect, shells, Hive, clusters."""


def home_path(environment: Mapping[str, str] = os.environ) -> Path | None:
    """The folder, which need not exist: beside the archive; None if no archive is wanted."""
    archive = class_archive.archive_path(environment)
    return archive.with_suffix(".home") if archive is not None else None


def installed_home() -> Path | None:
    """The folder of the installed PySpark; None if there is none."""
    found = importlib.util.find_spec("pyspark")
    return Path(found.origin).parent if found is not None and found.origin is not None else None


def is_usable(path: Path, installed: Path) -> bool:
    """Whether the folder links to this Spark, and all of its links lead somewhere."""
    bin_folder, libraries = path / "bin", path / LIBRARIES
    if not (libraries.is_dir() and bin_folder.exists() and bin_folder.resolve() == (installed / "bin").resolve()):
        return False
    return all(each.exists() for each in libraries.iterdir())


def make_home(path: Path, installed: Path) -> None:
    """Make the folder afresh; it appears whole or not at all."""
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        (partial / LIBRARIES).mkdir(parents=True)
        for each in sorted(installed.iterdir()):
            if each.name != LIBRARIES:
                (partial / each.name).symlink_to(each)
        for each in sorted((installed / LIBRARIES).iterdir()):
            if not each.name.startswith(UNUSED):
                (partial / LIBRARIES / each.name).symlink_to(each)
        if path.exists():
            shutil.rmtree(path)
        partial.replace(path)
    finally:
        shutil.rmtree(partial, ignore_errors=True)  # it has been renamed, or is not whole


def use_home(environment: MutableMapping[str, str] = os.environ) -> None:
    """Have Java start from the folder, if it is usable. A SPARK_HOME that the user has set stays."""
    path, installed = home_path(environment), installed_home()
    if HOME_VARIABLE in environment or path is None or installed is None:
        return
    if is_usable(path, installed):
        environment[HOME_VARIABLE] = str(path)
