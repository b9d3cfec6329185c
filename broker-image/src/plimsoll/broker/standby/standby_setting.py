"""The settings of a head that count while it runs: its configuration file is read again when it has changed.

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
    """`standby`, `may_lag`: as the file says now. `fault`: why it cannot be read; what was read before counts
    meanwhile.
    """

    def __init__(self, file: Path, config: BrokerConfig) -> None:
        self.file, self.fault = file, ""
        self._seen: object = None
        self._take(config)

    def _take(self, config: BrokerConfig) -> None:
        self.standby, self.may_lag = config.standby, config.may_lag

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
            self._seen = seen
            self._take(configuration.decode(self.file.read_bytes()))
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError) as error:
            if self.fault != str(error):
                log.error("%s cannot be read again: %s; standby and confirm stay as they are", self.file, error)
            self.fault = str(error)
        else:
            self.fault = ""
