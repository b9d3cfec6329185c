"""The name of the subscriber of a dataset."""

from __future__ import annotations

import hashlib


def subscriber_name(path: str) -> str:
    """The same in every life of a dataset's recorder, and another for another folder."""
    return f"feed-{hashlib.sha256(path.encode()).hexdigest()[:16]}"
