"""The name of the subscriber of a dataset: of `plimsoll record`, which any client may run, and of a Feed's recorder."""

from __future__ import annotations

import hashlib

from plimsoll.core.spec.dataset_identities import RECORDER_PREFIX


def subscriber_name(path: str) -> str:
    """The same in every life of a dataset's recorder, and another for another folder."""
    return f"feed-{hashlib.sha256(path.encode()).hexdigest()[:16]}"


def recorder_name(path: str) -> str:
    """The same, for the recorder of a Feed: this name is for the identity of recorders alone."""
    return f"{RECORDER_PREFIX}{subscriber_name(path)}"
