"""The script between supervisor and broker: a child whose parent is killed ends, even when it is busy."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from plimsoll.local.supervision import parent_death_signal

PARENT = """
import subprocess, sys, os
asked = [sys.executable, "-I", "-S", sys.argv[1], str(os.getpid()), sys.executable, "-c",
         "import signal, time; signal.signal(15, signal.SIG_IGN); print(1, flush=True); time.sleep(60)"]
process = subprocess.Popen(asked, stdout=subprocess.PIPE, start_new_session=True)
process.stdout.readline()
print(process.pid, flush=True)
process.wait()
"""


def test_a_child_ends_when_its_parent_is_killed():
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, parent_death_signal.__file__], stdout=subprocess.PIPE, text=True
    )
    assert parent.stdout is not None
    pid = int(parent.stdout.readline())
    os.kill(pid, 0)
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    parent.stdout.close()
    deadline = time.monotonic() + 300
    status = Path(f"/proc/{pid}/status")
    while status.exists() and "State:\tZ" not in status.read_text():
        assert time.monotonic() < deadline
        time.sleep(0.01)
