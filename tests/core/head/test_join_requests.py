"""The edge for a subscriber that asks: of this head, of the head whose stream it reads, or of any head."""

from __future__ import annotations

from typing import Any

import pytest

from plimsoll.core.head import join_requests as module
from plimsoll.core.head.bundles import Bundles
from plimsoll.core.head.join_requests import JoinRequests
from plimsoll.core.head.placement import Placement
from plimsoll.core.protocol import messages as msg


class FakeHead:
    """A head `h`, with one edge unless a test removes it; any value may stand for a link."""

    def __init__(self) -> None:
        self.now, self.name, self.is_starting = 100.0, "h", False
        self.placement = Placement()
        self.placement.add("a", "mem://a", "key")
        self.heads = {"k"}
        self.gone: set[Any] = set()
        self.said: list[tuple[Any, Any]] = []
        self.asked: list[tuple[str, Any]] = []

    def say(self, link: Any, record: Any) -> None:
        self.said.append((link, record))

    def knows(self, link: Any) -> bool:
        return link not in self.gone

    def send(self, to: str, message: Any) -> bool:
        self.asked.append((to, message))
        return to in self.heads

    def send_to_all(self, message: Any) -> bool:
        self.asked.append(("*", message))
        return bool(self.heads)


def made() -> tuple[FakeHead, JoinRequests]:
    head = FakeHead()
    return head, JoinRequests(head, head.placement, (Bundles(None),), head, 1.0)


def without_edges() -> tuple[FakeHead, JoinRequests]:
    """A head that has had no edge for a while, as subscribers that read its stream have told it."""
    head, placing = made()
    head.placement.remove("a")
    for _ in range(6):
        placing.on_join(OTHER, join("earlier", head="h"))
        head.now += 1.0
    head.said.clear()
    return head, placing


LINK: Any = "link"
OWNER: Any = "owner"
OTHER: Any = "other"


def join(x: str = "x", **given: Any) -> msg.Join:
    return msg.Join(x, **given)


@pytest.mark.parametrize("head_named", ["", "h"])
def test_a_newcomer_is_placed_here(head_named: str):
    head, placing = made()
    placing.on_join(LINK, join(head=head_named))
    assert head.said == [(LINK, msg.Placed("x", "a", "mem://a", "key"))]
    assert head.asked == []


def test_without_an_edge_it_is_told_to_ask_again():
    head, placing = made()
    head.placement.remove("a")
    placing.on_join(LINK, join())
    assert head.said == [(LINK, msg.Unplaced("x", "no edge can take a subscriber now", 0.5))]


def test_a_starting_head_places_no_subscriber_and_asks_no_head():
    head, placing = made()
    head.is_starting = True
    placing.on_join(LINK, join())
    placing.on_join(LINK, join(head="k"))
    placing.receive_routed("k", msg.JoinFor(join("y", head="h")))
    assert [type(record) for _, record in head.said] == [msg.Unplaced, msg.Unplaced]
    assert head.asked == [("k", msg.PlacedFor("y", "", "", ""))]


def test_who_reads_the_stream_of_another_head_is_placed_by_that():
    head, placing = made()
    placing.on_join(LINK, join(head="k", prefer="k1"))
    assert head.asked == [("k", msg.JoinFor(join(head="k", prefer="k1")))]
    assert head.said == []
    assert len(placing) == 1
    placing.receive_routed("k", msg.PlacedFor("x", "k1", "mem://k1", "key"))
    assert head.said == [(LINK, msg.Placed("x", "k1", "mem://k1", "key"))]
    placing.receive_routed("k", msg.PlacedFor("x", "k1", "mem://k1", "key"))
    assert len(head.said) == 1
    assert len(placing) == 0


def test_another_head_is_answered_from_the_seats_here():
    head, placing = made()
    placing.receive_routed("k", msg.JoinFor(join(head="h")))
    head.placement.remove("a")
    placing.receive_routed("k", msg.JoinFor(join(head="h")))
    assert head.asked == [("k", msg.PlacedFor("x", "a", "mem://a", "key")), ("k", msg.PlacedFor("x", "", "", ""))]


def test_a_head_that_has_no_place_or_cannot_be_reached_is_asked_again_later():
    head, placing = made()
    placing.on_join(LINK, join(head="k"))
    placing.receive_routed("k", msg.PlacedFor("x", "", "", ""))
    placing.on_join(LINK, join(head="far"))
    assert [(type(record), record.retry_seconds) for _, record in head.said] == [(msg.Unplaced, 0.5)] * 2
    assert head.said[1][1].text == "far cannot be reached from h"
    assert len(placing) == 0


def test_no_subscriber_waits_endlessly_for_another_head():
    head, placing = made()
    placing.on_join(LINK, join(head="k"))
    head.now += 1.9
    placing.expire()
    assert head.said == []
    head.now += 0.2
    placing.expire()
    assert [type(record) for _, record in head.said] == [msg.Unplaced]
    placing.receive_routed("k", msg.PlacedFor("x", "k1", "mem://k1", "key"))
    assert len(head.said) == 1, "the answer is too late"


def test_who_has_left_meanwhile_is_told_nothing():
    head, placing = made()
    placing.on_join(LINK, join("x", head="k"))
    placing.on_join(LINK, join("y", head="k"))
    head.gone.add(LINK)
    placing.receive_routed("k", msg.PlacedFor("x", "k1", "mem://k1", "key"))
    head.now += 5.0
    placing.expire()
    assert head.said == []
    assert len(placing) == 0


def test_those_who_wait_are_bounded(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "WAITING_AT_MOST", 3)
    head, placing = made()
    for i in range(10):
        placing.on_join(LINK, join(f"s{i}", head="k"))
    assert len(placing) == 3
    assert len(head.asked) == 3
    assert len(head.said) == 7


def test_another_link_that_asks_for_the_same_name_takes_no_answer_of_the_first():
    head, placing = made()
    placing.on_join(OWNER, join(head="k"))
    placing.on_join(OTHER, join(head="k"))
    placing.on_join(OWNER, join(head="k"))
    placed = msg.PlacedFor("x", "b", "mem://b", "key")
    for _ in range(3):
        placing.receive_routed("k", placed)
    answer = msg.Placed("x", "b", "mem://b", "key")
    assert head.said == [(OWNER, answer), (OTHER, answer)]
    for i in range(module.WAITING_FOR_ONE_NAME + 10):
        placing.on_join(_link(i), join(head="k"))
    head.now += 60.0
    placing.expire()
    assert len(head.said) == 2 + module.WAITING_FOR_ONE_NAME
    assert len(placing) == 0


def _link(number: int) -> Any:
    return f"link-{number}"


def test_without_an_edge_for_a_while_all_heads_are_asked_and_the_first_answer_counts():
    head, placing = without_edges()
    placing.on_join(LINK, join())
    assert head.asked == [("*", msg.JoinFor(join()))]
    placing.receive_routed("j", msg.PlacedFor("x", "", "", ""))
    assert head.said == [], "a head of an earlier version says that it has none"
    placing.receive_routed("k", msg.PlacedFor("x", "k1", "mem://k1", "key"))
    placing.receive_routed("m", msg.PlacedFor("x", "m1", "mem://m1", "key"))
    assert head.said == [(LINK, msg.Placed("x", "k1", "mem://k1", "key"))]
    placing.on_join(LINK, join("y"))
    assert head.asked[1:] == [("k", msg.JoinFor(join("y", head="k")))], "from now on that head is asked"
    placing.receive_routed("k", msg.PlacedFor("y", "k1", "mem://k1", "key"))
    assert head.said[1:] == [(LINK, msg.Placed("y", "k1", "mem://k1", "key"))]
    head.placement.add("a", "mem://a", "key")
    placing.on_join(LINK, join("z"))
    assert head.said[2:] == [(LINK, msg.Placed("z", "a", "mem://a", "key"))], "an edge here comes first"


@pytest.mark.parametrize("is_silent", [False, True])
def test_a_head_that_has_no_edge_any_more_is_not_asked_again(is_silent: bool):
    head, placing = without_edges()
    placing.on_join(LINK, join())
    placing.receive_routed("k", msg.PlacedFor("x", "k1", "mem://k1", "key"))
    placing.on_join(LINK, join("y"))
    head.now += module.ANSWER_SECONDS
    if is_silent:
        placing.expire()
    else:
        placing.receive_routed("k", msg.PlacedFor("y", "", "", ""))
    assert type(head.said[-1][1]) is msg.Unplaced
    placing.on_join(LINK, join("y"))
    assert head.asked[-1] == ("*", msg.JoinFor(join("y")))


def test_all_heads_are_asked_about_one_subscriber_at_a_time():
    head, placing = without_edges()
    for i in range(100):
        placing.on_join(LINK, join(f"s{i}"))
    assert len(head.asked) == 1
    assert [record.subscriber for _, record in head.said] == [f"s{i}" for i in range(1, 100)]
    head.now += module.ANSWER_SECONDS
    placing.expire()
    assert head.said[-1] == (LINK, msg.Unplaced("s0", module.NO_EDGE, 0.5)), "nobody has one"
    placing.on_join(LINK, join("s7"))
    assert head.asked[1:] == [("*", msg.JoinFor(join("s7")))]


def test_a_head_that_is_asked_with_all_others_answers_from_its_own_edges_or_is_silent():
    head, placing = without_edges()
    placing.receive_routed("k", msg.JoinFor(join()))
    assert head.asked == [], "nor does it ask others"
    head.placement.add("a", "mem://a", "key")
    placing.receive_routed("k", msg.JoinFor(join()))
    assert head.asked == [("k", msg.PlacedFor("x", "a", "mem://a", "key"))]
    head.is_starting = True
    placing.receive_routed("k", msg.JoinFor(join()))
    assert len(head.asked) == 1


def test_an_edge_that_is_away_for_a_moment_sends_no_newcomer_to_another_cluster():
    head, placing = made()
    for _ in range(3):
        head.placement.remove("a")
        for _ in range(8):
            placing.on_join(LINK, join())
            head.now += 0.5
        head.placement.add("a", "mem://a", "key")
        head.now += module.PATIENCE_SECONDS
    assert head.asked == []


@pytest.mark.parametrize(
    "asked", [join("g@@3"), join("app#cbf43926"), join(head="h")], ids=["slice", "unit", "stream of this head"]
)
def test_who_belongs_to_this_cluster_waits_for_it(asked: msg.Join):
    head, placing = without_edges()
    placing.owners[0].attribute = "topic"
    placing.on_join(LINK, asked)
    assert head.asked == []
    assert head.said == [(LINK, msg.Unplaced(asked.subscriber, module.NO_EDGE, 0.5))]


def test_a_head_without_others_says_so_itself():
    head, placing = without_edges()
    head.heads.clear()
    placing.on_join(LINK, join())
    assert head.said == [(LINK, msg.Unplaced("x", module.NO_EDGE, 0.5))]
    assert len(placing) == 0
