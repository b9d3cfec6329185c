"""Keeping a mediator running."""

import os
import signal
import sys

import pytest
from tests.local.conftest import alive, freeze, wait_for

from plimsoll.local.storage.fleet_folder import FleetFolder
from plimsoll.local.supervision import sidecar


@pytest.fixture
def kept(home, monkeypatch):
    folder = FleetFolder.of("f")
    folder.make()
    command = (sys.executable, "-c", "import time; print('at work', flush=True); time.sleep(600)")
    monkeypatch.setattr(sidecar, "mediator_command", lambda folder: command)
    kept = sidecar.Sidecar(folder)
    yield kept
    kept.stop()


def test_it_is_started_and_started_again_with_growing_delays(kept):
    told = []

    def record(*what):
        told.append(what)

    kept.poll(0.0, record)
    first = kept.status()["pid"]
    assert told == [("Normal", "MediatorStarted", f"process {first}")]
    os.kill(first, signal.SIGKILL)
    wait_for(lambda: kept.poll(10.0, record) or len(told) == 2)
    type_, reason, message = told[1]
    assert (type_, reason) == ("Warning", "MediatorExited")
    assert message.startswith("mediator was ended by SIGKILL")
    assert message.endswith("starts again after 1 s")
    assert kept.status() == {"restarts": 1, "lastEnd": "was ended by SIGKILL"}
    kept.poll(10.9, record)
    assert "pid" not in kept.status()
    kept.poll(11.0, record)
    second = kept.status()["pid"]
    os.kill(second, signal.SIGKILL)
    wait_for(lambda: kept.poll(11.5, record) or len(told) == 4)
    assert told[3][2].endswith("starts again after 2 s")


def test_a_frozen_process_is_killed_and_replaced(kept):
    told = []

    def record(*what):
        told.append(what)

    kept.poll(0.0, record)
    first = kept.status()["pid"]
    freeze(first)
    kept.restart(10.0)
    kept.poll(10.0 + sidecar.RESTART_SECONDS - 0.1, record)
    assert alive(first)
    assert len(told) == 1
    kept.poll(10.0 + sidecar.RESTART_SECONDS, record)
    assert not alive(first)
    assert [reason for _, reason, _ in told] == ["MediatorStarted", "MediatorKilled", "MediatorExited"]
    assert told[1][2] == f"mediator did not end within 5 s when asked to: process {first} was killed"
    assert kept.status() == {"restarts": 1, "killed": 1, "lastEnd": "was ended by SIGKILL"}
    kept.poll(17.0, record)
    assert kept.status()["pid"] != first


def test_a_process_that_ends_when_asked_is_not_killed(kept):
    told = []
    kept.poll(0.0, lambda *what: told.append(what))
    first = kept.status()["pid"]
    kept.restart(10.0)
    wait_for(lambda: not alive(first))
    kept.poll(20.0, lambda *what: told.append(what))
    assert [reason for _, reason, _ in told] == ["MediatorStarted", "MediatorExited"]


def test_once_ended_it_stays_so(kept):
    kept.poll(0.0, lambda *what: None)
    pid = kept.status()["pid"]
    kept.stop()
    assert not alive(pid)
    kept.poll(100.0, lambda *what: None)
    assert kept.status() == {"restarts": 0}


def test_the_command_names_the_fleet_and_this_process(home):
    command = sidecar.mediator_command(FleetFolder.of("f"))
    assert command[1:] == ("-m", "plimsoll.local.mediator", str(home / "f"), str(os.getpid()))
