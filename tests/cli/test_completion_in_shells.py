"""Completion as a user meets it: a shell that has read the line of docs/cli.md, a terminal, and the tabulator key.

What the shell then runs is compared: `plimsoll` is a program that answers the shell, or writes down its arguments.
"""

from __future__ import annotations

import os
import pty
import re
import select
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.cli import asked

pytestmark = pytest.mark.slow

PAGE = Path(__file__).parents[2] / "docs" / "cli.md"
PROMPT = "what-now> "
ANSWER_SECONDS = 300.0
PROGRAM = """#!/bin/sh
if [ -n "$_ARGCOMPLETE" ] || [ "$1" = completion ]; then exec "{python}" -m plimsoll.cli.main "$@"; fi
printf '%s\\n' "$@" > "{ran}.new" && mv "{ran}.new" "{ran}"
"""
START_FILES = {
    "bash": (".bashrc", f"PS1='{PROMPT}'\n"),
    "zsh": (".zshrc", f"PS1='{PROMPT}'\nunsetopt zle_bracketed_paste\nautoload -Uz compinit\ncompinit -u -D\n"),
    "fish": ("fish/config.fish", f"function fish_prompt; echo -n '{PROMPT}'; end\nset -g fish_greeting ''\n"),
}
"""The file that each shell reads first, and what a user has in it already."""
COMMANDS = {"bash": ["bash", "--rcfile", "{home}/.bashrc", "-i"], "zsh": ["zsh", "-i"], "fish": ["fish", "-i"]}
WIDE_TERMINAL = {"TERM": "xterm", "COLUMNS": "200", "LINES": "50"}


def page_line(shell: str) -> str:
    """The line that docs/cli.md has for the start file of a shell."""
    text = PAGE.read_text(encoding="utf-8").partition("## Completion")[2].partition("\n## ")[0]
    (line,) = re.findall(rf"^(\S.*completion {shell}\b.*?)\s+#", text, re.MULTILINE)
    return line


class Shell:
    """An interactive shell in a terminal of its own, with one user's start file."""

    def __init__(self, name: str, home: Path) -> None:
        self.ran = home / "ran"
        program = home / "bin" / "plimsoll"
        program.parent.mkdir()
        program.write_text(PROGRAM.format(python=sys.executable, ran=self.ran))
        program.chmod(0o755)
        file, before = START_FILES[name]
        start_file = home / file
        start_file.parent.mkdir(exist_ok=True)
        start_file.write_text(f"{before}{page_line(name)}\n")
        places = {"HOME": home, "ZDOTDIR": home, "XDG_CONFIG_HOME": home, "XDG_DATA_HOME": home / "data"}
        environment = {**os.environ, **WIDE_TERMINAL, **{key: str(value) for key, value in places.items()}}
        environment["PATH"] = f"{program.parent}:{environment['PATH']}"
        command = [part.format(home=home) for part in COMMANDS[name]]
        self.pid, self._terminal = pty.fork()
        if self.pid == 0:
            os.execvpe(command[0], command, environment)  # noqa: S606  # the shell is what is tried
        self.shown = ""
        self._wait(lambda: PROMPT in self.shown, "its prompt")

    def press(self, keys: str) -> None:
        os.write(self._terminal, keys.encode())

    def runs(self, line: str) -> list[str]:
        """The arguments that the program is run with, after this was typed; \\t is the key that completes."""
        self.ran.unlink(missing_ok=True)
        self.press(f"{line}\r")
        self._wait(self.ran.exists, f"{line!r} to be run")
        return self.ran.read_text().splitlines()

    def shows(self, keys: str, word: str) -> bool:
        """Whether a word appears after these keys."""
        before = len(self.shown)
        self.press(keys)
        self._wait(lambda: word in self.shown[before:], f"{word!r} behind {keys!r}")
        return True

    def _wait(self, done: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + ANSWER_SECONDS
        while not done():
            assert time.monotonic() < deadline, f"waited for {what}; the terminal shows {self.shown[-2000:]!r}"
            if select.select([self._terminal], [], [], 0.05)[0]:
                self.shown += os.read(self._terminal, 65536).decode(errors="replace")

    def end(self) -> None:
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self._terminal)


@pytest.fixture(params=["bash", "zsh", "fish"])
def shell(request: pytest.FixtureRequest, home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shell]:
    if shutil.which(request.param) is None:
        pytest.skip(f"needs {request.param} on PATH")
    monkeypatch.setenv("KUBECONFIG", str(home / "none"))
    started = Shell(request.param, home)
    yield started
    started.end()


def test_commands_options_and_names_are_completed(shell: Shell, home: Path):
    for _ in asked.fleet():
        assert shell.runs("plimsoll unc\t w\t") == ["uncordon", "w"]
        assert shell.runs("plimsoll get eb --outp\t y\t") == ["get", "eb", "--output", "yaml"]
        assert shell.runs("plimsoll describe edgeb\t e-1\t") == ["describe", "edgebrokers", "e-1"]
        assert shell.runs("plimsoll logs ea\t --fleet def\t") == ["logs", "east-head", "--fleet", "default"]


def test_several_that_fit_are_listed(shell: Shell):
    assert shell.shows("plimsoll context \t\t", "delete")


def test_a_file_is_completed_and_a_missing_fleet_is_no_error(shell: Shell, home: Path):
    (home / "a fleet.yaml").write_text("")
    assert shell.runs(f"plimsoll apply -f {home}/a\t") == ["apply", "-f", f"{home}/a fleet.yaml"]
    assert shell.runs("plimsoll drain w\t") == ["drain", "w"]
