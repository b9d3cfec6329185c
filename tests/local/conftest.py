"""A home of its own for each test, fleets of stand-in brokers, and a check that no process outlives its test."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from plimsoll.local.storage.fleet_folder import FleetFolder
from plimsoll.local.storage.object_store import ObjectEvent, ObjectStore

RUN = str(Path(__file__).with_name("run_fleet.py"))

FLEET = """
apiVersion: plimsoll.dev/v1alpha1
kind: BrokerFleet
metadata: {name: quotes}
---
apiVersion: plimsoll.dev/v1alpha1
kind: HardwareProfile
metadata: {name: small}
spec: {memory: 64Mi}
---
apiVersion: plimsoll.dev/v1alpha1
kind: BrokerCluster
metadata: {name: east}
spec:
  head: {profile: small}
  edges:
  - {name: e, profile: small, replicas: 2}
"""


def wait_for(check: Callable[[], Any], seconds: float = 300.0, what: str = "") -> Any:
    """Ask until the answer is true; fail after a deadline with the last answer."""
    deadline = time.monotonic() + seconds
    while True:
        answer = check()
        if answer:
            return answer
        assert time.monotonic() < deadline, f"not within {seconds} s: {what or check} (last answer: {answer!r})"
        time.sleep(0.02)


def alive(pid: int) -> bool:
    """Whether a process runs (one that has ended and was not waited for does not)."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


def freeze(pid: int) -> None:
    """Stop a process, and wait until it has stopped: of two signals that wait for it, SIGTERM would be taken first."""
    os.kill(pid, signal.SIGSTOP)
    wait_for(lambda: Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T")


class Fleet:
    """A fleet run in a process of its own."""

    TEXT = FLEET
    PROGRAM = RUN
    wait_for = staticmethod(wait_for)
    alive = staticmethod(alive)

    def __init__(self, home: Path, name: str = "quotes") -> None:
        self.home = home
        self.folder = FleetFolder(home / name)
        self.process: subprocess.Popen[str] | None = None
        self.pids: set[int] = set()

    def start(self, text: str = FLEET) -> subprocess.Popen[str]:
        file = self.home / "fleet.yaml"
        file.write_text(text)
        self.process = subprocess.Popen(
            [sys.executable, self.PROGRAM, str(file)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        return self.process

    def up(self, text: str = FLEET) -> None:
        """Start, and wait until the fleet's object is Ready."""
        process = self.start(text)
        wait_for(lambda: process.poll() is not None or self.condition("BrokerFleet", "quotes", "Ready") == "True")
        assert process.poll() is None, process.communicate()
        self.brokers()

    def object(self, kind: str, name: str) -> dict[str, Any]:
        if not self.folder.exists():
            return {}
        with ObjectStore(self.folder.store) as store:
            return next((o for o in store.objects(kind)[1] if o["metadata"]["name"] == name), {})

    def condition(self, kind: str, name: str, type_: str) -> str:
        found = self.object(kind, name).get("status", {}).get("conditions", [])
        return next((c["status"] for c in found if c["type"] == type_), "")

    def events(self, name: str | None = None) -> list[ObjectEvent]:
        with ObjectStore(self.folder.store) as store:
            return store.events(name=name)

    def reasons(self) -> list[tuple[str, str]]:
        return [(event.name, event.reason) for event in self.events()]

    def brokers(self) -> dict[str, int]:
        """The process ids in the status."""
        if not self.folder.exists():
            return {}
        with ObjectStore(self.folder.store) as store:
            objects = store.objects()[1]
        pids = {}
        for item in objects:
            status = item.get("status", {})
            place = status.get("head", {}) if item["kind"] == "BrokerCluster" else status
            if item["kind"] in ("BrokerCluster", "EdgeBroker") and "pid" in place:
                pids[place.get("name", item["metadata"]["name"])] = place["pid"]
        self.pids |= set(pids.values())
        return pids

    def end(self) -> tuple[int, str, str]:
        """Stop as a service manager would; returns exit code and output."""
        assert self.process is not None
        self.process.terminate()
        out, err = self.process.communicate(timeout=300)
        return self.process.returncode, out, err

    def clean(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.brokers()
            self.process.send_signal(signal.SIGKILL)
        if self.process is not None:
            self.process.communicate()
        wait_for(lambda: not any(alive(pid) for pid in self.pids), what=f"none of {self.pids} to run")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PLIMSOLL_HOME", str(tmp_path))
    return tmp_path


@pytest.fixture
def fleet(home: Path) -> Iterator[Fleet]:
    assert os.environ["PLIMSOLL_HOME"] == str(home)
    fleet = Fleet(home)
    yield fleet
    fleet.clean()
