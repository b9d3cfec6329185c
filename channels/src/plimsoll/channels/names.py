"""Names of channels in the fleet."""

from __future__ import annotations

from typing import Final

from plimsoll.core.spec.dataset_identities import CHANNEL_PREFIX

COPIES_FOLDER: Final = "_copies"
"""The folder for copies of what is in object stores, beside the ledgers: no channel can have its name."""


def publisher_name(channel: str) -> str:
    """The publisher of a channel's results; the same in every life of its driver."""
    return f"{CHANNEL_PREFIX}{channel}"
