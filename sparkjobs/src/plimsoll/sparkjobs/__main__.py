"""`python -m plimsoll.sparkjobs JOB ARGUMENT...`: the entry point of every job, for `spark-submit` as well."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from typing import Final

from plimsoll.core.printable import printable_lines

JOBS: Final = ("live", "oracle", "compact", "history", "audit", "accuracy", "similarity", "shuffle")


def main(arguments: Sequence[str]) -> int:
    if not arguments or arguments[0] not in JOBS:
        sys.stderr.write(printable_lines(f"the first argument must be a job: {', '.join(JOBS)}\n"))
        return 2
    module = importlib.import_module(f"plimsoll.sparkjobs.jobs.{arguments[0]}")
    from plimsoll.sparkjobs.spark_session import SparkUnavailableError

    try:
        return int(module.main(arguments[1:]))
    except SparkUnavailableError as error:
        sys.stderr.write(printable_lines(f"{error}\n"))
        return 3


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
