"""Signals that end a command, and the handlers of before."""

from __future__ import annotations

import os
import signal

import pytest

from plimsoll.cli.stop_signals import stop_signals


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_is_heard_once_the_command_asks(number: signal.Signals) -> None:
    before = {each: signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)}
    with stop_signals() as interrupted:
        assert not interrupted()
        os.kill(os.getpid(), number)
        assert interrupted()
    assert {each: signal.getsignal(each) for each in before} == before
