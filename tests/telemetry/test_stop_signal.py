"""A program stops at a signal, and with its parent."""

from __future__ import annotations

import os
import signal

from plimsoll.telemetry.stop_signal import StopSignal


def test_it_stops_at_a_signal_and_when_its_parent_has_ended() -> None:
    stop = StopSignal(os.getppid())
    assert not stop()
    stop.on_signal(signal.SIGTERM, None)
    assert stop()
    assert StopSignal(os.getppid() + 1)()
    assert not StopSignal(None)()
