"""The examples for Kubernetes: valid by the command line, and taken by an API server as they are written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.crds.server import Server

from plimsoll.cli.main import main
from plimsoll.core.spec import KINDS

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
FOR_KUBERNETES = sorted((EXAMPLES / "kubernetes").glob("*.yaml"))
ALL = sorted(path for path in EXAMPLES.rglob("*.yaml") if path.parent.name not in ("applications", "worlds"))


def ids(path: Path) -> str:
    return str(path.relative_to(EXAMPLES))


def objects(path: Path) -> list[dict[str, Any]]:
    return [item for item in yaml.safe_load_all(path.read_text()) if item is not None]


def test_all_are_there():
    assert [path.stem for path in FOR_KUBERNETES] == [
        "bundles", "channels", "deadlines", "dry-run-and-approve", "groups", "heterogeneous-edges",
        "maintenance-windows", "quickstart", "shuffle", "two-clusters",
    ]  # fmt: skip


@pytest.mark.parametrize("path", FOR_KUBERNETES, ids=ids)
def test_the_command_line_finds_them_valid(path: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["validate", "-f", str(path)]) == 0
    assert "; valid" in capsys.readouterr().out


@pytest.mark.parametrize("path", FOR_KUBERNETES, ids=ids)
def test_what_is_shown_as_a_command_names_what_is_there(path: Path):
    """Objects in the commands at the top are objects of the file."""
    text = path.read_text()
    assert f"examples/kubernetes/{path.name}" in text.split("apiVersion:")[0]
    names = {item["metadata"]["name"] for item in objects(path)}
    shorts = {kind.short for kind in KINDS.values()}
    for line in text.split("apiVersion:")[0].splitlines():
        for word in line.replace("'", " ").split():
            short, slash, name = word.partition("/")
            if slash and short in shorts:
                assert name in names, line


@pytest.mark.cluster
@pytest.mark.parametrize("path", ALL, ids=ids)
def test_an_api_server_takes_them(server: Server, path: Path):
    for item in objects(path):
        name = item["metadata"]["name"]
        query = {"dryRun": "All", "fieldManager": "examples", "fieldValidation": "Strict"}
        reply = server.ask(
            "PATCH", server.path(item["kind"], name), item, kind="application/apply-patch+yaml", **query
        )  # fmt: skip
        assert reply.accepted, reply.message
        assert reply.content["metadata"]["name"] == name
