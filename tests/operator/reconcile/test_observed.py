"""What follows from states of pods, nodes and sessions."""

from typing import Any

import pytest

from plimsoll.operator.reconcile import observed
from plimsoll.operator.reconcile.observed import ObservedObjects

AT, LATER = 1_800_000_000.0, 1_800_000_100.0


def pod(*, ready: str = "True", since: float = AT, state: Any = None, last: Any = None, **metadata: str) -> Any:
    status = {
        "conditions": [{"type": "Ready", "status": ready, "lastTransitionTime": observed.rfc3339(since)}],
        "containerStatuses": [{"name": "broker", "state": state or {"running": {}}, "lastState": last or {}}],
    }
    return {"kind": "Pod", "metadata": {"name": "e-0", "uid": "u", **metadata}, "status": status}


def test_times_there_and_back():
    assert observed.unix_seconds(observed.rfc3339(AT)) == AT
    assert observed.unix_seconds("2026-01-01T00:00:00.500000Z") == observed.unix_seconds("2026-01-01T00:00:00Z") + 0.5


def test_ready():
    assert observed.is_ready(pod())
    assert not observed.is_ready(pod(ready="False"))
    assert not observed.is_ready(pod(deletionTimestamp=observed.rfc3339(AT)))
    assert not observed.is_ready(None)


@pytest.mark.parametrize(
    ("item", "broken"),
    [
        (pod(), False),
        (pod(ready="False", since=LATER - 29), False),
        (pod(ready="False", since=LATER - 30), True),
        (pod(ready="False", since=LATER, state={"waiting": {"reason": "CrashLoopBackOff"}}), True),
        (pod(ready="False", since=LATER, state={"waiting": {"reason": "ContainerCreating"}}), False),
    ],
)
def test_broken(item: Any, broken: bool):
    assert observed.is_broken(item, LATER) is broken


@pytest.mark.parametrize(
    ("ended", "words"),
    [
        ({"exitCode": 3}, "exited with 3"), ({"signal": 11, "exitCode": 139}, "was killed by signal 11"),
        ({"reason": "OOMKilled", "exitCode": 137}, "more memory"),
    ],
)  # fmt: skip
def test_how_it_ended(ended: Any, words: str):
    waiting = {"waiting": {"reason": "CrashLoopBackOff"}}
    assert words in observed.last_termination(pod(last={"terminated": ended}))
    assert words in observed.pod_trouble(pod(ready="False", state=waiting, last={"terminated": ended}))[1]
    assert observed.last_termination(pod()) == ""


def test_a_pod_that_no_node_takes():
    item = pod(ready="False")
    item["status"]["conditions"].append({"type": "PodScheduled", "status": "False", "message": "no cpu"})
    assert observed.pod_trouble(item) == ("Unschedulable", "no cpu")


def test_lost_with_its_node():
    leaving = pod(ready="False", deletionTimestamp=observed.rfc3339(AT))
    up = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
    down = {"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}}
    assert not observed.is_lost(pod(), down, AT)
    assert not observed.is_lost(leaving, up, AT)
    assert observed.is_lost(leaving, down, AT)
    assert not observed.is_lost(leaving, None, AT + 30)
    assert observed.is_lost(leaving, None, AT + 31)  # its grace period is over, and no kubelet confirms its end
    leaving["metadata"]["finalizers"] = ["example.com/keeps"]
    assert not observed.is_lost(leaving, up, AT + 1000), "its end may be confirmed"
    assert observed.is_lost(leaving, down, AT)


def test_a_pod_is_known_by_its_label():
    stranger = {**pod(), "metadata": {"name": "e-0"}}
    assert ObservedObjects({("Pod", "e-0"): stranger}).pod("e") is None
