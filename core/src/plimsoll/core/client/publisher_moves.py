"""Moves of publishers from one head to another, as the client sees them: docs/handover.md, 13.

Rules of the place:
- The head that a publisher is open at decides: PUBLISHER_MOVE begins, STAY and OPENED there end. The publisher may
  leave the move by itself, by opening again where it was.
- It publishes at one head only. It stops before it says GO, and GO waits until all that it has sent has its answer, so
  that no answer can come from one head behind those of the other.
- After GO it goes on where it is opened first: at the other head, or at its old one if that has not let it go. If
  neither comes in time it asks its old head to take it again, and the other one to forget it.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import Generic, Protocol, TypeVar

from plimsoll.core.client.head_ports import HeadPort, HeadPorts
from plimsoll.core.client.home import Home
from plimsoll.core.client.limits import ClientLimits
from plimsoll.core.client.publication_buffer import PublicationBuffer
from plimsoll.core.protocol import messages as msg
from plimsoll.core.transport.link import NEVER, Link

PublisherAnswer = (
    msg.Accepted | msg.Credit | msg.Opened | msg.Refused | msg.Unconfirmed |
    msg.PublisherMove | msg.PublisherStay | msg.PublisherLeft | msg.PublisherStandby | msg.PublisherElsewhere
)  # fmt: skip
"""What a head sends about a handle."""


class MoveState(Enum):
    """`ASKED`: the other head is to keep it on standby. `GOING`: it sends no more, and waits for the last answers.
    `GONE`: it has said GO. `LEFT`: its old head has let it go."""

    ASKED = "asked"
    GOING = "going"
    GONE = "gone"
    LEFT = "left"


class ClientMove:
    """One move of a publisher. `port`: to the other head; None: that is the client's home. `handle`: there."""

    __slots__ = ("gives_up_at", "handle", "port", "session", "source", "state")

    def __init__(self, session: str, source: str, port: HeadPort | None) -> None:
        self.session, self.source, self.port = session, source, port
        self.state = MoveState.ASKED
        self.handle = 0
        self.gives_up_at = NEVER

    @property
    def is_silent(self) -> bool:
        """Whether the publisher sends nothing for now."""
        return self.state is not MoveState.ASKED

    @property
    def is_behind_go(self) -> bool:
        return self.state in (MoveState.GONE, MoveState.LEFT)


class MovablePublisher(Protocol):
    """A publisher, as its moves see it; `ClientPublisher` is one."""

    name: str
    incarnation: int
    handle: int
    port: HeadPort | None
    move: ClientMove | None
    is_open: bool
    buffer: PublicationBuffer

    def open(self, returning: str) -> None: ...
    @property
    def head(self) -> str: ...
    @property
    def link(self) -> Link | None: ...
    def go_on(self) -> None: ...
    def open_at(self, port: HeadPort | None) -> None: ...
    def take_over(self, port: HeadPort | None, handle: int, opened: msg.Opened) -> None: ...


P = TypeVar("P", bound=MovablePublisher)
P_contra = TypeVar("P_contra", bound=MovablePublisher, contravariant=True)


class PublisherHandles(Protocol[P_contra]):
    """The handles under which heads know publishers; `PublishersAtHeads` has them."""

    def new_handle(self, publisher: P_contra, old: int) -> int: ...
    def drop_handle(self, handle: int) -> None: ...
    def open_later(self, publisher: P_contra, seconds: float) -> None: ...
    def drop(self, publisher: P_contra) -> None: ...


class MovesHost(Protocol[P_contra]):
    """The moves' interface to the client."""

    now: float
    limits: ClientLimits
    head_ports: HeadPorts
    home: Home

    @property
    def publishers_at_heads(self) -> PublisherHandles[P_contra]: ...
    def say(self, link: Link, record: msg.FromClient) -> None: ...


class ClientPublisherMoves(Generic[P]):
    """The moves of all publishers of a client. `moving`: those that are in one."""

    def __init__(self, client: MovesHost[P]) -> None:
        self._client = client
        self.moving: dict[P, ClientMove] = {}

    def link_of(self, port: HeadPort | None) -> Link | None:
        """The link to a head, which outlives a lost connection; None if there is none."""
        if port is None:
            return self._client.home.open_link
        return port.link if port.link.was_open else None

    # -- from the head that it is at

    def on_move(self, publisher: P, move: msg.PublisherMove) -> None:
        """Ask the other head to keep it on standby, unless it is in a move, or there already."""
        client = self._client
        if not publisher.is_open or publisher.move is not None or move.head == publisher.head:
            return
        port = None
        if move.head != client.home.head:
            port = client.head_ports.open(move.head, move.endpoint, move.public_key, publisher)
        publisher.move = self.moving[publisher] = ClientMove(move.session, publisher.head, port)
        self._stand_by(publisher, publisher.move)

    def on_stay(self, publisher: P, stay: msg.PublisherStay) -> None:
        move = publisher.move
        if move is not None and move.session == stay.session and move.state is not MoveState.LEFT:
            self.end(publisher)
            publisher.go_on()

    def on_left(self, publisher: P, left: msg.PublisherLeft) -> None:
        move = publisher.move
        if move is not None and move.session == left.session and move.is_behind_go:
            move.state = MoveState.LEFT
        elif move is None:
            publisher.open(left.session)

    def on_elsewhere(self, publisher: P, told: msg.PublisherElsewhere) -> None:
        """The head takes no new publishers: open at the one that it names."""
        client, before = self._client, publisher.port
        self.end(publisher)
        client.publishers_at_heads.drop_handle(publisher.handle)
        port = None
        if told.head != client.home.head:
            port = client.head_ports.open(told.head, told.endpoint, told.public_key, publisher)
        if before is not None and before is not port:
            client.head_ports.release(before, publisher)
        publisher.open_at(port)

    # -- from the head that it may go to

    def on_target_answer(self, publisher: P, move: ClientMove, answer: PublisherAnswer) -> None:
        match answer:
            case msg.PublisherStandby() if move.state is MoveState.ASKED:
                move.state = MoveState.GOING
                self.settled(publisher)
            case msg.Opened() if move.is_behind_go:
                self._take_over(publisher, move, answer)
            case msg.Refused() if answer.seq == 0:
                self._refused(publisher, move)
            case _:
                pass

    def settled(self, publisher: P) -> None:
        """Say GO if it is time: all that was sent has its answer."""
        move = publisher.move
        if move is None or move.state is not MoveState.GOING or publisher.buffer.sent or not publisher.is_open:
            return
        if (link := publisher.link) is not None:
            move.state = MoveState.GONE
            move.gives_up_at = self._client.now + self._client.limits.move_seconds
            self._client.say(link, msg.PublisherGo(publisher.handle, move.session))

    def _take_over(self, publisher: P, move: ClientMove, opened: msg.Opened) -> None:
        handle, port, before = move.handle, move.port, publisher.port
        self._client.publishers_at_heads.drop_handle(publisher.handle)
        self.moving.pop(publisher, None)
        publisher.move = None
        publisher.take_over(port, handle, opened)
        if before is not None:
            self._client.head_ports.release(before, publisher)

    def _refused(self, publisher: P, move: ClientMove) -> None:
        if move.is_behind_go:
            self._give_up(publisher, move)
        else:
            self.end(publisher)
            publisher.go_on()

    def _stand_by(self, publisher: P, move: ClientMove) -> None:
        client = self._client
        link = self.link_of(move.port)
        if link is not None and link.open:
            move.handle = client.publishers_at_heads.new_handle(publisher, move.handle)
            opening = msg.OpenStandby(move.handle, publisher.name, publisher.incarnation, move.session, move.source)
            client.say(link, opening)

    # -- the end of one

    def end(self, publisher: P) -> None:
        """The publisher is out of its move, and the other head may forget it."""
        move = self.moving.pop(publisher, None)
        publisher.move = None
        if move is None:
            return
        link = self.link_of(move.port)
        if move.handle and link is not None:
            self._client.say(link, msg.Close(move.handle))
        self._client.publishers_at_heads.drop_handle(move.handle)
        if move.port is not None and move.port is not publisher.port:
            self._client.head_ports.release(move.port, publisher)

    def _give_up(self, publisher: P, move: ClientMove) -> None:
        """Nothing has come of it: ask the old head to take the publisher again."""
        self.end(publisher)
        publisher.open(move.session)

    # -- links

    def link_open(self, port: HeadPort | None) -> None:
        """There is a new link to this head: those that are to come there ask again."""
        for publisher, move in list(self.moving.items()):
            if move.port is port:
                self._stand_by(publisher, move)

    def target_lost(self, port: HeadPort | None) -> None:
        """The link to this head is over. Behind GO the head may take it yet: it asks again on the next link."""
        for publisher, move in list(self.moving.items()):
            if move.port is port and not move.is_behind_go:
                self.end(publisher)
                publisher.go_on()

    def source_lost(self, publishers: Iterable[P]) -> None:
        """The link to the head that these are at is over. Behind GO its decision stands, and they ask for it."""
        for publisher in publishers:
            if publisher.move is not None and not publisher.move.is_behind_go:
                self.end(publisher)

    # -- time

    def tick(self) -> None:
        for publisher, move in list(self.moving.items()):
            if self._client.now >= move.gives_up_at:
                self._give_up(publisher, move)

    def wake_at(self) -> float:
        return min((move.gives_up_at for move in self.moving.values()), default=NEVER)
