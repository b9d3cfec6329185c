"""The role of a fleet's driver on one machine: the lock of a file, for which a standby waits with Spark started.

The system lets go of a lock when its process ends, however that comes. So two drivers never have the role at one time,
and one that waits has it at once. The ledger of each channel has a lock of its own besides.
"""

from __future__ import annotations

import contextlib
import fcntl
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from plimsoll.core.printable import printable_lines

WAIT_SECONDS: Final = 0.05
WAITS: Final = "Spark is started and warm: waits until the driver ends"
"""What the log of a standby says."""
CHECK_SECONDS: Final = 5.0
"""How often a standby looks whether its Java virtual machine is still there."""


@contextmanager
def driver_role(
    file: str,
    stopped: Callable[[], bool],
    warm: Callable[[], None],
    check: Callable[[], None],
    wait: Callable[[float], None] = time.sleep,
) -> Iterator[bool]:
    """Have the role of this file; with an empty name there is no other driver. False: stopped before.

    `warm`: called once if another driver has it; `check`: again and again until it ends, and raises if this one has to.
    """
    if not file:
        yield True
        return
    with Path(file).open("ab") as lock:
        has_role, waits = _is_taken(lock.fileno()), 0
        if not has_role:
            warm()
            print(printable_lines(WAITS), flush=True)  # noqa: T201  # its log says so to people
        while not has_role and not stopped():
            wait(WAIT_SECONDS)
            waits += 1
            if waits % round(CHECK_SECONDS / WAIT_SECONDS) == 0:
                check()
            has_role = _is_taken(lock.fileno())
        yield has_role


def _is_taken(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def warm_up(spark: SparkSession) -> None:
    """One batch of a tiny stream, so that Spark has loaded what a channel needs.

    On a busy machine the stream may fail, as Spark waits ten seconds for its Python: then much has been loaded as well.
    """
    from plimsoll.channels.warm_source import WarmSource

    def batch(rows: DataFrame, number: int) -> None:
        rows.createOrReplaceTempView("warm")
        rows.sparkSession.sql("SELECT a.n, count(*) AS c FROM warm a JOIN warm b ON a.n = b.n GROUP BY ALL").toArrow()

    session = spark.newSession()
    session.dataSource.register(WarmSource)
    with TemporaryDirectory(prefix="plimsoll-warm-", ignore_cleanup_errors=True) as folder:
        rows = session.readStream.format(WarmSource.name()).load()
        writer = rows.writeStream.foreachBatch(batch).option("checkpointLocation", f"file://{folder}")
        query = writer.start()
        try:
            with contextlib.suppress(StreamingQueryException):  # Spark is warm by then, as above
                query.processAllAvailable()
        finally:
            query.stop()


def check_java(spark: SparkSession) -> None:
    """Raises an error of Spark if its Java virtual machine has ended."""
    spark.sparkContext.statusTracker().getActiveJobsIds()
