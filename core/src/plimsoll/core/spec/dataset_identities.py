"""The identities of recorders and of the driver of channels: what they may do, and the names that are theirs alone.

They are the same on one machine and on Kubernetes, under names that no client of a fleet can have.
"""

from __future__ import annotations

from typing import Final

from plimsoll.core.spec.types.fleet import ClientSpec

RECORDER_PREFIX: Final = "recorder."
"""How the names of recorders' subscribers begin."""
CHANNEL_PREFIX: Final = "channel."
"""How the names of channels' publishers begin."""


def recorder_identity(name: str) -> ClientSpec:
    """The identity of all recorders of a fleet."""
    return ClientSpec(name=name, roles=("Subscribe",), name_prefixes=(RECORDER_PREFIX,))


def channels_identity(name: str) -> ClientSpec:
    """The identity of the driver of channels, as a publisher of their results."""
    return ClientSpec(name=name, roles=("Publish",), name_prefixes=(CHANNEL_PREFIX,))


def reserved_prefix(prefix: str) -> str:
    """The prefix of names that a prefix lies in and that is not for clients; empty if there is none."""
    return next((each for each in (RECORDER_PREFIX, CHANNEL_PREFIX) if prefix.startswith(each)), "")
