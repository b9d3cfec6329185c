"""The collector's service: snapshots, figures and health over HTTP, for readers that verify the answers.

GET  /v1/snapshot  Spark's snapshot if it may be used now, else the fold; `Plimsoll-Source` says which, and
                   `Plimsoll-Refused` why it is not Spark's. `?source=spark` has no second choice: 503.
GET  /v1/set-aside the files that jobs could not read: how many, and the newest with their reasons
GET  /v1/fold      a snapshot folded from the newest reports of this collector's share
POST /v1/sessions  finished sessions as a JSON list of objects, authorized by the collectors' bearer token
GET  /metrics, /livez, /readyz

The server bounds the cost of a slow or rude reader: connections, bytes and seconds.
"""

from __future__ import annotations

import hmac
import json
import logging
from collections.abc import Callable
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

import msgspec

from plimsoll.telemetry import snapshot
from plimsoll.telemetry.api.metrics import CONTENT_TYPE, CollectorMetrics
from plimsoll.telemetry.collector import TelemetryCollector
from plimsoll.telemetry.credentials import bearer_token
from plimsoll.telemetry.http_server import HttpRequest, HttpResponse, HttpServer
from plimsoll.telemetry.schema import SetAsideList
from plimsoll.telemetry.snapshot import SnapshotError, SnapshotSummary

log = logging.getLogger(__name__)

BODY_BYTES: Final = 4 * 1024 * 1024
REQUEST_SECONDS: Final = 10.0
JSON: Final = "application/json"
SET_ASIDE_LISTED: Final = 20


def problem_response(status: HTTPStatus, fault: str, text: str, last: SnapshotSummary | None = None) -> HttpResponse:
    said: dict[str, Any] = {"fault": fault, "message": text}
    if last is not None:
        said["last"] = msgspec.to_builtins(last)
    return HttpResponse(status, json.dumps(said).encode(), JSON)


class CollectorService:
    """Serves one collector. `clock`: monotonic seconds; `clock_us`: the wall clock."""

    def __init__(self, collector: TelemetryCollector, clock: Callable[[], float], clock_us: Callable[[], int]) -> None:
        self.collector, self.clock, self.clock_us = collector, clock, clock_us
        self.metrics = CollectorMetrics(collector, clock_us)
        self._token_fault = ""
        self._server = HttpServer(
            collector.config.address, self.answer, methods=("GET", "POST"), body_bytes=BODY_BYTES,
            seconds=REQUEST_SECONDS,
        )  # fmt: skip

    @property
    def port(self) -> int:
        """The port that it listens on."""
        return self._server.port

    def start(self) -> None:
        self._server.start()

    def stop(self) -> None:
        self._server.close()

    def answer(self, request: HttpRequest) -> HttpResponse:
        """Called by the server's thread, one request after the other."""
        if request.method == "POST":
            scheme, _, token = request.headers.get("authorization", "").partition(" ")
            return self.post(request.target, token.strip() if scheme == "Bearer" else "", request.body)
        return self.get(request.target)

    # -- requests

    def get(self, target: str) -> HttpResponse:
        """The answer to GET."""
        url = urlsplit(target)
        if url.path == "/v1/snapshot":
            return self._snapshot(parse_qs(url.query).get("source", ["any"])[-1])
        if url.path == "/v1/fold":
            return self._fold()
        if url.path == "/v1/set-aside":
            found = self.collector.files.set_aside()
            listed = SetAsideList(count=len(found), newest=found[: -SET_ASIDE_LISTED - 1 : -1])
            return HttpResponse(HTTPStatus.OK, msgspec.json.encode(listed), JSON)
        if url.path == "/metrics":
            return HttpResponse(HTTPStatus.OK, self.metrics.text(), CONTENT_TYPE)
        if url.path in ("/livez", "/readyz"):
            return self._health()
        return problem_response(HTTPStatus.NOT_FOUND, "NotFound", f"there is no {url.path}")

    def _snapshot(self, source: str) -> HttpResponse:
        if source not in ("any", "spark"):
            return problem_response(
                HTTPStatus.BAD_REQUEST, "BadRequest", f"source={source}: use source=spark, or omit it for any source"
            )
        try:
            data, _ = self.collector.spark_snapshot(self.clock_us())
        except SnapshotError as error:
            refused = f"{error.fault}: {error}"
            if source == "spark":
                return problem_response(HTTPStatus.SERVICE_UNAVAILABLE, error.fault, str(error), error.last)
            return self._fold(refused)
        return HttpResponse(HTTPStatus.OK, data, JSON, {"Plimsoll-Source": "spark"})

    def _fold(self, refused: str = "") -> HttpResponse:
        headers = {"Plimsoll-Source": "fold"}
        if refused:
            headers["Plimsoll-Refused"] = refused.encode("ascii", "replace").decode()[:500].replace("\n", " ")
        data = snapshot.encode_snapshot(self.collector.fold_snapshot(self.clock_us()))
        return HttpResponse(HTTPStatus.OK, data, JSON, headers)

    def _health(self) -> HttpResponse:
        if self.collector.is_alive(self.clock()):
            return HttpResponse(HTTPStatus.OK, b"ok\n", "text/plain")
        return problem_response(HTTPStatus.SERVICE_UNAVAILABLE, "NotAlive", "the collector's loop has stopped")

    def post(self, target: str, token: str, body: bytes) -> HttpResponse:
        """The answer to POST."""
        if urlsplit(target).path != "/v1/sessions":
            return problem_response(HTTPStatus.NOT_FOUND, "NotFound", "sessions are sent to /v1/sessions")
        if not self._is_known(token):
            return problem_response(HTTPStatus.UNAUTHORIZED, "Unauthorized", "send the collectors' bearer token")
        try:
            items = msgspec.json.decode(body, type=list[dict[str, Any]])
        except msgspec.MsgspecError as error:
            return problem_response(HTTPStatus.BAD_REQUEST, "Malformed", f"expected a JSON list of sessions: {error}")
        counted = duplicate = 0
        refused: list[str] = []
        for item in items:
            try:
                if self.collector.take_session(item, self.clock_us()):
                    counted += 1
                else:
                    duplicate += 1
            except ValueError as error:
                refused.append(str(error))
        said = {"counted": counted, "duplicate": duplicate, "invalid": len(refused), "why": refused[:3]}
        return HttpResponse(HTTPStatus.OK, json.dumps(said).encode(), JSON)

    def _note_token_fault(self, fault: str) -> None:
        """Log once why the token cannot be read: every sender is refused meanwhile."""
        if fault and fault != self._token_fault:
            log.error("no sessions are accepted, the bearer token cannot be read: %s", fault)
        self._token_fault = fault

    def _is_known(self, token: str) -> bool:
        config = self.collector.config
        name, key = config.token_file, config.security.secret_key_file
        try:
            if name:
                wanted = Path(name).read_text(encoding="ascii").strip()
            else:
                wanted = bearer_token(Path(key).read_text(encoding="ascii")) if key else ""
        except (OSError, UnicodeDecodeError) as error:
            self._note_token_fault(str(error))
            return False
        self._note_token_fault("")
        return bool(wanted) and hmac.compare_digest(token.encode(), wanted.encode())
