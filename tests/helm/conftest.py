"""Renders the chart with Helm, where there is one."""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
CHART = ROOT / "helm" / "plimsoll"
LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
Objects = list[dict[str, Any]]
Render = Callable[..., Objects]


class RenderError(AssertionError):
    """Helm refused; the message is Helm's."""


@pytest.fixture(scope="session")
def helm() -> str:
    program = shutil.which("helm")
    if program is None:
        pytest.skip("helm is not on PATH: the chart is not rendered")
    return program


@pytest.fixture(scope="session")
def render(helm: str) -> Render:
    """`render(namespace=..., name=..., **values)`: the chart's objects; values are nested mappings.

    Each set of values is rendered once: many tests look at the same objects, and each has a copy.
    """

    def text(name: str, namespace: str, values: str) -> str:
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            file.write(values)
            file.flush()
            command = [helm, "template", name, str(CHART), "--namespace", namespace, "--kube-version", "1.35.0"]
            command += ["--values", file.name]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RenderError(done.stderr)
        return done.stdout

    @cache
    def objects(name: str, namespace: str, values: str) -> Objects:
        return [item for item in yaml.load_all(text(name, namespace, values), LOADER) if item]

    def rendered(name: str = "plimsoll", namespace: str = "ships", /, **values: Any) -> Objects:
        return deepcopy(objects(name, namespace, json.dumps(values, sort_keys=True)))

    return rendered
