"""A subscriber of a tree that is back after its lease, and is not told that it has lapsed before its head dies.

While it was away its head was not sent what others published, so the log may end where its token does. Whatever the
head learns of it again from an edge, or from its disk, that token is not whole.
"""

from __future__ import annotations

import pytest
from tests.core.fleet import Client, Fleet, Publishing
from tests.core.head.handover.script import attach
from tests.core.head.test_durable_places import durable

from plimsoll.core.head.standby.memory_files import MemoryFiles
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol.wire import Token


def back_again(lease: float) -> tuple[Fleet, Client, Token]:
    """Subscriber x is at edge a1, where its RESUMED says that it has lapsed. Its head has logged nothing meanwhile."""
    fleet = Fleet()
    fleet.cluster("a", ["a1", "a2"], ("b",))
    fleet.cluster("b", ["b1"], ("a",))
    fleet.disks["a"] = MemoryFiles()
    fleet.start()
    fleet.run(2.0)
    client = fleet.client("c", "a", "a1", "a2", "b")
    client.tell("a1", durable(1, "x", n=2, lease=lease))
    fleet.run(0.5)
    publishing = Publishing(client, "b")
    publishing.publish()
    fleet.run(0.5)
    assert client.numbers("a1", 1) == [1]
    token = ("a", fleet.head("a").epoch, 1)
    client.tell("a1", msg.Detach([1], False))
    fleet.run(8.0 + 2 * lease)
    publishing.publish()
    fleet.run(0.5)
    assert (fleet.head("a").owners.entries, fleet.head("a").log.last) == ({}, 1)
    client.tell("a1", durable(2, "x", n=4, lease=lease, token=token))
    fleet.run(0.5)
    assert client.of("a1", msg.Resumed)[-1].lapsed
    return fleet, client, token


def move(fleet: Fleet, client: Client) -> None:
    """By drain, to edge a2; x dies before it sends GO."""
    plan, mediator = msg.HandoverPlan("a1", "a2", "a", ["x"], False, 5.0, 5.0), fleet.mediator("a")
    mediator.say_control("a", msg.Command(1, fleet.head("a").epoch, "1.1", "prepare", plan))
    fleet.run(0.1)
    client.tell("a2", attach(3, "x", n=5, session="1.1"))
    fleet.run(0.1)
    mediator.say_control("a", msg.Command(1, fleet.head("a").epoch, "1.1", "cut"))
    fleet.run(0.1)
    assert fleet.head("a").owners.entries["x"].edge == "a2"


@pytest.mark.parametrize(
    ("known_by", "edge"), [("its edge", "a1"), ("its next attachment", "a1"), ("a target", "a2"), ("the disk", "")]
)
def test_its_token_has_lapsed_at_the_recovered_head_as_well(known_by: str, edge: str):
    lease = 20.0 if known_by == "the disk" else 0.0
    fleet, client, token = back_again(lease)
    if known_by == "a target":
        move(fleet, client)
    if known_by == "the disk":
        fleet.crash("a1")
    fleet.crash("a")
    fleet.run(0.1)
    if known_by == "its next attachment":
        client.tell("a1", durable(4, "x", n=6, lease=0.0, token=token))
        fleet.run(0.1)
    fleet.start("a")
    fleet.run(3.0 if edge else 7.0)  # an edge that has died is waited for
    assert fleet.head("a").owners.entries["x"].edge == edge
    client.tell("a2", durable(5, "x", n=8, lease=lease, token=token))
    fleet.run(1.0)
    resumed = client.of("a2", msg.Resumed)[-1]
    assert (resumed.attachment, resumed.lapsed, resumed.gap) == (5, True, None)
