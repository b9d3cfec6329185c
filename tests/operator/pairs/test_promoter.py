"""The operator's part with two real processes: one is killed, paused and resumed, or asked to leave.

Each pod is a loopback address of its own, as in a cluster, so both listen on the same ports. The API server and the
Service are stood in for by values.
"""

from __future__ import annotations

import asyncio
import copy
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from plimsoll.core.config import BrokerConfig, HeadStandby, LinkSecurity, PeerBroker, encode
from plimsoll.core.head.standby.leadership import HeadLeadership, stored_leadership
from plimsoll.mediator import head_pair
from plimsoll.mediator.control_plane import MediatorKeyPair
from plimsoll.operator import names
from plimsoll.operator.pairs.promoter import HeadPairs
from plimsoll.operator.pairs.requests import PairRequest
from plimsoll.operator.reconcile.observed import ObservedObjects
from plimsoll.operator.security.keys import make_key_pair

HEAD = "east-head"
DEADLINE_SECONDS = 300
NET = f"127.{os.getpid() >> 8 & 127}.{os.getpid() & 255}"
"""Addresses that no other run of these tests has."""
Object = dict[str, Any]


class Pods:
    """Two processes, and what the operator sees of them; also its API server and its client."""

    namespace = "ns"

    def __init__(self, folder: Path) -> None:
        self.folder, self.processes, self.uids = folder, dict[int, subprocess.Popen[bytes]](), {0: 0, 1: 0}
        self.pairs_kept: list[HeadPairs] = []
        self.status: Object = {}
        self.led_to: list[int] = []
        self.events: list[str] = []

    def start(self, number: int, *, is_plain: bool = False) -> None:
        """A new pod. The address of the head is that of process 0 in any case: no test needs more of the Service."""
        file = self.write(number, is_plain=is_plain)
        self.uids[number] += 1
        self.processes[number] = subprocess.Popen(
            [sys.executable, "-m", "plimsoll.broker", "--config", str(file)], stderr=subprocess.DEVNULL
        )

    def write(self, number: int, *, is_plain: bool = False) -> Path:
        """The file of a pod, as it is mounted."""
        own, leader = (f"tcp://{NET}.{which}" for which in (10 + number, 10))
        config = BrokerConfig(
            name=HEAD, role="head", cluster="east", data=f"{own}:7400", control=f"{own}:7401",
            standby=None if is_plain else HeadStandby(
                waits=True, head=PeerBroker(name=HEAD, data=f"{leader}:7400", control=f"{leader}:7401"),
                control=f"{own}:{names.PAIR_PORT}",
            ),
            security=LinkSecurity(plain=True),
        )  # fmt: skip
        file = self.folder / f"{number}.json"
        file.write_bytes(encode(config))
        return file

    def kill(self, number: int) -> None:
        process = self.processes.pop(number)
        process.kill()
        process.wait(DEADLINE_SECONDS)

    def observe(self) -> ObservedObjects:
        found: dict[tuple[str, str], Object] = {
            ("BrokerCluster", "east"): {"kind": "BrokerCluster", "metadata": {"name": "east"}, "status": self.status}
        }
        for number in self.processes:
            pod, uid = names.pod_of(HEAD, number), f"{number}/{self.uids[number]}"
            found["Pod", pod] = {
                "kind": "Pod", "metadata": {"name": pod, "uid": uid}, "status": {"podIP": f"{NET}.{10 + number}"}
            }  # fmt: skip
        return ObservedObjects(found)

    async def set_status(self, kind: str, namespace: str, name: str, change: Any) -> Object:
        self.status = dict(change({"status": copy.deepcopy(self.status)}))
        return {"kind": kind, "metadata": {"name": name}, "status": self.status}

    async def emit_event(self, about: Object, type_: str, reason: str, message: str) -> None:
        self.events.append(reason)

    async def delete(self, item: Object, grace_seconds: int | None = None) -> bool:
        self.kill(int(item["metadata"]["name"][-1]))
        return True

    def note_write(self, item: Object) -> Object:
        return item

    def forget_write(self, key: tuple[str, str]) -> None:
        return

    async def lead_to(self, head: str, number: int) -> None:
        self.led_to.append(number)

    @property
    def stored(self) -> HeadLeadership:
        return stored_leadership(self.status)


@pytest.fixture
def pods(tmp_path: Path) -> Any:
    found = Pods(tmp_path)
    yield found
    for number in list(found.processes):
        found.kill(number)
    for pairs in found.pairs_kept:  # of a test that failed before it stopped them: they would fail a later one
        pairs._close()


@pytest.fixture
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process of a busy machine that answers late is not taken for one that stands still."""
    monkeypatch.setattr(head_pair, "LEASE_SECONDS", DEADLINE_SECONDS)
    monkeypatch.setattr(head_pair, "SILENT_SECONDS", DEADLINE_SECONDS)


async def until(what: str, holds: Callable[[], object]) -> None:
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not holds():
        assert time.monotonic() < deadline, what
        await asyncio.sleep(0.02)


async def kept(pods: Any, request: PairRequest, keys: MediatorKeyPair | None = None) -> HeadPairs:
    pairs = HeadPairs(pods, pods, pods.lead_to, lambda: None)
    pods.pairs_kept.append(pairs)
    await pairs.update([request], keys)
    return pairs


PLAIN = PairRequest("east", HEAD, keyed=False)


def said(pairs: HeadPairs) -> Mapping[str, object]:
    return pairs.leaders().get(HEAD, {})


def test_a_pod_that_cannot_be_dialled_keeps_no_other_head_waiting(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    class Odd(Pods):
        def observe(self) -> ObservedObjects:
            name = names.pod_of(HEAD)
            metadata = {"name": name, "uid": "1", "annotations": {names.KEY: "no key"}}
            pod: Object = {"kind": "Pod", "metadata": metadata, "status": {"podIP": f"{NET}.10"}}
            return ObservedObjects({**super().observe().objects, ("Pod", name): pod})

    async def run() -> None:
        odd: Any = Odd(tmp_path)
        other = PairRequest("east", "west-head", keyed=False)
        pairs = HeadPairs(odd, odd, odd.lead_to, lambda: None)
        pair = make_key_pair()
        await pairs.update([PairRequest("east", HEAD), other], MediatorKeyPair(pair.public, pair.secret))
        await until("both have been looked at", lambda: pairs._pairs["west-head"].asked_at > 0)
        asked = pairs._pairs["west-head"].asked_at
        await until("and again", lambda: pairs._pairs["west-head"].asked_at > asked)
        pairs.check()
        await pairs.stop()
        assert [each.getMessage() for each in caplog.records if "that is none" in each.getMessage()] != []

    asyncio.run(run())


@pytest.mark.slow
def test_a_head_that_stands_still_is_replaced_and_accepts_nothing_when_it_comes_back(pods: Pods):
    async def run() -> None:
        for number in (0, 1):
            pods.start(number)
        pairs, others = await kept(pods, PLAIN), await kept(pods, PLAIN)  # two operators at once do no harm
        await until("the standby follows", lambda: pods.stored.standby)
        await until("both hear the head", lambda: said(pairs).get("term") == said(others).get("term") == 1)
        assert (pods.stored.term, pods.stored.leader) == (1, 0)
        stopped = pods.processes[0]
        stopped.send_signal(signal.SIGSTOP)

        async def keep(item: Object, grace_seconds: int | None = None) -> bool:
            return True  # its node is lost: no kubelet ends it

        vars(pods)["delete"] = keep
        await until("the standby leads", lambda: pods.stored.term == 2)
        assert (pods.stored.leader, pods.led_to) == (1, [1])
        await until("it says so", lambda: said(pairs).get("term") == said(others).get("term") == 2)
        stopped.send_signal(signal.SIGCONT)
        await until("the old one ends", lambda: stopped.poll() is not None)
        assert (stopped.returncode, pods.events.count("Promoted")) == (5, 1)
        await pairs.stop()
        await others.stop()

    asyncio.run(run())


@pytest.mark.sweep
def test_an_operator_that_starts_finishes_what_the_one_before_it_has_stored(pods: Pods):
    async def run() -> None:
        for number in (0, 1):
            pods.start(number)
        pairs = await kept(pods, PLAIN)
        await until("the standby follows", lambda: pods.stored.standby)
        await pairs.stop()
        pods.kill(0)  # the head dies with the operator, which had just stored who leads then
        promoted = pods.stored.promoted()
        await pods.set_status("", "", "", lambda item: {"leadership": {**vars(promoted)}})
        pods.start(0)
        pairs = await kept(pods, PLAIN)
        await until("the standby leads", lambda: said(pairs).get("term") == 2)
        assert (pods.stored, said(pairs)["incarnation"]) == (promoted, promoted.leads)
        await until("the other one is told to follow", lambda: pods.processes[0].poll() is None)
        await pairs.stop()

    asyncio.run(run())


@pytest.mark.slow
@pytest.mark.usefixtures("unhurried")
def test_a_planned_change_is_a_goodbye_and_a_promotion(pods: Pods):
    async def run() -> None:
        for number in (0, 1):
            pods.start(number)
        pairs = await kept(pods, PLAIN)
        await until("the standby follows", lambda: pods.stored.standby)
        await pairs.update([PairRequest("east", HEAD, hands_over="an upgrade", keyed=False)], None)
        await until("the standby leads", lambda: said(pairs).get("term") == 2)
        await until("the old one has left", lambda: pods.processes[0].poll() is not None)
        assert (pods.processes[0].returncode, pods.events) == (0, ["Leads", "StandbyInSync", "Promoted"])
        await pairs.stop()

    asyncio.run(run())


@pytest.mark.sweep
@pytest.mark.usefixtures("unhurried")
def test_a_head_that_runs_is_given_a_term_takes_on_a_standby_and_lets_it_go(pods: Pods):
    async def run() -> None:
        pods.start(0, is_plain=True)
        first = pods.processes[0]
        pairs = await kept(pods, PLAIN)
        pods.start(1)
        await asyncio.sleep(0)
        assert pods.stored == HeadLeadership(), "its file does not say so yet"
        pods.write(0)
        await until("the standby follows", lambda: pods.stored.standby)
        assert (pods.stored.term, pods.stored.leader, said(pairs)["term"], first.poll()) == (1, 0, 1, None)
        await pairs.update([PairRequest("east", HEAD, wants=False, keyed=False)], None)
        await until("the standby has left", lambda: pods.processes[1].poll() is not None)
        await until("the head goes on alone", lambda: said(pairs).get("standby_in_sync") == 0)
        assert (pods.stored.standby, pods.stored.ended, first.poll()) == (0, 1, None)
        assert pods.events == ["Leads", "StandbyInSync", "StandbyRemoved"]
        await pairs.stop()

    asyncio.run(run())
