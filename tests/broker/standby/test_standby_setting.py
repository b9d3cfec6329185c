"""The setting of a file that is read again: as it says now, and as it said while it cannot be read."""

from __future__ import annotations

from pathlib import Path

import msgspec
from tests.broker.standby.test_replicated_log import CONFIG

from plimsoll.broker.standby.standby_setting import StandbySetting
from plimsoll.core import config as configuration

PLAIN = msgspec.structs.replace(CONFIG, standby=None)


def test_it_is_what_the_file_says_now(tmp_path: Path):
    file = tmp_path / "config.json"
    file.write_bytes(configuration.encode(PLAIN))
    setting = StandbySetting(file, PLAIN)
    assert not setting.names_standby()
    file.write_bytes(configuration.encode(CONFIG))
    assert setting.names_standby()
    assert setting.standby == CONFIG.standby
    file.write_bytes(configuration.encode(PLAIN))
    assert not setting.names_standby()


def test_a_file_that_cannot_be_read_leaves_it_as_it_was(tmp_path: Path):
    file = tmp_path / "config.json"
    setting = StandbySetting(file, CONFIG)
    assert setting.names_standby()
    assert "No such file" in setting.fault
    file.write_text("{half")
    assert setting.names_standby()
    assert setting.fault
    file.write_bytes(configuration.encode(PLAIN))
    assert not setting.names_standby()
    assert setting.fault == ""
