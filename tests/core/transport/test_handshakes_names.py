"""A link belongs to the role, the name and the key of its peer: no other peer ends it, or takes it up."""

from __future__ import annotations

import dataclasses
from typing import Literal

import pytest
from tests.core.fleet import Publishing, one_cluster, resume, tree
from tests.core.transport.test_overlay_node import Echo, hello

from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol import wire
from plimsoll.core.protocol.wire import Info


@pytest.mark.parametrize("name", ["e1", "h"])
def test_a_client_with_the_name_of_a_broker_ends_no_link(name: str):
    fleet = one_cluster(1)
    ann = fleet.client("ann", "h", "e1")
    ann.tell("e1", resume(1, "s"))
    fleet.run(1.0)
    before = fleet.head().handshakes.accepted_links()
    intruder = fleet.client("intruder")
    intruder.handshakes.info = Info(name, "client", 9)
    intruder.dial("h", "mem://h")
    intruder.dial("e1", "mem://e1")
    fleet.run(1.0)
    assert intruder.refusals
    assert all("the name of a broker" in text for _, text in intruder.refusals), intruder.refusals
    assert fleet.head().handshakes.accepted_links() == before
    Publishing(ann, "h").publish(3)
    fleet.run(1.0)
    assert ann.numbers("e1", 1) == [1, 2, 3]
    assert ann.of("e1", msg.AttachmentClosed) == []


def test_a_client_with_the_name_of_a_neighbour_ends_no_link():
    fleet = tree([("a", "b")])
    link = fleet.head("b").handshakes.accepted_links()
    intruder = fleet.client("intruder")
    intruder.handshakes.info = Info("a", "client", 9)
    intruder.dial("b", "mem://b")
    fleet.run(1.0)
    assert "the name of a broker" in intruder.refusals[0][1]
    assert all(each in fleet.head("b").handshakes.accepted_links() for each in link)
    assert fleet.head("b").routes.neighbors["a"].up


def test_an_older_link_ends_only_for_the_same_role_name_and_key():
    echo = Echo()
    echo.identity_of = lambda peer: peer.decode()[0]
    echo.hear(hello(link=1), peer=b"A-1")
    echo.hear(hello(link=2), peer=b"B-1")
    echo.hear(hello(link=3, info=Info("peer", "edge", 1)), peer=b"A-2")
    assert echo.events == [("open", 1), ("open", 2), ("open", 3)]
    echo.hear(hello(link=4), peer=b"A-3")
    assert echo.events[3:] == [("lost", 1), ("open", 4)]


def test_an_identity_has_a_bounded_number_of_connections_and_its_own_brokers_have_not():
    echo = Echo()
    echo.handshakes._limits = dataclasses.replace(echo.handshakes._limits, max_connections=2)
    echo.identity_of = lambda peer: peer.decode()[0]

    def opens(peer: bytes, name: str, role: Literal["client", "edge"] = "client") -> str:
        number = len(echo.handshakes.accepted_links()) + 100 * peer[-1]
        answer = echo.hear(hello(link=number, info=Info(name, role, 1)), peer=peer)[0]
        return answer.text if isinstance(answer, wire.Refuse) else ""

    assert [opens(b"A-1", "a"), opens(b"A-2", "b")] == ["", ""]
    assert "A has its 2 connections to" in opens(b"A-3", "c")
    assert echo.counters["peers_refused"] == 1
    assert opens(b"A-4", "b") == "", "it has started over, and its older link ends"
    assert [opens(b"B-1", "a"), opens(b"B-2", "b")] == ["", ""], "others have theirs"
    assert [opens(b"A-5", name, "edge") for name in "xyz"] == [""] * 3
    assert [opens(b"~-%d" % number, f"~{number}") for number in range(4)] == [""] * 4
    for link in [each for each in echo.handshakes.accepted_links() if each.identity == "A"]:
        echo.handshakes.close(link, "over")
    assert [opens(b"A-6", "d"), opens(b"A-7", "e")] == ["", ""]
    assert opens(b"A-8", "f")


def test_a_link_is_taken_up_only_under_the_key_that_opened_it():
    echo = Echo()
    echo.identity_of = lambda peer: peer.decode()[0]
    echo.hear(hello(link=1), peer=b"A-1")
    echo.gone(b"A-1", 1.0)
    (answer,) = echo.hear(hello(link=1, known=True), peer=b"B-1")
    assert isinstance(answer, wire.HelloOk)
    assert answer.lost
    (link,) = echo.handshakes.accepted_links()
    assert not link.open
    echo.hear(hello(link=1, known=True), peer=b"A-2")
    assert echo.handshakes.accepted_links() == [link]
    assert link.open


def test_a_link_of_another_role_is_not_taken_up():
    echo = Echo()
    echo.hear(hello(link=1))
    (answer,) = echo.hear(hello(link=1, known=True, info=Info("peer", "edge", 1)), peer=b"q")
    assert isinstance(answer, wire.HelloOk)
    assert answer.lost
