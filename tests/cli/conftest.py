"""A home of its own for each test, and `plimsoll` as a function and as a program."""

import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.patience import PATIENT

from plimsoll.cli.main import main
from plimsoll.local import runtime
from plimsoll.local.storage.fleet_folder import fleet_folders

QUICKSTART = Path(__file__).parents[2] / "examples" / "quickstart.yaml"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("PLIMSOLL_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("PLIMSOLL_FLEET", raising=False)
    yield tmp_path
    for folder in fleet_folders():
        runtime.down(folder)


Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command in this process: exit code, output, errors."""

    def call(*arguments: str) -> tuple[int, str, str]:
        capsys.readouterr()
        try:
            code = main(arguments)
        except SystemExit as end:
            code = int(end.code or 0)
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


@pytest.fixture
def program() -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Run a command as a process; it is killed at the end if it still runs.

    In the background of a shell SIGINT is ignored, and so it would be by processes started from here.
    """
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    started: list[subprocess.Popen[str]] = []

    def start(*arguments: str, text: str | None = None) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [*PATIENT, "-m", "plimsoll.cli.main", *arguments],
            stdin=subprocess.PIPE if text is not None else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=dict(os.environ),
        )
        if text is not None and process.stdin is not None:
            process.stdin.write(text)
            process.stdin.close()
            process.stdin = None
        started.append(process)
        return process

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()


@pytest.fixture
def quickstart() -> str:
    return str(QUICKSTART)


@pytest.fixture
def fleet(run: Run) -> None:
    """The quick start's fleet, of real brokers, in the background."""
    code, _, err = run("up", "-d", "-f", str(QUICKSTART))
    assert (code, err) == (0, "")


@pytest.fixture(scope="module")
def shared_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A home with the quick start's fleet in it, for all tests of a module that leave the fleet as it is."""
    path = tmp_path_factory.mktemp("shared") / "home"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PLIMSOLL_HOME", str(path))
        patch.delenv("PLIMSOLL_FLEET", raising=False)
        assert main(["up", "-d", "-f", str(QUICKSTART)]) == 0
        folders = fleet_folders()
    yield path
    for folder in folders:
        runtime.down(folder)


@pytest.fixture
def shared_fleet(home: Path, shared_home: Path) -> Iterator[None]:
    """The module's fleet. The home of the test itself is back before it is cleared."""
    assert home.exists()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PLIMSOLL_HOME", str(shared_home))
        yield
