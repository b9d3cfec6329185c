"""Consumer groups of the library against real brokers."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from plimsoll.client import Connection, Publisher, SlicesChanged, errors
from plimsoll.client.group import GroupSubscriber
from plimsoll.client.group_definition import group_definition
from plimsoll.core.verify.slice_laws import GivenItem, judge_slices

WAIT = 300.0


@pytest.fixture
def group() -> str:
    """A group, and a word of publications, that only this test has."""
    return f"g{uuid.uuid4().hex}"


def stream(group: str, **fields: Any) -> dict[str, Any]:
    return {"slices": 4, "filter": f"[topic,=,'{group}']", "function": "Modulo", "by": "n", **fields}


class Worker:
    """A member with a thread that writes down what it is given. It defines its group, if that is not declared."""

    def __init__(
        self,
        connection: Connection,
        group: str,
        name: str,
        given: list[GivenItem],
        *,
        is_declared: bool = False,
        **fields: Any,
    ) -> None:
        self.given, self.name = given, name
        definition = {} if is_declared else stream(group, **fields)
        self.member: GroupSubscriber = connection.group(group, **definition).subscribe(name=name)
        self.ending = threading.Event()
        self.thread = threading.Thread(target=self._work, daemon=True)
        self.thread.start()

    def _work(self) -> None:
        while not self.ending.is_set():
            try:
                item = self.member.receive(0.05)
            except errors.WaitTimeoutError:
                continue  # nothing has come
            at, number = time.monotonic(), item.attributes["n"]
            assert isinstance(number, int)
            # Its end is noted before the next call, which acknowledges it: then another may have its slice.
            self.given.append(
                GivenItem(
                    item.slice, item.delivery.publisher, number, self.name, at, time.monotonic(),
                    item.is_redelivered,
                )
            )  # fmt: skip
        self.member.close()

    def close(self) -> None:
        """End it in its own thread, between two items."""
        self.ending.set()
        self.thread.join(WAIT)


def wait_for(what: Any, text: str) -> None:
    deadline = time.monotonic() + WAIT
    while not what():
        assert time.monotonic() < deadline, text
        time.sleep(0.01)  # polling, with a deadline


@pytest.fixture
def connections(fleet: Any) -> Iterator[list[Connection]]:
    opened = [fleet.connection() for _ in range(3)]
    yield opened
    for connection in opened:
        connection.close()


def test_a_member_gets_all_slices_and_items_in_order(connections: list[Connection], group: str) -> None:
    changes: list[SlicesChanged] = []
    member = connections[0].group(group, **stream(group)).subscribe(on_change=changes.append)
    with Publisher(connections[1]) as publisher:
        for n in range(40):
            publisher.publish({"topic": group, "n": n})
        items = [member.receive(WAIT) for _ in range(40)]
    assert member.slices == (0, 1, 2, 3)
    assert {number for change in changes for number in change.came} == {0, 1, 2, 3}
    for number in range(4):
        assert [item.attributes["n"] for item in items if item.slice == number] == list(range(number, 40, 4))
    member.close()


def test_one_slice_that_moves_back_and_forth_under_load_is_processed_once(
    connections: list[Connection], group: str
) -> None:
    given: list[GivenItem] = []
    said = moves = 0
    workers = [Worker(connections[0], group, "m0", given, slices=1)]
    with Publisher(connections[2], name=f"p-{group}") as publisher:
        for turn in range(1, 21):
            workers.append(Worker(connections[turn % 2], group, f"m{turn}", given, slices=1))
            for _ in range(20):
                said += 1
                publisher.publish({"topic": group, "n": said})
            workers.pop(0).close()
            moves += 1
        publisher.flush(WAIT)
        wait_for(lambda: len(given) >= said, f"{len(given)} of {said}")
    workers.pop().close()
    verdict = judge_slices(given, {f"p-{group}": range(1, said + 1)})
    assert verdict.holds, verdict
    assert (verdict.processed_once, verdict.redelivered, moves) == (said, 0, 20)


def test_what_is_not_acknowledged_stays_with_its_slice(connections: list[Connection], group: str) -> None:
    member = connections[0].group(group, **stream(group, slices=1)).subscribe(manual_ack=True)
    with Publisher(connections[1]) as publisher:
        for n in range(4):
            publisher.publish({"topic": group, "n": n})
        first, second, third = (member.receive(WAIT) for _ in range(3))
        third.ack()
        first.ack()
        assert second.attributes["n"] == 1
        member.close(leave=False)
    other = connections[1].group(group).subscribe()
    again = [other.receive(WAIT) for _ in range(3)]
    assert [item.attributes["n"] for item in again] == [1, 2, 3]
    assert all(item.is_redelivered for item in again)
    other.close()


def test_a_killed_process_loses_nothing(fleet: Any, connections: list[Connection], group: str) -> None:
    code = (
        "import sys, time\n"
        "from plimsoll.client import Connection\n"
        f"m = Connection({fleet.head!r}, security='plain').group({group!r}).subscribe(name='victim')\n"
        "print('ready', flush=True)\n"
        "for item in m: time.sleep(0.05)\n"
    )
    given: list[GivenItem] = []
    worker = Worker(connections[0], group, "survivor", given)
    victim = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)  # our own program
    try:
        assert victim.stdout is not None
        assert victim.stdout.readline() == b"ready\n"
        wait_for(lambda: len(worker.member.slices) == 2, "the victim has no slices")
        with Publisher(connections[1], name=f"p-{group}") as publisher:
            for n in range(1, 81):
                publisher.publish({"topic": group, "n": n})
            publisher.flush(WAIT)
            wait_for(lambda: len(given) >= 39, "the survivor stands still")
            os.kill(victim.pid, signal.SIGKILL)
            killed_at = time.monotonic()
            wait_for(lambda: len(worker.member.slices) == 4, "the victim's slices do not come back")
            assert time.monotonic() - killed_at < WAIT
            wait_for(lambda: {item.item for item in given} >= {78, 80}, "the rest does not come")
    finally:
        victim.kill()
        victim.communicate()
    worker.close()
    verdict = judge_slices(given, {})
    assert (verdict.repeated, verdict.reordered, verdict.overlapping) == (0, 0, 0), verdict
    assert verdict.redelivered > 0


def test_one_that_is_told_to_stop_ends_behind_the_item_in_hand_and_gives_all(
    connections: list[Connection], group: str
) -> None:
    """As a process does that gets SIGTERM in the middle of an item."""
    seen: list[Any] = []
    with Publisher(connections[1]) as publisher:
        with connections[0].group(group, **stream(group, slices=1)).subscribe() as member:
            for n in range(4):
                publisher.publish({"topic": group, "n": n})
            for item in member:
                seen.append(item.attributes["n"])
                if len(seen) == 2:
                    member.stop()
            assert seen == [0, 1]
            with pytest.raises(errors.ClosedError, match="told to stop"):
                member.receive(0.1)
        other = connections[1].group(group).subscribe()
        rest = [other.receive(WAIT) for _ in range(2)]
    assert [(item.attributes["n"], item.is_redelivered) for item in rest] == [(2, False), (3, False)]
    other.close()


def test_a_group_that_is_not_there_is_asked_for_again(connections: list[Connection], group: str) -> None:
    with pytest.raises(errors.WaitTimeoutError):
        connections[0].group(group).subscribe(timeout=0.5)
    member = connections[1].group(group, **stream(group)).subscribe()
    with pytest.raises(errors.FailedError, match="defined otherwise"):
        connections[0].group(group, **stream(group, slices=5)).subscribe()
    with pytest.raises(errors.WaitTimeoutError):
        member.receive(0.1)
    member.close()
    with pytest.raises(errors.ClosedError):
        member.receive(0.1)


def test_a_definition_needs_its_slices() -> None:
    assert group_definition(None) is None
    found = group_definition(3, function="Range", by="x", low=0, high=1)
    assert found is not None
    assert (found.count, found.high) == (3, 1.0)


def test_parts_of_a_definition_without_slices_are_refused(connections: list[Connection]) -> None:
    with pytest.raises(TypeError, match="without slices"):
        connections[0].group("g", by="n")
