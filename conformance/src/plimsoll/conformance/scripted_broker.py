"""A scripted head or edge: it answers every frame as docs/protocol.md says, until a scenario interferes.

Faults are attributes: frames that get lost, acknowledgements that are late, a broker that is silent. Records are not
answered here; they wait in `inbox` for the scenario.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from plimsoll.conformance.client_under_test import ReceivedFrame
from plimsoll.conformance.rules import Rule, RuleBrokenError
from plimsoll.conformance.scripted_link import CREDIT, ScriptedLink
from plimsoll.core.protocol import wire

FRAMES = Rule("2", "A frame is an array `[version, kind, ...]` whose array header is one byte")
HELLO_FIRST = Rule(
    "3.1", "The side that dials draws a random `link` and sends **HELLO** `(link, received 0, known false)`."
)
RECEIVED = Rule("3.1", "the side that dialled sends HELLO `(link, received, known true)`")
ONE_PARTY = Rule("3", "The name of a client is its own in")
KNOWN = Rule("3.1", "`known` is true if the link has been open.")
NEW_LINK = Rule("3.1", "a new link with a new number begins at 1.")
DATA_SOCKETS = Rule("3.2", "Other frames on a control socket, and CONTROL on a data socket, are refused (`misplaced`).")

Send = Callable[[str, bytes, Sequence[bytes], str], None]
"""(broker, connection, frames, note for the exchange)."""


class ReceivedRecord(NamedTuple):
    """A record of the client, with the link that it came on."""

    link: ScriptedLink
    record: Any


@dataclass
class Faults:
    """What goes wrong at this broker from now on; counters count down as it happens."""

    hellos_lost: int = 0
    received_lost: int = 0
    sent_lost: int = 0
    sent_twice: bool = False
    acks_held: bool = False
    is_silent: bool = False
    links_refused: bool = False


class ScriptedBroker:
    """One broker of the scenario, with all links that the client has opened to it."""

    def __init__(self, name: str, role: Literal["head", "edge"], incarnation: int, send: Send) -> None:
        self.name = name
        self.info = wire.Info(name, role, incarnation)
        self.links: dict[int, ScriptedLink] = {}
        self.inbox: list[ReceivedRecord] = []
        self.faults = Faults()
        self.credit = CREDIT
        self.hellos: list[wire.Hello] = []
        self.pongs: list[int] = []
        self.byes: list[int] = []
        self.pings = 0
        self._send = send
        self._by_peer: dict[bytes, ScriptedLink] = {}
        self._used: set[int] = set()

    @property
    def link(self) -> ScriptedLink | None:
        """The link of the client that is open, if there is one."""
        return next((link for link in self.links.values() if link.is_open), None)

    # -- from the client

    def receive(self, arrived: ReceivedFrame) -> str:
        """Take a frame; returns the note for the exchange."""
        if self.faults.is_silent:
            return "not answered"
        try:
            frame = wire.decode_frame(arrived.data)
        except wire.WireError as error:
            raise RuleBrokenError(FRAMES, f"{error}: {arrived.data[:64].hex()}") from error
        match frame:
            case wire.Hello():
                return self._on_hello(arrived.peer, frame)
            case wire.Data():
                return self._on_data(arrived.peer, frame)
            case wire.Control():
                raise RuleBrokenError(DATA_SOCKETS, "a CONTROL frame on a data socket")
            case wire.Ack() | wire.Beat():
                self._on_small(arrived.peer, frame)
            case wire.Bye():
                self._on_bye(arrived.peer, frame)
        return ""

    def _on_hello(self, peer: bytes, hello: wire.Hello) -> str:
        if self.faults.hellos_lost:
            self.faults.hellos_lost -= 1
            return "lost on its way"
        self._check_party(hello)
        self.hellos.append(hello)
        if self.faults.links_refused:
            self.out(peer, wire.refuse_frame(hello.link, "refused", f"{self.name} is leaving"))
            return ""
        link = self.links.get(hello.link)
        if link is None and hello.known:
            self.out(peer, wire.hello_ok_frame(hello.link, 0, True, self.info))
            return ""
        if link is None:
            link = self._new_link(peer, hello)
        elif hello.received >= link.next_seq:
            raise RuleBrokenError(RECEIVED, f"HELLO reports {hello.received}; {link.next_seq - 1} was the last frame")
        self._by_peer.pop(link.peer, None)
        link.peer, link.is_open = peer, True
        self._by_peer[peer] = link
        link.unacked = [sent for sent in link.unacked if sent.seq > hello.received]
        again = [sent.data for sent in link.unacked]
        self.out(peer, wire.hello_ok_frame(link.id, link.expected - 1, False, self.info), link.ack_frame())
        if again:
            self.out(peer, *again, note="again")
        return ""

    def _check_party(self, hello: wire.Hello) -> None:
        first = next(iter(self.hellos), hello).info
        if hello.info != first or hello.info.role != "client":
            raise RuleBrokenError(ONE_PARTY, f"HELLO of {hello.info}; the first one was of {first}")

    def _new_link(self, peer: bytes, hello: wire.Hello) -> ScriptedLink:
        if hello.received:
            raise RuleBrokenError(HELLO_FIRST, f"the first HELLO of link {hello.link} reports {hello.received} frames")
        if hello.link in self._used:
            raise RuleBrokenError(NEW_LINK, f"link {hello.link} is over, and its number is used again")
        for older in self.links.values():
            older.is_open = False
        self._used.add(hello.link)
        link = self.links[hello.link] = ScriptedLink(hello, peer, self.credit)
        return link

    def _on_data(self, peer: bytes, frame: wire.Data) -> str:
        link = self._by_peer.get(peer)
        if link is None or link.id != frame.link:
            if frame.link not in self._used:
                raise RuleBrokenError(HELLO_FIRST, f"DATA on link {frame.link}, which is not open")
            self.out(peer, wire.who_frame())
            return "no link"
        if self.faults.received_lost:
            self.faults.received_lost -= 1
            return "lost on its way"
        link.on_answer(frame.ack, frame.credit)
        records = link.on_data(frame)
        if records is None:
            self.out(peer, wire.who_frame())
            return "number too high"
        self.inbox += [ReceivedRecord(link, record) for record in records]
        if not self.faults.acks_held:
            self.out(peer, link.ack_frame())
        return ""

    def _on_small(self, peer: bytes, frame: wire.Ack | wire.Beat) -> None:
        link = self._by_peer.get(peer)
        if link is None or link.id != frame.link:
            self.out(peer, wire.who_frame())
        elif isinstance(frame, wire.Ack):
            link.on_answer(frame.ack, frame.credit)
        elif frame.kind == wire.PING:
            self.pings += 1
            self.out(peer, wire.pong_frame(link.id, frame.time_us))
        else:
            self.pongs.append(frame.time_us)

    def _on_bye(self, peer: bytes, bye: wire.Bye) -> None:
        self.byes.append(bye.link)
        link = self._by_peer.pop(peer, None)
        if link is not None:
            link.is_open = False
            self.links.pop(link.id, None)

    # -- to the client

    def out(self, peer: bytes, *frames: bytes, note: str = "") -> None:
        """Frames as they are."""
        if not self.faults.is_silent:
            self._send(self.name, peer, frames, note)

    def say(self, *records: Any) -> None:
        """Records in one DATA frame, on the open link."""
        self._send_data(self.open_link().data_frame(*records))

    def say_raw(self, *chunks: bytes) -> None:
        """Encoded records in one DATA frame."""
        self._send_data(self.open_link().raw_frame(list(chunks)))

    def _send_data(self, data: bytes) -> None:
        peer = self.open_link().peer
        if self.faults.sent_lost:
            self.faults.sent_lost -= 1
            self._send(self.name, peer, (), f"lost on its way: {data[:12].hex()}")
            return
        self.out(peer, data)
        if self.faults.sent_twice:
            self.out(peer, data, note="again")

    def open_link(self) -> ScriptedLink:
        if (link := self.link) is None:
            raise RuntimeError(f"the scenario speaks to a client that has no link to {self.name}")
        return link

    def acknowledge(self) -> None:
        """The acknowledgement that was held."""
        self.faults.acks_held = False
        link = self.open_link()
        self.out(link.peer, link.ack_frame())

    def ping(self, time_us: int) -> None:
        link = self.open_link()
        self.out(link.peer, wire.ping_frame(link.id, time_us))

    # -- ends

    def forget_links(self) -> None:
        """Lose all links, as a broker that has restarted."""
        for link in self.links.values():
            link.is_open = False
        self.links.clear()
        self._by_peer.clear()

    def end_links(self) -> None:
        """BYE on the open link."""
        if (link := self.link) is not None:
            self.out(link.peer, wire.bye_frame(link.id, "the scenario ends this link"))
        self.forget_links()

    def lose_connections(self) -> None:
        """Forget which connections carry links: the client's next frames come on new ones."""
        self._by_peer.clear()
