"""What outlives a test fails it."""

from __future__ import annotations

import subprocess
import sys
import threading

import pytest
from tests import leftovers
from tests.leftovers import nothing_left_behind


def test_a_thread_that_goes_on_fails_its_test(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(leftovers, "LEFT_SECONDS", 0.0)
    end = threading.Event()
    thread = threading.Thread(target=end.wait, name="forgotten")
    with pytest.raises(pytest.fail.Exception, match="thread forgotten"), nothing_left_behind():
        thread.start()
    end.set()
    thread.join()


def test_a_process_that_goes_on_fails_its_test(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(leftovers, "LEFT_SECONDS", 0.0)
    with pytest.raises(pytest.fail.Exception, match=r"process \d+: .*sleep"), nothing_left_behind():
        process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    process.kill()
    process.wait()


def test_what_was_there_before_or_ends_soon_does_not():
    before, soon = threading.Event(), threading.Event()
    threads = [threading.Thread(target=each.wait) for each in (before, soon)]
    threads[0].start()
    with nothing_left_behind():
        threads[1].start()
        soon.set()
        subprocess.run([sys.executable, "-c", ""], check=True)
    before.set()
    for each in threads:
        each.join()
