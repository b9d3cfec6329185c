"""`python -m plimsoll.simulator` runs."""

from __future__ import annotations

import subprocess
import sys


def test_it_runs_as_a_module():
    command = [sys.executable, "-m", "plimsoll.simulator", "--seeds", "2", "--scenario", "calm"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[1].split()[:2] == ["calm", "2"]
