"""What collectors say of a fleet, asked for again and again beside the caller's work: by which snapshot to decide now.

A decider never waits for a collector: it looks at what was found last, and how old that is. Whatever collectors say is
checked here once more, since between them and us there may be anything.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException
from typing import Any, Final

import msgspec

from plimsoll.telemetry.choosing import Choice, Chosen
from plimsoll.telemetry.fold import Header, merged
from plimsoll.telemetry.snapshot import FAULTS, Last, Snapshot, SnapshotError, Wanted, decode

EVERY_SECONDS: Final = 5.0
ANSWER_SECONDS: Final = 5.0
ANSWER_BYTES: Final = 64 * 1024 * 1024

Places = Callable[[], Sequence[tuple[str, int]]]
"""Host and port of each collector's service now."""


@dataclass(frozen=True)
class Known:
    """What was found at `at_us`. `chosen` is None if no collector has answered; `silent`: how many have not.

    `last`: the snapshot that Spark has written last, whether or not it may be used; None without any.
    """

    at_us: int
    chosen: Chosen | None
    silent: int
    last: Last | None = None

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
        }


class Asker:
    """Asks with a thread of its own. `known`: what was found last; None until something was."""

    def __init__(self, places: Places, wanted: Wanted, every_seconds: float = EVERY_SECONDS) -> None:
        self._places, self._every = places, every_seconds
        self._fleet = wanted.fleet
        self._choice = Choice(wanted)
        self._start_us, self._rounds = time.time_ns() // 1000, 0
        self._end = threading.Event()
        self.known: Known | None = None
        self._thread = threading.Thread(target=self._run, name="asks collectors", daemon=True)
        self._thread.start()

    def stop(self, seconds: float = 2 * ANSWER_SECONDS) -> None:
        """End, and wait for that so long."""
        self._end.set()
        self._thread.join(seconds)

    def _run(self) -> None:
        while not self._end.is_set():
            places = self._places()
            if places:
                self.known = self._ask(places)
            self._end.wait(self._every)

    def _ask(self, places: Sequence[tuple[str, int]]) -> Known:
        folds: list[Snapshot] = []
        spark: bytes | SnapshotError = SnapshotError("Missing", "no collector answers")
        for place in places:
            try:
                fold = decode(get(place, "/v1/fold"))
                if isinstance(spark, SnapshotError):
                    spark = _spark(place)
            except (OSError, HTTPException, ValueError):
                continue  # told as silent
            if fold.fleet == self._fleet:
                folds.append(fold)
        now_us = time.time_ns() // 1000
        silent = len(places) - len(folds)
        if not folds:
            return Known(now_us, None, silent)
        self._rounds += 1
        header = Header(
            source="fold", fleet=self._fleet, run_us=self._start_us, batch=self._rounds, window_end_us=now_us,
            written_us=now_us,
        )  # fmt: skip
        chosen = self._choice.choose(spark, merged(folds, header), now_us)
        return Known(now_us, chosen, silent, _last(spark))


def _spark(place: tuple[str, int]) -> bytes | SnapshotError:
    try:
        return get(place, "/v1/snapshot?source=spark")
    except SnapshotError as error:
        return error


def _last(spark: bytes | SnapshotError) -> Last | None:
    if isinstance(spark, SnapshotError):
        return spark.last
    try:
        return Last.of(decode(spark))
    except SnapshotError:
        return None


def _told(path: str, said: dict[str, Any]) -> Last | None:
    try:
        return msgspec.convert(said["last"], Last) if "last" in said else None
    except msgspec.ValidationError as error:
        raise ValueError(f"{path}: {error}") from error


def get(place: tuple[str, int], path: str) -> bytes:
    """What a collector answers.

    Raises:
        OSError, HTTPException: it was not reached, or its answer is too long.
        SnapshotError: it has no snapshot that may be used; says why. ValueError: it answers something else.

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
    said = json.loads(body)
    if answer.status == HTTPStatus.SERVICE_UNAVAILABLE and said.get("fault") in FAULTS:
        raise SnapshotError(said["fault"], str(said.get("message", "")), _told(path, said))
    raise ValueError(f"{path}: {answer.status} {said}")
