"""The answers of recorders and drivers: fresh ones of the pod that runs, and of no other."""

from __future__ import annotations

import threading
from typing import Any

import msgspec

from plimsoll.feeds.config import RecorderFigures
from plimsoll.operator.names import DATASET_POD, Object
from plimsoll.operator.objects.dataset_figures import DatasetFigures

DEADLINE_SECONDS = 300.0
FIGURES = RecorderFigures("/data/feeds/f", 1, 1, 3, 1, 12, 10, 2, 0, 0, 1, 900)


class ScriptedPods:
    """Answers by address; an address that is not here does not answer."""

    def __init__(self) -> None:
        self.now = 100.0
        self.bodies: dict[str, bytes] = {}

    def fetch(self, place: tuple[str, int], path: str) -> bytes:
        if place[0] not in self.bodies:
            raise ConnectionRefusedError
        assert (place[1], path) == (7420, "/figures")
        return self.bodies[place[0]]


def pod(name: str, uid: str, address: str, **metadata: Any) -> Object:
    found = {"name": f"{name}-0", "uid": uid, "labels": {DATASET_POD: name}, **metadata}
    return {"kind": "Pod", "metadata": found, "status": {"podIP": address}}


def reader(pods: ScriptedPods) -> DatasetFigures:
    return DatasetFigures(pods.fetch, lambda: pods.now)


def test_the_last_answer_counts_for_some_seconds():
    pods = ScriptedPods()
    pods.bodies["10.0.0.1"] = msgspec.json.encode(FIGURES)
    read = reader(pods)
    try:
        read.update([pod("r", "u1", "10.0.0.1")])
        read.poll({("r", "u1"): "10.0.0.1"})
        assert read.recorder("r") == FIGURES
        assert read.recorder("other") is None
        pods.now += 60
        read.stop()
        assert read.recorder("r") is None
    finally:
        read.stop()


def test_of_a_driver_that_has_ended_nothing_is_asked():
    """An operator for Spark may keep its pod, with all labels, beside that of the next one."""
    read = reader(ScriptedPods())
    try:
        ended = pod("d", "u1", "10.0.0.1")
        ended["status"]["phase"] = "Failed"
        read.update([ended])
        assert read._thread is None, "no pod is left to be asked"
    finally:
        read.stop()


def test_a_new_pod_has_said_nothing_and_one_that_leaves_is_not_asked():
    pods = ScriptedPods()
    pods.bodies["10.0.0.1"] = msgspec.json.encode(FIGURES)
    read = reader(pods)
    try:
        read.update([pod("r", "u1", "10.0.0.1")])
        read.poll({("r", "u1"): "10.0.0.1"})
        read.update([pod("r", "u2", "10.0.0.2"), pod("q", "u3", "10.0.0.1", deletionTimestamp="now")])
        assert read.recorder("r") is None
        assert read.recorder("q") is None
    finally:
        read.stop()


def test_a_thread_that_waits_for_an_answer_ends_though_another_has_begun():
    pods, begun, goes_on = ScriptedPods(), threading.Event(), threading.Event()

    def fetch(place: tuple[str, int], path: str) -> bytes:
        first.append(threading.current_thread())
        begun.set()
        assert goes_on.wait(DEADLINE_SECONDS)
        return pods.fetch(place, path)

    first: list[threading.Thread] = []
    read = DatasetFigures(fetch, lambda: pods.now)
    try:
        read.update([pod("r", "u1", "10.0.0.1")])
        assert begun.wait(DEADLINE_SECONDS)
        read.update([])
        read.update([pod("r", "u2", "10.0.0.2")])
        goes_on.set()
        first[0].join(DEADLINE_SECONDS)
        assert not first[0].is_alive()
    finally:
        goes_on.set()
        read.stop()


def test_an_answer_of_another_version_is_none():
    pods = ScriptedPods()
    pods.bodies["10.0.0.1"] = b'{"other": 1}'
    read = reader(pods)
    try:
        read.update([pod("r", "u1", "10.0.0.1")])
        read.poll({("r", "u1"): "10.0.0.1"})
        assert read.recorder("r") is None
        assert read.driver("r") is None
    finally:
        read.stop()
