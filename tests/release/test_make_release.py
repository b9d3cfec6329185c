"""A release: the same bytes twice, with Helm and without, and checksums that hold."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "scripts" / "make_release.py"
HELM = shutil.which("helm")
EPOCH = "1700000000"


def release(folder: Path, **environment: str) -> dict[str, bytes]:
    """The files of a release by name."""
    command = [sys.executable, str(SCRIPT), str(folder)]
    subprocess.run(command, env={**os.environ, **environment}, check=True, capture_output=True, cwd=folder.parent)
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, bytes]]:
    folder = tmp_path_factory.mktemp("release") / "first"
    return folder, release(folder, SOURCE_DATE_EPOCH=EPOCH)


@pytest.mark.slow
def test_the_same_sources_give_the_same_bytes(made: tuple[Path, dict[str, bytes]], tmp_path: Path):
    files = made[1]
    names = sorted(name.partition("-")[0] for name in files)
    assert names == ["SHA256SUMS", "images.txt", "plimsoll", "plimsoll_operator"]
    assert release(tmp_path / "second", SOURCE_DATE_EPOCH=EPOCH) == files
    others = release(tmp_path / "third", SOURCE_DATE_EPOCH=str(int(EPOCH) + 100_000))
    assert others.keys() == files.keys()
    assert others["SHA256SUMS"] != files["SHA256SUMS"]


@pytest.mark.slow
def test_a_chart_has_the_same_files_without_helm(made: tuple[Path, dict[str, bytes]], tmp_path: Path):
    tools = tmp_path / "bin"
    tools.mkdir()
    (tools / "git").symlink_to(str(shutil.which("git")))
    files = release(tmp_path / "without", SOURCE_DATE_EPOCH=EPOCH, PATH=str(tools))
    (chart,) = (name for name in files if name.endswith(".tgz"))
    members = []
    for folder in (made[0], tmp_path / "without"):
        with tarfile.open(folder / chart) as archive:
            members.append(archive.getnames())
            assert {member.mtime for member in archive} == {int(EPOCH)}
    assert sorted(members[0]) == sorted(members[1])
    assert members[1][0] == "plimsoll/Chart.yaml"
    assert "plimsoll/templates/deployment.yaml" in members[1]


@pytest.mark.slow
def test_checksums_hold_and_images_have_the_tag_of_the_chart(made: tuple[Path, dict[str, bytes]]):
    files = made[1]
    lines = [line.split("  ") for line in files["SHA256SUMS"].decode().splitlines()]
    assert {name: digest for digest, name in lines} == {
        name: hashlib.sha256(data).hexdigest() for name, data in files.items() if name != "SHA256SUMS"
    }
    (chart,) = (name for name in files if name.endswith(".tgz"))
    version = chart.removeprefix("plimsoll-").removesuffix(".tgz")
    assert f"plimsoll/broker:{version}" in files["images.txt"].decode()
    for name in ("broker-image", "operator", "telemetry", "sparkjobs"):
        assert (ROOT / name / "Dockerfile").exists()


@pytest.mark.slow
@pytest.mark.skipif(HELM is None, reason="the packaged chart is not rendered: helm is not on PATH")
def test_the_packaged_chart_is_rendered(made: tuple[Path, dict[str, bytes]]):
    (chart,) = made[0].glob("*.tgz")
    command = [str(HELM), "template", "plimsoll", str(chart), "--kube-version", "1.30.0"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "kind: Deployment" in done.stdout
