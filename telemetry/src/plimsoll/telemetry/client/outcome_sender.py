"""Sends finished sessions to a collector from a thread of its own, and repeats them until a collector answers.

A mediator may enqueue the same session again and again: a collector takes each once. The queue is bounded and drops
its oldest sessions first, so telemetry never holds up a session.
"""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from http.client import HTTPConnection, HTTPException
from typing import Annotated, Any, Final

import msgspec

from plimsoll.telemetry.session_rows import session_brief

WAITING_AT_MOST: Final = 1000
SESSIONS_PER_REQUEST: Final = 50
RETRY_SECONDS: Final = 5.0
ANSWER_SECONDS: Final = 5.0

ANSWER_BYTES: Final = 64 * 1024

ServiceAddress = Callable[[], tuple[str, int] | None]
"""Host and port of a collector's service now; None while there is none."""


class _SessionsAnswer(msgspec.Struct, frozen=True):
    """What a collector says of sessions that it was sent, or why it refuses them; other fields are ignored."""

    invalid: Annotated[int, msgspec.Meta(ge=0, le=SESSIONS_PER_REQUEST)] | None = None
    fault: str = ""
    message: str = ""


class OutcomeSender:
    """`refused`: sessions that a collector refused or that the full queue dropped; `fault`: why sending fails now."""

    def __init__(self, where: ServiceAddress, token: str) -> None:
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

    def enqueue(self, session: Mapping[str, Any]) -> None:
        """Queue a finished session for sending."""
        told = session_brief(session)
        with self._lock:
            self._waiting[told["metadata"]["uid"] or told["metadata"]["name"]] = told
            while len(self._waiting) > WAITING_AT_MOST:
                self._waiting.popitem(last=False)
                self.refused += 1
        self._news.set()

    def stop(self, seconds: float = 2 * ANSWER_SECONDS) -> None:
        """Stop the thread and wait for it for up to `seconds`; sessions still queued are not sent."""
        self._end = True
        self._news.set()
        self._thread.join(seconds)

    def _run(self) -> None:
        while not self._end:
            self._news.wait()
            self._news.clear()
            while self._waiting and not self._end:
                if not self._send():
                    self._news.wait(RETRY_SECONDS)
                    self._news.clear()

    def _send(self) -> bool:
        """Send the oldest of the queue; whether a collector has answered."""
        with self._lock:
            some = dict(list(self._waiting.items())[:SESSIONS_PER_REQUEST])
        where = self._where()
        if where is None:
            self.fault = "no collector serves yet"
            return False
        try:
            refused = post_sessions(where, list(some.values()), self._token)
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


def post_sessions(where: tuple[str, int], sessions: list[Mapping[str, Any]], token: str) -> int:
    """Send finished sessions to a collector; how many it refused.

    Raises:
        OSError, HTTPException: it was not reached. ValueError: it did not accept the request; says why.

    """
    connection = HTTPConnection(*where, timeout=ANSWER_SECONDS)
    try:
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        connection.request("POST", "/v1/sessions", json.dumps(sessions).encode(), headers)
        answer = connection.getresponse()
        body = answer.read(ANSWER_BYTES)
    finally:
        connection.close()
    said = msgspec.json.decode(body, type=_SessionsAnswer)
    if answer.status != 200 or said.invalid is None:
        raise ValueError(f"{answer.status} {said.fault}: {said.message}")
    return said.invalid
