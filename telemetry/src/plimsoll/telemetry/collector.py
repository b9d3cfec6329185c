"""One collector: what is heard is taken in, written each interval, folded and served. It decides nothing about a fleet.

Everything that goes wrong here is counted and said; nothing of it reaches a broker. One thread does the work, and the
service's threads read under its lock. Times of rows are of the wall clock, waits of the monotonic one.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any, Final

from plimsoll.telemetry import arrow
from plimsoll.telemetry.config import CollectorConfig
from plimsoll.telemetry.files import Files
from plimsoll.telemetry.fold import Header, fold
from plimsoll.telemetry.intake import Intake
from plimsoll.telemetry.listening import Heard
from plimsoll.telemetry.outcomes import Outcomes
from plimsoll.telemetry.schema import INCOMING, LOADS, MAJOR, OUTCOMES, SESSIONS, Expected
from plimsoll.telemetry.snapshot import Snapshot, SnapshotError, Wanted, check, decode

REMEMBERED_SECONDS: Final = 600.0
"""After a restart what was written in so many seconds is remembered."""
HOUSE_SECONDS: Final = 60.0
ALIVE_SECONDS: Final = 15.0


class Collector:
    """`start_us`: the wall clock at its start; it names its run."""

    def __init__(self, config: CollectorConfig, files: Files, start_us: int) -> None:
        self.config, self.files = config, files
        self.intake = Intake(config.fleet, config.name)
        self.outcomes = Outcomes(config.fleet, config.name)
        self.lock = threading.RLock()
        self.frames_refused = 0
        self.folds = 0
        self.faults: dict[str, int] = {}
        self.unreadable: list[str] = []
        self._start_us = start_us
        self._write_at: float | None = None
        self._house_at = 0.0
        self._alive_at = 0.0
        self._told: CollectorConfig | None = None
        self._latest: tuple[bytes, Snapshot] | None = None
        self._used: tuple[int, int] | None = None

    def start(self, now_us: int) -> None:
        """Make the folders, and remember what an earlier start has written.

        Raises:
            OSError: the folder cannot be used at all.

        """
        self.files.make()
        since = now_us - int(REMEMBERED_SECONDS * 1e6)
        for stored in self.files.recent(INCOMING, since):
            try:
                self.intake.remember(arrow.read(stored.path, LOADS, ("broker", "epoch", "seq", "received_us")))
            except (OSError, arrow.FileError) as error:
                self.unreadable.append(str(error))
        for stored in self.files.recent(SESSIONS, 0):
            try:
                for row in arrow.read(stored.path, OUTCOMES, ("uid",)):
                    self.outcomes.remember(row["uid"])
            except (OSError, arrow.FileError) as error:
                self.unreadable.append(str(error))

    # -- the loop

    def heard(self, said: Heard, now_us: int) -> None:
        """What a head has said."""
        with self.lock:
            self.frames_refused += said.refused
            for _ in range(said.refused):
                self.intake.refuse()
            for report in said.reports:
                self.intake.take(report, said.cluster, now_us)

    def step(self, now: float, now_us: int) -> None:
        """Time has passed: write what has gathered, forget and remove what is old, when that is due."""
        self._alive_at = now
        if self._write_at is None:
            self._write_at = now + self.config.interval_seconds
        if now >= self._write_at:
            self._write_at = max(self._write_at + self.config.interval_seconds, now)
            self.write()
        if now >= self._house_at:
            self._house_at = now + HOUSE_SECONDS
            self._keep_house(now_us)
        self._say_expected(now_us)

    def write(self) -> None:
        """Write the rows that wait; those that cannot be written wait on, as far as there is room."""
        with self.lock:
            rows = self.intake.take_rows()
            sessions = self.outcomes.take_rows()
        if rows:
            times = [row[_RECEIVED] for row in rows]
            if not self.files.write(INCOMING, LOADS, rows, min(times), max(times)):
                with self.lock:
                    self.intake.back(rows)
        if sessions:
            times = [row[_SESSION_RECEIVED] for row in sessions]
            if not self.files.write(SESSIONS, OUTCOMES, sessions, min(times), max(times)):
                with self.lock:
                    self.outcomes.back(sessions)

    def told(self, config: CollectorConfig) -> None:
        """The configuration has changed; who this is stays as it was."""
        with self.lock:
            self.config = config

    def _keep_house(self, now_us: int) -> None:
        try:
            self.files.expire(now_us - int(self.config.retain_seconds * 1e6))
        except OSError as error:
            self.files.failures += 1
            self.files.fault = f"cannot remove old files: {error}"
        with self.lock:
            self.intake.forget([name for names in self.expected().values() for name in names], now_us)

    def _say_expected(self, now_us: int) -> None:
        """Once for the fleet, by the first collector, whenever it has changed; again if it could not be written."""
        if self.config.index != 0 or self._told is self.config:
            return
        clusters = {name: list(each.brokers) for name, each in sorted(self.config.clusters.items())}
        said = Expected(schema=MAJOR, fleet=self.config.fleet, written_us=now_us, clusters=clusters)
        if self.files.say_expected(said):
            self._told = self.config

    # -- what is served

    def is_alive(self, now: float) -> bool:
        """Whether the loop goes round."""
        return now - self._alive_at < ALIVE_SECONDS

    def expected(self) -> Mapping[str, tuple[str, ...]]:
        """The brokers of this collector's share, by cluster."""
        return {name: each.brokers for name, each in self.config.share.items()}

    def fold(self, now_us: int) -> Snapshot:
        """What the newest reports add up to now."""
        with self.lock:
            self.folds += 1
            header = Header(
                source="fold", fleet=self.config.fleet, run_us=self._start_us, batch=self.folds, window_end_us=now_us,
                written_us=now_us,
            )  # fmt: skip
            points = {cluster: list(of.values()) for cluster, of in self.intake.newest.items()}
            counts, expected, fresh = self.intake.counts, self.expected(), self.config.fresh_seconds
        return fold(points, expected, header, counts, fresh)

    def spark(self, now_us: int) -> tuple[bytes, Snapshot]:
        """Spark's snapshot as it was written, if it may be used now.

        Raises:
            SnapshotError: naming why it may not.

        """
        try:
            data = self.files.latest()
        except OSError as error:
            raise self._refused(SnapshotError("Malformed", f"cannot be read: {error}")) from error
        with self.lock:
            if data is None:
                raise self._refused(SnapshotError("Missing", "Spark has written none"))
            wanted = Wanted(self.config.fleet, self.config.max_age_seconds, after=self._used)
            try:
                if self._latest is None or self._latest[0] != data:
                    self._latest = data, decode(data)
                check(self._latest[1], wanted, now_us)
            except SnapshotError as error:
                raise self._refused(error) from None
            self._used = self._latest[1].order
            return self._latest

    def _refused(self, error: SnapshotError) -> SnapshotError:
        with self.lock:
            self.faults[error.fault] = self.faults.get(error.fault, 0) + 1
        return error

    def session(self, item: Mapping[str, Any], now_us: int) -> bool:
        """A session that is over; whether it is new.

        Raises:
            ValueError: it cannot be taken; says why.

        """
        with self.lock:
            return self.outcomes.take(item, now_us)


_RECEIVED: Final = LOADS.names.index("received_us")
_SESSION_RECEIVED: Final = OUTCOMES.names.index("received_us")
