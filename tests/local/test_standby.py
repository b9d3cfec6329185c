"""Heads with a standby as processes: the one that leads is killed again and again, and nothing is lost, nor a gap.

The oracle knows only what was published, how each publication was answered and what each subscriber was given.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import signal
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.local.conftest import wait_for
from tests.local.test_publisher_attack import Oracle
from tests.local.test_publisher_moves import connection

from plimsoll import client
from plimsoll.core.head.standby.leadership import HeadLeadership, stored_leadership
from plimsoll.core.spec import parse
from plimsoll.local import manifests, runtime
from plimsoll.local.head_access import head_access
from plimsoll.local.storage.fleet_folder import FleetFolder
from plimsoll.local.storage.object_store import ObjectStore

FLEET = """
apiVersion: plimsoll.dev/v1alpha1
kind: BrokerFleet
metadata: {name: pair}
---
apiVersion: plimsoll.dev/v1alpha1
kind: HardwareProfile
metadata: {name: small}
spec: {memory: 128Mi}
---
apiVersion: plimsoll.dev/v1alpha1
kind: BrokerCluster
metadata: {name: east}
spec:
  head: {profile: small, standby: 1}
  edges: [{name: east-edge, profile: small, replicas: 2}]
"""
PUBLISHERS = 6
EDGES = ("east-edge-0", "east-edge-1")


def cluster_status(folder: FleetFolder) -> dict:
    with ObjectStore(folder.store) as store:
        return store.get("BrokerCluster", "east").get("status", {})


def leadership(folder: FleetFolder) -> HeadLeadership:
    return stored_leadership(cluster_status(folder))


def head_pid(folder: FleetFolder) -> int:
    return int(cluster_status(folder).get("head", {}).get("pid", 0))


def standby_pid(folder: FleetFolder) -> int:
    """By the last event about it: `process PID follows its log`."""
    with ObjectStore(folder.store) as store:
        told = [event.message for event in store.events() if event.reason == "StandbyStarted"]
    return int(re.findall(r"process (\d+) follows", told[-1])[0])


def await_standby(folder: FleetFolder) -> HeadLeadership:
    wait_for(lambda: leadership(folder).standby, what="a standby is in sync")
    return leadership(folder)


@pytest.fixture
def folder(home: Path) -> Iterator[FleetFolder]:
    file = home / "fleet.yaml"
    file.write_text(FLEET)
    runtime.up_detached(parse(manifests.load([str(file)])), lambda line: None)
    folder = FleetFolder.of("pair")
    try:
        yield folder
    finally:
        runtime.down(folder)


class Traffic:
    """Publishers and subscribers that go on through all that happens; `times`: when each answer came."""

    def __init__(self, folder: FleetFolder) -> None:
        self.oracle = Oracle()
        self._reading = connection(head_access(folder, "east"))
        for edge in EDGES:
            subscriber = client.Subscriber(
                self._reading, name=edge, prefer=edge, on_batch=lambda items, edge=edge: self.oracle.take(edge, items)
            )
            subscriber.subscribe("[n,>,0]")
            subscriber.wait_acknowledged()
        self._writing = connection(head_access(folder, "east"))
        self.times: list[float] = []
        self._publishers = [
            client.Publisher(self._writing, name=f"p{n}", on_answer=lambda answers: self.times.append(time.monotonic()))
            for n in range(PUBLISHERS)
        ]
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._publish)
        self._thread.start()

    def _publish(self) -> None:
        number = 0
        while not self._stopped.wait(0.01):
            number += 1
            for each in self._publishers:
                try:
                    self.oracle.receipts[each.name].append(each.publish({"n": number, "by": each.name}))
                except client.errors.ClosedError:  # the test has failed, and ends it
                    return

    def pause_after(self, then: float) -> float:
        """The longest time without an answer from just before `then` on, in seconds."""
        times = [at for at in self.times if at > then - 1.0]
        return max((b - a for a, b in itertools.pairwise(times)), default=0.0)

    def end(self) -> list[str]:
        """Stop, wait for all that is due, and return what was wrong."""
        self._stopped.set()
        self._thread.join(300)
        for each in self._publishers:
            each.flush(300)
        oracle = self.oracle
        sent = {name: len(some) for name, some in oracle.receipts.items()}

        def all_given() -> bool:
            with oracle.lock:
                return all(len(oracle.given[edge][name]) >= sent[name] for edge in EDGES for name in sent)

        try:
            wait_for(all_given, 300.0, what="all is delivered")
        except AssertionError as error:
            return [str(error), *oracle.faults(), f"gaps {dict(oracle.gaps)}"]
        gaps = [f"{name} was told of a gap: {reasons}" for name, reasons in oracle.gaps.items() if reasons]
        return oracle.faults() + gaps

    def close(self) -> None:
        self._stopped.set()
        self._reading.close()
        self._writing.close()  # a publication that waits for room ends with it
        self._thread.join(300)


Begin = Callable[[FleetFolder], Traffic]


@pytest.fixture
def begin() -> Iterator[Begin]:
    """Begins traffic, which ends with the test, also with one that fails."""
    with contextlib.ExitStack() as stack:
        yield lambda folder: stack.enter_context(contextlib.closing(Traffic(folder)))


def replace_head(folder: FleetFolder, traffic: Traffic, sign: signal.Signals) -> float:
    """End the process that leads; returns the longest time without an answer until its standby leads."""
    before, pid = await_standby(folder), wait_for(lambda: head_pid(folder))
    then = time.monotonic()
    os.kill(pid, sign)
    wait_for(lambda: leadership(folder).term > before.term, what="the standby is promoted")
    answered = len(traffic.times)
    wait_for(lambda: len(traffic.times) > answered + 20, what="publications are answered again")
    assert leadership(folder).leader == 1 - before.leader
    wait_for(lambda: head_pid(folder) not in (0, pid), what="the status has the process that leads")
    return traffic.pause_after(then)


def rounds() -> int:
    return int(os.environ.get("PLIMSOLL_PROMOTIONS", "2"))


@pytest.mark.slow
@pytest.mark.timeout(900)  # as many rounds as asked for
def test_a_killed_head_is_replaced_without_loss_or_gap(folder: FleetFolder, begin: Begin):
    await_standby(folder)
    traffic = begin(folder)
    wait_for(lambda: len(traffic.times) > 20, what="publications are answered")
    pauses = [replace_head(folder, traffic, signal.SIGKILL if n % 4 < 3 else signal.SIGTERM) for n in range(rounds())]
    faults = traffic.end()
    longest = sorted(pauses)
    print(f"{len(pauses)} promotions: median {statistics.median(pauses):.2f} s, longest {longest[-3:]}")
    assert not faults, "\n".join(faults[:10])


@pytest.mark.sweep
def test_a_head_that_stands_still_is_ended_and_replaced_without_loss_or_gap(folder: FleetFolder, begin: Begin):
    await_standby(folder)
    traffic = begin(folder)
    wait_for(lambda: len(traffic.times) > 20, what="publications are answered")
    pause = replace_head(folder, traffic, signal.SIGSTOP)
    faults = traffic.end()
    print(f"without an answer for {pause:.2f} s")
    assert not faults, "\n".join(faults[:10])


@pytest.mark.sweep
def test_a_standby_that_stands_still_is_given_up_and_the_head_goes_on(folder: FleetFolder, begin: Begin):
    """Nothing leaves the head meanwhile, its status included: so it is asked in another way."""
    await_standby(folder)
    traffic = begin(folder)
    wait_for(lambda: len(traffic.times) > 20, what="publications are answered")
    before = leadership(folder)
    pid = standby_pid(folder)
    os.kill(pid, signal.SIGSTOP)
    try:
        wait_for(lambda: not leadership(folder).standby, what="the standby is given up")
        answered = len(traffic.times)
        wait_for(lambda: len(traffic.times) > answered + 20, what="publications are answered again")
        assert (leadership(folder).term, leadership(folder).leader) == (before.term, before.leader)
    finally:
        os.kill(pid, signal.SIGCONT)
    await_standby(folder)
    faults = traffic.end()
    assert not faults, "\n".join(faults[:10])


@pytest.mark.sweep
@pytest.mark.timeout(1200)  # a fleet that starts, two changes, and a promotion
def test_what_has_to_have_a_publication_is_changed_under_traffic_and_counts_after_a_promotion(home: Path, begin: Begin):
    both = FLEET.replace("standby: 1", "standby: 1, log: {disk: {size: 16Mi}}")
    either = both.replace("standby: 1", "standby: 1, confirm: Either")
    file = home / "fleet.yaml"
    file.write_text(both)
    runtime.up_detached(parse(manifests.load([str(file)])), lambda line: None)
    folder = FleetFolder.of("pair")
    try:
        first = wait_for(lambda: head_pid(folder))
        await_standby(folder)
        traffic = begin(folder)
        wait_for(lambda: len(traffic.times) > 20, what="publications are answered")
        runtime.apply(folder, manifests.parse_text(either, "either.yaml"))
        wait_for(lambda: confirm_of(folder) == "Either", what="the head has read it")
        assert head_pid(folder) == first
        replace_head(folder, traffic, signal.SIGKILL)
        assert confirm_of(folder, "east-head.1") == "Either", "the process that was promoted has read it, too"
        await_standby(folder)
        second = head_pid(folder)
        runtime.apply(folder, manifests.parse_text(both, "both.yaml"))
        wait_for(lambda: confirm_of(folder, "east-head.1") == "Both", what="the head has read it")
        assert head_pid(folder) == second
        assert traffic.end() == []
    finally:
        runtime.down(folder)


def confirm_of(folder: FleetFolder, process: str = "east-head") -> str:
    """What a process has said last of `confirm`."""
    return ["", *re.findall(r"confirm is (\w+) from now on", folder.log(process).read_text())][-1]


@pytest.mark.sweep
@pytest.mark.timeout(1200)  # two changes of the setting, each of which starts or ends a process
def test_a_standby_is_taken_on_and_let_go_under_traffic_by_the_process_that_leads(home: Path, begin: Begin):
    """In memory: before, the log would have gone with the process each time."""
    plain = FLEET.replace(", standby: 1", "")
    file = home / "fleet.yaml"
    file.write_text(plain)
    runtime.up_detached(parse(manifests.load([str(file)])), lambda line: None)
    folder = FleetFolder.of("pair")
    try:
        first = wait_for(lambda: head_pid(folder))
        traffic = begin(folder)
        wait_for(lambda: len(traffic.times) > 20, what="publications are answered")
        assert leadership(folder) == HeadLeadership()
        runtime.apply(folder, manifests.parse_text(FLEET, "on.yaml"))
        await_standby(folder)
        assert head_pid(folder) == first
        replace_head(folder, traffic, signal.SIGKILL)
        second = wait_for(lambda: head_pid(folder))
        await_standby(folder)
        runtime.apply(folder, manifests.parse_text(plain, "off.yaml"))
        wait_for(lambda: not leadership(folder).standby, what="the standby is over")
        answered = len(traffic.times)
        wait_for(lambda: len(traffic.times) > answered + 20, what="publications are answered by the head alone")
        assert (leadership(folder).term, head_pid(folder)) == (2, second)
        faults = traffic.end()
        assert not faults, "\n".join(faults[:10])
    finally:
        runtime.down(folder)
