"""The names of the contexts of the kubeconfig, read without the Kubernetes client, which takes a second to load."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import yaml

DEFAULT = "~/.kube/config"


def kubeconfig_contexts() -> dict[str, str]:
    """The namespace of each context, by its name; empty where it names none. A file that cannot be read has none."""
    found: dict[str, str] = {}
    for name in (os.environ.get("KUBECONFIG") or DEFAULT).split(os.pathsep):
        if name:
            found = {**_contexts(Path(name).expanduser()), **found}  # the first file that names a context counts
    return found


def _contexts(path: Path) -> dict[str, str]:
    try:
        content = yaml.load(path.read_bytes(), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506  # both are safe
    except (OSError, yaml.YAMLError):
        return {}  # the command that uses the file says what is wrong with it
    listed = content.get("contexts") if isinstance(content, Mapping) else None
    named = [each for each in listed if _is_named(each)] if isinstance(listed, list) else []
    return {each["name"]: _namespace(each.get("context")) for each in named}


def _is_named(context: object) -> bool:
    return isinstance(context, Mapping) and isinstance(context.get("name"), str)


def _namespace(context: object) -> str:
    return str(context.get("namespace") or "") if isinstance(context, Mapping) else ""
