"""Addresses of named hosts, looked up beside the caller: a server of names may take half a minute to answer.

A lookup occupies a thread until the system has answered, and nothing can end it earlier. So there is at most one for
each host and `LOOKUPS_AT_ONCE` in all; the others wait. The threads are daemons: a process that ends waits for none.
"""

from __future__ import annotations

import os
import socket
import threading
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

LOOKUPS_AT_ONCE: Final = 16


@dataclass(frozen=True, slots=True)
class HostAnswer:
    """The addresses of a host, IPv4 first; or none, and why."""

    host: str
    addresses: tuple[str, ...]
    error: str = ""


class HostLookup:
    """Lookups of one caller, who reads `answers` when `fd` is readable. One thread uses it at a time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._asked: set[str] = set()  # looked up now, or waiting for it
        self._waiting: deque[str] = deque()
        self._running = 0
        self._answers: list[HostAnswer] = []
        self._is_closed = False
        self.fd, self._write_fd = os.pipe()
        os.set_blocking(self.fd, False)
        os.set_blocking(self._write_fd, False)

    def ask(self, host: str) -> None:
        """Look up a host; does nothing while it is looked up already."""
        with self._lock:
            if host in self._asked:
                return
            self._asked.add(host)
            if self._running >= LOOKUPS_AT_ONCE:
                self._waiting.append(host)
                return
            self._running += 1
        threading.Thread(target=self._run, args=(host,), name=f"lookup of {host}", daemon=True).start()

    def answers(self) -> list[HostAnswer]:
        """What has been answered since the last call."""
        with suppress(BlockingIOError):  # all signals are read
            while os.read(self.fd, 4096):
                pass
        with self._lock:
            found, self._answers = self._answers, []
            self._asked.difference_update(answer.host for answer in found)
        return found

    def close(self) -> None:
        """Let go: answers that are still to come go nowhere."""
        with self._lock:
            if not self._is_closed:
                self._is_closed = True
                self._waiting.clear()
                os.close(self.fd)
                os.close(self._write_fd)

    def _run(self, host: str) -> None:
        following: str | None = host
        while following is not None:
            following = self._note(_look_up(following))

    def _note(self, answer: HostAnswer) -> str | None:
        """Keep an answer, and wake the caller; returns the host that this thread looks up next."""
        with self._lock:
            if self._is_closed:
                return None
            self._answers.append(answer)
            with suppress(BlockingIOError):  # it is readable already
                os.write(self._write_fd, b"\0")
            if self._waiting:
                return self._waiting.popleft()
            self._running -= 1
            return None


def _look_up(host: str) -> HostAnswer:
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:  # a name that is no name is a UnicodeError
        return HostAnswer(host, (), str(error))
    of = {family: [str(each[4][0]) for each in found if each[0] == family] for family in _FAMILIES}
    return HostAnswer(host, tuple(dict.fromkeys(address for family in _FAMILIES for address in of[family])))


_FAMILIES: Final = (socket.AF_INET, socket.AF_INET6)
