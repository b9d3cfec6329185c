"""The connection file of processes beside the brokers that are applications of the fleet: recorders, channels."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from plimsoll.client.connection_file import connection_file_text
from plimsoll.core.client import Address
from plimsoll.local import keys
from plimsoll.local.head_access import HeadAccessError, all_head_access
from plimsoll.local.storage.fleet_folder import FleetFolder
from plimsoll.local.storage.state_files import write_private

RETRY_SECONDS: Final = 1.0


class ApplicationConnection:
    """Writes the file, and again when a head has another address. `now` is seconds of one monotonic clock.

    `name`: of the file; `identity`: whose key is in it.
    """

    def __init__(self, folder: FleetFolder, name: str, identity: str) -> None:
        self._folder, self._name, self._identity = folder, name, identity
        self._text = ""
        self._try_at = 0.0
        self.version = 0
        """How often it was written; 0: there is no file yet."""

    @property
    def file(self) -> Path:
        return self._folder.config(self._name)

    def poll(self, now: float) -> bool:
        """Look for changes when that is due; whether there is a file. Raises `StateWriteError`."""
        if now >= self._try_at:
            self._try_at = now + RETRY_SECONDS
            self._write()
        return self.version > 0

    def _write(self) -> None:
        try:
            ways = all_head_access(self._folder)
        except HeadAccessError:  # no head has reported its address yet
            return
        heads = {ways[0].cluster: Address(ways[0].endpoint, ways[0].server)}
        pair = keys.key_pair(self._folder, self._identity) if ways[0].server else None
        text = connection_file_text(heads, (pair.public, pair.secret()) if pair is not None else None)
        if text != self._text:
            write_private(self.file, text)
            self._text = text
            self.version += 1
