"""Consumer groups in the load report of a head: a text for each group, since reports nest no deeper than that."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

import msgspec

FIELD: Final = "consumer_groups"
"""The field of a load report: by the name of a group, its report as JSON."""


def report_field(groups: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, str]]:
    """The field for these groups; empty without any."""
    return {FIELD: {name: json.dumps(found) for name, found in groups.items()}} if groups else {}


def reported_groups(report: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """The groups of a load report, by name; what a head of another version says otherwise is left out."""
    found = report.get(FIELD)
    groups: dict[str, Mapping[str, Any]] = {}
    for name, text in found.items() if isinstance(found, Mapping) else ():
        try:
            group = msgspec.json.decode(text)  # unlike `json`, it reads neither NaN nor Infinity nor 1e400
        except (TypeError, ValueError, RecursionError):
            continue  # as of a later version
        if isinstance(group, Mapping):
            groups[str(name)] = group
    return groups
