"""Names of the contexts of a kubeconfig, without the Kubernetes client."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from plimsoll.cli.contexts.kubeconfig import kubeconfig_contexts


def test_the_first_file_that_names_a_context_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    first, second = tmp_path / "first", tmp_path / "second"
    first.write_text("contexts: [{name: a, context: {namespace: ships}}, {name: b}]")
    second.write_text("contexts: [{name: a, context: {namespace: boats}}, {name: c, context: {cluster: x}}]")
    monkeypatch.setenv("KUBECONFIG", os.pathsep.join([str(first), "", str(second), str(tmp_path / "missing")]))
    assert kubeconfig_contexts() == {"a": "ships", "b": "", "c": ""}


@pytest.mark.parametrize("text", ["", "[", "contexts: 5", "contexts: [5, {name: 5}]", "- a", "\x00"])
def test_a_file_that_is_none_has_no_contexts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str):
    path = tmp_path / "config"
    path.write_text(text)
    monkeypatch.setenv("KUBECONFIG", str(path))
    assert kubeconfig_contexts() == {}
