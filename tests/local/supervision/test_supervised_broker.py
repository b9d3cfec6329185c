"""One supervised broker under the test's own clock: when it starts, ends, and is killed."""

import sys
import time

import pytest

from plimsoll.core.config import BrokerConfig
from plimsoll.local.storage.fleet_folder import FleetFolder
from plimsoll.local.storage.state_files import StateWriteError
from plimsoll.local.supervision import supervised_broker
from plimsoll.local.supervision.supervised_broker import GRACE_SECONDS, SupervisedBroker

CONFIG = BrokerConfig(name="e", role="edge", cluster="c", data="tcp://127.0.0.1:1", control="tcp://127.0.0.1:2")


def command_of(code):
    return lambda config: [sys.executable, "-c", code, str(config)]


CRASH = command_of("print('why'); raise SystemExit(3)")
STUBBORN = command_of("import signal, time; signal.signal(15, signal.SIG_IGN); print(1, flush=True); time.sleep(60)")


@pytest.fixture
def broker(home):
    folder = FleetFolder.of("f")
    folder.make()
    broker = SupervisedBroker(CONFIG, "small", "", folder)
    yield broker
    broker.kill()


@pytest.fixture
def events():
    return []


def step_until_ended(broker, now, command, record):
    deadline = time.monotonic() + 300
    while broker.running:
        assert time.monotonic() < deadline
        broker.poll(now, command, record)
        time.sleep(0.005)


def test_an_ended_broker_starts_again_when_its_time_has_come(broker, events):
    def record(*event):
        events.append(event)

    broker.start(CRASH, record)
    step_until_ended(broker, 100.0, CRASH, record)
    assert events[-1] == ("e", "Warning", "Exited", "exited with code 3: why; starts again after 1 s")
    assert broker.failed == "exited with code 3: why"
    broker.poll(100.9, CRASH, record)
    assert not broker.running
    assert broker.observed(100.9).readiness().reason == "BackOff"
    broker.poll(101.0, CRASH, record)
    assert broker.running
    step_until_ended(broker, 101.0, CRASH, record)
    assert broker.observed(101.0).waiting_seconds == 2.0
    assert broker.observed(101.0).restarts == 2


def test_a_broker_that_leaves_is_ended_after_its_grace_and_stays_away(broker, events):
    def record(*event):
        events.append(event)

    broker.start(STUBBORN, record)
    deadline = time.monotonic() + 300
    while not FleetFolder.of("f").log("e").read_text():  # it does not ignore the signal before
        assert time.monotonic() < deadline
        time.sleep(0.005)
    broker.begin_drain(100.0)
    broker.poll(99.9 + GRACE_SECONDS, STUBBORN, record)
    assert broker.observed(99.9 + GRACE_SECONDS).readiness().reason == "Stopping"
    broker.poll(100.0 + GRACE_SECONDS, STUBBORN, record)
    assert not broker.running
    assert events[-1][2] == "Killed"
    broker.poll(999.0, STUBBORN, record)
    assert not broker.running


def test_answers_and_reports(broker, events):
    def record(*event):
        events.append(event)

    broker.start(STUBBORN, record)
    assert broker.observed(0.0).readiness().reason == "Starting"
    broker.on_status({"ready": False, "waiting_for": ["a", "b"]}, 1.0, record)
    assert broker.observed(1.0).readiness().message == "waiting for a, b"
    broker.on_status({"ready": True}, 2.0, record)
    broker.on_status({"ready": True}, 3.0, record)
    assert [event[2] for event in events] == ["Started", "Ready"]
    assert broker.observed(3.5).answer_age == 0.5
    broker.on_load_report({"epoch": 5, "seq": 2, "subscribers": 1}, 3.0)
    broker.on_load_report({"epoch": 5, "seq": 2, "subscribers": 1}, 9.0)
    broker.on_load_report({"epoch": 4, "seq": 9, "subscribers": 7}, 9.0)
    assert broker.observed(9.0).report_age == 6.0
    broker.on_load_report({"epoch": 6, "seq": 1, "subscribers": 3}, 9.0)
    assert (broker.observed(9.0).report_age, broker.observed(9.0).report["subscribers"]) == (0.0, 3)


def test_a_broker_whose_configuration_cannot_be_written_starts_when_it_can(broker, events, monkeypatch):
    def record(*event):
        events.append(event)

    def full(path, text):
        raise StateWriteError(path, "no space is left on its disk", "free space there")

    broker.start_at(100.0)
    monkeypatch.setattr(supervised_broker, "write_private", full)
    for now in (100.0, 100.5, 101.0, 102.0):
        broker.poll(now, STUBBORN, record)
    assert not broker.running
    assert [event[2] for event in events] == ["WriteFailed"]
    assert "configs/e.json: no space is left on its disk; free space there; it starts as" in events[0][3]
    assert broker.failed.startswith("cannot write ")
    monkeypatch.undo()
    broker.poll(102.9, STUBBORN, record)
    assert not broker.running
    broker.poll(103.0, STUBBORN, record)
    assert broker.running
