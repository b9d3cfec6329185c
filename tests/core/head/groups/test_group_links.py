"""Members of two clusters: what they say travels through their own head, and slices move between them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import Mock

import pytest
from tests.core.group_play import GROUP, GroupPlay, definition

from plimsoll.core.head.groups.group_links import GroupLinks
from plimsoll.core.protocol import messages as msg


def two_clusters(**fields: Any) -> GroupPlay:
    """The group is h's; a second cluster has the head w and the edge x1."""
    return GroupPlay(west=True, **fields)


def from_west(play: GroupPlay, name: str, work: float = 0.0) -> None:
    play.join(name, work, defines=False, home="w")


def test_slices_move_between_consumers_of_two_clusters_and_each_item_is_processed_once() -> None:
    play = two_clusters()
    play.join("a", work=0.004)
    play.run(1.0)
    play.run(2.0, rate=100)
    from_west(play, "b", work=0.004)
    play.run(2.0)
    play.run(1.0, rate=100)
    assert (len(play.has("a")), len(play.has("b"))) == (2, 2)
    play.leave("a")
    play.run(2.0, rate=100)
    assert play.consumers["a"].member.has_left
    assert play.has("b") == [0, 1, 2, 3]
    play.join("c", work=0.004)
    play.run(2.0, rate=100)
    play.leave("b")
    play.run(2.0, rate=100)
    assert play.has("c") == [0, 1, 2, 3]
    play.check()


def test_the_first_members_may_be_those_of_the_other_cluster() -> None:
    play = two_clusters()
    from_west(play, "b")
    play.run(2.0)
    assert play.has("b") == [0, 1, 2, 3]
    play.run(2.0, rate=50)
    assert {entry.edge for x, entry in play.fleet.head().owners.entries.items() if x.startswith(GROUP)} <= {"e1", "e2"}
    play.check()


def test_one_that_dies_gives_its_slices_to_those_of_the_other_cluster() -> None:
    play = two_clusters()
    play.join("a", work=0.004)
    from_west(play, "b", work=0.004)
    play.run(2.0)
    play.run(1.0, rate=100)
    play.crash("b")
    play.run(8.0, rate=50)
    assert play.has("a") == [0, 1, 2, 3]
    play.check(is_exact=False)


@pytest.mark.parametrize("seconds", [3.0, 9.0])
def test_heads_that_are_cut_off_from_each_other_lose_nothing(seconds: float) -> None:
    """For longer than the lease the member stops by itself, and others go on with its slices; then it comes back."""
    play = two_clusters()
    play.join("a", work=0.004)
    from_west(play, "b", work=0.004)
    play.run(2.0)
    play.run(1.0, rate=100)
    assert len(play.has("b")) == 2
    play.fleet.cut("h", "w")
    play.run(seconds, rate=50)
    if seconds > 8.0:
        assert play.has("a") == [0, 1, 2, 3]
    play.fleet.mend("h", "w")
    play.run(6.0, rate=50)
    assert len(play.has("b")) == 2
    play.check(is_exact=False)


def test_a_head_of_members_that_restarts_has_them_join_again() -> None:
    play = two_clusters()
    play.join("a", work=0.004)
    from_west(play, "b", work=0.004)
    play.run(2.0)
    play.run(1.0, rate=100)
    play.fleet.crash("w")
    play.run(0.3, rate=50)
    play.fleet.start("w")
    play.run(8.0, rate=50)
    assert len(play.has("b")) == 2
    play.run(3.0)
    assert play.verdict().holds, play.verdict()
    assert {gap.gap.reason for _, _, gap in play.gaps} == {"restart"}, (
        "what the other head has forgotten may be missing"
    )


def losing(play: GroupPlay, head: str, kind: type) -> list[Any]:
    """Lose the first record of a kind that this head sends through the tree; returns what was lost."""
    links: Any = play.fleet.head(head).group_links
    original, lost = links.router.send, list[Any]()

    def send(to: str, message: Any, edge: str = "") -> bool:
        if isinstance(getattr(message, "record", None), kind) and not lost:
            lost.append(message)
            return True
        return bool(original(to, message, edge))

    links.router.send = send
    return lost


def test_an_answer_that_is_lost_on_the_way_makes_the_member_join_again() -> None:
    play = two_clusters()
    from_west(play, "b")
    play.run(2.0)
    play.join("a")
    play.run(1.0, rate=50)
    lost = losing(play, "h", msg.SliceAssigned)
    play.leave("a")
    play.run(4.0, rate=50)
    assert lost
    assert play.has("b") == [0, 1, 2, 3]
    play.check(is_exact=False)


def test_what_a_member_says_and_is_lost_on_the_way_makes_it_join_again() -> None:
    play = two_clusters()
    from_west(play, "b")
    play.run(2.0)
    lost = losing(play, "w", msg.SliceReleased)
    play.join("a")
    play.run(4.0, rate=50)
    assert lost
    assert (len(play.has("a")), len(play.has("b"))) == (2, 2)
    play.check(is_exact=False)


def test_a_member_whose_question_is_lost_asks_again() -> None:
    play = two_clusters()
    lost = losing(play, "w", msg.GroupJoin)
    from_west(play, "b")
    play.run(6.0)
    assert lost
    assert play.has("b") == [0, 1, 2, 3]


def test_a_member_of_another_cluster_is_told_why_it_cannot_join() -> None:
    play = two_clusters()
    play.fleet.cut("h", "w")
    from_west(play, "b")
    play.run(4.0)
    assert not play.consumers["b"].member.is_member
    assert play.consumers["b"].member.failed is None
    play.fleet.mend("h", "w")
    play.run(6.0)
    assert play.consumers["b"].member.is_member


def test_one_with_another_definition_is_refused_for_good() -> None:
    play = two_clusters()
    play.definition = definition(5)
    play.join("b", home="w")
    play.run(2.0)
    failed = play.consumers["b"].member.failed
    assert failed is not None
    assert "defined otherwise" in failed.text


@pytest.mark.parametrize(("head", "epoch"), [("x", 7), ("h", 6)])
def test_an_answer_that_is_not_for_this_way_is_passed_over(head: str, epoch: int) -> None:
    """Of a head that is not the group's, or to an earlier life of this one."""
    said, sent = list[Any](), list[Any]()

    def send(_: str, message: Any) -> bool:
        sent.append(message)
        return True

    host = SimpleNamespace(now=0.0, name="w", epoch=7, say=lambda link, record: said.append(record))
    router = SimpleNamespace(send=send)
    links = GroupLinks(cast(Any, host), cast(Any, router), 1.0, 4.0)
    link = cast(Any, Mock(identity="app"))
    links.pass_on(link, "h", msg.GroupJoin(GROUP, "a", 1, None))
    [asked] = sent
    left = msg.GroupLeft(GROUP)
    links.on_answer(head, msg.GroupAnswer(epoch, asked.client, 1, left))
    assert said == []
    links.on_answer("h", msg.GroupAnswer(7, asked.client, 1, left))
    assert said == [left]
