"""Errors of jobs as one line that says where, what, and what to do; Java's traces are for those who ask for them.

With the environment variable PLIMSOLL_TRACE=1 a job ends with the whole trace instead.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Final

from pyspark.errors import PySparkException

TRACE_VARIABLE: Final = "PLIMSOLL_TRACE"
LONGEST: Final = 600
_FILE: Final = re.compile(r"file:/+(/[^\s'\",)]+|[^\s'\",)]+)")
_PYTHON_ERROR: Final = re.compile(r"^(?:[\w.]+\.)?([A-Z]\w*(?:Error|Exception)): (.+)$", re.MULTILINE)
_PYTHON_TRACE: Final = "Traceback (most recent call last)"
_CLASSES: Final = re.compile(r"(?:[a-z_$][\w$]*\.)+([A-Z][\w$]*): ?")
_STREAM_FAILED: Final = re.compile(r"\[STREAM_FAILED\] Query \[[^\]]*\] terminated with exception: ")
_TRACE_STARTS: Final = (
    "\tat ", "at ", "An error occurred while calling ", "JVM stacktrace", "Driver stacktrace", "=== Streaming Query",
    "Traceback (",
)  # fmt: skip
_REMEDIES: Final = (
    (re.compile(r"FAILED_READ_FILE|CANNOT_READ_FILE|not a Parquet file|Could not read footer|PARQUET", re.IGNORECASE),
     "move that file out of its folder, or write it again"),
    (re.compile(r"PATH_NOT_FOUND|FILE_NOT_EXIST|FileNotFoundException|does not exist", re.IGNORECASE),
     "check the path, and that the job which writes it has run"),
    (re.compile(r"STATE_STORE|STATE_DATA|state store|checkpoint|offset log|commit log|metadata log|BATCH_METADATA"
                r"|MALFORMED_LOG|logVersion|StreamMetadata", re.IGNORECASE),
     "the checkpoint cannot be used: end the job, move its folder away, and start the job again; the files of load"
     " reports are read again, and the counts begin at zero"),
    (re.compile(r"No space left", re.IGNORECASE), "free space on that disk"),
    (re.compile(r"Permission denied|AccessControlException", re.IGNORECASE), "give this user access to that folder"),
    (re.compile(r"OutOfMemoryError|Java heap space|GC overhead", re.IGNORECASE),
     "give Spark more memory: --conf spark.driver.memory=2g, by spark-submit or in PYSPARK_SUBMIT_ARGS"),
)  # fmt: skip


class JobInputError(ValueError):
    """What a job was given cannot be used; the text names it and says what to do."""


def is_spark_error(error: Exception) -> bool:
    """Whether an error comes from Spark: as PySpark translates it, or as the bridge to Java has left it."""
    return isinstance(error, PySparkException) or type(error).__module__.startswith("py4j.")


def is_java_gone(error: Exception) -> bool:
    """Whether the bridge to Java reports that nothing answers there: no job of this process can go on."""
    return type(error).__module__.startswith("py4j.") and type(error).__name__ == "Py4JNetworkError"


def wants_trace(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether the user has asked for whole traces."""
    return environment.get(TRACE_VARIABLE, "") not in ("", "0")


def cause_of(error: Exception) -> str:
    """What has failed, in one line: the error of Python in a worker, else the last cause that Java names."""
    text = str(error)
    python = _python_error(text)
    cause = python if python is not None else _root_cause(text) or type(error).__name__
    return _CLASSES.sub("", _FILE.sub(lambda found: f"/{found.group(1).lstrip('/')}", cause))[:LONGEST]


def error_line(job: str, error: Exception, where: str = "") -> str:
    """A failure of Spark as one line: the job, the cause, its file if one is named, and the remedy."""
    text, cause = str(error), cause_of(error)
    is_python = _python_error(text) is not None
    named = _FILE.search(text)
    path = f"/{named.group(1).lstrip('/').rstrip('.')}" if named and not is_python else ""
    remedy = next((remedy for pattern, remedy in _REMEDIES if pattern.search(text)), "") if not is_python else ""
    place = ", ".join(part for part in (path if path not in cause else "", where) if part)
    parts = [f"{job}{f' ({place})' if place else ''}: {cause.rstrip('.')}", remedy]
    told = f"; {TRACE_VARIABLE}=1 shows the whole trace" if not remedy else ""
    return "; ".join(part for part in parts if part) + told


def _python_error(text: str) -> str | None:
    if _PYTHON_TRACE not in text:
        return None
    found = _PYTHON_ERROR.search(text, text.rindex(_PYTHON_TRACE))
    return found.group(2).strip() if found is not None else None


def _root_cause(text: str) -> str:
    """The last cause that a Java trace names, or the first line if it names none."""
    causes = [line.removeprefix("Caused by: ").strip() for line in text.splitlines() if line.startswith("Caused by: ")]
    if causes:
        return causes[-1]
    lines = (_STREAM_FAILED.sub("", line).strip().removeprefix(": ") for line in text.splitlines())
    return next((line for line in lines if line and not line.startswith(_TRACE_STARTS)), "")
