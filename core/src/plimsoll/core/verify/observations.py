"""Observations of applications and brokers: frozen values, written as JSON lines or passed as they are.

`at` is in seconds on one clock: virtual in the simulator, `time.monotonic()` between processes of one machine. An
application records a request when it makes it and an answer when the client library hands it over. So "acknowledged at"
is never too early and "published at" never too late, which makes a missing delivery a certain loss.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal

import msgspec
from msgspec import Struct

Value = str | int | float | bool
Triple = tuple[str, str, Value | Sequence[Value] | None]
"""One predicate: attribute, operator, value. `exists` has no value, `in` a list of them."""
PublicationIdentity = tuple[str, int, int]
"""Identity of a publication: publisher, its incarnation, sequence number."""
LogPosition = tuple[str, int, int]
"""Where a publication was accepted: head, head epoch, offset."""
Answer = Literal["accepted", "refused", "unknown", "unconfirmed"]


class Observation(Struct, array_like=True, frozen=True):
    """Base of all observations of applications and brokers."""


class HeadTreeObserved(Observation, frozen=True, tag="fleet"):
    """The tree of heads as pairs of neighbours, to find what lies behind a head that a SUBACK names as unreached."""

    links: Sequence[tuple[str, str]]


class PublicationObserved(Observation, frozen=True, tag="published"):
    publisher: str
    incarnation: int
    seq: int
    attributes: Mapping[str, Value]
    at: float


class AnswerObserved(Observation, frozen=True, tag="answered"):
    publisher: str
    incarnation: int
    seq: int
    answer: Answer
    at: float


class LogEntryObserved(Observation, frozen=True, tag="logged"):
    """A head has put the publication into its log, at `position`. `origin` names the head that accepted it."""

    head: str
    epoch: int
    position: int
    publication: PublicationIdentity
    origin: LogPosition
    at: float


class SubscriptionObserved(Observation, frozen=True, tag="subscribed"):
    """A subscription was requested. An id that is requested again after its withdrawal begins a new life."""

    subscriber: str
    incarnation: int
    id: int
    predicates: Sequence[Triple]
    at: float


class AcknowledgementObserved(Observation, frozen=True, tag="acknowledged"):
    """A SUBACK reached the application: these subscriptions now count, except for what lies behind `unreached`."""

    subscriber: str
    incarnation: int
    ids: Sequence[int]
    head: str
    unreached: Sequence[str]
    at: float


class WithdrawalObserved(Observation, frozen=True, tag="withdrawn"):
    """The application asked to withdraw these subscriptions."""

    subscriber: str
    incarnation: int
    ids: Sequence[int]
    at: float


class RemovalObserved(Observation, frozen=True, tag="forgotten"):
    """The withdrawal was acknowledged, or the subscription refused: no delivery for these may come any more."""

    subscriber: str
    incarnation: int
    ids: Sequence[int]
    at: float


class DeliveryObserved(Observation, frozen=True, tag="delivered"):
    """`place`: the log position in the delivering stream as (head, head epoch, position), if known."""

    subscriber: str
    incarnation: int
    publication: PublicationIdentity
    origin: LogPosition
    at: float
    place: LogPosition | None = None


class GapObserved(Observation, frozen=True, tag="gap"):
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
    last: Sequence[LogPosition]
    reason: str
    at: float


class LeaseEndObserved(Observation, frozen=True, tag="lapsed"):
    """The application was told that its lease had ended: its acknowledgements are void until the next one."""

    subscriber: str
    incarnation: int
    at: float


class IncarnationEndObserved(Observation, frozen=True, tag="ended"):
    """An incarnation of a subscriber or publisher is over: closed, shut by its policy, or crashed."""

    name: str
    incarnation: int
    at: float


class HeadEndObserved(Observation, frozen=True, tag="head-ended"):
    """A head epoch is over. Entries that only it had are lost; its subscribers and neighbours must be told."""

    head: str
    epoch: int
    at: float


class OwnerObserved(Observation, frozen=True, tag="owned"):
    """A head made `edge` the owner of the subscriber for this owner epoch.

    `cause`: `cut`, `done`, `resume` or `report`; `guest`, for the cut of a remote member, which another head still
    decides; or `across`, when that head has decided it.
    """

    subscriber: str
    epoch: tuple[int, int]
    edge: str
    at: float
    cause: str = ""


class SessionStartObserved(Observation, frozen=True, tag="session-began"):
    uid: str
    deadline: float
    at: float


class SessionEndObserved(Observation, frozen=True, tag="session-ended"):
    uid: str
    state: str
    at: float


class HandoverStartObserved(Observation, frozen=True, tag="handover-began"):
    """A mediator asks for a hand-over of these members for the first time."""

    session: str
    source: str
    target: str
    members: Sequence[str]
    replay: bool
    drain_seconds: float
    at: float


class HandoverResultObserved(Observation, frozen=True, tag="handover-told"):
    """A mediator was told a final state of a hand-over, with the outcome of each member."""

    session: str
    state: str
    members: Sequence[tuple[str, str]]
    at: float


class UncutMemberObserved(Observation, frozen=True, tag="uncut"):
    """A head has given a member an outcome without a cut: `stayed`, `away`, `gone` or `unknown`.

    `served_at`, `missed_at`: when the source last served the subscriber, and when it last did not. `heard_at`: when the
    head last heard from the source; -inf if it does not have it now. `said_at`: when what it deals with now was sent at
    the earliest, if it has been paused.
    """

    session: str
    subscriber: str
    source: str
    outcome: str
    served_at: float
    missed_at: float
    heard_at: float
    at: float
    said_at: float | None = None


class AttachmentObserved(Observation, frozen=True, tag="attached"):
    """The application was told which edge serves it from now on."""

    subscriber: str
    incarnation: int
    edge: str
    at: float


class ServingEdgeObserved(Observation, frozen=True, tag="serving"):
    """An edge was seen to deliver to the subscriber from its stream, under this owner epoch."""

    edge: str
    subscriber: str
    epoch: tuple[int, int]
    at: float


class GapFreeClaim(Observation, frozen=True, tag="steady"):
    """A claim: from `since` on no bound is met, so no subscriber that is not exempt is told of a gap."""

    since: float
    exempt: Sequence[str]


class ResidueObserved(Observation, frozen=True, tag="residue"):
    """State left over after everything ended, which nothing will ever remove."""

    where: str
    what: str
    count: int
    at: float


class SizeObserved(Observation, frozen=True, tag="mark"):
    """A measured size and the bound that the configuration states for it."""

    where: str
    what: str
    value: float
    bound: float
    at: float


class LatencyClaim(Observation, frozen=True, tag="undisturbed"):
    """A claim: from `since` to `until`, all parties but the exempt get each delivery within `latency_seconds`."""

    since: float
    until: float
    latency_seconds: float
    exempt: Sequence[str]


class CounterObserved(Observation, frozen=True, tag="counter"):
    """A counter of the product for one incarnation: `published accepted refused unknown delivered gaps`."""

    name: str
    incarnation: int
    what: str
    value: int
    at: float


class GroupObserved(Observation, frozen=True, tag="group"):
    """A consumer group of all publications: `count` slices, by the attribute `by` modulo their number."""

    group: str
    count: int
    by: str
    at: float


class SliceItemObserved(Observation, frozen=True, tag="sliced"):
    """A consumer was given an item of a slice at `at`, and finished it at `until`; None for what it never finished."""

    group: str
    slice: int
    consumer: str
    publication: PublicationIdentity
    is_redelivered: bool
    at: float
    until: float | None


AnyObservation = (
    HeadTreeObserved
    | PublicationObserved
    | AnswerObserved
    | LogEntryObserved
    | SubscriptionObserved
    | AcknowledgementObserved
    | WithdrawalObserved
    | RemovalObserved
    | DeliveryObserved
    | GapObserved
    | LeaseEndObserved
    | IncarnationEndObserved
    | HeadEndObserved
    | OwnerObserved
    | SessionStartObserved
    | SessionEndObserved
    | HandoverStartObserved
    | HandoverResultObserved
    | UncutMemberObserved
    | AttachmentObserved
    | ServingEdgeObserved
    | GapFreeClaim
    | ResidueObserved
    | SizeObserved
    | LatencyClaim
    | CounterObserved
    | GroupObserved
    | SliceItemObserved
)

_encoder = msgspec.json.Encoder()
_decoder: msgspec.json.Decoder[AnyObservation] = msgspec.json.Decoder(AnyObservation)


class ObservationError(ValueError):
    """A line that is not an observation."""


def encode_line(observation: Observation) -> bytes:
    """One observation as a line of JSON, with its newline."""
    return _encoder.encode(observation) + b"\n"


def decode_line(line: bytes | str) -> Observation:
    """Read one line.

    Raises:
        ObservationError: with the text that was found.

    """
    try:
        return _decoder.decode(line)
    except msgspec.MsgspecError as error:
        raise ObservationError(f"not an observation: {error}; found {line[:120]!r}") from error


def decode_lines(lines: Iterable[bytes | str], source: str = "journal") -> Iterator[Observation]:
    """Read a file of lines.

    A last line without a newline, as a killed process leaves it, is skipped if it cannot be read.

    Raises:
        ObservationError: with `source` and the line number.

    """
    for number, line in enumerate(lines, 1):
        try:
            yield decode_line(line)
        except ObservationError as error:
            if (line[-1:] or b"\n") in (b"\n", "\n"):
                raise ObservationError(f"{source}:{number}: {error}") from error
