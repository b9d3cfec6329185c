"""A publisher's name is one identity's in the whole fleet: real machines in virtual time, of one or two clusters."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from tests.core.fleet import Client, Fleet, Publishing, resume

from plimsoll.core.head.standby.memory_files import MemoryFiles
from plimsoll.core.permissions import NameGrants
from plimsoll.core.protocol import messages as msg


class Identities(Fleet):
    """Clients have the identity that their name begins with: `ann.1` is ann's."""

    def start(self, *names: str) -> None:
        super().start(*names)
        for name in names or list(self.configs):
            self.nodes[name].identity_of = self._identity

    def _identity(self, peer: Any) -> str:
        dialler = next((c.dialler for c in self.connections if c.id == peer), "")
        return dialler.partition(".")[0]


def two_clusters(**limits: Any) -> Identities:
    fleet = Identities(limits=limits)
    fleet.cluster("h", ["e"], ("k",))
    fleet.cluster("k", ["f"], ("h",))
    fleet.start()
    fleet.run(1.0)
    return fleet


def refusals(client: Client, head: str) -> list[str]:
    return [refused.code for refused in client.of(head, msg.Refused)]


def opens(client: Client, head: str) -> int:
    return len(client.of(head, msg.Opened))


def test_a_name_that_is_open_at_home_is_refused_at_the_head_of_another_cluster():
    fleet = two_clusters()
    ann, bob, reader = fleet.client("ann.1", "h"), fleet.client("bob.1", "k", "h"), fleet.client("cid.1", "f")
    reader.tell("f", resume(1, "s"))
    mine = Publishing(ann, "h", "p0")
    fleet.run(0.5)
    theirs = Publishing(bob, "k", "p0")
    fleet.run(0.5)
    theirs.publish(3)
    mine.publish(1)
    fleet.run(0.5)
    assert (opens(ann, "h"), opens(bob, "k")) == (1, 0)
    assert refusals(bob, "k") == ["role", *["not-open"] * 3]
    assert [item.head for item in reader.items("f", 1)] == ["h"]


def test_the_same_identity_may_open_its_name_at_another_head():
    fleet = two_clusters()
    first, second = fleet.client("ann.1", "h"), fleet.client("ann.2", "k")
    Publishing(first, "h", "p0")
    fleet.run(0.5)
    Publishing(second, "k", "p0", incarnation=2)
    fleet.run(0.5)
    assert opens(second, "k") == 1


@pytest.mark.parametrize("disk", [False, True])
def test_nobody_wins_a_name_while_its_head_restarts(disk: bool):
    fleet = two_clusters()
    if disk:
        fleet.disks["h"] = MemoryFiles()
        fleet.crash("h")
        fleet.start("h")
        fleet.run(1.0)
    ann = fleet.client("ann.1", "h")
    Publishing(ann, "h", "p0")
    fleet.run(0.5)
    assert opens(ann, "h") == 1
    fleet.crash("h")
    fleet.freeze("ann.1")
    bob = fleet.client("bob.1", "h", "k")
    fleet.start("h")
    fleet.run(0.01)
    for _ in range(20):
        for head in ("h", "k"):
            if bob.dialled[head].open:
                Publishing(bob, head, "p0")
        fleet.run(0.1)
    assert opens(bob, "h") == opens(bob, "k") == 0
    assert "role" in refusals(bob, "h")
    fleet.thaw("ann.1")
    fleet.run(3.0)
    Publishing(ann, "h", "p0", incarnation=1).publish(2)
    fleet.run(0.5)
    assert opens(ann, "h") == 2
    assert ann.of("h", msg.Accepted)
    assert not refusals(ann, "h")


def test_an_edge_alone_keeps_the_names_of_a_head_that_restarts():
    fleet = Identities()
    fleet.cluster("h", ["e"])
    fleet.start()
    fleet.run(1.0)
    Publishing(fleet.client("ann.1", "h"), "h", "p0")
    fleet.run(0.5)
    since = fleet.head("h").publishers.by_name["p0"].since
    fleet.crash("h")
    del fleet.nodes["ann.1"]
    fleet.start("h")
    bob, ann = fleet.client("bob.1", "h"), fleet.client("ann.2", "h")
    fleet.run(2.0)
    Publishing(bob, "h", "p0")
    fleet.run(0.5)
    assert (opens(bob, "h"), refusals(bob, "h")) == (0, ["role"])
    Publishing(ann, "h", "p0", incarnation=2)
    fleet.run(0.5)
    assert opens(ann, "h") == 1
    assert fleet.head("h").publishers.by_name["p0"].since == since


def test_of_two_that_opened_while_the_heads_were_parted_the_later_one_loses():
    fleet = two_clusters()
    ann, bob = fleet.client("ann.1", "h"), fleet.client("bob.1", "k")
    fleet.cut("h", "k")
    mine = Publishing(ann, "h", "p0")
    fleet.run(0.2)
    theirs = Publishing(bob, "k", "p0")
    fleet.run(4.0)
    assert (opens(ann, "h"), opens(bob, "k")) == (1, 1)
    fleet.mend("h", "k")
    fleet.run(6.0)
    assert refusals(bob, "k") == ["role"]
    theirs.publish(1)
    mine.publish(1)
    fleet.run(0.5)
    assert refusals(bob, "k") == ["role", "not-open"]
    assert not refusals(ann, "h")
    assert len(ann.of("h", msg.Accepted)) == 1
    assert fleet.head("k").counters["names_lost"] == 1
    assert fleet.head("k").publishers.claims.whose("p0") == "ann"
    assert "p0" not in fleet.head("k").publishers.by_name


@pytest.mark.parametrize("room", [2, 3])
def test_who_uses_a_name_for_which_there_was_no_room_loses_it_to_no_later_one(room: int):
    fleet = two_clusters()
    claims = {name: fleet.head(name).publishers.claims for name in ("h", "k")}
    for each in claims.values():
        each.most_of_identity = 2
    ann, bob = fleet.client("ann.1", "h"), fleet.client("bob.1", "k")
    for number in range(3):
        Publishing(ann, "h", f"p{number}", handle=number + 1)
    fleet.run(0.5)
    assert claims["k"].whose("p2") == ""
    claims["h"].most_of_identity = room
    Publishing(bob, "k", "p2")
    fleet.run(1.0)
    assert (refusals(ann, "h"), opens(bob, "k")) == ([], 1)
    assert claims["h"].whose("p2") == ("ann" if room == 3 else "")
    assert refusals(bob, "k") == (["role"] if room == 3 else [])


def test_a_name_in_use_stays_its_owner_s_however_long_and_one_that_is_not_is_free_again():
    fleet = two_clusters(lease_seconds=1.0)
    ann, bob = fleet.client("ann.1", "h"), fleet.client("bob.1", "k")
    Publishing(ann, "h", "p0")
    fleet.run(30.0)
    Publishing(bob, "k", "p0")
    fleet.run(0.5)
    assert refusals(bob, "k") == ["role"]
    fleet.crash("ann.1")
    fleet.run(9.0)
    Publishing(bob, "k", "p0")
    fleet.run(0.5)
    assert refusals(bob, "k") == ["role", "role"]
    fleet.run(8.0)
    Publishing(bob, "k", "p0")
    fleet.run(0.5)
    assert opens(bob, "k") == 1
    assert fleet.head("h").publishers.claims.whose("p0") == "bob"


def test_what_a_log_remembers_of_a_name_does_not_take_it_from_its_owner_of_today():
    fleet = two_clusters(lease_seconds=1.0)
    fleet.disks["h"] = MemoryFiles()
    fleet.crash("h")
    fleet.start("h")
    fleet.run(1.0)
    ann, bob = fleet.client("ann.1", "h"), fleet.client("bob.1", "k")
    Publishing(ann, "h", "p0")
    fleet.run(1.0)
    fleet.crash("h")
    fleet.crash("ann.1")
    fleet.run(20.0)
    Publishing(bob, "k", "p0")
    fleet.run(1.0)
    assert opens(bob, "k") == 1
    fleet.start("h")
    fleet.run(3.0)
    again = fleet.client("ann.2", "h")
    Publishing(again, "h", "p0", incarnation=2)
    fleet.run(1.0)
    assert refusals(again, "h") == ["role"]
    assert not refusals(bob, "k")


def test_names_with_a_granted_prefix_are_not_claimed_and_stay_with_their_identity():
    fleet = two_clusters()
    for head in ("h", "k"):
        fleet.head(head).name_grants = NameGrants({"ann/": frozenset({"ann"})})
    bob, ann = fleet.client("bob.1", "h"), fleet.client("ann.1", "k")
    fleet.head("h").publishers.claims.hear(msg.NameClaim("ann/1", "bob", 0), "", fleet.now)
    Publishing(bob, "h", "ann/1")
    Publishing(ann, "k", "ann/1")
    fleet.run(1.0)
    assert refusals(bob, "h") == ["role"]
    assert (opens(ann, "k"), refusals(ann, "k")) == (1, [])
    assert fleet.head("k").publishers.claims.whose("ann/1") == ""


def test_an_edge_of_an_earlier_release_is_not_told_what_it_cannot_read():
    fleet = Identities()
    fleet.cluster("h", ["e"])
    fleet.start()
    of_brokers = fleet.head("h").handlers.of_brokers
    on_report = of_brokers[msg.EdgeReport]
    of_brokers[msg.EdgeReport] = lambda outbox, report: on_report(
        outbox, msgspec.structs.replace(report, keeps_claims=False)
    )
    fleet.run(1.0)
    Publishing(fleet.client("ann.1", "h"), "h", "p0")
    fleet.run(1.0)
    assert fleet.head("h").publishers.claims.whose("p0") == "ann"
    assert fleet.edge("e").head_messages.publisher_claims.whose("p0") == ""


def test_claims_in_use_are_repeated_in_steps():
    fleet = two_clusters(lease_seconds=2.0)
    ann = fleet.client("ann.1", "h")
    for number in range(600):
        Publishing(ann, "h", f"p{number}", handle=number + 1)
    fleet.run(1.0)
    assert len(fleet.head("k").publishers.claims) == 600
    fleet.run(40.0)
    assert len(fleet.head("k").publishers.claims) == 600
    assert fleet.head("k").status()["name_claims"] == 600
    assert len(fleet.edge("f").head_messages.publisher_claims) == 600


def test_a_neighbour_alone_keeps_the_names_of_a_head_without_edges():
    fleet = Identities()
    fleet.cluster("h", [], ("k",))
    fleet.cluster("k", ["f"], ("h",))
    fleet.start()
    fleet.run(1.0)
    Publishing(fleet.client("ann.1", "h"), "h", "p0")
    fleet.run(0.5)
    fleet.crash("h")
    del fleet.nodes["ann.1"]
    fleet.start("h")
    bob = fleet.client("bob.1", "h")
    Publishing(bob, "h", "p0")
    fleet.run(4.0)
    assert (opens(bob, "h"), refusals(bob, "h")) == (0, ["role"])


def test_a_log_keeps_since_when_a_name_is_its_identity_s():
    fleet = Identities()
    fleet.cluster("h", ["e"])
    fleet.disks["h"] = MemoryFiles()
    fleet.start()
    fleet.run(1.0)
    Publishing(fleet.client("ann.1", "h"), "h", "p0")
    fleet.run(1.0)
    since = fleet.head("h").publishers.by_name["p0"].since
    fleet.crash("h")
    fleet.crash("e")
    fleet.crash("ann.1")
    fleet.start()
    fleet.run(1.0)
    assert fleet.head("h").publishers.claims.whose("p0") == ""
    Publishing(fleet.client("ann.2", "h"), "h", "p0", incarnation=2)
    fleet.run(1.0)
    assert fleet.head("h").publishers.by_name["p0"].since == since > 0
