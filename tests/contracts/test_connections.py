"""libzmq is never given the name of a host: it would look it up on the thread that serves all sockets."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from tests.contracts.source_trees import ROOT, nodes

CONNECTOR = ROOT / "network/src/plimsoll/network/connector.py"
MODULES = sorted(path for path in ROOT.glob("*/src/**/*.py") if "import zmq" in path.read_text() and path != CONNECTOR)


def connects(path: Path) -> list[str]:
    """What `connect` is called on in a module."""
    calls = (node for node in nodes(path) if isinstance(node, ast.Call))
    return [
        ast.unparse(call.func.value)
        for call in calls
        if isinstance(call.func, ast.Attribute) and call.func.attr == "connect"
    ]


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_sockets_are_connected_by_the_connector(path: Path):
    assert {each for each in connects(path) if not each.endswith("connector")} == set()


def test_all_that_dial_are_seen():
    assert {path.stem for path in MODULES if connects(path)} == {
        "control_plane", "head_listener", "socket_lane", "transport",
    }  # fmt: skip
