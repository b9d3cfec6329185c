"""`python -m plimsoll.sparkjobs JOB ARGUMENT...`: the entry point of every job, for `spark-submit` as well.

Exit codes: 0 it is done, 1 it found something (audit, oracle), 2 what it was given cannot be used, 3 Spark cannot run
here, 4 Spark or the disk has failed.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from typing import Final

from plimsoll.core.printable import printable_lines

JOBS: Final = ("live", "oracle", "compact", "history", "audit", "accuracy", "similarity", "shuffle", "prepare")


def main(arguments: Sequence[str]) -> int:
    if not arguments or arguments[0] not in JOBS:
        sys.stderr.write(printable_lines(f"the first argument must be a job: {', '.join(JOBS)}\n"))
        return 2
    module = importlib.import_module(f"plimsoll.sparkjobs.jobs.{arguments[0]}")
    from plimsoll.sparkjobs.job_errors import JobInputError, error_line, is_spark_error, wants_trace
    from plimsoll.sparkjobs.spark_session import SparkUnavailableError

    job = arguments[0]
    try:
        return int(module.main(arguments[1:]))
    except SparkUnavailableError as error:
        line, code = str(error), 3
    except JobInputError as error:
        line, code = f"{job}: {error}", 2
    except OSError as error:
        if wants_trace():
            raise
        line, code = f"{job}: {error.filename or 'a file'}: {error.strerror or error}", 4
    except Exception as error:
        if wants_trace() or not is_spark_error(error):
            raise
        line, code = error_line(job, error), 4
    sys.stderr.write(printable_lines(f"{line}\n"))
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
