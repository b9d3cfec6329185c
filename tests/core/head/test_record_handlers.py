"""Each kind of record that a head is sent has one handler."""

from typing import Any, get_args

import pytest

from plimsoll.core.head.record_handlers import FOR_EDGES, ClientHandlers, Handlers, RecordHandlers
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol.wire import WireError


def ignore(*_: object) -> None:
    pass


def test_a_kind_has_one_handler_and_only_kinds_that_come_from_there_have_one():
    handlers: Handlers[str] = Handlers(msg.Pub | msg.Gap)
    handlers.add(msg.Gap, ignore)
    with pytest.raises(TypeError, match="Gap has a handler already"):
        handlers.add(msg.Gap, ignore)
    with pytest.raises(TypeError, match="Leaving is not a record"):
        handlers.add(msg.Leaving, ignore)
    assert handlers.missing() == ["Pub"]


def test_the_check_names_what_no_part_deals_with():
    handlers = RecordHandlers()
    for kind in get_args(msg.FromEdge | msg.BetweenHeads):
        handlers.of_brokers.add(kind, ignore)
    for kind in {*get_args(msg.Routed)} - {msg.Marker}:
        handlers.of_heads.add(kind, ignore)
    for kind in {*get_args(msg.FromClient)} - {*get_args(FOR_EDGES)} - {msg.Publish}:
        handlers.of_clients.add(kind, ignore)
    with pytest.raises(TypeError, match="no part of the head deals with Publish, Marker"):
        handlers.check()
    handlers.of_clients.add(msg.Publish, ignore)
    handlers.of_heads.add(msg.Marker, ignore)
    handlers.check()


def test_a_record_that_costs_more_counts_once_it_has_been_dealt_with():
    handlers, seen = ClientHandlers(), list[Any]()
    handlers.add(msg.Close, lambda link, message: seen.append((link, message)))
    handlers.add_costly(msg.Open, lambda link, message: seen.append((link, message)), 50)
    link: Any = "link"
    closing, opening = msg.Close(1), msg.Open(1, "p", 1)
    assert list(handlers.handle(link, closing)) == []
    assert list(handlers.handle(link, opening)) == [50]
    assert seen == [(link, closing), (link, opening)]


def test_what_is_for_an_edge_is_refused():
    link: Any = "link"
    with pytest.raises(WireError, match="Pause is for an edge") as raised:
        list(ClientHandlers().handle(link, msg.Pause(1)))
    assert raised.value.code == "misplaced"
