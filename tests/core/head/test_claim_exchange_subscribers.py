"""A subscriber's name is one identity's in the whole fleet: real machines in virtual time, of two or three clusters."""

from __future__ import annotations

from typing import Any

import pytest
from tests.core.fleet import Client, Publishing, resume
from tests.core.head.test_claim_exchange import Identities, two_clusters

from plimsoll.core.head.standby.memory_files import MemoryFiles
from plimsoll.core.permissions import NameGrants
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol.wire import Token

TEXT = [msg.SubscriptionItem(1, "[class,=,'STOCK']")]


def asked(name: str = "s", epoch: tuple[int, int] = (5, 2), token: Token | None = None, lease: float = 0.0) -> Any:
    return msg.Resume(1, name, epoch, 1, TEXT, msg.Policy(), token, [], lease_seconds=lease)


def closed(client: Client, edge: str) -> list[str]:
    return [each.code for each in client.of(edge, msg.AttachmentClosed)]


def is_served(client: Client, edge: str) -> bool:
    return bool(client.of(edge, msg.Resumed))


def in_a_row(**limits: Any) -> Identities:
    """Heads h, k and m, each with an edge; h and m are neighbours of k alone."""
    fleet = Identities(limits=limits)
    fleet.cluster("h", ["e"], ("k",))
    fleet.cluster("k", ["f"], ("h", "m"))
    fleet.cluster("m", ["g"], ("k",))
    fleet.start()
    fleet.run(2.0)
    return fleet


@pytest.mark.parametrize("is_away", [False, True])
@pytest.mark.parametrize("edge", ["f", "g"])
def test_a_name_that_is_served_or_kept_at_home_is_refused_in_other_clusters(edge: str, is_away: bool):
    fleet = in_a_row()
    ann, eve = fleet.client("ann.1", "e", "h"), fleet.client("eve.1", edge)
    ann.tell("e", asked())
    fleet.run(0.5)
    if is_away:
        ann.tell("e", msg.Detach([1], False))
        fleet.run(0.5)
    eve.tell(edge, asked(epoch=(9, 2)))
    fleet.run(0.5)
    assert closed(eve, edge) == ["role"]
    assert not is_served(eve, edge)
    if not is_away:
        Publishing(ann, "h").publish(2)
        fleet.run(0.5)
        assert ann.numbers("e", 1) == [1, 2]
        assert closed(ann, "e") == []


def test_its_owner_goes_to_other_clusters_and_comes_back_and_is_never_refused():
    fleet = in_a_row(lease_seconds=2.0)
    ann, eve = fleet.client("ann.1", "e", "f", "g"), fleet.client("eve.1", "e", "f", "g")
    n = 2
    for edge in ("e", "f", "g", "e", "g", "f"):
        n += 2
        ann.tell(edge, asked(epoch=(5, n)))
        fleet.run(0.3)
        ann.tell(edge, msg.Detach([1], False))
        for _ in range(20):  # the lease at the edge before ends meanwhile
            for each in ("e", "f", "g"):
                eve.tell(each, asked(epoch=(9, n)))
            fleet.run(0.1)
    assert [len(ann.of(edge, msg.Resumed)) for edge in ("e", "f", "g")] == [2, 2, 2]
    assert not {*closed(ann, "e"), *closed(ann, "f"), *closed(ann, "g")} & {"role"}
    assert not any(is_served(eve, edge) for edge in ("e", "f", "g"))


@pytest.mark.parametrize("withdraws", [False, True])
def test_a_name_that_has_ended_is_free_in_all_clusters(withdraws: bool):
    fleet = in_a_row(lease_seconds=2.0)
    ann, bob = fleet.client("ann.1", "e"), fleet.client("bob.1", "g")
    ann.tell("e", asked())
    fleet.run(0.5)
    ann.tell("e", msg.Detach([1], withdraws))
    fleet.run(2.0 if withdraws else 4.5)
    bob.tell("g", asked(epoch=(1, 2)))
    fleet.run(0.5)
    assert is_served(bob, "g")
    fleet.cut("h", "k")
    fleet.run(3.0)
    fleet.mend("h", "k")
    fleet.run(8.0)
    assert closed(bob, "g") == []
    assert {fleet.head(head).subscriber_claims.whose("s") for head in "hkm"} == {"bob"}
    ann.tell("e", asked(epoch=(7, 2)))
    fleet.run(0.5)
    assert closed(ann, "e")[-1] == "role"


@pytest.mark.parametrize("disk", [False, True])
@pytest.mark.parametrize("is_away", [False, True])
def test_nobody_wins_a_name_through_the_death_of_its_head(disk: bool, is_away: bool):
    fleet = two_clusters(lease_seconds=20.0)
    if disk:
        fleet.disks["h"] = MemoryFiles()
        fleet.crash("h")
        fleet.start("h")
        fleet.run(1.0)
    ann, eve = fleet.client("ann.1", "e"), fleet.client("eve.1", "e", "f")
    ann.tell("e", asked())
    fleet.run(0.5)
    if is_away:
        ann.tell("e", msg.Detach([1], False))
        fleet.run(0.5)
    fleet.crash("h")
    for n in range(15):
        for edge in ("e", "f"):
            eve.tell(edge, asked(epoch=(9, 2 * n + 2)))
        fleet.run(0.2)
    fleet.start("h")
    for n in range(15, 40):
        for edge in ("e", "f"):
            eve.tell(edge, asked(epoch=(9, 2 * n + 2)))
        fleet.run(0.2)
    assert not is_served(eve, "e")
    assert not is_served(eve, "f")
    assert fleet.head("h").owners.entries["s"].identity == "ann"
    if is_away:
        ann.tell("e", asked(epoch=(5, 4)))
        fleet.run(0.5)
        assert len(ann.of("e", msg.Resumed)) == 2
    assert "role" not in closed(ann, "e")


def test_of_two_that_came_while_their_heads_were_parted_the_later_one_loses():
    fleet = two_clusters()
    ann, eve = fleet.client("ann.1", "e", "h"), fleet.client("eve.1", "f")
    fleet.cut("h", "k")
    ann.tell("e", asked())
    fleet.run(0.2)
    eve.tell("f", asked(epoch=(9, 2)))
    fleet.run(4.0)
    assert is_served(ann, "e")
    assert is_served(eve, "f")
    fleet.mend("h", "k")
    fleet.run(6.0)
    assert closed(eve, "f") == ["role"]
    assert closed(ann, "e") == []
    assert fleet.head("k").counters["names_lost"] == 1
    assert "s" not in fleet.head("k").owners.entries
    assert not fleet.edge("f").attachments.by_subscriber
    assert len(fleet.edge("f").subscription_table.cover) == 0
    Publishing(ann, "h").publish(2)
    fleet.run(0.5)
    assert ann.numbers("e", 1) == [1, 2]


def test_a_place_that_a_disk_keeps_is_its_identity_s_though_all_else_has_forgotten():
    fleet = two_clusters(lease_seconds=1.0)
    fleet.disks["h"] = MemoryFiles()
    fleet.crash("h")
    fleet.start("h")
    fleet.run(1.0)
    ann, eve = fleet.client("ann.1", "e"), fleet.client("eve.1", "f")
    ann.tell("e", asked(lease=3600.0))
    fleet.run(0.5)
    ann.tell("e", msg.Detach([1], False))
    fleet.run(3.0)
    since = fleet.head("h").durable_places.kept["s"].claimed
    assert since > 0
    fleet.crash("h")
    fleet.crash("e")
    fleet.run(20.0)
    eve.tell("f", asked(epoch=(9, 2)))
    fleet.run(0.5)
    assert is_served(eve, "f"), "twelve leases after all that could say that the name is in use"
    fleet.start("h")
    fleet.start("e")
    fleet.run(8.0)
    assert closed(eve, "f") == ["role"]
    assert fleet.head("k").subscriber_claims.whose("s") == "ann"
    assert fleet.head("h").owners.entries["s"].claimed == since
    bob = fleet.client("ann.2", "f")
    bob.tell("f", asked(epoch=(6, 2)))
    fleet.run(0.5)
    assert is_served(bob, "f")


def test_a_place_that_is_away_for_long_keeps_its_name_in_all_clusters():
    fleet = two_clusters(lease_seconds=1.0)
    ann, eve = fleet.client("ann.1", "e"), fleet.client("eve.1", "f")
    ann.tell("e", asked(lease=30.0))
    fleet.run(0.5)
    ann.tell("e", msg.Detach([1], False))
    for n in range(28):
        fleet.run(1.0)
        eve.tell("f", asked(epoch=(9, 2 * n + 2)))
    assert not is_served(eve, "f")
    fleet.run(6.0)
    eve.tell("f", asked(epoch=(9, 100)))
    fleet.run(0.5)
    assert is_served(eve, "f")


def test_a_hand_over_across_clusters_takes_the_name_along():
    fleet = two_clusters()
    ann, eve = fleet.client("ann.1", "h", "e", "f"), fleet.client("eve.1", "e", "f")
    ann.tell("e", asked())
    mediator = fleet.mediator("h")
    fleet.run(0.5)
    for edge in ("e", "f"):
        eve.tell(edge, asked(epoch=(9, 2)))
    plan = msg.HandoverPlan("e", "f", "k", ["s"], False, 3.0, 3.0)
    mediator.say_control("h", msg.Command(1, fleet.head("h").epoch, "1.1", "prepare", plan))
    fleet.run(0.3)
    ann.tell("f", msg.Attach("1.1", [msg.AttachItem(9, "s", (5, 3), 1, TEXT, msg.Policy())]))
    fleet.run(0.3)
    mediator.say_control("h", msg.Command(1, fleet.head("h").epoch, "1.1", "cut"))
    fleet.run(0.3)
    ann.tell("f", msg.Go("1.1", [msg.GoItem(9)]))
    fleet.run(1.0)
    (outcome,) = [each for each in mediator.heard["h"] if isinstance(each, msg.Outcome) and each.state == "done"]
    assert outcome.members == [("s", "moved")]
    for edge in ("e", "f"):
        eve.tell(edge, asked(epoch=(9, 4)))
    fleet.run(0.5)
    assert {*closed(eve, "e"), *closed(eve, "f")} == {"role"}
    assert "s" not in fleet.head("h").owners.entries
    assert fleet.head("k").owners.entries["s"].identity == "ann"
    assert fleet.head("h").subscriber_claims.whose("s") == fleet.head("k").subscriber_claims.whose("s") == "ann"
    Publishing(ann, "h").publish(2)
    fleet.run(0.5)
    assert ann.numbers("f", 9) == [1, 2]


def test_names_with_a_granted_prefix_and_slices_are_not_claimed():
    fleet = two_clusters()
    for head in ("h", "k"):
        fleet.head(head).name_grants = NameGrants({"ann/": frozenset({"ann"})})
    ann, bob = fleet.client("ann.1", "e", "f"), fleet.client("bob.1", "e")
    bob.tell("e", asked("ann/1"))
    ann.tell("f", asked("ann/1"))
    fleet.head("k").owners.swap("g@@1", "f#1", (1, 1), (1, 0), identity="group:g")
    fleet.run(0.5)
    assert closed(bob, "e") == ["role"]
    assert is_served(ann, "f")
    assert len(fleet.head("k").subscriber_claims) == 0


def test_claims_in_use_are_repeated_in_steps_and_differences_are_told():
    fleet = two_clusters(lease_seconds=2.0)
    ann = fleet.client("ann.1", "e")
    ann.tell("e", *(resume(number, f"s{number}") for number in range(1, 601)))
    fleet.run(1.0)
    h, k, f = fleet.head("h"), fleet.head("k"), fleet.edge("f")
    assert len(k.subscriber_claims) == len(f.head_messages.subscriber_claims) == 600
    told = h.counters["said_NameClaims"]
    fleet.run(40.0)
    assert len(k.subscriber_claims) == len(f.head_messages.subscriber_claims) == 600
    # Three steps in each of 20 leases, to one edge and one neighbour.
    assert h.counters["said_NameClaims"] - told <= 2 * 3 * 21
    ann.tell("e", msg.Detach(list(range(1, 301)), True))
    fleet.run(3.0)
    assert len(k.subscriber_claims) == len(f.head_messages.subscriber_claims) == 300
    assert k.status()["name_claims"] == 300


def test_who_goes_on_where_another_place_has_ended_says_so_before_another_gets_the_name():
    fleet = in_a_row()
    ann, eve = fleet.client("ann.1", "e", "g"), fleet.client("eve.1", "e", "f", "g")
    ann.tell("e", asked())
    fleet.run(0.5)
    since = fleet.head("h").owners.entries["s"].claimed
    ann.tell("g", asked(epoch=(5, 4)))
    fleet.run(0.5)
    ann.tell("e", msg.Detach([1], True))
    for n in range(50):
        for edge in ("e", "f", "g"):
            eve.tell(edge, asked(epoch=(9, 2 * n + 2)))
        fleet.run(0.05)
    assert not any(is_served(eve, edge) for edge in ("e", "f", "g"))
    assert fleet.head("m").owners.entries["s"].claimed == since + 1
    assert closed(ann, "g") == []
