"""A rotation of the keys of a head with a standby, by the operator's part and real processes.

The standby has the next key first. The applications have their keys in files, as they are told to: the file with the
head's keys gets the next one before.
"""

from __future__ import annotations

import asyncio
import itertools
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import zmq
from tests.local.test_publisher_attack import Oracle
from tests.operator.pairs.test_promoter import DEADLINE_SECONDS, HEAD, NET, Pods, kept, said, until

from plimsoll import client
from plimsoll.core.config import BrokerConfig, HeadStandby, LinkSecurity, PeerBroker, encode
from plimsoll.mediator.control_plane import MediatorKeyPair
from plimsoll.operator import names
from plimsoll.operator.pairs.requests import PairRequest
from plimsoll.operator.reconcile.observed import ObservedObjects

OLD, NEXT, EDGE, MEDIATOR, APPLICATION = "old", "next", "edge", "mediator", "application"
SHARED, EDGE_ADDRESS = f"tcp://{NET}.10", f"tcp://{NET}.12"
KEYED = PairRequest("east", HEAD)
PUBLISHERS = ("p0", "p1")


class KeyedPods(Pods):
    """Both processes lead at one address, as behind a Service. `key_of`: which key each pod has."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.pairs = {name: zmq.curve_keypair() for name in (OLD, NEXT, EDGE, MEDIATOR, APPLICATION)}
        self.key_of = {0: OLD, 1: OLD}
        for name in self.pairs:
            self.secret_file(name).touch(0o600)
            self.secret_file(name).write_bytes(self.pairs[name][1])
        roles = {
            OLD: f"head {HEAD}", NEXT: f"head {HEAD}", EDGE: "edge edge", MEDIATOR: f"mediator {names.MEDIATOR}",
            APPLICATION: "client *",
        }  # fmt: skip
        self.authorized = folder / "authorized-keys"
        self.authorized.write_text("".join(f"{self.public(name)} {role}\n" for name, role in roles.items()))
        self.heads_keys = folder / "head.pub"
        self.tell_clients(OLD)
        self.edge: subprocess.Popen[bytes] | None = None

    def secret_file(self, name: str) -> Path:
        return self.folder / f"{name}.key"

    def public(self, name: str) -> str:
        return self.pairs[name][0].decode()

    def security(self, name: str) -> LinkSecurity:
        return LinkSecurity(secret_key_file=str(self.secret_file(name)), authorized_keys_file=str(self.authorized))

    def tell_clients(self, *keys: str) -> None:
        new = self.folder / "head.pub.new"
        new.write_text("".join(f"{self.public(name)}\n" for name in keys))
        new.replace(self.heads_keys)

    def run(self, config: BrokerConfig, name: str) -> subprocess.Popen[bytes]:
        file = self.folder / f"{name}.json"
        file.write_bytes(encode(config))
        with (self.folder / f"{name}.log").open("ab") as output:
            return subprocess.Popen([sys.executable, "-m", "plimsoll.broker", "--config", str(file)], stderr=output)

    def leading(self, key: str) -> PeerBroker:
        return PeerBroker(name=HEAD, data=f"{SHARED}:7400", control=f"{SHARED}:7401", public_key=self.public(key))

    def start(self, number: int, *, is_plain: bool = False) -> None:
        config = BrokerConfig(
            name=HEAD, role="head", cluster="east", edges=("edge",), data=f"{SHARED}:7400", control=f"{SHARED}:7401",
            standby=HeadStandby(
                waits=True, head=self.leading(self.key_of[1 - number]),
                control=f"tcp://{NET}.{10 + number}:{names.PAIR_PORT}",
            ),
            security=self.security(self.key_of[number]),
        )  # fmt: skip
        self.uids[number] += 1
        self.processes[number] = self.run(config, f"{number}")

    def start_edge(self) -> None:
        config = BrokerConfig(
            name="edge", role="edge", cluster="east", data=f"{EDGE_ADDRESS}:7400", control=f"{EDGE_ADDRESS}:7401",
            head=self.leading(OLD), security=self.security(EDGE),
        )  # fmt: skip
        self.edge = self.run(config, "edge")

    def replace(self, number: int, key: str) -> None:
        """A new pod with another key."""
        if number in self.processes:
            self.kill(number)
        self.key_of[number] = key
        self.start(number)

    def has_left(self, number: int) -> bool:
        """Whether its process has ended: by itself, or with its pod, which the operator deletes then."""
        process = self.processes.get(number)
        return process is None or process.poll() is not None

    def observe(self) -> ObservedObjects:
        found = super().observe()
        for number in self.processes:
            pod = found.get("Pod", names.pod_of(HEAD, number))
            assert pod is not None
            pod["metadata"]["annotations"] = {names.KEY: self.public(self.key_of[number])}
        return found

    def connection(self) -> client.Connection:
        keys = client.Curve(secret=self.secret_file(APPLICATION), server=self.heads_keys)
        found = client.Connection(f"{SHARED}:7400", security=keys)
        found.wait_open(DEADLINE_SECONDS)
        return found

    def end(self) -> None:
        for number in list(self.processes):
            self.kill(number)
        if self.edge is not None:
            self.edge.kill()
            self.edge.wait(DEADLINE_SECONDS)


class Traffic:
    """Publishers and a subscriber that go on through the rotation."""

    def __init__(self, pods: KeyedPods) -> None:
        self.oracle, self.count = Oracle(), 0
        self._reading, self._writing = pods.connection(), pods.connection()
        subscriber = client.Subscriber(self._reading, name="s", on_batch=lambda items: self.oracle.take("s", items))
        subscriber.subscribe("[n,>,0]")
        subscriber.wait_acknowledged()
        self._publishers = [
            client.Publisher(self._writing, name=name, on_answer=lambda answers: self._note()) for name in PUBLISHERS
        ]
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._publish)
        self._thread.start()

    def _note(self) -> None:
        self.count += 1

    def _publish(self) -> None:
        for number in itertools.count(1):
            if self._stopped.wait(0.01):
                return
            for each in self._publishers:
                self.oracle.receipts[each.name].append(each.publish({"n": number, "by": each.name}))

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join(DEADLINE_SECONDS)
        for each in self._publishers:
            each.flush(DEADLINE_SECONDS)

    def is_given(self) -> bool:
        """Whether the subscriber has as many as were published."""
        with self.oracle.lock:
            given = self.oracle.given["s"]
            return all(len(given[name]) >= len(self.oracle.receipts[name]) for name in PUBLISHERS)

    def close(self) -> None:
        self.stop()
        self._reading.close()
        self._writing.close()


@pytest.mark.sweep
def test_keys_are_rotated_without_a_loss_a_gap_or_an_unknown_answer(tmp_path: Path):
    async def run(pods: KeyedPods) -> Traffic:
        for number in (0, 1):
            pods.start(number)
        pods.start_edge()
        keys = MediatorKeyPair(pods.public(MEDIATOR), pods.pairs[MEDIATOR][1].decode())
        pairs = await kept(pods, KEYED, keys)
        await until("the standby follows", lambda: pods.stored.standby)
        traffic = await asyncio.to_thread(Traffic, pods)
        try:
            await until("publications are answered", lambda: traffic.count > 20)
            pods.tell_clients(OLD, NEXT)
            first = pods.stored.sync
            pods.replace(1, NEXT)
            pairs.note_change()
            await until(
                "the standby with the next key follows", lambda: pods.stored.standby and pods.stored.sync > first
            )
            await pairs.update([PairRequest("east", HEAD, hands_over="its keys are rotated")], keys)
            await until("it leads", lambda: said(pairs).get("term") == 2)
            await until("the old one has left", lambda: pods.has_left(0))
            await pairs.update([KEYED], keys)
            pods.replace(0, NEXT)
            pods.tell_clients(NEXT)
            pairs.note_change()
            before = traffic.count
            await until("publications are answered again", lambda: traffic.count > before + 20)
            await until("the other one follows with the next key", lambda: pods.stored.standby)
            await asyncio.to_thread(traffic.stop)
            await until("all is delivered", traffic.is_given)
        finally:
            await asyncio.to_thread(traffic.close)
            await pairs.stop()
        return traffic

    pods = KeyedPods(tmp_path)
    try:
        traffic = asyncio.run(run(pods))
        assert pods.stored.term == 2
        assert traffic.oracle.faults() == []
        assert traffic.oracle.gaps["s"] == []
    finally:
        pods.end()
