"""A Feed of a fleet of real brokers: each publication once in its dataset, whatever process is killed."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from plimsoll.cli import main as cli_main
from plimsoll.client import Connection, Curve, Publisher, Subscriber, errors
from plimsoll.core.client import Address
from plimsoll.core.spec import SourceDocument, parse
from plimsoll.feeds import parquet
from plimsoll.feeds.commit_log import FeedDatasetError, read_state
from plimsoll.feeds.dataset import dataset_files
from plimsoll.local import manifests, runtime
from plimsoll.local.head_access import head_access
from plimsoll.local.storage.fleet_folder import FleetFolder
from plimsoll.local.storage.object_store import ObjectStore

QUICKSTART = Path(__file__).parents[3] / "examples" / "quickstart.yaml"
FEED: dict[str, Any] = {
    "apiVersion": "plimsoll.dev/v1alpha1",
    "kind": "Feed",
    "metadata": {"name": "stocks"},
    "spec": {"subscription": "[class,=,'STOCK']", "commitInterval": "1s"},
}
DEADLINE_SECONDS = 300.0


@pytest.fixture
def fleet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FleetFolder]:
    monkeypatch.setenv("PLIMSOLL_HOME", str(tmp_path / "home"))
    resources = parse([*manifests.load([str(QUICKSTART)]), SourceDocument(FEED)])
    folder = FleetFolder.of(resources.fleet.name)
    runtime.up_detached(resources, lambda line: None)
    yield folder
    runtime.down(folder)


def stored(folder: FleetFolder, kind: str) -> dict[str, dict[str, Any]]:
    with ObjectStore(folder.store) as store:
        return {item["metadata"]["name"]: item.get("status", {}) for item in store.objects(kind)[1]}


def wait_until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, f"not within {DEADLINE_SECONDS:.0f} s: {what}"
        time.sleep(0.1)


def is_recording(folder: FleetFolder) -> bool:
    conditions = stored(folder, "Feed")["stocks"].get("conditions", [])
    return any(each["type"] == "Recording" and each["status"] == "True" for each in conditions)


def recorded_identities(dataset: Path) -> list[tuple[str, int, int]]:
    state = read_state(dataset)
    return [
        (row["_publisher"], row["_incarnation"], row["_seq"])
        for table in ("rows", "dead-letters")
        for path in dataset_files(dataset, state, table)
        for row in parquet.read_rows(path)
    ]


def received(dataset: Path) -> int:
    try:
        last = read_state(dataset).last
    except FeedDatasetError:  # the first commit is still to come
        return 0
    return last.counts.received if last is not None else 0


@pytest.mark.sweep
@pytest.mark.timeout(1200)  # a fleet comes up, and four processes of it are killed and come back
def test_a_feed_has_each_publication_once_whatever_is_killed(fleet: FleetFolder) -> None:
    dataset = fleet.path / "feeds" / "stocks"
    wait_until(lambda: is_recording(fleet), "the feed records")
    way = head_access(fleet)
    assert way.secret_key_file is not None
    curve = Curve(secret=way.secret_key_file)
    with Connection([Address(way.endpoint, way.server)], security=curve) as connection:
        publisher = Publisher(connection, name="quotes")  # not in a `with`: a killed head leaves answers open
        sent = 0

        def publish(count: int) -> None:
            nonlocal sent
            for _ in range(count):
                sent += 1
                publisher.publish({"class": "STOCK", "n": sent if sent % 50 else "odd"})

        for identity in ("recorder.mine", "channel.fires"):
            with pytest.raises(errors.ClientError, match="belongs to another identity"):
                Subscriber(connection, name=identity).subscribe("[class,=,'STOCK']", timeout=30.0)
        publish(100)
        wait_until(lambda: received(dataset) > 0, "a first commit")
        copy = dataset.parents[2] / "copy"
        assert cli_main.main(["fetch", "stocks", "--to", str(copy)]) == 0
        assert received(copy) > 0
        recorder = stored(fleet, "Feed")["stocks"]["pid"]
        os.kill(recorder, signal.SIGKILL)
        publish(100)
        publisher.flush()
        for edge in ("edge-0", "edge-1"):
            wait_until(lambda edge=edge: "pid" in stored(fleet, "EdgeBroker")[edge], "the edge is back")
            os.kill(stored(fleet, "EdgeBroker")[edge]["pid"], signal.SIGKILL)
            publish(50)
            publisher.flush()
            wait_until(lambda: received(dataset) >= sent, "all are recorded")
        found = recorded_identities(dataset)
        assert sorted(found) == [("quotes", found[0][1], number) for number in range(1, sent + 1)]
        wait_until(lambda: cli_main.main(["fetch", "stocks", "--to", str(copy)]) == 0, "the recorder serves again")
        assert sorted(recorded_identities(copy)) == sorted(found), "it goes on, though recorder and port are others"
        counts = read_state(dataset).last.counts  # type: ignore[union-attr]  # there are commits
        assert (counts.received, counts.dead_letters, counts.gaps) == (sent, sent // 50, 0)
        assert stored(fleet, "Feed")["stocks"]["restarts"] == 1

        head = stored(fleet, "BrokerCluster")["east"]["head"]["pid"]
        os.kill(head, signal.SIGKILL)

        def is_recorded_again() -> bool:
            publish(1)
            return received(dataset) >= len(found) + 10

        wait_until(is_recorded_again, "the head is back, and the feed goes on")
        again = recorded_identities(dataset)
        assert len(set(again)) == len(again), "the head's log is lost, and still nothing comes twice"
        assert set(found) <= set(again)
        assert read_state(dataset).last.counts.gaps >= 1  # type: ignore[union-attr]  # what was lost with it is told
