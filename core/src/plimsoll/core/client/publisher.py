"""A logical publisher: consecutive numbers, credit, and one answer for every publication.

Unanswered publications are kept, bounded in bytes. A reconnect that keeps the link repeats nothing. After a lost link
the head reports the last number it has, and later publications are sent again under the same identity. A head that
has lost its memory cannot report it: unanswered publications are `unknown`, and numbering starts over in the next
incarnation.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, Protocol, assert_never

import msgspec

from plimsoll.core.client.errors import BufferFullError, ClosedError, PublicationError, StalledError
from plimsoll.core.client.events import Answer, Answered, Failed, PublisherEvent, PublisherReady, Renumbered
from plimsoll.core.client.head_ports import HeadPort
from plimsoll.core.client.limits import ClientLimits
from plimsoll.core.client.publication_buffer import PublicationBuffer, SentPublication
from plimsoll.core.client.publisher_moves import ClientMove, ClientPublisherMoves, PublisherAnswer, PublisherHandles
from plimsoll.core.client.publisher_position import PublisherPosition
from plimsoll.core.client.slice_stamps import SliceStamps
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol import wire
from plimsoll.core.protocol.messages.publications import SMALL_BODY_BYTES, attributes_fault
from plimsoll.core.protocol.slice_names import flags_with_stamps
from plimsoll.core.protocol.wire import Scalar
from plimsoll.core.transport.link import Link

Confirm = Literal["head", "edges"]
Stamp = Callable[[dict[str, Scalar]], dict[str, int]]
_PLAIN = {str, int, float, bool}
ANSWERS = ("published", "accepted", "unconfirmed", "refused", "unknown")
NOT_TAKEN = ("not-open", "over-credit", "out-of-order")
"""Codes of REFUSED that leave the number unused."""
SENT_ON_AT_MOST = 8
"""How many heads in a row may send a publisher on to another one."""
FIRST_REFUSALS_AT_MOST = 10
"""How often a name that has not been open yet is asked for again, with the pauses between them for some 25 s, while a
later incarnation of it is linked: that process may have been killed, and its head has yet to notice."""

_INT_LOW, _INT_HIGH = -(2**63), 2**63 - 1


class PublisherHost(Protocol):
    """The publishers' interface to the client."""

    now: float
    limits: ClientLimits
    refusal: str
    publisher_moves: ClientPublisherMoves[ClientPublisher]
    stamps: SliceStamps

    def say(self, link: Link, record: msg.FromClient) -> None: ...

    def mark_ready(self, owner: ClientPublisher, /) -> None:
        """The publisher has events to be taken."""

    @property
    def publishers_at_heads(self) -> PublisherHandles[ClientPublisher]: ...


class ClientPublisher:
    """One publisher of a client. Made by `Client.publisher`. `port`: to the head that it is at; None: the home."""

    def __init__(self, client: PublisherHost, name: str, incarnation: int, confirm: Confirm) -> None:
        self._client, self.name, self.incarnation = client, name, incarnation
        self.confirm: Confirm = confirm
        self.events: list[PublisherEvent] = []
        self.handle = 0
        self.port: HeadPort | None = None
        self.move: ClientMove | None = None
        self._returning = ""
        self._sent_on = 0
        self.is_open = self.has_been_open = False
        self._refusals = 0
        self.failed: Failed | None = None
        self.closed = False
        self.buffer = PublicationBuffer()
        self.counts: Counter[str] = Counter()
        self._through = 0
        self._session: tuple[str, int] | None = None
        self._left_at = 0.0

    # -- for the application

    def publish(
        self,
        attributes: Mapping[str, Scalar],
        payload: bytes | bytearray | memoryview = b"",
        *,
        sent_us: int,
        confirm: Confirm | None = None,
    ) -> int:
        """Take a publication; returns its number, from 1, by which it is answered.

        `sent_us`: microseconds since 1970.

        Raises:
            PublicationError: it has no attributes of the right types, or is too large.
            BufferFullError: too much is unanswered.
            StalledError: some are unanswered, and no answer has come for `stall_seconds`.
            ClosedError: the publisher is closed or has failed.

        """
        if self.closed or self.failed is not None:
            raise ClosedError(self.failed.text if self.failed else f"publisher {self.name!r} is closed")
        most = self._client.limits.max_publication_bytes
        body, stamps, size = stamped_body(attributes, payload, most, self._stamps_of)
        buffer, limits, now = self.buffer, self._client.limits, self._client.now
        if (silent_seconds := buffer.silent_seconds(now)) > limits.stall_seconds:
            raise StalledError(
                f"publisher {self.name!r} has {len(buffer)} publications unanswered, and no answer for "
                f"{silent_seconds:.0f} s: {self._client.refusal or 'no head answers'}; see status()"
            )
        if buffer.size_bytes and buffer.size_bytes + size > limits.publisher_buffer_bytes:
            raise BufferFullError(
                f"publisher {self.name!r} has {len(buffer)} publications unanswered, {buffer.size_bytes} bytes; "
                f"its buffer takes {limits.publisher_buffer_bytes} bytes"
            )
        flags = wire.FLAG_CONFIRM_EDGES if (confirm or self.confirm) == "edges" else 0
        flags = flags_with_stamps(flags, stamps)
        number = buffer.queue(body, sent_us, flags, size)
        self.counts["published"] += 1
        self.go_on()
        return number

    def _stamps_of(self, attributes: dict[str, Scalar]) -> dict[str, int]:
        """The slices of the next publication in the groups that the head has told of."""
        return self._client.stamps.of(self.head, attributes, self.name, self.buffer.number + 1 - self.buffer.base)

    def resume(
        self, position: PublisherPosition, bodies: Iterable[bytes], *, sent_us: int, away_seconds: float = 0.0
    ) -> None:
        """Go on from an earlier life, before it is opened.

        `bodies`: all publications behind the position that the earlier life may have sent, encoded. The head says which
        of them it has; the others are sent now. If it no longer knows this publisher, they are answered `unknown`.
        `away_seconds`: how long ago the earlier life ended, for heads forget those that are away for long.
        """
        self.incarnation, self.has_been_open = position.incarnation, True
        self._session = (position.head, position.epoch)
        self._left_at = self._client.now - away_seconds
        flags = wire.FLAG_CONFIRM_EDGES if self.confirm == "edges" else 0
        self.buffer.progress_at = self._client.now
        self.buffer.resume(position.number, position.seq, bodies, sent_us, flags)
        self.counts["published"] += len(self.buffer)

    @property
    def position(self) -> PublisherPosition | None:
        """How far it has got, for `resume` in a later life; None before a head has opened it."""
        if self._session is None:
            return None
        before = self.buffer.first - 1
        return PublisherPosition(self.incarnation, before + self.buffer.base, before, *self._session)

    def close(self) -> None:
        """Close at the head. Unanswered publications are `unknown` if they were sent, else `refused`."""
        if self.closed:
            return
        self.closed = True
        if self.handle and (link := self.link) is not None:
            self._client.say(link, msg.Close(self.handle))
        self._give_up("closed", f"publisher {self.name!r} was closed")
        self._client.publishers_at_heads.drop(self)

    def statistics(self) -> dict[str, Any]:
        """Counters since the start, and the publications under way."""
        counts = {k: self.counts[k] for k in (*ANSWERS, "resent", "moves")}
        return {
            **counts,
            "unanswered": len(self.buffer),
            "buffered_bytes": self.buffer.size_bytes,
            "credit": max(0, self._through - self.buffer.last_sent),
            "open": self.is_open,
            "head": self.head,
            "incarnation": self.incarnation,
        }

    # -- for the machine

    def open(self, returning: str = "") -> None:
        """Ask the head for this publisher, under a new handle: answers to older ones are ignored from now on.

        `returning`: the session that has moved it away from this head, which is asked to take it again.
        """
        self.is_open = False
        self._returning = returning or self._returning
        if self.closed or self.failed is not None or (link := self.link) is None:
            return
        self.handle = self._client.publishers_at_heads.new_handle(self, self.handle)
        if self._returning:
            self._client.say(link, msg.OpenReturning(self.handle, self.name, self.incarnation, self._returning))
        else:
            self._client.say(link, msg.Open(self.handle, self.name, self.incarnation))

    def lost(self, now: float) -> None:
        """The link to the head is over."""
        if self.is_open:
            self._left_at = now
        self.is_open = False

    @property
    def link(self) -> Link | None:
        """The link to the head that it is at, which outlives a lost connection; None if there is none."""
        return self._client.publisher_moves.link_of(self.port)

    @property
    def head(self) -> str:
        """The head that it is at; empty before it has been open."""
        return self._session[0] if self._session is not None else ""

    # -- moves between heads

    def take_over(self, port: HeadPort | None, handle: int, opened: msg.Opened) -> None:
        """It is open at the head behind `port`, and all that it has sent was answered by the one before."""
        self.port, self.handle, self.is_open = port, handle, True
        self._session, self._through, self.has_been_open = (opened.head, opened.epoch), opened.through, True
        self.counts["moves"] += 1
        self._tell(PublisherReady(*self._session))
        self.go_on()

    def go_home(self, why: str) -> None:
        """The head that it has moved to is gone: it starts again at home."""
        self.port, self._session, self._returning = None, None, ""
        self._begin_anew(why)
        self.open()

    def open_at(self, port: HeadPort | None) -> None:
        """It is at the head behind `port` from now on; what this incarnation has sent elsewhere has no answer there."""
        self.port, self.handle, self._session, self._returning = port, 0, None, ""
        if self.buffer.last_sent:
            self._begin_anew("the head has forgotten this publisher, and takes no new ones")
        self.open()

    def on_answer(self, answer: PublisherAnswer) -> None:
        if (move := self.move) is not None and answer.handle == move.handle:
            self._client.publisher_moves.on_target_answer(self, move, answer)
            return
        match answer:
            case msg.Accepted():
                self._answer(self.buffer.sent_through(answer.through), "accepted")
            case msg.Credit():
                self._through = max(self._through, answer.through)
                self.go_on()
            case msg.Unconfirmed():
                self._answer([answer.seq], "unconfirmed", edges=tuple(answer.edges))
            case msg.Refused():
                self._on_refused(answer)
            case msg.Opened():
                self._on_opened(answer)
            case msg.PublisherMove():
                self._client.publisher_moves.on_move(self, answer)
            case msg.PublisherStay():
                self._client.publisher_moves.on_stay(self, answer)
            case msg.PublisherLeft():
                self._client.publisher_moves.on_left(self, answer)
            case msg.PublisherElsewhere() if not self.is_open and self._sent_on < SENT_ON_AT_MOST:
                self._sent_on += 1
                self._client.publisher_moves.on_elsewhere(self, answer)
            case msg.PublisherElsewhere() | msg.PublisherStandby():
                pass  # REFUSED follows; or it is for a handle that is on standby only
            case _:
                assert_never(answer)

    def _on_opened(self, opened: msg.Opened) -> None:
        session, self.has_been_open = (opened.head, opened.epoch), True
        self._client.publisher_moves.end(self)  # it is here
        self._returning = ""
        if self._has_forgotten(opened, session) or self.buffer.leaves_hole(opened.last_seq):
            self._begin_anew("the head has lost its memory of this publisher")
            self._session = None
            self.open()
            return
        self._session, self._through, self.is_open, self._sent_on = session, opened.through, True, 0
        self._tell(PublisherReady(*session))
        again = self.buffer.sent_behind(opened.last_seq)
        self.counts["resent"] += len(again)
        for sent in again:
            self._say(sent)
        self.go_on()

    def _has_forgotten(self, opened: msg.Opened, session: tuple[str, int]) -> bool:
        """Whether the head may know less of this incarnation than before: heads forget absent publishers in time."""
        if self.buffer.last_sent and session != self._session:
            return True
        away = self._client.now - self._left_at
        return opened.last_seq == 0 and bool(self.buffer.sent) and away > self._client.limits.memory_seconds

    def _on_refused(self, refused: msg.Refused) -> None:
        if refused.seq == 0 and refused.used >= self.incarnation and not self.has_been_open:
            # An earlier life of this name had a clock that was ahead, and is gone. This one has no identities out yet.
            self.incarnation = refused.used + 1
            self.open()
        elif refused.code == "incarnation" and not self.has_been_open and self._refusals < FIRST_REFUSALS_AT_MOST:
            limits = self._client.limits
            pause = min(limits.backoff_max_seconds, limits.backoff_seconds * 2.0**self._refusals)
            self._refusals += 1
            self._client.publishers_at_heads.open_later(self, pause)
        elif refused.seq == 0:
            self.fail(refused.code, refused.text)
        elif refused.code in NOT_TAKEN:
            # The head has not taken it: start over from the last number that it reports.
            self.open()
        else:
            self._answer([refused.seq], "refused", code=refused.code, text=refused.text)

    def fail(self, code: str, text: str) -> None:
        """The end of this publisher."""
        self.failed = Failed(code, text)
        self._give_up(code, text)
        self._tell(self.failed)
        self._client.publishers_at_heads.drop(self)

    # -- sending

    def go_on(self) -> None:
        """Send what may be sent, unless a move is under way in which it sends nothing."""
        if not self.is_open or (self.move is not None and self.move.is_silent):
            return
        queued, through = self.buffer.queued, self._through + self.buffer.base
        while queued and queued[0].number <= through:
            sent = queued.popleft()
            self.buffer.sent[sent.number - self.buffer.base] = sent
            self._say(sent)

    def _say(self, sent: SentPublication) -> None:
        if (link := self.link) is not None:
            seq = sent.number - self.buffer.base
            self._client.say(link, msg.Publish(self.handle, seq, sent.flags, sent.sent_us, msgspec.Raw(sent.body)))

    def _begin_anew(self, why: str) -> None:
        self._answer(list(self.buffer.sent), "unknown", code="head-restart", text=why)
        self.incarnation += 1
        self._through = 0
        self._tell(Renumbered(self.buffer.begin_incarnation(), self.incarnation))

    # -- answers

    def _answer(
        self, seqs: list[int], answer: Answer, edges: tuple[str, ...] = (), code: str = "", text: str = ""
    ) -> None:
        """Report the answer, one event for each run of consecutive numbers."""
        base = self.buffer.base
        for first, last in self.buffer.answer(seqs, self._client.now):
            self.counts[answer] += last - first + 1
            self._tell(Answered(first + base, last + base, answer, self.incarnation, first, edges, code, text))
        if self.move is not None and not self.buffer.sent:
            self._client.publisher_moves.settled(self)

    def _give_up(self, code: str, text: str) -> None:
        self._answer(list(self.buffer.sent), "unknown", code=code, text=text)
        if (numbers := self.buffer.drop_queued()) is not None:
            first, last = numbers
            self.counts["refused"] += last - first + 1
            seq = first - self.buffer.base
            self._tell(Answered(first, last, "refused", self.incarnation, seq, (), code, text))

    def _tell(self, event: PublisherEvent) -> None:
        self.events.append(event)
        self._client.mark_ready(self)


def _no_stamps(attributes: dict[str, Scalar]) -> dict[str, int]:
    return {}


def encoded_body(attributes: Mapping[str, Scalar], payload: bytes | bytearray | memoryview, most: int) -> bytes:
    """Check an application's publication and encode it.

    Raises:
        PublicationError: `malformed` or `oversized`, naming the attribute.

    """
    return stamped_body(attributes, payload, most, _no_stamps)[0]


def stamped_body(
    attributes: Mapping[str, Scalar], payload: bytes | bytearray | memoryview, most: int, stamps_of: Stamp
) -> tuple[bytes, int, int]:
    """Check an application's publication, and encode it with its stamps behind it.

    Returns how many there are as well, and the size without them.

    Stamps are never a reason to refuse it: it has them because of what others ask for.

    Raises:
        PublicationError: `malformed` or `oversized`, naming the attribute; or as `stamps_of`.

    """
    if type(attributes) is not dict and not isinstance(attributes, Mapping):
        raise PublicationError("malformed", f"attributes are a mapping, not {type(attributes).__name__}")
    if not isinstance(payload, bytes | bytearray | memoryview):
        raise PublicationError("malformed", f"the payload is bytes, not {type(payload).__name__}")
    checked = {_checked_name(name): _checked(name, value) for name, value in attributes.items()}
    try:
        body = wire.encode(msg.Body(checked, bytes(payload)))
    except UnicodeEncodeError as error:
        raise PublicationError("malformed", f"an attribute is not valid Unicode: {error}") from error
    if len(body) > most:
        raise PublicationError("oversized", f"a publication of {len(body)} bytes; at most {most} are taken")
    if len(body) > SMALL_BODY_BYTES and (fault := attributes_fault(checked)):
        raise PublicationError("oversized", fault)
    stamps = stamps_of(checked)
    size = len(body)
    if stamps:
        body = wire.encode(msg.Body({**checked, **stamps}, bytes(payload)))
    return body, len(stamps), size


def _checked_name(name: object) -> str:
    if type(name) is not str or not name:
        raise PublicationError("malformed", f"the name of an attribute is a string that is not empty, not {name!r}")
    return name


def _checked(name: str, value: object) -> Scalar:
    if type(value) not in _PLAIN:
        value = _plain(name, value)
    if type(value) is int and not _INT_LOW <= value <= _INT_HIGH:
        raise PublicationError("malformed", f"attribute {name!r}: {value} does not fit into 64 bits with a sign")
    return value  # type: ignore[return-value]  # one of _PLAIN by now


def _plain(name: str, value: object) -> Scalar:
    """A value of a subclass (an enumeration, numpy's float64) as its wire type."""
    for kind in (str, int, float):
        if isinstance(value, kind):
            return kind(value)
    text = f"attribute {name!r} is {type(value).__name__}; attributes are str, int, float or bool"
    raise PublicationError("malformed", text)
