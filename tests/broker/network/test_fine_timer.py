"""The fine timer: it expires when it should, once, and can be armed again."""

from __future__ import annotations

import select
import sys
import time

import pytest

from plimsoll.broker.network.fine_timer import FineTimer


def readable(timer: FineTimer, milliseconds: int) -> bool:
    poller = select.poll()
    poller.register(timer.fd, select.POLLIN)
    return bool(poller.poll(milliseconds))


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has timers as file descriptors")
def test_it_expires_once_not_early_and_again_when_armed_again():
    timer = FineTimer.open()
    assert timer is not None
    for seconds in (0.0003, 1e-12, 0.0015):
        started = time.monotonic()
        timer.arm(seconds)
        assert readable(timer, 5_000)
        assert time.monotonic() - started >= seconds  # a machine that is slow only makes it longer
        timer.clear()
        assert not readable(timer, 0)
    timer.clear()
    timer.arm(3600)
    timer.arm(0.0001)
    assert readable(timer, 5_000)
    timer.close()


def test_elsewhere_there_is_none(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    assert FineTimer.open() is None
