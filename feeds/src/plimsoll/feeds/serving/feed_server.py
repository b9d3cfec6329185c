"""Serves the dataset of a recorder on a thread of its own, from one catalog to the next."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Final

from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol import wire
from plimsoll.core.protocol.wire import WireError
from plimsoll.feeds.commit_log import FeedState
from plimsoll.feeds.config import REQUEST_OUTCOMES, ServedFigures, ServingConfig
from plimsoll.feeds.object_path import DatasetPath
from plimsoll.feeds.serving.answers import answer, decoded_request
from plimsoll.feeds.serving.catalog import FeedCatalog
from plimsoll.feeds.serving.connection_watch import ConnectionWatch
from plimsoll.feeds.serving.feed_sockets import FeedSockets
from plimsoll.feeds.serving.open_connections import END_REASONS
from plimsoll.feeds.serving.turns import RequestTurns
from plimsoll.network.auth.authorized_keys import AuthorizedKeys, SecretKeyFile

WAIT_SECONDS: Final = 0.1
REFRESH_SECONDS: Final = 1.0
RECEIVED_AT_ONCE: Final = 64
ANSWERED_AT_ONCE: Final = 32
"""Before new requests are looked for."""


class FeedServer:
    """Serves from the first `show` on, until it is closed.

    Raises:
        KeyFileError: a file of keys cannot be used.
        FeedEndpointError: the endpoint cannot be bound.

    """

    def __init__(self, feed: str, root: DatasetPath, config: ServingConfig) -> None:
        self._feed, self._root, self._advertised = feed, root, config.advertised
        self._readers = AuthorizedKeys.read(config.readers, "serving.readers") if config.key else None
        key = SecretKeyFile.read(config.key, "serving.key") if config.key else None
        self._sockets = FeedSockets(config.endpoint, key, self._readers)
        self._turns, self._watch = RequestTurns(), ConnectionWatch(feed)
        self._catalog: FeedCatalog | None = None
        self._outcomes = dict.fromkeys(REQUEST_OUTCOMES, 0)
        self._served_bytes = 0
        self._shown = 0
        self._stop = threading.Event()
        self._fault: Exception | None = None
        self._thread = threading.Thread(target=self._run, name="feed-server", daemon=True)
        self._thread.start()

    @property
    def endpoint(self) -> str:
        """Where applications find it."""
        return self._advertised or self._sockets.endpoint

    @property
    def served(self) -> ServedFigures:
        """What it has served; may be asked on any thread."""
        malformed = self._outcomes["malformed"] + self._sockets.counters["messages_of_many_parts"]
        return ServedFigures(
            self._served_bytes, {**self._outcomes, "malformed": malformed}, self._watch.count,
            {reason: self._watch.endings[reason] for reason in END_REASONS},
        )  # fmt: skip

    def show(self, state: FeedState) -> None:
        """Serve what is committed now. Raises the fault that has ended the thread."""
        if self._fault is not None:
            raise self._fault
        number = state.last.number if state.last is not None else 0
        if number != self._shown:
            self._catalog, self._shown = FeedCatalog.of(self._feed, state), number

    def close(self) -> None:
        self._stop.set()
        self._thread.join()
        self._sockets.close()

    def _run(self) -> None:
        try:
            refresh_at = 0.0
            while not self._stop.is_set():
                now = time.monotonic()
                if now >= refresh_at:
                    refresh_at = now + REFRESH_SECONDS
                    if self._sockets.refresh():
                        self._watch.clear()
                due = self._turns.wait_seconds(now)
                self._sockets.wait(WAIT_SECONDS if due is None else min(due, WAIT_SECONDS))
                self._take_some(time.monotonic())
                self._answer_some()
        except Exception as error:  # noqa: BLE001  # the recorder raises it in its own thread
            self._fault = error

    def _take_some(self, now: float) -> None:
        requests = self._sockets.receive(RECEIVED_AT_ONCE)
        for event in self._sockets.take_events():
            self._watch.take(event, now)
        for request in requests:
            identity = "" if self._readers is None else self._readers.identity_of(request.key)
            is_admitted = self._watch.admits(request.connection, request.check, identity, now)
            if not (is_admitted and self._turns.add(identity, request)):
                self._outcomes["dropped"] += 1
        self._watch.check(now)

    def _answer_some(self) -> None:
        for _ in range(ANSWERED_AT_ONCE):
            waiting = self._turns.take(time.monotonic())
            if waiting is None or self._catalog is None:
                return
            try:
                request = decoded_request(waiting.data)
            except WireError:
                self._outcomes["malformed"] += 1
                continue
            reply = answer(self._catalog, self._refusal(waiting.key), request, self._read)
            self._note(reply, is_sent=self._sockets.send(waiting.peer, wire.control_frame(reply)))

    def _note(self, reply: msg.FeedAnswer, *, is_sent: bool) -> None:
        if isinstance(reply, msg.FeedRefused):
            self._outcomes[reply.code] += 1
        elif is_sent:
            self._outcomes["answered"] += 1
            self._served_bytes += len(reply.content) if isinstance(reply, msg.FeedFilePart) else 0
        else:
            self._outcomes["dropped"] += 1

    def _refusal(self, key: str) -> str:
        """By what is granted now, whenever the connection was made."""
        if self._readers is None:
            return ""
        known = self._readers.keys.get(key)
        return "this key is no longer authorised" if known is None else known.grant.read_refusal(self._feed)

    def _read(self, path: str, offset: int, size: int) -> bytes:
        place = self._root / path
        if not isinstance(place, Path):
            return place.read_range(offset, size)
        with place.open("rb") as file:
            file.seek(offset)
            return file.read(size)
