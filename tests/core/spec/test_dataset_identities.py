"""What recorders and the driver of channels may do, and which names are theirs."""

from __future__ import annotations

import pytest

from plimsoll.core.spec.dataset_identities import channels_identity, recorder_identity, reserved_prefix


def test_what_they_may_do_is_bounded() -> None:
    recorder, channels = recorder_identity("r"), channels_identity("c")
    assert (recorder.name, recorder.roles, recorder.name_prefixes) == ("r", ("Subscribe",), ("recorder.",))
    assert (channels.name, channels.roles, channels.name_prefixes) == ("c", ("Publish",), ("channel.",))


@pytest.mark.parametrize(
    ("prefix", "reserved"),
    [("recorder.", "recorder."), ("channel.fires", "channel."), ("record", ""), ("channels.", ""), ("my.channel.", "")],
)
def test_a_prefix_inside_of_theirs_is_reserved(prefix: str, reserved: str) -> None:
    """A shorter one is not: the longest prefix of a name that is granted decides."""
    assert reserved_prefix(prefix) == reserved
