"""Arguments, exit codes, and commands that are loaded only when they are run."""

import argparse
import os
import signal
import subprocess
import sys
import threading
import types
from pathlib import Path

import pytest

from plimsoll.cli import exit_codes, main
from plimsoll.cli.commands import lifecycle, version
from plimsoll.cli.contexts import KUBERNETES_VARIABLE
from plimsoll.cli.contexts.fleet_choice import KubernetesChoice, choose_fleet
from plimsoll.local.storage.state_files import StateWriteError


@pytest.mark.parametrize("word", ["version", "--version"])
def test_version(run, word):
    code, out, _ = run(word)
    assert code == 0
    assert out.startswith("plimsoll 0.")
    assert "plimsoll.dev/v1alpha1" in out


def test_ctrl_c_while_modules_are_loaded(program, monkeypatch):
    """The system reports each module that was loaded; the first one of the parser is in the middle of it."""
    monkeypatch.setenv("PYTHONPROFILEIMPORTTIME", "1")
    process = program("conformance", "--", "sleep", "100")
    for line in process.stderr:
        if line.endswith(" argparse\n"):
            break
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=300)
    assert process.returncode == exit_codes.INTERRUPTED
    assert "Traceback" not in err
    assert "KeyboardInterrupt" not in err


def test_ctrl_c_ends_the_process_at_once_while_modules_are_loaded():
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with main._ended_by_interrupt():
            assert signal.getsignal(signal.SIGINT) is main._end
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)


def test_ctrl_c_raises_again_once_modules_are_loaded(run):
    before = signal.getsignal(signal.SIGINT)
    assert run("version")[0] == 0
    assert signal.getsignal(signal.SIGINT) == before


def test_ctrl_c_that_is_ignored_stays_ignored(run):
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        assert run("version")[0] == 0
        assert signal.getsignal(signal.SIGINT) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_main_runs_in_any_thread(run):
    codes = []
    thread = threading.Thread(target=lambda: codes.append(main.main(["version"])))
    thread.start()
    thread.join(300)
    assert codes == [0]


def test_a_fault_of_the_program_is_not_hidden(run, monkeypatch):
    monkeypatch.setattr(version, "version", lambda options: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        run("version")


def test_a_reader_that_has_gone_is_no_error(program):
    process = program("explain", "bc")
    process.stdout.close()
    process.stdout = None
    _, err = process.communicate(timeout=300)
    assert (process.returncode, err) == (0, "")


def test_as_a_plugin_it_goes_to_the_api_server(monkeypatch, capsys):
    monkeypatch.setenv(KUBERNETES_VARIABLE, "")  # so that it is restored after any change by the command
    del os.environ[KUBERNETES_VARIABLE]
    assert main.kubectl(["version"]) == 0
    assert choose_fleet(argparse.Namespace()) == KubernetesChoice()
    assert "plimsoll" in capsys.readouterr().out


def test_help_names_every_command_and_exit_code(run):
    code, out, _ = run("--help")
    assert code == 0
    for word in (
        "up",
        "down",
        "apply",
        "delete",
        "get",
        "describe",
        "watch",
        "events",
        "pub",
        "sub",
        "validate",
        "demo",
    ):
        assert f"\n    {word} " in out
    for number in (
        exit_codes.OK,
        exit_codes.FAILED,
        exit_codes.BAD_INPUT,
        exit_codes.NOT_FOUND,
        exit_codes.CONFLICT,
        exit_codes.INTERRUPTED,
    ):
        assert f"\n  {number} " in out


def test_every_command_has_help(run):
    for word in ("up", "down", "apply", "delete", "get", "describe", "watch", "events", "pub", "sub", "validate"):
        code, out, _ = run(word, "--help")
        assert code == 0
        assert "--fleet" in out


def test_the_demonstration_gets_its_arguments(run, monkeypatch):
    module = types.ModuleType("plimsoll.demo")
    module.main = lambda arguments: len(arguments)  # type: ignore[attr-defined]  # a module made here
    monkeypatch.setitem(sys.modules, "plimsoll.demo", module)
    assert run("demo", "--seconds", "5")[0] == 2


def test_a_demonstration_that_lacks_a_package_says_which(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "plimsoll.demo", None)
    code, _, err = run("demo")
    assert code == 1
    assert err.startswith("plimsoll: ")


def test_state_that_cannot_be_written_is_one_line(run, monkeypatch):
    def full(options):
        raise StateWriteError(Path("/x/store.db"), "no space is left on its disk", "free space there")

    monkeypatch.setattr(lifecycle, "up", full)
    code, out, err = run("up", "-f", "x.yaml")
    assert (code, out) == (exit_codes.FAILED, "")
    assert err == (
        "plimsoll: cannot write /x/store.db: no space is left on its disk; free space there, and repeat the command; "
        "nothing was started or changed\n"
    )


def test_without_a_command_it_lists_them(run):
    code, out, err = run()
    assert (code, out) == (2, "")
    assert "usage: plimsoll" in err
    assert "simulate" in err


def test_output_to_a_full_disk_is_one_line_and_an_exit_code():
    with Path("/dev/full").open("w") as full:
        command = [sys.executable, "-m", "plimsoll.cli.main", "version"]
        ended = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert ended.returncode == exit_codes.FAILED
    assert ended.stderr == "plimsoll: cannot write to standard output: No space left on device\n"


@pytest.mark.sampled(4)
@pytest.mark.parametrize("stream", ["/dev/full", "a closed pipe"])
@pytest.mark.parametrize(
    ("given", "code"),
    [
        (["validate", "-f", "/nonexistent"], exit_codes.BAD_INPUT),
        (["get", "bf"], exit_codes.NOT_FOUND),
        (["nonsense"], exit_codes.BAD_INPUT),
        ([], exit_codes.BAD_INPUT),
        (["pub", "\udcff=1"], exit_codes.NOT_FOUND),
    ],
)
def test_errors_to_a_full_disk_leave_the_exit_code_as_it_is(given: list[str], code: int, stream: str, tmp_path: Path):
    environment = {**os.environ, "PLIMSOLL_HOME": str(tmp_path)}
    command = [sys.executable, "-m", "plimsoll.cli.main", *given]
    shown = subprocess.run(command, capture_output=True, env=environment, check=False)
    assert (shown.returncode, b"Traceback" in shown.stderr) == (code, False)
    if stream == "/dev/full":
        where = os.open(stream, os.O_WRONLY)
    else:
        reader, where = os.pipe()
        os.close(reader)
    try:
        ended = subprocess.run(command, stdout=subprocess.PIPE, stderr=where, env=environment, check=False)
    finally:
        os.close(where)
    assert (ended.returncode, ended.stdout) == (code, shown.stdout)
