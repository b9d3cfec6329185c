"""Which backend is used: a local fleet, unless a namespace, a context or the environment selects an API server."""

from __future__ import annotations

import argparse
import os

import pytest

from plimsoll.cli import backend, main


def options(**given: str | None) -> argparse.Namespace:
    return argparse.Namespace(**{"fleet": None, "namespace": None, "context": None, **given})


@pytest.mark.parametrize(
    ("environment", "given", "expected"),
    [
        ("", {}, False),
        ("0", {}, False),
        ("1", {}, True),
        ("1", {"fleet": "quotes"}, False),
        ("", {"namespace": "ships"}, True),
        ("", {"context": "kind"}, True),
        ("0", {"fleet": "quotes", "namespace": "ships"}, True),
    ],
)
def test_where(monkeypatch: pytest.MonkeyPatch, environment: str, given: dict[str, str], expected: bool):
    monkeypatch.setenv(backend.KUBERNETES_VARIABLE, environment)
    assert backend.is_kubernetes(options(**given)) is expected


def test_as_a_plugin_it_speaks_to_the_api_server(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.setenv(backend.KUBERNETES_VARIABLE, "")  # so that it is restored after any change by the command
    del os.environ[backend.KUBERNETES_VARIABLE]
    assert main.kubectl(["version"]) == 0
    assert backend.is_kubernetes(options())
    assert "plimsoll" in capsys.readouterr().out
