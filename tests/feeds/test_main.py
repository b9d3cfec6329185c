"""How a recorder process ends when it cannot record; tests/local/supervision tries one with a fleet."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from plimsoll.feeds.config import RecorderConfig
from plimsoll.feeds.dataset import FeedDataset
from plimsoll.feeds.main import EXIT_CONFIG, EXIT_DISK, main


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    """The recorder takes the signals of its process, which here is that of the tests."""
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def run(folder: Path, path: Path, subscription: str = "[a,=,1]") -> int:
    config = RecorderConfig("f", "s", subscription, str(path), str(folder / "connection.json"))
    (folder / "config.json").write_bytes(msgspec.json.encode(config))
    return main(["--config", str(folder / "config.json")])


def test_a_configuration_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--config", str(tmp_path / "none.json")]) == EXIT_CONFIG
    assert "cannot read" in capsys.readouterr().err


def test_a_dataset_of_another_subscription(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    dataset = FeedDataset(tmp_path / "d", "[b,=,1]")
    dataset.commit(None, [], 0)
    dataset.close()
    assert run(tmp_path, tmp_path / "d") == EXIT_CONFIG
    assert "was recorded with the subscription [b,=,1]" in capsys.readouterr().err


def test_a_connection_file_that_is_not_there_leaves_the_dataset_to_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path, tmp_path / "d") == EXIT_CONFIG
    assert "connection.json" in capsys.readouterr().err
    FeedDataset(tmp_path / "d", "[a,=,1]").close()


def test_a_folder_that_cannot_be_made(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    assert run(tmp_path, tmp_path / "file" / "d") == EXIT_DISK
    assert "file" in capsys.readouterr().err
