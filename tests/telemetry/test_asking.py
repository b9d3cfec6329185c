"""What is known of a fleet by asking its collectors: Spark's snapshot while it is good, the folds together, silence."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from tests.telemetry.rows import report
from tests.telemetry.test_collector import by_spark, config
from tests.telemetry.test_main import wait_for

from plimsoll.core.config import Peer
from plimsoll.telemetry.asking import Asker, Known, get
from plimsoll.telemetry.collector import Collector
from plimsoll.telemetry.config import Listened
from plimsoll.telemetry.files import Files
from plimsoll.telemetry.listening import Heard
from plimsoll.telemetry.schema import LATEST
from plimsoll.telemetry.service import Service
from plimsoll.telemetry.snapshot import SnapshotError, Wanted

DEAD = ("127.0.0.1", 1)


def now_us() -> int:
    return time.time_ns() // 1000


@pytest.fixture
def services(tmp_path: Path) -> Iterator[list[Service]]:
    """Two collectors with a share each, over one folder."""
    clusters = {
        name: Listened(head=Peer(name=f"{name}-h", control="tcp://127.0.0.1:1"), brokers=(f"{name}-e",))
        for name in ("a", "b", "c", "d")
    }
    made = []
    for index in range(2):
        told = msgspec.structs.replace(config(tmp_path, clusters=clusters), index=index, collectors=2)
        collector = Collector(told, Files(tmp_path, f"c{index}"), 1)
        collector.start(now_us())
        for name in told.share:
            collector.heard(Heard(name, [report(f"{name}-e", at_us=now_us(), cluster=name)], 0), now_us())
        assert told.share
        made.append(Service(collector, lambda: 0.0, now_us))
        made[-1].start()
    yield made
    for each in made:
        each.stop()


def place(service: Service) -> tuple[str, int]:
    return "127.0.0.1", service.port


def asked(asker: Asker) -> Known:
    try:
        found: Known = wait_for(lambda: asker.known)
    finally:
        asker.stop()
    return found


def test_folds_of_all_collectors_make_one(services: list[Service]):
    known = asked(Asker(lambda: [place(each) for each in services], Wanted("f")))
    assert known.chosen is not None
    assert known.chosen.snapshot.seen == known.chosen.snapshot.expected == 4
    assert known.status == {
        "source": "Fold", "reason": "Missing: Spark has written none", "brokersSeen": 4, "brokersExpected": 4,
    }  # fmt: skip


def test_a_silent_collector_is_told(services: list[Service]):
    known = asked(Asker(lambda: [DEAD, place(services[0])], Wanted("f")))
    assert known.silent == 1
    assert known.status["reason"].endswith("; 1 collectors are silent")
    assert 0 < known.status["brokersSeen"] < 4


def test_silence_is_told():
    known = asked(Asker(lambda: [DEAD], Wanted("f")))
    assert known.chosen is None
    assert known.status == {"source": "Fold", "reason": "Silent: none of 1 collectors answers"}


def test_sparks_snapshot_is_chosen_after_two_windows(services: list[Service], tmp_path: Path):
    asker = Asker(lambda: [place(each) for each in services], Wanted("f"), every_seconds=0.05)
    try:
        (tmp_path / LATEST).write_bytes(by_spark(1, now_us()))
        wait_for(lambda: asker.known and asker.known.status["reason"].startswith("Unproven"))
        (tmp_path / LATEST).write_bytes(by_spark(2, now_us()))
        wait_for(lambda: asker.known and asker.known.status["source"] == "Spark")
        found = asker.known
        assert found is not None
        assert found.status["snapshotAgeSeconds"] <= 45
        assert (found.status["brokersSeen"], found.status["brokersExpected"]) == (2, 2)
        end_us = now_us() - 60_000_000
        (tmp_path / LATEST).write_bytes(by_spark(3, end_us))
        wait_for(lambda: asker.known and asker.known.status["reason"].startswith("Stale"))
        stale = asker.known
        assert stale is not None
        assert stale.last is not None
        assert stale.last.window_end_us == end_us
        (tmp_path / LATEST).write_bytes(b"{}")
        wait_for(lambda: asker.known and asker.known.status["reason"].startswith("UnknownSchema"))
    finally:
        asker.stop()


def test_another_fleets_collector_says_nothing_of_ours(services: list[Service]):
    known = asked(Asker(lambda: [place(services[0])], Wanted("g")))
    assert (known.chosen, known.silent) == (None, 1)


def test_refusals_have_their_name(services: list[Service]):
    with pytest.raises(SnapshotError, match="Spark has written none") as refused:
        get(place(services[0]), "/v1/snapshot?source=spark")
    assert refused.value.fault == "Missing"
    with pytest.raises(ValueError, match="404"):
        get(place(services[0]), "/v9")
