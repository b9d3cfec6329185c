import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from tests.local.conftest import alive, wait_for

from plimsoll.local.supervision import child_process, parent_death_signal
from plimsoll.local.supervision.child_process import ChildProcess, broker_command, describe_exit, log_note


def wait(process):
    deadline = time.monotonic() + 300
    while (code := process.exit_code()) is None:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return code


def says(process, line):
    deadline = time.monotonic() + 300
    while process.last_output_line() != line:
        assert time.monotonic() < deadline, process.last_output_line()
        time.sleep(0.01)


def run(tmp_path, code):
    return ChildProcess([sys.executable, "-c", code], tmp_path / "x.log")


def test_a_process_has_a_log_an_end_and_last_words(tmp_path):
    process = run(tmp_path, "print('first'); print('  the last  '); print(); raise SystemExit(3)")
    assert wait(process) == 3
    assert process.last_output_line() == "the last"
    again = run(tmp_path, "pass")
    assert wait(again) == 0
    assert again.last_output_line() == ""  # what an earlier run wrote is not its own
    assert (tmp_path / "x.log").read_text() == "first\n  the last  \n\n"


def test_a_process_leads_a_session_of_its_own(tmp_path):
    process = run(tmp_path, "import os; print(os.getpid() == os.getsid(0), os.getppid())")
    wait(process)
    assert process.last_output_line() == f"True {os.getpid()}"


def test_terminate_asks_and_kill_ends(tmp_path):
    stubborn = "import signal\nsignal.signal(15, lambda *_: print('no', flush=True))\nprint('up', flush=True)\n"
    process = run(tmp_path, stubborn + "while True: signal.pause()")
    says(process, "up")
    process.terminate()
    says(process, "no")
    assert process.exit_code() is None
    process.kill()
    assert process.exit_code() == -signal.SIGKILL
    process.terminate()
    process.kill()


def test_what_a_process_has_left_behind_ends_with_it(tmp_path, monkeypatch):
    """A frozen grandchild, as a Java virtual machine below a driver of Spark."""
    monkeypatch.setattr(child_process, "LEFTOVER_SECONDS", 0.1)
    child = "import time\nprint('up', flush=True)\ntime.sleep(600)"
    leader = (
        f"import os, signal, subprocess, sys\nchild = subprocess.Popen([sys.executable, '-c', {child!r}],"
        " stdout=subprocess.PIPE)\nchild.stdout.readline()\nos.kill(child.pid, signal.SIGSTOP)\n"
        "print(child.pid, flush=True)\n"
    )
    process = run(tmp_path, leader)
    assert wait(process) == 0
    assert process.left_behind == 1
    assert not alive(int(process.last_output_line()))
    frozen = run(tmp_path, leader + "os.kill(os.getpid(), signal.SIGSTOP)")
    wait_for(lambda: frozen.last_output_line().isdecimal())
    frozen.terminate()
    assert frozen.exit_code() is None
    frozen.kill()
    assert (frozen.exit_code(), frozen.left_behind) == (-signal.SIGKILL, 1)
    assert not alive(int(frozen.last_output_line()))


def test_large_logs_are_put_aside(tmp_path, monkeypatch):
    monkeypatch.setattr(child_process, "LOG_BYTES", 10)
    wait(run(tmp_path, "print('x' * 100)"))
    wait(run(tmp_path, "print('y')"))
    assert (tmp_path / "x.log").read_text() == "y\n"
    assert (tmp_path / "x.log.1").read_text() == "x" * 100 + "\n"


def test_ends_in_words():
    assert describe_exit(0) == "exited with code 0"
    assert describe_exit(-signal.SIGSEGV) == "was ended by SIGSEGV"
    assert describe_exit(-64) == "was ended by SIGRTMAX"


def test_the_command_of_a_broker_names_its_parent():
    command = broker_command(Path("x.json"))
    assert command[:3] == (sys.executable, "-m", "plimsoll.broker")
    assert command[command.index("--parent-pid") + 1] == str(os.getpid())


def test_a_child_of_another_parent_does_not_start():
    asked = [sys.executable, "-I", "-S", parent_death_signal.__file__, "1", sys.executable, "-c", "print('started')"]
    done = subprocess.run(asked, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stdout == ""
    assert "process 1, which started this one, has ended" in done.stderr


def test_a_process_whose_log_cannot_be_opened_runs_without(tmp_path):
    process = ChildProcess([sys.executable, "-c", "print('lost'); raise SystemExit(3)"], tmp_path / "away" / "x.log")
    assert wait(process) == 3
    assert process.last_output_line() == ""
    assert log_note(process).startswith(f"; its output is not kept: cannot write {tmp_path}/away/x.log: ")
    other = run(tmp_path, "pass")
    assert wait(other) == 0
    assert log_note(other) == ""
