"""Frames and records: all that crosses a socket.

A *frame* is one ZeroMQ message part: a msgpack array that starts with the protocol version and the frame's kind. A
DATA frame carries a batch of *records*, msgpack arrays that start with the record's type. Both are described in
docs/protocol.md. This module encodes and decodes; it keeps no state and decides nothing. It never unpickles, and every
field is typed and bounded, so depth is bounded by the types and size by the frame.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Annotated, Any, Final, Literal, TypeVar

import msgspec
from msgspec import Meta, Raw, Struct

VERSION: Final = 1

DATA, ACK, HELLO, HELLO_OK, WHO, PING, PONG, BYE, CONTROL, REFUSE = range(10)
FLAG_ACK_NOW: Final = 1
FLAG_CONFIRM_EDGES: Final = 1

NAME_AT_MOST = 253
Name = Annotated[str, Meta(min_length=1, max_length=NAME_AT_MOST)]
Text = Annotated[str, Meta(max_length=65536)]
U32 = Annotated[int, Meta(ge=0, le=2**32 - 1)]
U63 = Annotated[int, Meta(ge=0, le=2**63 - 1)]
INT_AT_MOST: Final = 2**63 - 1
Int = Annotated[int, Meta(ge=-INT_AT_MOST, le=INT_AT_MOST)]
COUNT_AT_MOST: Final = 10**13
Count = Annotated[int, Meta(ge=0, le=COUNT_AT_MOST)]
"""How many, or how many bytes: any number of them has a sum that a report and a status can hold."""
NUMBER_AT_MOST: Final = 1e15
Number = Annotated[float, Meta(ge=-NUMBER_AT_MOST, le=NUMBER_AT_MOST)]
"""A number that brokers reckon with: finite, as NaN is not within bounds either, and so are its sums and products."""
Figure = str | Int | Number | bool
"""What a report says in one field."""
Scalar = str | int | float | bool
"""A value of an application, which may be infinite: it is compared and passed on; who reckons with it checks it."""

OPTIONS_AT_MOST: Final = 4
Options = Annotated[dict[str, Scalar], Meta(max_length=OPTIONS_AT_MOST)]

RECORDS_AT_MOST: Final = 32_768
"""Of a frame. 64 KiB, at which a sender closes it, hold no more: the smallest record has three bytes."""
LISTED_AT_MOST: Final = 16_384
"""Elements of a list in a record of a client. A frame has room for a million, which take a tenth of a second."""
NAMED_AT_MOST: Final = 4_096
"""The same, of lists that a client has no reason to make long: of brokers, origins, and members that move together."""

_T = TypeVar("_T")
Listed = Annotated[list[_T], Meta(max_length=LISTED_AT_MOST)]
Named = Annotated[list[_T], Meta(max_length=NAMED_AT_MOST)]

Token = tuple[Name, U63, U63]
"""A place in a head's log: (head, head epoch, position)."""
Since = Token | float | None
"""Where to begin: a place or a time. `check_since` bounds it: a bound in this union crashes msgspec 0.22 at the next
garbage collection, whose walk takes bounds beside a tuple for pointers."""
OwnerEpoch = tuple[U63, U63]
"""(incarnation of the subscriber, number within it); compared in that order."""


class WireError(ValueError):
    """A frame or record that is not of this protocol. `code` is one of the names in docs/protocol.md."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code = code


def check_since(since: Since) -> None:
    """Raises ValueError for a time that no record may hold."""
    if isinstance(since, float) and not -NUMBER_AT_MOST <= since <= NUMBER_AT_MOST:
        raise ValueError(
            f"since is {since!r}; a time is a number of seconds from {-NUMBER_AT_MOST} to {NUMBER_AT_MOST}"
        )


# -- frames


class Info(Struct, frozen=True, omit_defaults=True):
    """The party at one end of a link.

    `memory`: of a head that keeps its log on a disk, the epoch since which it has forgotten nothing; 0 of all others.
    `silence_ms`: of a head with a standby, the silence after which another process may lead at its address; else 0.
    """

    name: Name
    role: Literal["client", "edge", "head"]
    incarnation: U63
    memory: U63 = 0
    silence_ms: U32 = 0

    def remembers(self, incarnation: int) -> bool:
        """Whether it has all that it had in this earlier incarnation."""
        return 0 < self.memory <= incarnation


class Data(Struct, array_like=True, frozen=True):
    version: int
    kind: int
    link: U32
    flags: U32
    seq: U63
    ack: U63
    credit: U63
    records: Annotated[list[Raw], Meta(max_length=RECORDS_AT_MOST)]


class Ack(Struct, array_like=True, frozen=True):
    version: int
    kind: int
    link: U32
    ack: U63
    credit: U63


class Hello(Struct, array_like=True, frozen=True):
    """`known`: the sender has opened this link before, so the receiver should know it."""

    version: int
    kind: int
    link: U32
    received: U63
    known: bool
    info: Info


class HelloOk(Struct, array_like=True, frozen=True):
    """`lost`: HELLO named a known link that the sender of this frame does not know any more."""

    version: int
    kind: int
    link: U32
    received: U63
    lost: bool
    info: Info


class Who(Struct, array_like=True, frozen=True):
    version: int
    kind: int


class Beat(Struct, array_like=True, frozen=True):
    """PING and PONG: the pinging side's time in microseconds, returned unchanged."""

    version: int
    kind: int
    link: U32
    time_us: U63


class Bye(Struct, array_like=True, frozen=True):
    version: int
    kind: int
    link: U32
    reason: Text


class Control(Struct, array_like=True, frozen=True):
    version: int
    kind: int
    records: Annotated[list[Raw], Meta(max_length=RECORDS_AT_MOST)]


class Refuse(Struct, array_like=True, frozen=True):
    version: int
    kind: int
    link: U32
    code: Name
    text: Text


Frame = Data | Ack | Hello | HelloOk | Who | Beat | Bye | Control | Refuse
_FRAMES: Final[tuple[type[Any], ...]] = (Data, Ack, Hello, HelloOk, Who, Beat, Beat, Bye, Control, Refuse)
_FRAME_DECODERS: Final = tuple(msgspec.msgpack.Decoder(kind) for kind in _FRAMES)
_encoder: Final = msgspec.msgpack.Encoder()
_records_decoder: Final = msgspec.msgpack.Decoder(list[Raw])
_pack_count: Final = struct.Struct(">BI").pack
_DATA_START: Final = int.from_bytes((0x98, VERSION, DATA, 0xCE), "big")
_pack_link: Final = struct.Struct(">IIBB").pack
_pack_answer: Final = struct.Struct(">BQBQB").pack
_DATA_HEAD: Final = struct.Struct(">10sQ19sI")
data_head: Final = _DATA_HEAD.pack
"""The head of a DATA frame: (`data_link`, number, `data_answer`, count of records). A sender keeps the outer two."""

DATA_HEAD_BYTES: Final = _DATA_HEAD.size


def frame_kind(data: bytes) -> int:
    """The kind of a frame, read from its first three bytes.

    Raises:
        WireError: `malformed` or `version`.

    """
    if len(data) < 3 or data[0] & 0xF0 != 0x90:
        raise WireError("malformed", "a frame is a msgpack array of at least two elements, with a one-byte header")
    if data[1] != VERSION:
        raise WireError("version", f"protocol version {data[1]} is not known here; this side speaks version {VERSION}")
    if data[2] >= len(_FRAMES):
        raise WireError("malformed", f"frame kind {data[2]} is not known; kinds are 0 to {len(_FRAMES) - 1}")
    return data[2]


def decode_frame(data: bytes) -> Frame:
    """Decode one frame of any kind.

    Raises:
        WireError: `malformed` or `version`.

    """
    kind = frame_kind(data)
    try:
        return _FRAME_DECODERS[kind].decode(data)  # type: ignore[no-any-return]  # each decoder makes one kind of frame
    except (msgspec.MsgspecError, RecursionError, ValueError, OverflowError) as error:
        raise WireError("malformed", f"frame of kind {kind}: {error}") from error


def data_frame(link: int, flags: int, seq: int, ack: int, credit: int, chunks: list[bytes], count: int) -> bytes:
    """A DATA frame around records that are already encoded; a chunk may be a record or a part of one, in order."""
    return data_head(data_link(link, flags), seq, data_answer(ack, credit), count) + b"".join(chunks)


def pack_records(records: Sequence[Raw]) -> bytes:
    """The records of a frame as bytes of their own, for one that has to wait."""
    return _pack_count(0xDD, len(records)) + b"".join(map(bytes, records))


def unpack_records(packed: bytes) -> list[Raw]:
    """What `pack_records` has packed."""
    return _records_decoder.decode(packed)


def data_link(link: int, flags: int) -> bytes:
    """The part of a DATA frame's head that stays the same as long as link and flags do."""
    return _pack_link(_DATA_START, link, flags, 0xCF)


def data_answer(ack: int, credit: int) -> bytes:
    """The part of a DATA frame's head that stays the same until something is received."""
    return _pack_answer(0xCF, ack, 0xCF, credit, 0xDD)


def ack_frame(link: int, ack: int, credit: int) -> bytes:
    return _encoder.encode(Ack(VERSION, ACK, link, ack, credit))


def hello_frame(link: int, received: int, known: bool, info: Info) -> bytes:
    return _encoder.encode(Hello(VERSION, HELLO, link, received, known, info))


def hello_ok_frame(link: int, received: int, lost: bool, info: Info) -> bytes:
    return _encoder.encode(HelloOk(VERSION, HELLO_OK, link, received, lost, info))


def who_frame() -> bytes:
    return _encoder.encode(Who(VERSION, WHO))


def ping_frame(link: int, time_us: int) -> bytes:
    return _encoder.encode(Beat(VERSION, PING, link, time_us))


def pong_frame(link: int, time_us: int) -> bytes:
    return _encoder.encode(Beat(VERSION, PONG, link, time_us))


def bye_frame(link: int, reason: str) -> bytes:
    return _encoder.encode(Bye(VERSION, BYE, link, reason))


def refuse_frame(link: int, code: str, text: str) -> bytes:
    return _encoder.encode(Refuse(VERSION, REFUSE, link, code, text))


def control_frame(*records: Struct) -> bytes:
    return _encoder.encode((VERSION, CONTROL, records))


def encode(record: Struct) -> bytes:
    """One record, as it appears in a DATA or CONTROL frame."""
    return _encoder.encode(record)
