"""A rolling change of heads: publishers leave a head, it is replaced, and no publication is without its answer."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import pytest
from tests.local.conftest import wait_for

from plimsoll import client
from plimsoll.cli.main import main
from plimsoll.core.spec import parse
from plimsoll.local import manifests, runtime
from plimsoll.local.head_access import HeadAccess, head_access
from plimsoll.local.storage.fleet_folder import FleetFolder
from plimsoll.local.storage.object_store import ObjectStore

FLEET = """
apiVersion: plimsoll.dev/v1alpha1
kind: BrokerFleet
metadata: {name: pair}
spec: {timeScalePercent: 20}
---
apiVersion: plimsoll.dev/v1alpha1
kind: HardwareProfile
metadata: {name: small}
spec: {memory: 64Mi}
---
apiVersion: plimsoll.dev/v1alpha1
kind: BrokerCluster
metadata: {name: east}
spec:
  head: {profile: small}
  edges: [{name: east-edge, profile: small}]
---
apiVersion: plimsoll.dev/v1alpha1
kind: BrokerCluster
metadata: {name: west}
spec:
  head: {profile: small}
  edges: [{name: west-edge, profile: small}]
  neighbors: [{name: east}]
---
apiVersion: plimsoll.dev/v1alpha1
kind: BrokerCluster
metadata: {name: north}
spec:
  head: {profile: small}
  neighbors: [{name: west}]
"""
OTHERS = {"west-head", "north-head"}
PUBLISHERS = 12


@pytest.fixture
def folder(home: Path) -> Iterator[FleetFolder]:
    file = home / "fleet.yaml"
    file.write_text(FLEET)
    runtime.up_detached(parse(manifests.load([str(file)])), lambda line: None)
    folder = FleetFolder.of("pair")
    yield folder
    runtime.down(folder)


def head_pid(folder: FleetFolder, cluster: str) -> int:
    with ObjectStore(folder.store) as store:
        clusters = {item["metadata"]["name"]: item for item in store.objects("BrokerCluster")[1]}
    return int(clusters[cluster]["status"]["head"].get("pid", 0))


def audit(folder: FleetFolder) -> dict[str, int]:
    """What the subscribers of moved publishers have counted, in all sessions of the fleet together."""
    found: Counter[str] = Counter()
    with ObjectStore(folder.store) as store:
        for item in store.objects("LoadBalancingSession")[1]:
            found.update(item["status"].get("audit", {}))
    return found


def security_of(way: HeadAccess) -> Any:
    return client.Curve(secret=way.secret_key_file, server=way.server) if way.secret_key_file else "plain"


def connection(way: HeadAccess) -> client.Connection:
    return client.Connection(way.endpoint, security=security_of(way))


class Publishing:
    """Publishers at one head that publish all the time. Used in a `with`: a test that fails ends them, too."""

    def __init__(self, way: HeadAccess) -> None:
        self._connection = connection(way)
        self.publishers = [client.Publisher(self._connection, name=f"p{n}") for n in range(PUBLISHERS)]
        self.receipts: list[client.Receipt] = []
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._stopped.set()
        self._connection.close()
        self._thread.join(300)

    def _run(self) -> None:
        number = 0
        while not self._stopped.wait(0.01):
            number += 1
            for publisher in self.publishers:
                try:
                    self.receipts.append(publisher.publish({"n": number, "by": publisher.name}))
                except client.errors.ClientError:
                    if not self._stopped.is_set():  # else a test that failed has closed the connection
                        raise
                    return

    def heads(self) -> set[str]:
        return {publisher.statistics()["head"] for publisher in self.publishers}

    def stop(self) -> list[str]:
        """The answers to all publications."""
        self._stopped.set()
        self._thread.join(300)
        for publisher in self.publishers:
            publisher.flush(300)
        answers = [receipt.answer for receipt in self.receipts]
        self._connection.close()
        return sorted({answer.answer for answer in answers if answer is not None})


@pytest.fixture
def ending() -> Iterator[contextlib.ExitStack]:
    """Ends what a test has begun, also if it fails."""
    with contextlib.ExitStack() as stack:
        yield stack


@pytest.mark.slow
def test_a_head_is_replaced_and_every_publication_is_accepted(
    folder: FleetFolder, ending: contextlib.ExitStack, capsys: pytest.CaptureFixture[str]
):
    reading = ending.enter_context(connection(head_access(folder, "west")))
    got: dict[str, list[int]] = {}
    lock = threading.Lock()

    def take(items: Any) -> None:
        with lock:
            for item in items:
                if isinstance(item, client.Delivery):
                    got.setdefault(str(item.attributes["by"]), []).append(int(item.attributes["n"]))
                else:  # what only the killed head had is in doubt; it had nothing
                    assert item.reason == "restart"

    subscriber = client.Subscriber(reading, name="s", prefer="west-edge", on_batch=take)
    subscriber.subscribe("[n,>,0]")
    publishing = ending.enter_context(Publishing(head_access(folder, "east")))
    wait_for(lambda: publishing.heads() == {"east-head"}, what="the publishers are open")
    assert main(["drain", "east-head", "--wait"]) == 0, capsys.readouterr()
    # Which of the others takes how many depends on what each has accepted by then, so on the speed of this machine.
    wait_for(lambda: publishing.heads() <= OTHERS, what="the publishers have left")
    taken_by = len(publishing.heads())
    wait_for(lambda: audit(folder)["subscribers"] >= taken_by, what="the subscriber has counted each move")
    counted = audit(folder)
    assert (counted["publishers"], counted["asked"], counted["subscribers"]) == (PUBLISHERS, taken_by, taken_by)
    assert (counted["lost"], counted["duplicated"], counted["reordered"]) == (0, 0, 0)
    assert counted["after"]
    newcomer = ending.enter_context(connection(head_access(folder, "east")))
    late = client.Publisher(newcomer, name="late")
    assert late.publish({"m": 1}).wait(300).answer == "accepted"
    assert late.statistics()["head"] in OTHERS
    before = head_pid(folder, "east")
    os.kill(before, signal.SIGKILL)
    wait_for(lambda: head_pid(folder, "east") not in (0, before), what="the head is back")

    def are_back() -> bool:
        for head in publishing.heads() - {"east-head", ""}:
            cluster = head.removesuffix("-head")
            main(["rebalance", "--publishers", "--from", cluster, "--to", "east", "--share", "100%", "--wait"])
        return publishing.heads() == {"east-head"}

    wait_for(are_back, what="the one that has replaced it takes publishers again")
    assert publishing.stop() == ["accepted"]
    for publisher in publishing.publishers:
        sent = publisher.statistics()["accepted"]
        wait_for(lambda sent=sent, name=publisher.name: len(got.get(name, ())) >= sent, what="all is delivered")
        assert got[publisher.name] == list(range(1, sent + 1))
