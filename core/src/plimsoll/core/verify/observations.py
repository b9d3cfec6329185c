"""What was seen, by whom and when: frozen values, written as JSON lines or handed over as they are.

`at` is in seconds on one clock: virtual in the simulator, `time.monotonic()` between processes of one machine. An
application writes what it sees at its own edge of the client library: a request when it is made, an answer when it is
handed over. So "acknowledged at" is never too early and "published at" never too late, which is what makes a missing
delivery a certain loss.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal

import msgspec
from msgspec import Struct

Value = str | int | float | bool
Triple = tuple[str, str, Value | Sequence[Value] | None]
"""One predicate: attribute, operator, value. `exists` has no value, `in` a list of them."""
Identity = tuple[str, int, int]
"""Of a publication: publisher, its incarnation, sequence number."""
Origin = tuple[str, int, int]
"""Where a publication was accepted: head, head epoch, offset."""
Answer = Literal["accepted", "refused", "unknown", "unconfirmed"]


class Observation(Struct, array_like=True, frozen=True):
    """Base of all that is seen."""


class Fleet(Observation, frozen=True, tag="fleet"):
    """The tree of heads, as pairs of neighbours: what lies behind a head that a SUBACK names as unreached."""

    links: Sequence[tuple[str, str]]


class Published(Observation, frozen=True, tag="published"):
    publisher: str
    incarnation: int
    seq: int
    attributes: Mapping[str, Value]
    at: float


class Answered(Observation, frozen=True, tag="answered"):
    publisher: str
    incarnation: int
    seq: int
    answer: Answer
    at: float


class Logged(Observation, frozen=True, tag="logged"):
    """A head has put the publication into its log, at `position`. `origin` names the head that accepted it."""

    head: str
    epoch: int
    position: int
    publication: Identity
    origin: Origin
    at: float


class Subscribed(Observation, frozen=True, tag="subscribed"):
    """A subscription was asked for. An id that is asked for again after its withdrawal begins a new life."""

    subscriber: str
    incarnation: int
    id: int
    predicates: Sequence[Triple]
    at: float


class Acknowledged(Observation, frozen=True, tag="acknowledged"):
    """A SUBACK reached the application: these subscriptions count from now on, but for what lies behind `unreached`."""

    subscriber: str
    incarnation: int
    ids: Sequence[int]
    head: str
    unreached: Sequence[str]
    at: float


class Withdrawn(Observation, frozen=True, tag="withdrawn"):
    """The application asked to withdraw these subscriptions."""

    subscriber: str
    incarnation: int
    ids: Sequence[int]
    at: float


class Forgotten(Observation, frozen=True, tag="forgotten"):
    """The withdrawal was acknowledged, or the subscription refused: from now on nothing may come for these."""

    subscriber: str
    incarnation: int
    ids: Sequence[int]
    at: float


class Delivered(Observation, frozen=True, tag="delivered"):
    """`place`: the log position in the stream that it came in, as (head, head epoch, position), where that is known."""

    subscriber: str
    incarnation: int
    publication: Identity
    origin: Origin
    at: float
    place: Origin | None = None


class GapTold(Observation, frozen=True, tag="gap"):
    """The application was told of a gap: log positions `low` to `high`, and the last offset lost per origin.

    `low` is a position of `low_epoch`; where that is older than `epoch`, everything between is in doubt.
    """

    subscriber: str
    incarnation: int
    head: str
    low_epoch: int
    low: int
    epoch: int
    high: int
    last: Sequence[Origin]
    reason: str
    at: float


class Lapsed(Observation, frozen=True, tag="lapsed"):
    """The application was told that its lease had ended: its acknowledgements are void until the next one."""

    subscriber: str
    incarnation: int
    at: float


class Ended(Observation, frozen=True, tag="ended"):
    """An incarnation of a subscriber or publisher is over: closed, shut by its policy, or crashed."""

    name: str
    incarnation: int
    at: float


class HeadEnded(Observation, frozen=True, tag="head-ended"):
    """A head epoch is over. What only it had is lost, which its subscribers and neighbours must be told."""

    head: str
    epoch: int
    at: float


class Owned(Observation, frozen=True, tag="owned"):
    """A head made `edge` the owner of the subscriber for this owner epoch.

    `cause`: `cut`, `resume` or `report`; or `guest`: for a cut that another head has still to decide.
    """

    subscriber: str
    epoch: tuple[int, int]
    edge: str
    at: float
    cause: str = ""


class SessionBegan(Observation, frozen=True, tag="session-began"):
    uid: str
    deadline: float
    at: float


class SessionEnded(Observation, frozen=True, tag="session-ended"):
    uid: str
    state: str
    at: float


class HandoverBegan(Observation, frozen=True, tag="handover-began"):
    """A mediator asks for a hand-over of these members for the first time."""

    session: str
    source: str
    target: str
    members: Sequence[str]
    replay: bool
    drain_seconds: float
    at: float


class HandoverTold(Observation, frozen=True, tag="handover-told"):
    """A mediator was told a final state of a hand-over, with the outcome of each member."""

    session: str
    state: str
    members: Sequence[tuple[str, str]]
    at: float


class Attached(Observation, frozen=True, tag="attached"):
    """The application was told which edge serves it from now on."""

    subscriber: str
    incarnation: int
    edge: str
    at: float


class Serving(Observation, frozen=True, tag="serving"):
    """An edge was seen to deliver to the subscriber from its stream, under this owner epoch."""

    edge: str
    subscriber: str
    epoch: tuple[int, int]
    at: float


class Steady(Observation, frozen=True, tag="steady"):
    """A claim: from `since` on no bound is met, so nobody but the exempt is told of a gap."""

    since: float
    exempt: Sequence[str]


class Residue(Observation, frozen=True, tag="residue"):
    """State found after everything had ended, that nothing will ever take away."""

    where: str
    what: str
    count: int
    at: float


class Mark(Observation, frozen=True, tag="mark"):
    """A measured size and the bound that the configuration states for it."""

    where: str
    what: str
    value: float
    bound: float
    at: float


class Undisturbed(Observation, frozen=True, tag="undisturbed"):
    """A claim: from `since` to `until`, all but the named parties have each delivery within `latency_seconds`."""

    since: float
    until: float
    latency_seconds: float
    exempt: Sequence[str]


class Counter(Observation, frozen=True, tag="counter"):
    """What the product itself says of one incarnation: `published accepted refused unknown delivered gaps`."""

    name: str
    incarnation: int
    what: str
    value: int
    at: float


Kind = (
    Fleet
    | Published
    | Answered
    | Logged
    | Subscribed
    | Acknowledged
    | Withdrawn
    | Forgotten
    | Delivered
    | GapTold
    | Lapsed
    | Ended
    | HeadEnded
    | Owned
    | SessionBegan
    | SessionEnded
    | HandoverBegan
    | HandoverTold
    | Attached
    | Serving
    | Steady
    | Residue
    | Mark
    | Undisturbed
    | Counter
)

_encoder = msgspec.json.Encoder()
_decoder: msgspec.json.Decoder[Kind] = msgspec.json.Decoder(Kind)


class JournalError(ValueError):
    """A line that is no observation."""


def encode_line(observation: Observation) -> bytes:
    """One observation as a line of JSON, with its newline."""
    return _encoder.encode(observation) + b"\n"


def decode_line(line: bytes | str) -> Observation:
    """Read one line.

    Raises:
        JournalError: saying what was found there.

    """
    try:
        return _decoder.decode(line)
    except msgspec.MsgspecError as error:
        raise JournalError(f"not an observation: {error}; found {line[:120]!r}") from error


def decode_lines(lines: Iterable[bytes | str], source: str = "journal") -> Iterator[Observation]:
    """Read a file of lines.

    A last line without its newline is what a killed process leaves behind, and is passed over if it cannot be read.

    Raises:
        JournalError: naming `source` and the line.

    """
    for number, line in enumerate(lines, 1):
        try:
            yield decode_line(line)
        except JournalError as error:
            if (line[-1:] or b"\n") in (b"\n", "\n"):
                raise JournalError(f"{source}:{number}: {error}") from error
