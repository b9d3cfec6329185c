"""Disturbances reach the processes that they name, and a frozen process is woken."""

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from plimsoll.demo.live_display import LiveDisplay
from plimsoll.demo.workload import DemoScenario
from plimsoll.soak.disturbance.disturbance_plan import Disturbance
from plimsoll.soak.disturbance.disturbed_traffic import DisturbedTraffic


def state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


class OneBroker:
    """A fleet of one process, which waits for the end of its input."""

    def __init__(self) -> None:
        self.process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)

    def pid(self, broker: str) -> int | None:
        return self.process.pid if broker == "a" else None


@pytest.fixture
def traffic(tmp_path: Path) -> Any:
    fleet: Any = OneBroker()
    live = LiveDisplay(lambda text: None, terminal=False, interval_seconds=1.0)
    made: Any = DisturbedTraffic(DemoScenario(), fleet, tmp_path, 1, live, [])
    yield made
    made.__exit__(None, None, None)
    fleet.process.kill()
    fleet.process.communicate()


def wait_for_state(pid: int, wanted: str) -> None:
    deadline = time.monotonic() + 300.0
    while state(pid) not in wanted:
        assert time.monotonic() < deadline, state(pid)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="reads the state of a process from /proc")
def test_a_frozen_process_is_woken_after_its_time(traffic: Any) -> None:
    pid = traffic._fleet.process.pid
    traffic._disturb(Disturbance(0.0, "freeze-edge", "a", 2.0), now=10.0)
    wait_for_state(pid, "T")
    traffic._wake(11.9)
    assert state(pid) == "T"
    traffic._wake(12.0)
    wait_for_state(pid, "SR")


def test_a_kill_ends_the_process(traffic: Any) -> None:
    traffic._disturb(Disturbance(0.0, "kill-edge", "a"), now=0.0)
    assert traffic._fleet.process.wait(300) == -9
    assert [each.kind for each in traffic.done] == ["kill-edge"]


def test_a_broker_that_is_not_running_is_skipped(traffic: Any) -> None:
    traffic._disturb(Disturbance(0.0, "kill-edge", "b"), now=0.0)
    assert traffic.done == []
