"""Names of channels in the fleet."""

from __future__ import annotations

from plimsoll.channels.names import publisher_name


def test_a_channel_has_one_publisher_in_all_lives_of_its_driver():
    assert publisher_name("near") == publisher_name("near") != publisher_name("far")
