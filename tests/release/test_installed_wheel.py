"""The wheel alone, in an environment of its own and outside the checkout, does what docs/local.md says."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import venv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "local.md"
INSTALL_SECONDS, ANSWER_SECONDS = 300, 60

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]  # it fetches the dependencies of the wheel


class Installed:
    """A virtual environment with the wheel in it, and an empty folder to work in."""

    def __init__(self, folder: Path) -> None:
        self.bin, self.work = folder / "env" / "bin", folder / "work"
        self.work.mkdir()
        ours = ("PYTHON", "PLIMSOLL", "KUBE")
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith(ours)},
            "PATH": f"{self.bin}:{os.environ['PATH']}",
            "PLIMSOLL_HOME": str(folder / "home"),
            "KUBECONFIG": str(folder / "none"),
        }

    def run(self, line: str, seconds: float = ANSWER_SECONDS) -> subprocess.CompletedProcess[str]:
        """Run a line as a reader's shell does."""
        where: dict[str, Any] = {"cwd": self.work, "env": self.environment, "timeout": seconds}
        return subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False, **where)

    def start(self, command: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            shlex.split(command), cwd=self.work, env=self.environment, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installed]:
    folder = tmp_path_factory.mktemp("installed")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    venv.create(folder / "env", with_pip=True)
    place = Installed(folder)
    asked = place.run(f"pip download --quiet --no-deps --retries 0 --timeout 15 -d {folder} msgspec", INSTALL_SECONDS)
    if asked.returncode != 0:
        pytest.skip("the wheel is not installed: pip reaches no package index here")
    done = place.run(f"pip install --quiet {folder}/plimsoll_operator-*.whl", INSTALL_SECONDS)
    assert done.returncode == 0, done.stderr
    yield place
    place.run("plimsoll down")


def page_lines() -> list[str]:
    """The lines that docs/local.md has behind a prompt, up to its first heading of a section."""
    text = PAGE.read_text(encoding="utf-8").partition("\n## ")[0]
    return re.findall(r"^\$ (.+)$", text, re.MULTILINE)


def read_until(process: subprocess.Popen[str], word: str) -> str:
    """The line with a word; the test's time-out bounds the wait."""
    assert process.stdout is not None
    for line in process.stdout:
        if word in line:
            return line
    raise AssertionError(f"it ended without {word!r}")


def test_the_page_is_followed_line_by_line(installed: Installed):
    example, up, sub, pub, config, program, publish, down = page_lines()
    assert installed.run(example).returncode == 0
    supervisor, subscriber = installed.start(up), None
    try:
        read_until(supervisor, "is ready: 3 brokers")
        subscriber = installed.start(sub)
        read_until(subscriber, "subscribed as")
        assert installed.run(pub).stdout == "1 accepted\n"
        assert '"price": 25.0' in read_until(subscriber, "STOCK")
        assert installed.run(config).returncode == 0
        assert installed.run(program).returncode == 0
        done = installed.run(publish)
        assert done.stdout.startswith("Summary(accepted=10"), done.stderr
        assert "quickstart stopped" in installed.run(down).stdout
        assert supervisor.wait(ANSWER_SECONDS) == 0
    finally:
        for process in filter(None, (subscriber, supervisor)):
            process.kill()
            process.communicate()


@pytest.mark.sweep
def test_what_needs_an_extra_names_the_line_that_installs_it(installed: Installed):
    done = installed.run("plimsoll get eb -n ships")
    assert done.returncode == 1
    line = "pip install 'plimsoll-operator[cluster]'"
    assert done.stderr == (
        f"plimsoll: this command needs the Python package kubernetes, which is not installed: run {line}\n"
    )
    found = installed.run(f"{line} --quiet", INSTALL_SECONDS)
    assert found.returncode == 0, found.stderr
    done = installed.run("plimsoll get eb -n ships")
    assert "no API server is configured" in done.stderr


def test_it_is_outside_of_the_checkout(installed: Installed):
    where = installed.run("python -c 'import plimsoll.cli.main as m; print(m.__file__)'").stdout
    assert where.startswith(str(installed.bin.parent))
    names = installed.run("plimsoll example").stdout.split()
    assert {"quickstart", "three-clusters", "clients/publish.py", "kubernetes/quickstart"} <= set(names)


def test_an_application_runs_in_the_image_of_the_release(installed: Installed):
    version = installed.run("plimsoll --version").stdout.split()[1].rstrip(",")
    asked = installed.run("plimsoll example kubernetes/applications/quotes")
    assert f"image: plimsoll/broker:{version}\n" in asked.stdout
