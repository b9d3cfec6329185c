"""Limits, signals, and the parent."""

from __future__ import annotations

import os
import resource
import select
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from plimsoll.broker import process_watch
from plimsoll.broker.process_watch import ProcessWatch, raise_open_files


@pytest.fixture
def parent() -> Iterator[subprocess.Popen[bytes]]:
    started = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE)
    yield started
    started.kill()
    started.communicate()


def readable(fds: list[int]) -> bool:
    poller = select.poll()
    for fd in fds:
        poller.register(fd, select.POLLIN)
    return bool(poller.poll(5_000))


def test_the_limit_of_open_files_is_raised_to_the_hard_one(monkeypatch: pytest.MonkeyPatch):
    asked = []
    monkeypatch.setattr(resource, "getrlimit", lambda which: (1024, 4096))
    monkeypatch.setattr(resource, "setrlimit", lambda which, limits: asked.append((which, limits)))
    assert raise_open_files() == ""
    assert asked == [(resource.RLIMIT_NOFILE, (4096, 4096))]


def test_a_limit_that_cannot_be_raised_is_named(monkeypatch: pytest.MonkeyPatch):
    def refuse(which: int, limits: tuple[int, int]) -> None:
        raise ValueError("not allowed")

    monkeypatch.setattr(resource, "getrlimit", lambda which: (1024, 4096))
    monkeypatch.setattr(resource, "setrlimit", refuse)
    said = raise_open_files()
    assert "RLIMIT_NOFILE stays at 1024 (hard limit 4096: not allowed)" in said
    assert "960 connections" in said


def test_a_limit_at_its_hard_one_is_left(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(resource, "getrlimit", lambda which: (4096, 4096))
    monkeypatch.setattr(resource, "setrlimit", None)
    assert raise_open_files() == ""


def test_signals_wake_and_are_counted_and_handlers_are_put_back():
    before = signal.getsignal(signal.SIGTERM)
    watch = ProcessWatch(None)
    os.kill(os.getpid(), signal.SIGTERM)
    assert readable(watch.descriptors)
    watch.clear()
    watch.clear()
    assert watch.signals == 1
    os.kill(os.getpid(), signal.SIGINT)
    assert readable(watch.descriptors)
    assert watch.signals == 2
    assert not watch.parent_is_gone()
    watch.close()
    assert signal.getsignal(signal.SIGTERM) is before


def test_the_end_of_the_parent_wakes(parent: subprocess.Popen[bytes]):
    watch = ProcessWatch(parent.pid)
    assert not watch.parent_is_gone()
    parent.kill()
    parent.wait()
    if sys.platform == "linux":
        assert readable(watch.descriptors[1:])
    assert watch.parent_is_gone()
    watch.close()


def test_without_descriptors_of_processes_it_is_asked_for(
    parent: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(process_watch, "_pidfd", lambda pid: None)
    watch = ProcessWatch(parent.pid)
    assert len(watch.descriptors) == 1
    assert not watch.parent_is_gone()
    parent.kill()
    parent.wait()
    assert watch.parent_is_gone()
    watch.close()
    process_of_another_user = ProcessWatch(1)
    assert not process_of_another_user.parent_is_gone()
    process_of_another_user.close()
