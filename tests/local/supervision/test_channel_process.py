"""Channels of a fleet of real brokers: each result once, also when the driver is killed; and what the status says."""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest
from tests.feeds.s3_server import BUCKET, running_store

from plimsoll.channels.config import ChannelFigures, DriverFigures, write_figures
from plimsoll.channels.ledger import ChannelLedger
from plimsoll.channels.standby import WAITS
from plimsoll.client import Connection, Curve, Delivery, Publisher, Subscriber, errors
from plimsoll.core.client import Address
from plimsoll.core.spec import SourceDocument, parse
from plimsoll.feeds.object_path import ObjectPath, dataset_root
from plimsoll.local import keys, manifests, runtime
from plimsoll.local.head_access import head_access
from plimsoll.local.storage.fleet_folder import FleetFolder
from plimsoll.local.storage.object_store import ObjectStore
from plimsoll.local.supervision import channel_process
from plimsoll.local.supervision.application_connection import ApplicationConnection
from plimsoll.local.supervision.channel_process import STANDBY, ChannelProcess
from plimsoll.sparkjobs.launch.local_process import missing_requirement

QUICKSTART = Path(__file__).parents[3] / "examples" / "quickstart.yaml"
DEADLINE_SECONDS = 300.0
COLUMNS = [{"name": "kind", "type": "String"}, {"name": "number", "type": "Integer"}]
PARAMETERS = [{"name": "kind", "type": "String"}]
QUERY = "SELECT p.kind, r.number FROM parameters p JOIN r ON r.kind = p.kind"


with socket.create_server(("127.0.0.1", 0)) as probe:
    METRICS_PORT: int = probe.getsockname()[1]


def scraped() -> set[str]:
    """The lines of the fleet's page for Prometheus."""
    connection = HTTPConnection("127.0.0.1", METRICS_PORT, timeout=120)
    connection.request("GET", "/metrics")
    lines = connection.getresponse().read().decode().splitlines()
    connection.close()
    return set(lines)


def document(kind: str, name: str, **spec: Any) -> SourceDocument:
    return SourceDocument(
        {"apiVersion": "plimsoll.dev/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec}
    )


def documents() -> list[SourceDocument]:
    common: dict[str, Any] = {"parameters": PARAMETERS, "feeds": [{"name": "r", "feed": "reports"}]}
    return [
        *manifests.load([str(QUICKSTART)]),
        document("Feed", "reports", subscription="[class,=,'REPORT']", commitInterval="1s",
                 schema={"columns": COLUMNS, "unknownAttributes": "Drop"}),
        document("Channel", "kinds", query=QUERY, **common),
        document("Channel", "wrong", query=QUERY.replace("r.number", "r.nubmer"), **common),
    ]  # fmt: skip


@contextmanager
def up(given: list[SourceDocument]) -> Iterator[FleetFolder]:
    resources = parse(given)
    folder = FleetFolder.of(resources.fleet.name)
    runtime.up_detached(resources, lambda line: None, f"tcp://127.0.0.1:{METRICS_PORT}")
    try:
        yield folder
    finally:
        runtime.down(folder)


@pytest.fixture
def fleet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FleetFolder]:
    monkeypatch.setenv("PLIMSOLL_HOME", str(tmp_path / "home"))
    with up(documents()) as folder:
        yield folder


def status(folder: FleetFolder, name: str) -> dict[str, Any]:
    with ObjectStore(folder.store) as store:
        found = {item["metadata"]["name"]: item.get("status", {}) for item in store.objects("Channel")[1]}
    told: dict[str, Any] = found.get(name, {})
    return told


def reason(folder: FleetFolder, name: str) -> str:
    return next((each["reason"] for each in status(folder, name).get("conditions", [])), "")


def wait_until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, f"not within {DEADLINE_SECONDS:.0f} s: {what}"
        time.sleep(0.1)


def connected(folder: FleetFolder) -> Connection:
    way = head_access(folder)
    assert way.secret_key_file is not None
    return Connection([Address(way.endpoint, way.server)], security=Curve(secret=way.secret_key_file))


def results_until(subscriber: Subscriber, last: int, *more: str) -> list[tuple[int, ...]]:
    """Number, batch and row of what is delivered, and more attributes, up to the result of publication `last`."""
    found: list[tuple[int, ...]] = []
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not found or found[-1][0] != last:
        assert time.monotonic() < deadline, f"the last of {len(found)} results is {found[-1:]}"
        try:
            items = subscriber.receive_many(1000, 1.0)
        except errors.WaitTimeoutError:  # a batch takes longer on a busy machine
            continue
        for item in items:
            assert isinstance(item, Delivery), item
            found.append(tuple(int(item.attributes[name]) for name in ("number", "batch", "batch_row", *more)))
    return found


@pytest.mark.sweep
@pytest.mark.timeout(1200)  # a fleet comes up, and Spark twice
@pytest.mark.skipif(bool(missing_requirement()), reason=missing_requirement())
def test_each_result_comes_once_though_the_driver_is_killed_and_another_channel_is_wrong(fleet: FleetFolder) -> None:
    with connected(fleet) as connection:
        subscriber = Subscriber(connection, name="s")
        subscriber.subscribe("[channel,=,'kinds'],[kind,=,'fire']", timeout=30)
        wait_until(lambda: reason(fleet, "kinds") == "ChannelRunning", "the channel runs")
        wait_until(lambda: status(fleet, "kinds").get("subscriptions") == 1, "the driver knows the subscription")
        with Publisher(connection, name="p") as publisher:
            for number in range(300):
                kind = "fire" if number % 3 else "flood"
                publisher.publish({"class": "REPORT", "kind": kind, "number": number})
                if number == 150:
                    wait_until(lambda: status(fleet, "kinds")["results"] > 0, "some results")
                    os.kill(status(fleet, "kinds")["pid"], signal.SIGKILL)
        found = results_until(subscriber, 299)
        assert [number for number, _, _ in found] == [number for number in range(300) if number % 3]
        assert sorted({(batch, row) for _, batch, row in found}) == [(batch, row) for _, batch, row in found]
        wait_until(lambda: status(fleet, "kinds").get("acceptedResults") == 200, "all results are accepted")
    told = status(fleet, "kinds")
    assert (told["rowsIn"], told["rowsUsed"], told["lateRows"], told["invalidRows"]) == (300, 300, 0, 0)
    assert (told["results"], told["unknownResults"], told["unaskedResults"], told["restarts"]) == (200, 0, 0, 1)
    totals = {
        'plimsoll_feed_publications_total{feed="reports",outcome="recorded"} 300.0',
        'plimsoll_channel_results_total{channel="kinds",outcome="accepted"} 200.0',
    }
    wait_until(lambda: totals <= scraped(), "the page for Prometheus tells of both")
    wait_until(lambda: reason(fleet, "wrong") == "QueryInvalid", "the wrong channel is named")
    [condition] = status(fleet, "wrong")["conditions"]
    assert condition["message"].startswith("line 1, column 16: [UNRESOLVED_COLUMN")


@pytest.mark.slow
@pytest.mark.timeout(1200)  # a fleet comes up, and Spark twice
@pytest.mark.skipif(bool(missing_requirement()), reason=missing_requirement())
def test_feed_table_and_ledger_may_all_be_in_an_object_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLIMSOLL_HOME", str(tmp_path / "home"))
    with running_store(tmp_path / "store") as environment:
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        place = f"s3a://{BUCKET}/live"
        table = dataset_root(f"{place}/tables/kinds.csv")
        assert isinstance(table, ObjectPath)
        table.write_bytes(b"kind,rank\nfire,7\n")
        with up(stored_documents(place)) as folder, connected(folder) as connection:
            subscriber = Subscriber(connection, name="s")
            subscriber.subscribe("[channel,=,'ranks'],[kind,=,'fire']", timeout=30)
            wait_until(lambda: reason(folder, "ranks") == "ChannelRunning", "the channel runs")
            wait_until(lambda: status(folder, "ranks").get("subscriptions") == 1, "the driver knows the subscription")
            with Publisher(connection, name="p") as publisher:
                for number in range(60):
                    publisher.publish({"class": "REPORT", "kind": "fire", "number": number})
                    if number == 30:
                        wait_until(lambda: status(folder, "ranks")["results"] > 0, "some results")
                        os.kill(status(folder, "ranks")["pid"], signal.SIGKILL)
            found = results_until(subscriber, 59, "seen")
            wait_until(lambda: status(folder, "ranks").get("acceptedResults") == 60, "all results are accepted")
            assert not list((folder.path / "channels").glob("*/_batches")), "no ledger is on this disk"
        assert [number for number, _, _, _ in found] == list(range(60))
        assert all(number < seen <= 60 for number, _, _, seen in found), "all rows that the feed keeps, this one too"
        ledger = ChannelLedger(dataset_root(f"{place}/channels/ranks"))
        assert (ledger.position and ledger.position.counts.accepted) == 60


def stored_documents(place: str) -> list[SourceDocument]:
    """A fleet that keeps a feed, a table and ledgers at a place in a store."""
    query = (
        "SELECT p.kind, r.number, t.rank, count(past.number) AS seen FROM parameters p JOIN r ON r.kind = p.kind"
        " JOIN t ON t.kind = p.kind JOIN past ON past.kind = p.kind GROUP BY ALL ORDER BY r.number"
    )
    feeds = [{"name": "r", "feed": "reports"}, {"name": "past", "feed": "reports", "rows": "All"}]
    tables = [{"name": "t", "path": f"{place}/tables/kinds.csv", "format": "Csv"}]
    objects = [each.content for each in manifests.load([str(QUICKSTART)])]
    kept = [each for each in objects if isinstance(each, dict) and each["kind"] != "BrokerFleet"]
    return [
        *map(SourceDocument, kept),
        document("BrokerFleet", "stored", datasets={"ledgers": f"{place}/channels"}),
        document("Feed", "reports", subscription="[class,=,'REPORT']", commitInterval="1s", path=f"{place}/reports",
                 schema={"columns": COLUMNS, "unknownAttributes": "Drop"}),
        document("Channel", "ranks", query=query, parameters=PARAMETERS, feeds=feeds, tables=tables),
    ]  # fmt: skip


@pytest.mark.sweep
@pytest.mark.timeout(1800)  # a fleet comes up, and Spark three times, two of them at one time
@pytest.mark.skipif(bool(missing_requirement()), reason=missing_requirement())
def test_a_standby_takes_over_from_a_driver_that_is_killed_and_each_result_comes_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLIMSOLL_HOME", str(tmp_path / "home"))
    objects = [each for each in documents() if isinstance(each.content, dict) and each.content["kind"] != "BrokerFleet"]
    fleet = document("BrokerFleet", "quickstart", datasets={"spark": {"standbyDriver": True}})
    with up([fleet, *objects]) as folder, connected(folder) as connection:

        def waits(name: str) -> int:
            log = folder.log(name)
            return log.read_text().count(WAITS) if log.exists() else 0

        subscriber = Subscriber(connection, name="s")
        subscriber.subscribe("[channel,=,'kinds'],[kind,=,'fire']", timeout=30)
        wait_until(lambda: status(folder, "kinds").get("subscriptions") == 1, "the driver knows the subscription")
        wait_until(lambda: waits(STANDBY) == 1, "the standby waits")
        with Publisher(connection, name="p") as publisher:
            for number in range(200):
                publisher.publish({"class": "REPORT", "kind": "fire", "number": number})
                if number == 100:
                    wait_until(lambda: status(folder, "kinds")["results"] > 0, "some results")
                    first = status(folder, "kinds")["pid"]
                    os.kill(first, signal.SIGKILL)
        found = results_until(subscriber, 199)
        assert [number for number, _, _ in found] == list(range(200))
        wait_until(lambda: status(folder, "kinds").get("acceptedResults") == 200, "all results are accepted")
        told = status(folder, "kinds")
        assert (told["restarts"], told["unknownResults"], told["lastEnd"]) == (1, 0, "was ended by SIGKILL")
        assert (waits(keys.CHANNELS), told["pid"] != first) == (0, True), "it was started before the other was killed"
        wait_until(lambda: waits(keys.CHANNELS) == 1, "the killed one is started again, and waits")
        os.kill(told["pid"], signal.SIGKILL)
        wait_until(lambda: status(folder, "kinds").get("restarts") == 2, "it is noticed")
        with Publisher(connection, name="q") as publisher:
            publisher.publish({"class": "REPORT", "kind": "fire", "number": 200})
        assert [number for number, _, _ in results_until(subscriber, 200)] == [200]


class ScriptedSidecar:
    """A process that is there when it is polled, until the test ends it."""

    def __init__(self, folder: FleetFolder, name: str, *more: Any) -> None:
        self.name, self.pid, self.starts, self.was_stopped = name, 0, 0, False

    @property
    def is_up(self) -> bool:
        return self.pid > 0

    def poll(self, now: float, record: object) -> None:
        if not self.pid:
            self.starts += 1
            self.pid = 100 * self.starts + (self.name == STANDBY)

    def status(self) -> dict[str, Any]:
        found: dict[str, Any] = {"restarts": max(0, self.starts - 1 + (not self.pid))}
        if self.pid:
            return {**found, "pid": self.pid}
        return {**found, "lastEnd": "exited with code 4"} if self.starts else found

    def terminate(self) -> None: ...
    def stop(self, until: float = 0.0) -> None:
        self.was_stopped = True


def test_a_standby_is_started_once_the_driver_reports_and_the_one_that_runs_the_channels_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(channel_process, "Sidecar", ScriptedSidecar)
    monkeypatch.setattr(ApplicationConnection, "poll", lambda self, now: True)
    folder = FleetFolder(tmp_path)
    folder.make()
    process = ChannelProcess(folder, plain=True, missing=lambda: "")
    kept: list[Any] = process._sidecars

    def poll(*, standby: bool) -> list[tuple[str, int]]:
        fleet = document("BrokerFleet", "quickstart", datasets={"spark": {"standbyDriver": standby}})
        rest = [
            each for each in documents() if isinstance(each.content, dict) and each.content["kind"] != "BrokerFleet"
        ]
        process.poll(1.0, parse([fleet, *rest]), [], lambda *event: None)
        return [(each.name, each.pid) for each in process._sidecars]  # type: ignore[attr-defined]  # a scripted one

    def report(pid: int) -> None:
        figures = DriverFigures(pid, time.time_ns() // 1000, {"kinds": ChannelFigures("ChannelRunning", "")})
        write_figures(folder.config("channels-figures"), figures)

    def told() -> tuple[Any, ...]:
        found = process.status("kinds", {"metadata": {}}, time.time_ns() // 1000, "2026-01-01T00:00:00Z")
        return found.get("pid"), found["restarts"], found.get("lastEnd"), found["conditions"][0]["reason"]

    assert poll(standby=False) == [(keys.CHANNELS, 100)]
    assert poll(standby=True) == [(keys.CHANNELS, 100), (STANDBY, 0)], "the driver has not started its Spark yet"
    report(100)
    assert poll(standby=True) == [(keys.CHANNELS, 100), (STANDBY, 101)]
    assert told() == (100, 0, None, "ChannelRunning")
    kept[0].pid = 0
    assert poll(standby=True) == [(keys.CHANNELS, 0), (STANDBY, 101)], "none starts Spark while another takes over"
    assert told() == (101, 1, "exited with code 4", "ChannelStarting")
    report(101)
    assert poll(standby=True) == [(keys.CHANNELS, 200), (STANDBY, 101)]
    assert told() == (101, 1, None, "ChannelRunning")
    first = kept[0]
    assert poll(standby=False) == [(STANDBY, 101)]
    assert first.was_stopped
    assert poll(standby=True) == [(STANDBY, 101), (keys.CHANNELS, 100)]


def test_without_java_one_event_and_the_condition_say_so(tmp_path: Path) -> None:
    folder = FleetFolder(tmp_path)
    process = ChannelProcess(folder, plain=True, missing=lambda: "there is no Java")
    told: list[tuple[str, str, str]] = []
    resources = parse(documents())
    for now in (1.0, 2.0):
        process.poll(now, resources, [], lambda *event: told.append(event))
    assert told == [("Warning", "ChannelNoSpark", "no channel runs: there is no Java")]
    found = process.status("kinds", {"metadata": {"generation": 3}}, 1, "2026-01-01T00:00:00Z")
    [condition] = found["conditions"]
    assert (condition["status"], condition["reason"]) == ("False", "ChannelNoSpark")
