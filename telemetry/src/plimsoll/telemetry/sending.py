"""Sessions that are over, on their way to a collector: sent beside the caller's work, again until they have arrived.

Whoever keeps sessions offers each that has ended, as often as it likes: a collector takes each once. What waits is
bounded, and the oldest go first; telemetry never holds up a session.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from http.client import HTTPConnection, HTTPException
from typing import Any, Final

from plimsoll.telemetry.outcomes import brief

WAITING_AT_MOST: Final = 1000
AT_ONCE: Final = 50
AGAIN_SECONDS: Final = 5.0
ANSWER_SECONDS: Final = 5.0

Where = Callable[[], tuple[str, int] | None]
"""Host and port of a collector's service now; None while there is none."""


def token_of(secret: str) -> str:
    """The bearer token that who holds the collectors' secret key knows, too; it does not tell the key."""
    return hashlib.sha256(b"plimsoll sessions " + secret.strip().encode()).hexdigest()


class Sender:
    """Sends with a thread of its own. `refused`: sessions that no collector would take, and those given up."""

    def __init__(self, where: Where, token: str) -> None:
        self._where, self._token = where, token
        self._waiting: OrderedDict[str, Mapping[str, Any]] = OrderedDict()
        self._lock = threading.Lock()
        self._news = threading.Event()
        self._end = False
        self.arrived = self.refused = 0
        self.fault = ""
        self._thread = threading.Thread(target=self._run, name="sessions to telemetry", daemon=True)
        self._thread.start()

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    def offer(self, session: Mapping[str, Any]) -> None:
        """Send a session that is over."""
        told = brief(session)
        with self._lock:
            self._waiting[told["metadata"]["uid"] or told["metadata"]["name"]] = told
            while len(self._waiting) > WAITING_AT_MOST:
                self._waiting.popitem(last=False)
                self.refused += 1
        self._news.set()

    def stop(self, seconds: float = 2 * ANSWER_SECONDS) -> None:
        """End, and wait for that so long; what waits still is not sent."""
        self._end = True
        self._news.set()
        self._thread.join(seconds)

    def _run(self) -> None:
        while not self._end:
            self._news.wait()
            self._news.clear()
            while self._waiting and not self._end:
                if not self._send():
                    self._news.wait(AGAIN_SECONDS)
                    self._news.clear()

    def _send(self) -> bool:
        """Send some of what waits; whether a collector has answered for it."""
        with self._lock:
            some = dict(list(self._waiting.items())[:AT_ONCE])
        where = self._where()
        if where is None:
            self.fault = "no collector serves yet"
            return False
        try:
            refused = post(where, list(some.values()), self._token)
        except (OSError, HTTPException, ValueError) as error:
            self.fault = f"{where[0]}:{where[1]}: {error}"
            return False
        with self._lock:
            for uid, session in some.items():
                if self._waiting.get(uid) is session:
                    del self._waiting[uid]
        self.arrived += len(some) - refused
        self.refused += refused
        self.fault = ""
        return True


def post(where: tuple[str, int], sessions: list[Mapping[str, Any]], token: str) -> int:
    """Send sessions that are over to a collector; how many it has refused.

    Raises:
        OSError, HTTPException: it was not reached. ValueError: it did not accept the request; says why.

    """
    connection = HTTPConnection(*where, timeout=ANSWER_SECONDS)
    try:
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        connection.request("POST", "/v1/sessions", json.dumps(sessions).encode(), headers)
        answer = connection.getresponse()
        said = json.loads(answer.read())
    finally:
        connection.close()
    if answer.status != 200:
        raise ValueError(f"{answer.status} {said.get('fault')}: {said.get('message')}")
    return int(said["invalid"])
