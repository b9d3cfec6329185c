"""An object store that counts requests that change it, and kills the recorder before one of them."""

from __future__ import annotations

from typing import Any

from obstore.store import MemoryStore

from plimsoll.feeds.object_path import ObjectPath


class CrashError(BaseException):
    """The process is killed here."""


class ScriptedStore:
    """`crash_at`: the number of the request before which the process is killed; 0: none. `reads`: objects read.

    `inner`: the store; else one in memory.
    """

    def __init__(self, inner: Any = None) -> None:
        self._inner = inner if inner is not None else MemoryStore()
        self.count = self.crash_at = self.reads = 0

    def arm(self, crash_at: int) -> None:
        self.count, self.crash_at = 0, crash_at

    def _step(self) -> None:
        self.count += 1
        if self.count == self.crash_at:
            raise CrashError

    def put(self, key: str, content: bytes, **options: Any) -> Any:
        self._step()
        return self._inner.put(key, content, **options)

    def copy(self, source: str, target: str) -> None:
        self._step()
        self._inner.copy(source, target)

    def delete(self, key: str) -> None:
        self._step()
        self._inner.delete(key)

    def get(self, key: str) -> Any:
        self.reads += 1
        return self._inner.get(key)

    def get_range(self, key: str, *, start: int, length: int) -> Any:
        return self._inner.get_range(key, start=start, length=length)

    def head(self, key: str) -> Any:
        return self._inner.head(key)

    def list(self, prefix: str) -> Any:
        return self._inner.list(prefix)


def place(store: Any, name: str) -> ObjectPath:
    return ObjectPath(store, "s3a://bucket", name)
