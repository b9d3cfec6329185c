"""Arguments, exit codes, and commands that are loaded only when they are run."""

import sys
import types
from pathlib import Path

from plimsoll.cli import exit_codes
from plimsoll.cli.commands import lifecycle
from plimsoll.local.storage.state_files import StateWriteError


def test_version(run):
    code, out, _ = run("version")
    assert code == 0
    assert out.startswith("plimsoll 0.")
    assert "plimsoll.dev/v1alpha1" in out


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
