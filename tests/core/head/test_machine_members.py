"""A mediator sends a head the list of its edges, and of those that take no newcomers."""

from plimsoll.core.config import BrokerConfig
from plimsoll.core.head.machine import Head
from plimsoll.core.head.placement import Placement
from plimsoll.core.protocol import messages, wire
from plimsoll.core.protocol.wire import Info


def make_head() -> Head:
    ids = iter(range(1, 1000))
    config = BrokerConfig(
        name="h", role="head", cluster="c", data="tcp://127.0.0.1:1", control="tcp://127.0.0.1:2", edges=("a",)
    )
    return Head(config, 1, lambda: next(ids))


def answer_to_hello(head: Head, edge: str) -> wire.Frame:
    """The head's answer to the HELLO of an edge."""
    hello = wire.hello_frame(len(edge) + 7, 0, False, Info(edge, "edge", 1))
    head.receive(edge.encode(), [hello], 1.0)
    head.poll(1.0)
    frames = [data for peer, data in head.data_to_send() if peer == edge.encode()]
    return wire.decode_frame(frames[0])


def tell(head: Head, *said: messages.Identify | messages.ClusterMembers) -> None:
    head.receive_control(b"m", wire.control_frame(*said), 1.0)


MEDIATOR = messages.Identify("m", "mediator", 1)


def test_an_edge_that_a_mediator_names_is_admitted_and_others_are_not():
    head = make_head()
    assert isinstance(answer_to_hello(head, "a"), wire.HelloOk)
    refused = answer_to_hello(head, "bb")
    assert isinstance(refused, wire.Refuse)
    assert "bb is not an edge of h" in refused.text
    tell(head, MEDIATOR, messages.ClusterMembers(["a", "bb"], []))
    assert isinstance(answer_to_hello(head, "bb"), wire.HelloOk)
    tell(head, messages.ClusterMembers(["a"], []))
    assert isinstance(answer_to_hello(make_head(), "bb"), wire.Refuse)


def test_only_a_mediator_is_listened_to():
    head = make_head()
    tell(head, messages.ClusterMembers(["a", "bb"], []))
    assert isinstance(answer_to_hello(head, "bb"), wire.Refuse)
    tell(head, messages.Identify("x", "edge", 1), messages.ClusterMembers(["a", "bb"], []))
    assert isinstance(answer_to_hello(head, "bb"), wire.Refuse)


def test_a_cordoned_edge_takes_no_newcomers():
    seats = Placement()
    seats.add("a", "tcp://a", "")
    seats.add("b", "tcp://b", "")
    seats.cordoned = frozenset({"a"})
    placed = [seats.place(()) for _ in range(10)]
    assert {seat.name for seat in placed if seat is not None} == {"b"}
    only = seats.place({"b"}, prefer="a")
    assert only is not None
    assert only.name == "b"
    seats.cordoned = frozenset({"a", "b"})
    assert seats.place(()) is None


def test_a_head_takes_over_what_is_cordoned():
    head = make_head()
    tell(head, MEDIATOR, messages.ClusterMembers(["a"], ["a"]))
    assert head.placement.cordoned == {"a"}
