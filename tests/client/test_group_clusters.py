"""A consumer group with members in two clusters, of processes: publishers in both, and a member that is killed."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from tests.client.conftest import CLUSTER, Fleet
from tests.client.test_group import WAIT, Worker, wait_for

from plimsoll.client import Publisher
from plimsoll.core.config import DeclaredGroup
from plimsoll.core.verify.slice_laws import GivenItem, judge_slices

GROUP = DeclaredGroup(
    cluster=CLUSTER, name="readings", filter="[topic,=,'r']", count=6, function="Modulo", by="n", head="h"
)
VICTIM = """
import sys, time
from plimsoll.client import Connection
member = Connection(sys.argv[1], security="plain").group("readings").subscribe(name="victim")
for item in member:
    at = time.monotonic()
    print(item.slice, item.delivery.publisher, item.attributes["n"], int(item.is_redelivered), at, flush=True)
    time.sleep(0.02)
    print(time.monotonic(), flush=True)
"""


@pytest.fixture
def victim(own_fleet: Any) -> Iterator[tuple[Fleet, subprocess.Popen[str]]]:
    """A fleet of two clusters, and a member in a process of its own beside the second."""
    fleet = own_fleet(west=True, groups=(GROUP,))
    fleet.connection("w").close()
    command = [sys.executable, "-c", VICTIM, fleet.data["w"]]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:  # our own program
        yield fleet, process
        process.kill()


def written(text: str) -> list[GivenItem]:
    """What the victim has written down; the last item may not be finished."""
    lines = text.split("\n")[:-1]
    found = []
    for begun, ended in zip(lines[::2], [*lines[1::2], None], strict=False):
        number, publisher, n, is_redelivered, at = begun.split()
        until = None if ended is None else float(ended)
        found.append(GivenItem(int(number), publisher, int(n), "victim", float(at), until, is_redelivered == "1"))
    return found


@pytest.mark.sweep
def test_members_of_two_clusters_share_what_both_publish_and_one_that_is_killed_loses_nothing(
    victim: tuple[Fleet, subprocess.Popen[str]],
) -> None:
    fleet, process = victim
    given: list[GivenItem] = []
    connections = {head: fleet.connection(head) for head in ("h", "w")}
    workers = [Worker(connections[head], "readings", head, given, is_declared=True) for head in ("h", "w")]
    publishers = [Publisher(connections[head], name=f"p{head}") for head in ("h", "w")]

    def publish(first: int, behind: int) -> None:
        for n in range(first, behind):
            for publisher in publishers:
                publisher.publish({"topic": "r", "n": n})
        for publisher in publishers:
            publisher.flush(WAIT)

    wait_for(lambda: [len(each.member.slices) for each in workers] == [2, 2], "the victim does not get its share")
    kept = {number for each in workers for number in each.member.slices}
    publish(1, 121)
    assert process.stdout is not None
    text = "".join(process.stdout.readline() for _ in range(9))
    process.kill()
    text += process.stdout.read()
    wait_for(lambda: sum(len(each.member.slices) for each in workers) == 6, "the victim's slices do not come back")
    publish(121, 151)
    said = {publisher.name: range(1, 151) for publisher in publishers}
    wait_for(lambda: judge_slices([*given, *written(text)], said).lost == 0, "the rest does not come")
    for worker in workers:
        worker.close()
    for connection in connections.values():
        connection.close()
    verdict = judge_slices([*given, *written(text)], said)
    assert verdict.holds, verdict
    assert {item.consumer for item in given} == {"h", "w"}
    assert not {item.slice for item in given if item.is_redelivered} & kept, "only the victim's come again"
    once = [(item.publisher, item.item) for item in given if item.slice in kept]
    assert len(once) == len(set(once)) == 2 * 100
