"""Answers over HTTP, through a real socket: the right source and its name, and refusals with reasons."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from typing import Any

import pytest
from tests.telemetry.rows import NOW_US, report
from tests.telemetry.test_collector import by_spark, started
from tests.telemetry.test_session_rows import session

from plimsoll.telemetry import http_server, snapshot
from plimsoll.telemetry.api import http_service as module
from plimsoll.telemetry.api.http_service import CollectorService
from plimsoll.telemetry.ingest.head_listener import HeadReports
from plimsoll.telemetry.schema import LATEST
from plimsoll.telemetry.snapshot import SnapshotRequirements, decode_usable

TOKEN = "known-to-few"  # noqa: S105  # of this test alone


@pytest.fixture
def served(tmp_path: Path) -> Iterator[CollectorService]:
    (tmp_path / "token").write_text(TOKEN + "\n")
    collector = started(tmp_path, token_file=str(tmp_path / "token"))
    collector.advance(0.0, NOW_US)
    collector.take_reports(HeadReports("c", [report("e1"), report("e2")], 0), NOW_US)
    service = CollectorService(collector, lambda: 1.0, lambda: NOW_US)
    service.start()
    yield service
    service.stop()


def ask(
    service: CollectorService, target: str, body: bytes | None = None, **headers: str
) -> tuple[HTTPResponse, bytes]:
    connection = HTTPConnection("127.0.0.1", service.port, timeout=120)
    try:
        connection.request("GET" if body is None else "POST", target, body, headers)
        answer = connection.getresponse()
        return answer, answer.read()
    finally:
        connection.close()


def test_without_spark_the_fold_is_served_and_says_so(served: CollectorService):
    answer, body = ask(served, "/v1/snapshot")
    assert (answer.status, answer.headers["Plimsoll-Source"]) == (200, "fold")
    assert answer.headers["Plimsoll-Refused"] == "Missing: Spark has written none"
    found = decode_usable(body, SnapshotRequirements("f"), NOW_US)
    assert (found.source, found.seen) == ("fold", 2)
    answer, body = ask(served, "/v1/fold")
    assert (answer.status, decode_usable(body, SnapshotRequirements("f"), NOW_US).source) == (200, "fold")
    assert answer.headers["Plimsoll-Refused"] is None


def test_sparks_snapshot_is_served_as_it_was_written(served: CollectorService):
    (served.collector.files.root / LATEST).write_bytes(by_spark())
    answer, body = ask(served, "/v1/snapshot")
    assert (answer.status, answer.headers["Plimsoll-Source"], body) == (200, "spark", by_spark())


def test_who_wants_spark_alone_is_told_why_not(served: CollectorService):
    (served.collector.files.root / LATEST).write_bytes(by_spark(end_us=NOW_US - 46_000_000))
    answer, body = ask(served, "/v1/snapshot?source=spark")
    said = json.loads(body)
    assert (answer.status, said["fault"]) == (503, "Stale")
    assert said["last"]["window_end_us"] == NOW_US - 46_000_000, "how old it is, is still of use"
    answer, body = ask(served, "/v1/snapshot?source=stars")
    assert answer.status == 400


def test_health_follows_the_loop(served: CollectorService):
    assert ask(served, "/livez")[0].status == 200
    assert ask(served, "/readyz")[0].status == 200
    served.clock = lambda: 100.0
    assert ask(served, "/livez")[0].status == 503


def test_other_paths_and_methods_are_refused(served: CollectorService):
    assert ask(served, "/v2/snapshot")[0].status == 404
    assert ask(served, "/v1/fold", b"[]")[0].status == 404


def test_figures_are_served(served: CollectorService):
    answer, body = ask(served, "/metrics")
    assert answer.status == 200
    assert b'plimsoll_telemetry_rows_total{outcome="counted"} 2.0' in body


def sent(service: CollectorService, items: Any, token: str = TOKEN) -> tuple[int, Any]:
    body = items if isinstance(items, bytes) else json.dumps(items).encode()
    answer, said = ask(service, "/v1/sessions", body, Authorization=f"Bearer {token}")
    return answer.status, json.loads(said)


def test_sessions_are_taken_from_who_knows_the_token(served: CollectorService):
    assert sent(served, [session("a"), session("a"), session("b", phase="Draining")]) == (
        200,
        {
            "counted": 1,
            "duplicate": 1,
            "invalid": 1,
            "why": ["session b is Draining; only sessions that are over are kept"],
        },
    )
    for token in ("", "wrong", "known-to-few-others"):
        assert sent(served, [session("c")], token)[0] == 401
    assert sent(served, b"{}")[0] == 400
    assert sent(served, b"\xff")[0] == 400
    assert len(served.collector.outcomes.pending_rows) == 1


def test_without_a_token_no_session_is_accepted_and_the_log_says_why(
    served: CollectorService, caplog: pytest.LogCaptureFixture
):
    Path(served.collector.config.token_file).write_text("")
    assert sent(served, [session("c")], "")[0] == 401
    assert caplog.records == []
    Path(served.collector.config.token_file).unlink()
    for _ in range(2):
        assert sent(served, [session("c")])[0] == 401
    assert [each.message.partition(":")[0] for each in caplog.records] == [
        "no sessions are accepted, the bearer token cannot be read"
    ]
    assert "No such file or directory" in caplog.text


def test_a_body_must_say_its_length_and_keep_to_the_limit(served: CollectorService):
    assert ask(served, "/v1/sessions", b"x" * (module.BODY_BYTES + 1))[0].status == 413
    answer, _ = ask(served, "/v1/sessions", b"", **{"Content-Length": "many"})
    assert answer.status == 411
    assert sent(served, b"[" + b" " * (module.BODY_BYTES - 2) + b"]")[0] == 200


@pytest.mark.parametrize("slow", [20, 300])
def test_connections_that_say_little_do_not_keep_others_out(served: CollectorService, slow: int):
    """A connection may take its time; it is dropped for a newer one, and readers that ask are answered at once."""
    idle = [socket.create_connection(("127.0.0.1", served.port)) for _ in range(slow)]
    try:
        for each in idle[-http_server.MAX_CONNECTIONS // 2 :]:
            each.sendall(b"G")
        assert ask(served, "/v1/fold")[0].status == 200
        assert sent(served, [session("a")])[0] == 200
    finally:
        for each in idle:
            each.close()


def test_a_fold_over_http_is_what_the_collector_says(served: CollectorService):
    _, body = ask(served, "/v1/fold")
    ours = served.collector.fold_snapshot(NOW_US)
    assert snapshot.decode_snapshot(body).clusters == ours.clusters
