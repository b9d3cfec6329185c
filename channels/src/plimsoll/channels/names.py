"""Names of channels in the fleet."""

from __future__ import annotations

from plimsoll.core.spec.dataset_identities import CHANNEL_PREFIX


def publisher_name(channel: str) -> str:
    """The publisher of a channel's results; the same in every life of its driver."""
    return f"{CHANNEL_PREFIX}{channel}"
