"""The result of polling a fleet's collectors: Spark's snapshot while it is valid, the merged folds, or silence."""

from __future__ import annotations

import time
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path

import msgspec
import pytest
from tests.telemetry.rows import report
from tests.telemetry.test_collector import by_spark, config
from tests.telemetry.test_main import wait_for

from plimsoll.core.config import PeerBroker
from plimsoll.telemetry.api.http_service import CollectorService
from plimsoll.telemetry.client.snapshot_poller import PollResult, SnapshotPoller, fetch
from plimsoll.telemetry.collector import TelemetryCollector
from plimsoll.telemetry.config import MonitoredCluster
from plimsoll.telemetry.http_server import HttpRequest, HttpResponse, HttpServer
from plimsoll.telemetry.ingest.head_listener import HeadReports
from plimsoll.telemetry.schema import INCOMING, LATEST, LOADS
from plimsoll.telemetry.snapshot import SnapshotError, SnapshotRequirements
from plimsoll.telemetry.storage.folder import TelemetryFolder
from plimsoll.telemetry.storage.set_aside import set_aside_unreadable

DEAD = ("127.0.0.1", 1)


def now_us() -> int:
    return time.time_ns() // 1000


@pytest.fixture
def services(tmp_path: Path) -> Iterator[list[CollectorService]]:
    """Two collectors with a share each, over one folder."""
    clusters = {
        name: MonitoredCluster(head=PeerBroker(name=f"{name}-h", control="tcp://127.0.0.1:1"), brokers=(f"{name}-e",))
        for name in ("a", "b", "c", "d")
    }
    made = []
    for index in range(2):
        told = msgspec.structs.replace(config(tmp_path, clusters=clusters), index=index, collectors=2)
        collector = TelemetryCollector(told, TelemetryFolder(tmp_path, f"c{index}"), 1)
        collector.start(now_us())
        for name in told.share:
            collector.take_reports(HeadReports(name, [report(f"{name}-e", at_us=now_us(), cluster=name)], 0), now_us())
        assert told.share
        made.append(CollectorService(collector, lambda: 0.0, now_us))
        made[-1].start()
    yield made
    for each in made:
        each.stop()


def place(service: CollectorService) -> tuple[str, int]:
    return "127.0.0.1", service.port


def asked(asker: SnapshotPoller) -> PollResult:
    try:
        found: PollResult = wait_for(lambda: asker.result)
    finally:
        asker.stop()
    return found


def test_folds_of_all_collectors_make_one(services: list[CollectorService]):
    known = asked(SnapshotPoller(lambda: [place(each) for each in services], SnapshotRequirements("f")))
    assert known.chosen is not None
    assert known.chosen.snapshot.seen == known.chosen.snapshot.expected == 4
    assert known.status == {
        "source": "Fold", "reason": "Missing: Spark has written none", "brokersSeen": 4, "brokersExpected": 4,
    }  # fmt: skip


def test_files_set_aside_are_in_the_status(services: list[CollectorService], tmp_path: Path):
    bad = tmp_path / INCOMING / "a.parquet"
    bad.touch()
    (found,) = set_aside_unreadable(tmp_path, [bad], LOADS, "live", now_us())
    known = asked(SnapshotPoller(lambda: [place(each) for each in services], SnapshotRequirements("f")))
    assert known.set_aside.newest == [found]
    assert known.status["filesSetAside"] == 1
    assert known.status["lastSetAside"].startswith("a.parquet: not Parquet, or damaged")


def test_a_silent_collector_is_told(services: list[CollectorService]):
    known = asked(SnapshotPoller(lambda: [DEAD, place(services[0])], SnapshotRequirements("f")))
    assert known.silent == 1
    assert known.status["reason"].endswith("; 1 collectors are silent")
    assert 0 < known.status["brokersSeen"] < 4


def test_silence_is_told():
    known = asked(SnapshotPoller(lambda: [DEAD], SnapshotRequirements("f")))
    assert known.chosen is None
    assert known.status == {"source": "Fold", "reason": "Silent: none of 1 collectors answers"}


def test_sparks_snapshot_is_chosen_after_two_windows(services: list[CollectorService], tmp_path: Path):
    asker = SnapshotPoller(lambda: [place(each) for each in services], SnapshotRequirements("f"), every_seconds=0.05)
    try:
        (tmp_path / LATEST).write_bytes(by_spark(1, now_us()))
        wait_for(lambda: asker.result and asker.result.status["reason"].startswith("Unproven"))
        (tmp_path / LATEST).write_bytes(by_spark(2, now_us()))
        wait_for(lambda: asker.result and asker.result.status["source"] == "Spark")
        found = asker.result
        assert found is not None
        assert found.status["snapshotAgeSeconds"] <= 45
        assert (found.status["brokersSeen"], found.status["brokersExpected"]) == (2, 2)
        end_us = now_us() - 60_000_000
        (tmp_path / LATEST).write_bytes(by_spark(3, end_us))
        wait_for(lambda: asker.result and asker.result.status["reason"].startswith("Stale"))
        stale = asker.result
        assert stale is not None
        assert stale.last is not None
        assert stale.last.window_end_us == end_us
        (tmp_path / LATEST).write_bytes(b"{}")
        wait_for(lambda: asker.result and asker.result.status["reason"].startswith("UnknownSchema"))
    finally:
        asker.stop()


@pytest.mark.parametrize(
    ("status", "body", "why"),
    [
        (HTTPStatus.BAD_GATEWAY, b'"the pod is away"', "/v1/fold: 502 'the pod is away'"),
        (HTTPStatus.SERVICE_UNAVAILABLE, b"no JSON", "JSON is malformed"),
        (HTTPStatus.OK, b"{}", "schema None; this reader knows"),
    ],
)
def test_an_answer_that_is_of_no_use_counts_as_silence_and_is_logged_once(
    status: HTTPStatus, body: bytes, why: str, caplog: pytest.LogCaptureFixture
):
    asked_for: list[str] = []

    def answer(request: HttpRequest) -> HttpResponse:
        asked_for.append(request.target)
        return HttpResponse(status, body)

    proxy = HttpServer(("127.0.0.1", 0), answer)
    proxy.start()
    try:
        asker = SnapshotPoller(lambda: [("127.0.0.1", proxy.port)], SnapshotRequirements("f"), every_seconds=0.001)
        wait_for(lambda: len(asked_for) > 3)
        asker.stop()
    finally:
        proxy.close()
    assert asker.result is not None
    assert asker.result.silent == 1
    assert len(caplog.records) == 1
    assert why in caplog.text


def test_another_fleets_collector_says_nothing_of_ours(services: list[CollectorService]):
    known = asked(SnapshotPoller(lambda: [place(services[0])], SnapshotRequirements("g")))
    assert (known.chosen, known.silent) == (None, 1)


def test_refusals_have_their_name(services: list[CollectorService]):
    with pytest.raises(SnapshotError, match="Spark has written none") as refused:
        fetch(place(services[0]), "/v1/snapshot?source=spark")
    assert refused.value.fault == "Missing"
    with pytest.raises(ValueError, match="404"):
        fetch(place(services[0]), "/v9")
