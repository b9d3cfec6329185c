"""What readers get over HTTP, through a real socket: the right source and its name, and refusals that say why."""

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
from tests.telemetry.test_outcomes import session

from plimsoll.telemetry import service as module
from plimsoll.telemetry import snapshot
from plimsoll.telemetry.listening import Heard
from plimsoll.telemetry.schema import LATEST
from plimsoll.telemetry.service import Service
from plimsoll.telemetry.snapshot import Wanted, verified

TOKEN = "known-to-few"  # noqa: S105


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Service]:
    (tmp_path / "token").write_text(TOKEN + "\n")
    collector = started(tmp_path, token_file=str(tmp_path / "token"))
    collector.step(0.0, NOW_US)
    collector.heard(Heard("c", [report("e1"), report("e2")], 0), NOW_US)
    service = Service(collector, lambda: 1.0, lambda: NOW_US)
    service.start()
    yield service
    service.stop()


def ask(service: Service, target: str, body: bytes | None = None, **headers: str) -> tuple[HTTPResponse, bytes]:
    connection = HTTPConnection("127.0.0.1", service.port, timeout=10)
    try:
        connection.request("GET" if body is None else "POST", target, body, headers)
        answer = connection.getresponse()
        return answer, answer.read()
    finally:
        connection.close()


def test_without_spark_the_fold_is_served_and_says_so(served: Service):
    answer, body = ask(served, "/v1/snapshot")
    assert (answer.status, answer.headers["Plimsoll-Source"]) == (200, "fold")
    assert answer.headers["Plimsoll-Refused"] == "Missing: Spark has written none"
    found = verified(body, Wanted("f"), NOW_US)
    assert (found.source, found.seen) == ("fold", 2)
    answer, body = ask(served, "/v1/fold")
    assert (answer.status, verified(body, Wanted("f"), NOW_US).source) == (200, "fold")
    assert answer.headers["Plimsoll-Refused"] is None


def test_sparks_snapshot_is_served_as_it_was_written(served: Service):
    (served.collector.files.root / LATEST).write_bytes(by_spark())
    answer, body = ask(served, "/v1/snapshot")
    assert (answer.status, answer.headers["Plimsoll-Source"], body) == (200, "spark", by_spark())


def test_who_wants_spark_alone_is_told_why_not(served: Service):
    (served.collector.files.root / LATEST).write_bytes(by_spark(end_us=NOW_US - 46_000_000))
    answer, body = ask(served, "/v1/snapshot?source=spark")
    said = json.loads(body)
    assert (answer.status, said["fault"]) == (503, "Stale")
    assert said["last"]["window_end_us"] == NOW_US - 46_000_000, "how old it is, is still of use"
    answer, body = ask(served, "/v1/snapshot?source=stars")
    assert answer.status == 400


def test_health_follows_the_loop(served: Service):
    assert ask(served, "/livez")[0].status == 200
    assert ask(served, "/readyz")[0].status == 200
    served.clock = lambda: 100.0
    assert ask(served, "/livez")[0].status == 503


def test_other_paths_and_methods_are_refused(served: Service):
    assert ask(served, "/v2/snapshot")[0].status == 404
    assert ask(served, "/v1/fold", b"[]")[0].status == 404


def test_figures_are_served(served: Service):
    answer, body = ask(served, "/metrics")
    assert answer.status == 200
    assert b'plimsoll_telemetry_rows_total{outcome="counted"} 2.0' in body


def sent(service: Service, items: Any, token: str = TOKEN) -> tuple[int, Any]:
    body = items if isinstance(items, bytes) else json.dumps(items).encode()
    answer, said = ask(service, "/v1/sessions", body, Authorization=f"Bearer {token}")
    return answer.status, json.loads(said)


def test_sessions_are_taken_from_who_knows_the_token(served: Service):
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
    assert len(served.collector.outcomes.waiting) == 1


def test_without_a_token_nobody_sends_sessions(served: Service):
    Path(served.collector.config.token_file).write_text("")
    assert sent(served, [session("c")], "")[0] == 401
    Path(served.collector.config.token_file).unlink()
    assert sent(served, [session("c")])[0] == 401


def test_a_body_must_say_its_length_and_keep_to_the_limit(served: Service, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "BODY_BYTES", 10)
    assert ask(served, "/v1/sessions", b"x" * 11)[0].status == 413
    answer, _ = ask(served, "/v1/sessions", b"", **{"Content-Length": "many"})
    assert answer.status in (400, 413)


def test_readers_that_say_nothing_do_not_keep_others_out(served: Service):
    idle = [socket.create_connection(("127.0.0.1", served.port)) for _ in range(module.AT_ONCE - 1)]
    try:
        assert ask(served, "/v1/fold")[0].status == 200
    finally:
        for each in idle:
            each.close()


def test_a_fold_over_http_is_what_the_collector_says(served: Service):
    _, body = ask(served, "/v1/fold")
    ours = served.collector.fold(NOW_US)
    assert snapshot.decode(body).clusters == ours.clusters
