"""A head that has restarted: all that it accepts is stamped, and what it has forgotten is said by members or told as a
gap.
"""

from __future__ import annotations

from tests.core.group_play import GROUP, GroupPlay

from plimsoll.core.head.groups.requests import AWAITED
from plimsoll.core.permissions import ClientPermissions
from plimsoll.core.protocol import messages as msg


def restart(play: GroupPlay, down_seconds: float = 0.3) -> None:
    play.fleet.crash("h")
    play.run(down_seconds)
    play.fleet.start("h")


def accepted(play: GroupPlay) -> list[int]:
    """The numbers of the publications that this life of the head has accepted."""
    bodies = [msg.to_edge.decode(entry.record).body for _, entry in play.fleet.head().log.after(0)]
    return [body.attributes["n"] for body in bodies]


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
