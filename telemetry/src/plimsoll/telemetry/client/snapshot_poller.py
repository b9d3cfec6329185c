"""Polls a fleet's collectors beside the caller's work, and chooses the snapshot to decide by.

A decider never waits for a collector: it reads the last result and its age. All answers of collectors are checked here
again, since anything may sit between them and us.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException
from typing import Any, Final

import msgspec

from plimsoll.telemetry.client.snapshot_choice import ChosenSnapshot, SnapshotChooser
from plimsoll.telemetry.fold import SnapshotHeader, merge_folds
from plimsoll.telemetry.schema import SetAsideList
from plimsoll.telemetry.snapshot import (
    SNAPSHOT_FAULTS,
    SnapshotError,
    SnapshotRequirements,
    SnapshotSummary,
    TelemetrySnapshot,
    decode_snapshot,
)

log = logging.getLogger(__name__)

POLL_SECONDS: Final = 5.0
ANSWER_SECONDS: Final = 5.0
ANSWER_BYTES: Final = 64 * 1024 * 1024

NO_FILES: Final = SetAsideList(0, [])

ServiceAddresses = Callable[[], Sequence[tuple[str, int]]]
"""Host and port of each collector's service now."""


@dataclass(frozen=True)
class PollResult:
    """The result of the poll at `at_us`. `chosen` is None if no collector has answered; `silent`: how many have not.

    `last`: Spark's last snapshot, whether or not it may be used; None without any. `set_aside`: files that jobs could
    not read.
    """

    at_us: int
    chosen: ChosenSnapshot | None
    silent: int
    last: SnapshotSummary | None = None
    set_aside: SetAsideList = NO_FILES

    @property
    def status(self) -> dict[str, Any]:
        """For the status of a fleet."""
        if self.chosen is None:
            return {"source": "Fold", "reason": f"Silent: none of {self.silent} collectors answers"}
        snapshot, reason = self.chosen
        if reason and self.silent:
            reason = f"{reason}; {self.silent} collectors are silent"
        return {
            "source": "Spark" if self.chosen.is_spark else "Fold",
            "reason": reason,
            **({"snapshotAgeSeconds": max(0, round(snapshot.age_seconds(self.at_us)))} if not reason else {}),
            "brokersSeen": snapshot.seen,
            "brokersExpected": snapshot.expected,
            **(
                {"filesSetAside": self.set_aside.count, "lastSetAside": self.set_aside.describe()}
                if self.set_aside.count
                else {}
            ),
        }


class SnapshotPoller:
    """Polls from a thread of its own. `result`: the latest one; None before the first."""

    def __init__(
        self, places: ServiceAddresses, wanted: SnapshotRequirements, every_seconds: float = POLL_SECONDS
    ) -> None:
        self._places, self._every = places, every_seconds
        self._fleet = wanted.fleet
        self._choice = SnapshotChooser(wanted)
        self._start_us, self._rounds = time.time_ns() // 1000, 0
        self._end = threading.Event()
        self._faults: dict[tuple[str, int], str] = {}
        self.result: PollResult | None = None
        self._thread = threading.Thread(target=self._run, name="polls collectors", daemon=True)
        self._thread.start()

    def stop(self, seconds: float = 2 * ANSWER_SECONDS) -> None:
        """Stop the thread and wait for it for up to `seconds`."""
        self._end.set()
        self._thread.join(seconds)

    def _run(self) -> None:
        while not self._end.is_set():
            places = self._places()
            if places:
                self.result = self._poll(places)
            self._end.wait(self._every)

    def _poll(self, places: Sequence[tuple[str, int]]) -> PollResult:
        folds: list[TelemetrySnapshot] = []
        spark: bytes | SnapshotError = SnapshotError("Missing", "no collector answers")
        set_aside = NO_FILES
        for place in places:
            try:
                fold = decode_snapshot(fetch(place, "/v1/fold"))
                if isinstance(spark, SnapshotError):
                    spark = _fetch_spark(place)
                # Collectors share a folder, or have one each.
                set_aside = max(set_aside, _fetch_set_aside(place), key=lambda each: each.count)
            except OSError:
                continue  # counted as silent
            except (HTTPException, ValueError) as error:
                self._note_fault(place, str(error))
                continue
            self._note_fault(place, "")
            if fold.fleet == self._fleet:
                folds.append(fold)
        now_us = time.time_ns() // 1000
        silent = len(places) - len(folds)
        if not folds:
            return PollResult(now_us, None, silent)
        self._rounds += 1
        header = SnapshotHeader(
            source="fold", fleet=self._fleet, run_us=self._start_us, batch=self._rounds, window_end_us=now_us,
            written_us=now_us,
        )  # fmt: skip
        chosen = self._choice.choose(spark, merge_folds(folds, header), now_us)
        return PollResult(now_us, chosen, silent, _summary_of(spark), set_aside)

    def _note_fault(self, place: tuple[str, int], fault: str) -> None:
        """Log once why an answer is of no use: the collector counts as silent, and does answer."""
        if fault and self._faults.get(place) != fault:
            log.warning("the answer of collector %s:%d cannot be used: %s", *place, fault)
        self._faults[place] = fault


def _fetch_spark(place: tuple[str, int]) -> bytes | SnapshotError:
    try:
        return fetch(place, "/v1/snapshot?source=spark")
    except SnapshotError as error:
        return error


def _fetch_set_aside(place: tuple[str, int]) -> SetAsideList:
    try:
        return msgspec.json.decode(fetch(place, "/v1/set-aside"), type=SetAsideList)
    except ValueError:  # a collector of an earlier version does not list them
        return NO_FILES


def _summary_of(spark: bytes | SnapshotError) -> SnapshotSummary | None:
    if isinstance(spark, SnapshotError):
        return spark.last
    try:
        return SnapshotSummary.of(decode_snapshot(spark))
    except SnapshotError:
        return None  # the chooser has refused it by the same check, and says why


def _summary_in_refusal(path: str, said: dict[str, Any]) -> SnapshotSummary | None:
    try:
        return msgspec.convert(said["last"], SnapshotSummary) if "last" in said else None
    except msgspec.ValidationError as error:
        raise ValueError(f"{path}: {error}") from error


def fetch(place: tuple[str, int], path: str) -> bytes:
    """The body of a collector's answer.

    Raises:
        OSError, HTTPException: it was not reached, or its answer is too long.
        SnapshotError: it has no usable snapshot; says why.
        ValueError: any other answer.

    """
    connection = HTTPConnection(*place, timeout=ANSWER_SECONDS)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        body = answer.read(ANSWER_BYTES + 1)
    finally:
        connection.close()
    if len(body) > ANSWER_BYTES:
        raise HTTPException(f"{path}: more than {ANSWER_BYTES} bytes")
    if answer.status == HTTPStatus.OK:
        return body
    try:
        said = msgspec.json.decode(body)
    except RecursionError as error:
        raise ValueError(f"{path}: {answer.status}, nested too deeply") from error
    if not isinstance(said, dict):  # the answer of a proxy
        raise ValueError(f"{path}: {answer.status} {said!r:.100}")
    if answer.status == HTTPStatus.SERVICE_UNAVAILABLE and said.get("fault") in SNAPSHOT_FAULTS:
        raise SnapshotError(said["fault"], str(said.get("message", "")), _summary_in_refusal(path, said))
    raise ValueError(f"{path}: {answer.status} {said!r:.500}")
