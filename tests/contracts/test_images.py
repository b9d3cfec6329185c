"""Images contain all that their programs import, copy nothing that the context lacks, and do not run as root."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest
from tests.contracts.source_trees import ROOT, nodes

DOCKERFILES = sorted(ROOT.glob("*/Dockerfile"))
SERVERS = ("broker-image", "operator")
BASE = "python:3.11-slim-bookworm"


def instructions(dockerfile: Path) -> list[str]:
    """Its instructions, each on one line, without comments."""
    lines = [line for line in dockerfile.read_text().splitlines() if not line.lstrip().startswith("#")]
    return [line for line in "\n".join(lines).replace("\\\n", " ").splitlines() if line.strip()]


def copied(dockerfile: Path) -> list[Path]:
    """The paths that it copies from the repository."""
    found: list[Path] = []
    for line in instructions(dockerfile):
        if line.startswith("COPY ") and "--from" not in line:
            found += [ROOT / source for source in line.split()[1:-1]]
    return found


def packages(dockerfile: Path) -> dict[str, Path]:
    """Our packages in it, by name."""
    inside = [path for source in copied(dockerfile) for path in (source, *source.glob("plimsoll/*"))]
    return {path.name: path for path in inside if path.parent.name == "plimsoll" and path.is_dir()}


@cache
def imports(package: Path) -> set[str]:
    found: set[str] = set()
    for module in package.rglob("*.py"):
        for node in nodes(module):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            found |= {name.split(".")[1] for name in names if name.startswith("plimsoll.")}
    return found


@pytest.mark.parametrize("dockerfile", DOCKERFILES, ids=lambda path: path.parent.name)
class TestImage:
    def test_it_starts_from_the_one_base(self, dockerfile: Path):
        bases = [line.split()[1] for line in instructions(dockerfile) if line.startswith("FROM ")]
        assert set(bases) == {BASE}

    def test_what_it_copies_is_there_and_in_the_context(self, dockerfile: Path):
        ignore = (ROOT / ".dockerignore").read_text().splitlines()
        allowed = [ROOT / line[1:] for line in ignore if line.startswith("!")]
        assert [path for path in copied(dockerfile) if not path.exists()] == []
        assert [path for path in copied(dockerfile) if not any(path.is_relative_to(each) for each in allowed)] == []

    def test_it_holds_every_package_of_ours_that_is_imported_in_it(self, dockerfile: Path):
        ours = packages(dockerfile)
        assert ours
        assert {name: imports(path) - ours.keys() for name, path in ours.items() if imports(path) - ours.keys()} == {}

    def test_packages_of_others_come_from_a_lock_by_hash(self, dockerfile: Path):
        installs = [line for line in instructions(dockerfile) if re.search(r"\bpip3?\b.* install\b", line)]
        assert installs
        assert [line for line in installs if "--require-hashes" not in line or ".lock" not in line] == []

    def test_it_does_not_run_as_root(self, dockerfile: Path):
        users = [line.split()[1] for line in instructions(dockerfile) if line.startswith("USER ")]
        assert users
        assert int(users[-1].split(":")[0]) > 0


@pytest.mark.parametrize("folder", SERVERS)
def test_a_server_says_whether_it_is_healthy_and_is_the_first_process_of_its_container(folder: str):
    found = instructions(ROOT / folder / "Dockerfile")
    (health,) = [line for line in found if line.startswith("HEALTHCHECK ")]
    assert "/livez" in health
    (entry,) = [line for line in found if line.startswith("ENTRYPOINT ")]
    module = re.search(r'\["python", "-m", "plimsoll\.(\w+)"\]', entry)
    assert module
    assert (packages(ROOT / folder / "Dockerfile")[module[1]] / "__main__.py").exists()


@pytest.mark.parametrize("folder", SERVERS)
def test_a_server_has_no_build_tools_in_its_last_stage(folder: str):
    found = instructions(ROOT / folder / "Dockerfile")
    last = found[max(at for at, line in enumerate(found) if line.startswith("FROM ")) :]
    assert [line for line in last if line.startswith("RUN ")] == []
