"""The two files of every report: what was found, as JSON, and its page. No reader sees half of one."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec


def write_report_files(folder: Path, name: str, report: Mapping[str, Any], page: str) -> None:
    """Write `NAME.json` and `NAME.html` into an existing folder, each atomically."""
    data = json.dumps(report, indent=1, default=msgspec.to_builtins) + "\n"
    for file, content in ((f"{name}.json", data), (f"{name}.html", page)):
        partial = folder / f".{file}.new"
        partial.write_text(content, encoding="utf-8")
        partial.replace(folder / file)
