"""Asks recorders and the driver of channels for their figures, from a thread: reconciliation never waits for a pod."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from http.client import HTTPException
from typing import Final, TypeVar

import msgspec

from plimsoll.channels.config import DriverFigures
from plimsoll.feeds.config import FIGURES_PATH, RecorderFigures
from plimsoll.feeds.status import FIGURES_FRESH_SECONDS
from plimsoll.operator.names import DATASET_POD, Object
from plimsoll.operator.objects.dataset_pods import HTTP_PORT
from plimsoll.operator.objects.manifest import has_ended, is_leaving, uid
from plimsoll.operator.reconcile.observed import label
from plimsoll.telemetry.client.snapshot_poller import fetch

POLL_SECONDS: Final = 2.0
T = TypeVar("T")
Fetch = Callable[[tuple[str, int], str], bytes]


@dataclass(frozen=True)
class _Answer:
    body: bytes
    at: float


class DatasetFigures:
    """The latest answer of each pod, by the name of its StatefulSet or SparkApplication.

    `clock`: seconds of one monotonic clock. The thread runs while there are such pods. An answer is that of one life of
    a pod: a new pod has said nothing yet.
    """

    def __init__(self, fetched: Fetch = fetch, clock: Callable[[], float] = time.monotonic) -> None:
        self._fetched, self._clock = fetched, clock
        self._places: dict[tuple[str, str], str] = {}
        self._answers: dict[tuple[str, str], _Answer] = {}
        self._lives: dict[str, str] = {}
        self._end = threading.Event()
        self._thread: threading.Thread | None = None

    def update(self, pods: Iterable[Object]) -> None:
        """Ask these pods from now on, if they are there to stay."""
        found = {
            (label(pod, DATASET_POD), uid(pod)): str(address)
            for pod in pods
            if label(pod, DATASET_POD) and not is_leaving(pod) and not has_ended(pod)
            and (address := pod.get("status", {}).get("podIP"))
        }  # fmt: skip
        self._places = found
        self._lives = dict(found.keys())
        self._answers = {key: told for key, told in list(self._answers.items()) if key in found}
        if found and self._thread is None:
            self._end = threading.Event()  # one of its own: the thread before may still wait for an answer
            self._thread = threading.Thread(target=self._run, args=(self._end,), name="dataset-figures", daemon=True)
            self._thread.start()
        elif not found:
            self.stop()

    def stop(self) -> None:
        """End the thread."""
        self._end.set()
        self._thread = None

    def recorder(self, name: str) -> RecorderFigures | None:
        """The fresh figures of a recorder; None if it has told none of late."""
        return self._decoded(name, RecorderFigures)

    def driver(self, name: str) -> DriverFigures | None:
        """The fresh figures of a driver; None if it has told none of late."""
        return self._decoded(name, DriverFigures)

    def _decoded(self, name: str, type_: type[T]) -> T | None:
        told = self._answers.get((name, self._lives.get(name, "")))
        if told is None or self._clock() - told.at > FIGURES_FRESH_SECONDS:
            return None
        try:
            return msgspec.json.decode(told.body, type=type_)
        except msgspec.MsgspecError:  # a pod of another version is replaced soon
            return None

    def _run(self, end: threading.Event) -> None:
        while not end.is_set():
            self.poll(dict(self._places))
            end.wait(POLL_SECONDS)

    def poll(self, places: Mapping[tuple[str, str], str]) -> None:
        """Ask each pod once. `places`: the address of each, by name and uid."""
        for key, address in places.items():
            try:
                body = self._fetched((address, HTTP_PORT), FIGURES_PATH)
            except (OSError, HTTPException, ValueError):  # it has not begun, or is gone: its figures grow old
                continue
            self._answers[key] = _Answer(body, self._clock())
