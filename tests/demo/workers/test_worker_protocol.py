"""The pipes between the demo and its workers, from both sides."""

import os

import pytest

from plimsoll.demo.fleet import DemoAccess
from plimsoll.demo.workers.worker_process import (
    PUBLISHER_MODULE,
    SUBSCRIBER_MODULE,
    ClientTask,
    WorkerError,
    WorkerProcess,
    client_task,
)
from plimsoll.demo.workers.worker_protocol import ParentEndedError, WorkerPipe
from plimsoll.demo.workload import DemoScenario

NO_HEAD = DemoAccess("tcp://127.0.0.1:1")


@pytest.fixture
def pipes():
    source, order = os.pipe()
    heard, sink = os.pipe()
    yield WorkerPipe(source, sink), order, heard
    for each in (source, order, heard, sink):
        try:
            os.close(each)
        except OSError:  # the test has closed it
            continue


def test_orders_are_lines_however_they_come(pipes):
    orders, order, _ = pipes
    os.write(order, b"one\ntw")
    assert orders.next() == b"one"
    assert orders.wait(0.0) is None
    os.write(order, b"o\nfinish\n")
    assert [orders.wait(0.0), orders.wait(0.0), orders.wait(0.0)] == [b"two", b"finish", None]


def test_the_end_of_the_demo_is_noticed(pipes):
    orders, order, _ = pipes
    os.close(order)
    with pytest.raises(ParentEndedError):
        orders.next()


def test_a_task_arrives_as_it_was(pipes, tmp_path):
    import msgspec

    orders, order, _ = pipes
    given = client_task(DemoScenario(seed=3), DemoAccess("tcp://h:1", "public", "secret"), tmp_path / "j", 1, 2)
    os.write(order, msgspec.json.encode(given) + b"\n")
    assert orders.task() == given
    assert isinstance(given, ClientTask)
    assert (given.part, given.of, given.own_secret_key) == (1, 2, "secret")


def test_what_is_said_is_one_line_of_json(pipes):
    orders, _, heard = pipes
    orders.report({"published": 3})
    assert os.read(heard, 100) == b'{"published":3}\n'


def test_a_secret_key_is_not_shown():
    assert "secret" not in repr(DemoAccess("tcp://h:1", "public", "secret"))


def test_a_worker_that_cannot_connect_ends_and_says_why(tmp_path):
    """It would wait ten seconds for a head; here the demo goes meanwhile."""
    log = tmp_path / "publishing.log"
    worker = WorkerProcess(PUBLISHER_MODULE, client_task(DemoScenario(), NO_HEAD, tmp_path / "j"), log)
    try:
        assert worker.read_report() == {}
        worker._stdin.close()
        with pytest.raises(WorkerError, match="publishing process exited with code 1: the demo has ended"):
            worker.await_end(25.0)
    finally:
        worker.kill()
    assert worker._process.returncode is not None


def test_a_worker_is_ended_in_any_state(tmp_path):
    worker = WorkerProcess(SUBSCRIBER_MODULE, client_task(DemoScenario(), NO_HEAD, tmp_path / "j"), tmp_path / "log")
    worker.kill()
    worker.kill()
    assert worker._process.returncode == -9
