"""The collector's service: snapshots, figures and health over HTTP, for readers that check what they get.

GET  /v1/snapshot  Spark's snapshot if it may be used now, else the fold; `Plimsoll-Source` says which, and
                   `Plimsoll-Refused` why it is not Spark's. `?source=spark` has no second choice: 503.
GET  /v1/fold      what the newest reports of this collector's share add up to
POST /v1/sessions  sessions that are over, as a JSON list of objects, with the bearer token that collectors are told
GET  /metrics, /livez, /readyz

A reader that is slow, rude or many does not disturb the collector: requests are short, and few are served at once.
"""

from __future__ import annotations

import hmac
import json
import socket
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

import msgspec

from plimsoll.telemetry import snapshot
from plimsoll.telemetry.collector import Collector
from plimsoll.telemetry.metrics import CONTENT_TYPE, Metrics
from plimsoll.telemetry.sending import token_of
from plimsoll.telemetry.snapshot import Last, SnapshotError

BODY_BYTES: Final = 4 * 1024 * 1024
REQUEST_SECONDS: Final = 10.0
AT_ONCE: Final = 16
JSON: Final = "application/json"


@dataclass(frozen=True)
class Answer:
    """What a request is answered with."""

    status: HTTPStatus
    body: bytes
    kind: str = JSON
    headers: Mapping[str, str] = field(default_factory=dict)


def problem(status: HTTPStatus, fault: str, text: str, last: Last | None = None) -> Answer:
    said: dict[str, Any] = {"fault": fault, "message": text}
    if last is not None:
        said["last"] = msgspec.to_builtins(last)
    return Answer(status, json.dumps(said).encode())


class Service:
    """Serves one collector. `clock`: monotonic seconds; `clock_us`: the wall clock."""

    def __init__(self, collector: Collector, clock: Callable[[], float], clock_us: Callable[[], int]) -> None:
        self.collector, self.clock, self.clock_us = collector, clock, clock_us
        self.metrics = Metrics(collector, clock_us)
        self._server = _Server(collector.config.address, self)
        self._thread = threading.Thread(target=self._server.serve_forever, name="service", daemon=True)

    @property
    def port(self) -> int:
        """The port that it listens on."""
        return int(self._server.server_address[1])

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    # -- what requests are answered with

    def get(self, target: str) -> Answer:
        """The answer to GET."""
        url = urlsplit(target)
        if url.path == "/v1/snapshot":
            return self._snapshot(parse_qs(url.query).get("source", ["any"])[-1])
        if url.path == "/v1/fold":
            return self._fold()
        if url.path == "/metrics":
            return Answer(HTTPStatus.OK, self.metrics.text(), CONTENT_TYPE)
        if url.path in ("/livez", "/readyz"):
            return self._health()
        return problem(HTTPStatus.NOT_FOUND, "NotFound", f"there is no {url.path}")

    def _snapshot(self, source: str) -> Answer:
        if source not in ("any", "spark"):
            return problem(
                HTTPStatus.BAD_REQUEST, "BadRequest", f"source={source}: known is spark; leave it out for any"
            )
        try:
            data, _ = self.collector.spark(self.clock_us())
        except SnapshotError as error:
            refused = f"{error.fault}: {error}"
            if source == "spark":
                return problem(HTTPStatus.SERVICE_UNAVAILABLE, error.fault, str(error), error.last)
            return self._fold(refused)
        return Answer(HTTPStatus.OK, data, headers={"Plimsoll-Source": "spark"})

    def _fold(self, refused: str = "") -> Answer:
        headers = {"Plimsoll-Source": "fold"}
        if refused:
            headers["Plimsoll-Refused"] = refused.encode("ascii", "replace").decode()[:500].replace("\n", " ")
        return Answer(HTTPStatus.OK, snapshot.encode(self.collector.fold(self.clock_us())), headers=headers)

    def _health(self) -> Answer:
        if self.collector.is_alive(self.clock()):
            return Answer(HTTPStatus.OK, b"ok\n", "text/plain")
        return problem(HTTPStatus.SERVICE_UNAVAILABLE, "NotAlive", "the collector's loop stands still")

    def post(self, target: str, token: str, body: bytes) -> Answer:
        """The answer to POST."""
        if urlsplit(target).path != "/v1/sessions":
            return problem(HTTPStatus.NOT_FOUND, "NotFound", "sessions are sent to /v1/sessions")
        if not self._is_known(token):
            return problem(HTTPStatus.UNAUTHORIZED, "Unauthorized", "send the bearer token that collectors are told")
        try:
            items = msgspec.json.decode(body, type=list[dict[str, Any]])
        except msgspec.MsgspecError as error:
            return problem(HTTPStatus.BAD_REQUEST, "Malformed", f"expected a JSON list of sessions: {error}")
        counted = duplicate = 0
        refused: list[str] = []
        for item in items:
            try:
                if self.collector.session(item, self.clock_us()):
                    counted += 1
                else:
                    duplicate += 1
            except ValueError as error:
                refused.append(str(error))
        said = {"counted": counted, "duplicate": duplicate, "invalid": len(refused), "why": refused[:3]}
        return Answer(HTTPStatus.OK, json.dumps(said).encode())

    def _is_known(self, token: str) -> bool:
        config = self.collector.config
        name, key = config.token_file, config.security.secret_key_file
        try:
            if name:
                wanted = Path(name).read_text(encoding="ascii").strip()
            else:
                wanted = token_of(Path(key).read_text(encoding="ascii")) if key else ""
        except (OSError, UnicodeDecodeError):
            wanted = ""
        return bool(wanted) and hmac.compare_digest(token.encode(), wanted.encode())


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 64

    def __init__(self, address: tuple[str, int], service: Service) -> None:
        self.service = service
        self._room = threading.BoundedSemaphore(AT_ONCE)
        if ":" in address[0]:
            self.address_family = socket.AF_INET6
        super().__init__(address, _Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        if not self._room.acquire(timeout=1.0):
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except BaseException:
            self._room.release()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._room.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A connection that breaks is nobody's fault here; anything else is shown by the default."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    server_version = "plimsoll"
    sys_version = ""
    timeout = REQUEST_SECONDS

    def do_GET(self) -> None:
        self._say(self.server.service.get(self.path))

    def do_POST(self) -> None:
        length = self.headers.get("Content-Length", "")
        if not length.isdigit() or int(length) > BODY_BYTES:
            self.close_connection = True
            self._say(
                problem(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "TooLarge", f"at most {BODY_BYTES} bytes, by length")
            )
            return
        scheme, _, token = self.headers.get("Authorization", "").partition(" ")
        body = self.rfile.read(int(length))
        self._say(self.server.service.post(self.path, token.strip() if scheme == "Bearer" else "", body))

    def _say(self, answer: Answer) -> None:
        self.send_response(answer.status)
        self.send_header("Content-Type", answer.kind)
        self.send_header("Content-Length", str(len(answer.body)))
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(answer.body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  the base class calls it so
        """Requests are counted by whoever asks; a log line for each helps nobody."""
