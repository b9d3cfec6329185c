"""Processor times: of real processes of this machine, and from the output of `ps`."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

from plimsoll.demo import processor_times as module
from plimsoll.demo.processor_times import own_seconds, parse_ps, processor_times


def test_a_look_counts_this_process_and_its_children():
    child = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        deadline = time.monotonic() + 300.0
        found = processor_times()
        while found is not None and found.own.get(child.pid, 0.0) < 0.05 and time.monotonic() < deadline:
            found = processor_times()
        assert found is not None
        assert {os.getpid(), child.pid} <= found.own.keys()
        assert found.own[child.pid] >= 0.05
        assert found.busy >= found.own[child.pid]
    finally:
        child.kill()
        child.wait()


def test_ps_is_read_in_its_two_forms_and_rubbish_is_passed_over():
    found = parse_ps("  1 0 0:01.50\n 20 1 02:03:04\n 21 20 1-00:00:01\n 22 1 nonsense\n\n")
    assert {pid: process.seconds for pid, process in found.items()} == {1: 1.5, 20: 7384.0, 21: 86401.0}
    assert own_seconds(found, 20) == {20: 7384.0, 21: 86401.0}
    assert own_seconds(found, 99) == {}


def test_a_system_without_figures_is_no_fault(monkeypatch: pytest.MonkeyPatch, tmp_path):
    monkeypatch.setattr(module, "_PROC", tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert processor_times() is None
