"""The setting `standby` of a process that runs: its configuration file is read again when it has changed.

A head takes on a standby only once its own file says so. So a process that starts again in its place reads the same,
and does not lead beside a standby that has taken over.
"""

from __future__ import annotations

import logging
from pathlib import Path

import msgspec

from plimsoll.core import config as configuration
from plimsoll.core.config import BrokerConfig

log = logging.getLogger(__name__)


class StandbySetting:
    """`standby`: as the file says now. `fault`: why it cannot be read; what was read before counts meanwhile."""

    def __init__(self, file: Path, config: BrokerConfig) -> None:
        self.file, self.standby, self.fault = file, config.standby, ""
        self._seen: object = None

    def names_standby(self) -> bool:
        """Whether the file names a standby now."""
        self.refresh()
        return self.standby is not None

    def refresh(self) -> None:
        """Read the file if it may have changed."""
        try:
            found = self.file.stat()
            seen = found.st_mtime_ns, found.st_size, found.st_ino
            if seen == self._seen:
                return
            self._seen, self.standby = seen, configuration.decode(self.file.read_bytes()).standby
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError) as error:
            if self.fault != str(error):
                log.error("%s cannot be read again: %s; standby stays as it is", self.file, error)
            self.fault = str(error)
        else:
            self.fault = ""
