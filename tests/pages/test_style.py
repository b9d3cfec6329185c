"""The style has a look for every line of a chart, and reads without colours."""

from plimsoll.pages.style import STYLE


def test_every_look_has_a_rule():
    assert all(f".s{look}" in STYLE for look in range(8))


def test_light_and_dark_follow_the_reader():
    assert "prefers-color-scheme: dark" in STYLE
