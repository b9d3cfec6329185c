"""The time of day as objects carry it: RFC 3339 text in UTC."""

from __future__ import annotations

from datetime import UTC, datetime


def rfc3339_now() -> str:
    """Now, to the second."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
