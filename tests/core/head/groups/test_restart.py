"""A head that has restarted: all that it accepts is stamped, and what it has forgotten is said by members or told as a
gap.
"""

from __future__ import annotations

import pytest
from tests.core.group_play import GROUP, GroupPlay

from plimsoll.core.head.groups.restart import AWAITED
from plimsoll.core.permissions import ClientPermissions
from plimsoll.core.policies.consumer_groups.model import SliceMove
from plimsoll.core.protocol import messages as msg


def restart(play: GroupPlay, down_seconds: float = 0.3) -> None:
    play.fleet.crash("h")
    play.run(down_seconds)
    play.fleet.start("h")


def accepted(play: GroupPlay) -> list[int]:
    """The numbers of the publications that this life of the head has accepted."""
    entries = [msg.to_edge.decode(entry.record) for _, entry in play.fleet.head().log.after(0) if not entry.is_gap]
    return [entry.body.attributes["n"] for entry in entries]


def finished(play: GroupPlay) -> set[int]:
    return {each.item for each in play.given if each.until is not None}


def test_what_is_accepted_before_the_first_member_is_back_has_its_stamp() -> None:
    play = GroupPlay()
    play.join("a")
    play.join("b")
    play.run(3.0, rate=50)
    restart(play)
    play.run(9.0, rate=50)
    play.run(2.0)
    assert len(accepted(play)) > 300
    assert set(accepted(play)) <= finished(play)


def test_a_head_accepts_nothing_before_it_knows_what_a_group_is_that_its_edges_serve() -> None:
    play = GroupPlay()
    play.join("a")
    play.run(2.0)
    play.fleet.frozen.add("a")
    restart(play)
    play.run(1.0, rate=50)
    assert play.fleet.head().status()["waiting_for"] == [AWAITED + GROUP]
    assert accepted(play) == []
    play.fleet.frozen.discard("a")
    play.run(3.0)
    assert play.fleet.head().status()["waiting_for"] == []
    assert set(accepted(play)) <= finished(play)


def test_a_group_that_nothing_defines_holds_up_a_head_for_six_seconds_and_goes_on_behind_a_gap() -> None:
    play = GroupPlay()
    play.join("a")
    play.run(2.0, rate=50)
    play.fleet.frozen.add("a")
    restart(play)
    play.run(7.0, rate=50)
    assert play.fleet.head().status()["waiting_for"] == []
    unstamped = len(accepted(play))
    assert unstamped > 0
    play.crash("a")
    play.join("b")
    play.run(10.0)
    assert {gap.gap.reason for _, who, gap in play.gaps if who == "b"} == {"restart"}
    assert all(gap.gap.high >= unstamped for _, who, gap in play.gaps if who == "b")


def test_a_member_that_was_cut_off_says_to_a_restarted_head_how_far_it_had_got() -> None:
    play = GroupPlay()
    play.join("a")
    play.run(3.0, rate=50)
    play.fleet.crash("h")
    play.run(5.0)  # longer than its lease: it has stopped by itself
    assert play.has("a") == []
    play.fleet.start("h")
    play.run(12.0, rate=50)
    play.run(2.0)
    assert play.has("a") == [0, 1, 2, 3]
    verdict = play.verdict()
    assert (verdict.repeated, verdict.reordered, verdict.overlapping) == (0, 0, 0), verdict
    assert {gap.gap.reason for _, _, gap in play.gaps} == {"restart"}


def test_a_member_without_the_role_is_not_refused_for_good_by_a_head_that_has_forgotten_its_group() -> None:
    play = GroupPlay()
    play.join("a")
    play.join("b", defines=False)
    play.run(3.0)
    restart(play)
    head = play.fleet.head()
    head.grant_of = lambda peer: ClientPermissions("ann", groups=head.identity_of(peer) == "a")
    play.fleet.frozen.add("a")
    play.run(8.0)
    assert play.consumers["b"].member.failed is None
    play.fleet.frozen.discard("a")
    play.run(9.0)
    assert play.consumers["b"].member.is_member


def restart_all(play: GroupPlay, down_seconds: float = 0.3) -> None:
    """Nothing of the cluster remembers anything."""
    for broker in ("h", "e1", "e2"):
        play.fleet.crash(broker)
    play.run(down_seconds)
    play.fleet.start("h", "e1", "e2")


def gaps_of(play: GroupPlay, name: str) -> set[str]:
    return {gap.gap.reason for _, who, gap in play.gaps if who == name}


def test_a_member_tells_a_whole_cluster_that_has_restarted_while_its_head_starts() -> None:
    play = GroupPlay(count=2)
    play.join("a")
    play.run(2.0, rate=50)
    restart_all(play)
    play.run(12.0, rate=50)
    play.run(2.0)
    assert gaps_of(play, "a") == {"restart"}
    assert len(play.gaps) == 2
    assert play.has("a") == [0, 1]
    verdict = play.verdict()
    assert (verdict.repeated, verdict.reordered, verdict.overlapping) == (0, 0, 0), verdict


def test_one_that_has_told_a_starting_head_what_it_has_keeps_it_though_another_joins_before() -> None:
    play = GroupPlay(count=1)
    play.join("a")
    play.run(1.0)
    play.join("b")
    play.run(1.0)
    for broker in ("h", "e1", "e2"):
        play.fleet.crash(broker)
    play.fleet.start("h")
    while GROUP not in play.fleet.head().groups.by_name:
        play.run(0.01)
    assert play.fleet.head().is_starting  # it has told both to ask again
    play.fleet.start("e1", "e2")
    play.fleet.freeze("a")
    while "b" not in play.group.members:
        play.run(0.01)
    play.fleet.thaw("a")
    play.run(6.0)
    assert (play.has("a"), play.has("b")) == ([0], [])
    assert [change.why for change in play.consumers["a"].changes] == ["assigned"]


def test_one_that_comes_before_those_who_had_the_slices_begins_them_again_behind_the_gap() -> None:
    play = GroupPlay(count=4)
    play.join("a")
    play.run(2.0, rate=50)
    play.fleet.freeze("a")
    restart_all(play)
    play.join("b")
    play.run(1.2, rate=50)
    assert play.has("b") == [0, 1, 2, 3]
    assert not play.gaps
    play.fleet.thaw("a")
    play.run(8.0, rate=50)
    play.run(2.0)
    assert (len(play.has("a")), len(play.has("b"))) == (2, 2)
    begun_again = {(who, gap.gap.reason) for _, who, gap in play.gaps}
    assert len(play.gaps) == 4
    assert begun_again <= {("a", "restart"), ("b", "restart")}
    verdict = play.verdict()
    assert (verdict.repeated, verdict.reordered, verdict.overlapping) == (0, 0, 0), verdict
    assert set(accepted(play)) <= finished(play) | unstamped_before(play)


def unstamped_before(play: GroupPlay) -> set[int]:
    """What a head has accepted before it knew the group: that is behind the gap."""
    return set(accepted(play)[: play.group.since[1]])


def test_what_a_head_accepts_while_it_waits_for_members_is_given_to_them() -> None:
    play = GroupPlay()
    play.join("a")
    play.join("b")
    play.run(2.0, rate=50)
    play.fleet.crash("h")
    play.run(4.0)  # longer than their leases: they have stopped, and edges keep nothing for them
    play.fleet.start("h")
    play.run(12.0, rate=50)
    play.run(2.0)
    assert len(unstamped_before(play)) < 50
    assert set(accepted(play)) - unstamped_before(play) <= finished(play)
    verdict = play.verdict()
    assert (verdict.repeated, verdict.reordered, verdict.overlapping) == (0, 0, 0), verdict


def test_a_slice_that_has_long_been_without_a_member_goes_on_behind_a_gap_after_a_restart() -> None:
    play = GroupPlay()
    play.join("a")
    play.run(1.0, rate=20)
    play.leave("a")
    play.run(8.0)  # longer than edges keep other places
    for n in range(8):
        play.publish(n)
    play.run(0.5)
    restart(play)
    play.run(1.0)
    play.join("b")
    play.run(10.0, rate=20)
    play.run(2.0)
    assert {(gap.gap.reason, gap.gap.high) for _, _, gap in play.gaps} == {("restart", 0)}
    assert len(play.gaps) == 4
    assert set(accepted(play)) - unstamped_before(play) <= finished(play)


@pytest.mark.parametrize("durable", [False, True])
def test_in_a_tree_it_is_given_all_that_came_since_from_all_heads(*, durable: bool) -> None:
    play = GroupPlay(west=True, durable=durable)
    play.join("a", defines=False)
    play.run(2.0, rate=20)
    west = play.publish_at("w")
    for n in range(20):
        west(n)
    play.run(2.0)
    from_west: set[int] = set()
    for name in ("h", "e1", "e2"):
        play.fleet.crash(name)
    play.fleet.freeze("a")  # for longer than its lease, and than edges keep anything
    for n in range(20):
        west(n)  # while the head of the group is away
    play.run(1.0)
    play.fleet.start("h", "e1", "e2")
    for _ in range(10):
        play.run(0.5, rate=20)  # no consumer asks for anything
        west(play.said)
        from_west.add(play.said)
    play.fleet.thaw("a")
    play.run(16.0, rate=20)
    play.run(2.0)
    verdict = play.verdict()
    assert (verdict.repeated, verdict.reordered, verdict.overlapping) == (0, 0, 0), verdict
    assert len(from_west) == 10
    assert from_west | set(accepted(play)) <= finished(play)
    if durable:
        assert set(range(1, play.said + 1)) == finished(play)
        assert play.gaps == []
    else:
        ends = {(gap.gap.epoch, gap.gap.high) for _, _, gap in play.gaps if gap.gap.reason == "restart"}
        assert (play.fleet.head().epoch, 0) in ends, "what this life of the head has accepted is in no gap"


def test_what_one_may_have_had_that_died_before_it_could_say_so_is_marked() -> None:
    """Of the slice only its giver speaks, which had released it before."""
    play = GroupPlay(count=1)
    play.join("a")
    play.run(1.0)
    play.join("b")
    play.run(1.0, rate=50)
    play.group.schedule.command((SliceMove("a", "b", 0),), empties=False)
    play.run(0.1, rate=50)
    assert play.has("b") == [0]
    play.fleet.freeze("a")
    restart(play)
    while not set(accepted(play)) & finished(play):
        play.run(0.01, rate=100)
    assert play.group.slices[0].holder == ""  # it has been told to ask again
    play.crash("b")
    play.fleet.thaw("a")
    play.run(8.0, rate=50)
    verdict = play.verdict()
    assert verdict.redelivered > 0
    assert (verdict.repeated, verdict.reordered, verdict.overlapping) == (0, 0, 0), verdict


def test_of_two_that_claim_a_slice_the_one_with_the_newer_epoch_has_it() -> None:
    play = GroupPlay(count=1)
    clients = [play.fleet.client(name, "h") for name in ("old", "new", "older")]
    for client, epoch in zip(clients, (3, 5, 2), strict=True):
        said = msg.SlicePlace(0, epoch, ("h", 1, 7), [])
        client.tell("h", msg.GroupJoin(GROUP, client.info.name, 1, play.definition, [said]))
        play.run(0.1)
    assert (play.group.slices[0].holder, play.group.slices[0].epoch) == ("new", 5)
    assert [client.of("h", msg.SliceRevoked) for client in clients] == [
        [msg.SliceRevoked(GROUP, 0, 3)],
        [],
        [msg.SliceRevoked(GROUP, 0, 2)],
    ]


@pytest.mark.parametrize(("epoch", "side"), [(2**53, 0), (2**63 - 1, 0), (3, 2)])
def test_a_claim_that_no_head_can_have_given_out_leaves_the_slice_to_others(epoch: int, side: int) -> None:
    play = GroupPlay(count=1)
    client = play.fleet.client("hostile", "h")
    said = msg.SlicePlace(0, epoch, ("h", 1, 7), [], side=side)
    client.tell("h", msg.GroupJoin(GROUP, "hostile", 1, play.definition, [said]))
    play.run(0.1)
    assert play.group.slices[0].holder == ""
    assert client.of("h", msg.SliceRevoked) == [msg.SliceRevoked(GROUP, 0, epoch)]
    play.fleet.freeze("hostile")
    play.join("a")
    play.run(15.0, rate=10)
    assert play.has("a") == [0]
    assert finished(play)
