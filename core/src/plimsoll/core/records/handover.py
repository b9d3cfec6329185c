"""Moving live subscribers: what docs/handover.md is about.

`session` names one hand-over of a batch, "EPOCH.NUMBER": the epoch of the mediator that began it, and a number that
rises within it."""

from __future__ import annotations

from msgspec import Raw, Struct

from plimsoll.core.records.overlay import Cover
from plimsoll.core.records.subscribers import Join, Policy, SubscriptionItem
from plimsoll.core.wire import U32, U63, Name, OwnerEpoch, Text, Token

Due = tuple[Name, U63, U63, U63]
"""Of an origin (head, epoch): up to this offset so many publications were due."""


class MemberItem(Struct, array_like=True, frozen=True):
    """A subscriber in a hand-over, with the owner epoch that it has at the source."""

    subscriber: Name
    epoch: OwnerEpoch


class Prepare(Struct, array_like=True, frozen=True, tag=70):
    """Keep a place for each of these for so many seconds. By replay nobody attaches before the cut."""

    session: Name
    members: list[Name]
    seconds: float
    replay: bool


class Slot(Struct, array_like=True, frozen=True, tag=71):
    """These have a place; here is where they reach it."""

    session: Name
    members: list[Name]
    endpoint: Text
    public_key: Text


class Move(Struct, array_like=True, frozen=True, tag=72):
    """Tell these to attach to the target as well."""

    session: Name
    members: list[MemberItem]
    edge: Name
    endpoint: Text
    public_key: Text


class AttachItem(Struct, array_like=True, frozen=True):
    """`epoch`: the owner epoch that the subscriber will have at the target."""

    attachment: U32
    subscriber: Name
    epoch: OwnerEpoch
    version: U63
    subscriptions: list[SubscriptionItem]
    policy: Policy


class Attach(Struct, array_like=True, frozen=True, tag=73):
    """Second attachments, at the target of a session: nothing is delivered on them before GO."""

    session: Name
    members: list[AttachItem]


class Attached(Struct, array_like=True, frozen=True, tag=74):
    session: Name
    members: list[Name]


class Install(Struct, array_like=True, frozen=True, tag=75):
    """Announce these now, and ask for the cut."""

    session: Name
    members: list[Name]


class CutRequest(Struct, array_like=True, frozen=True, tag=76):
    """The cover with these in it; epochs are those that they will have at the target."""

    session: Name
    cover: Cover
    members: list[MemberItem]


class Installed(Struct, array_like=True, frozen=True, tag=77):
    """From behind `position` on the stream has what these need: hold it until GO."""

    session: Name
    members: list[Name]
    position: U63
    since: list[tuple[U63, U63]]


class Cut(Struct, array_like=True, frozen=True, tag=78):
    """Nothing behind this is for these. `token` is where the target begins; `across`: its head is another one."""

    session: Name
    members: list[MemberItem]
    token: Token
    across: bool


class Marker(Struct, array_like=True, frozen=True, tag=79):
    """Behind the cover that makes them follow the new way: publications behind this go to the target."""

    session: Name
    members: list[Name]
    token: Token


class End(Struct, array_like=True, frozen=True, tag=80):
    """The last that comes on these attachments; their stream goes on at the target behind `token`."""

    session: Name
    token: Token
    attachments: list[U32]


class GoItem(Struct, array_like=True, frozen=True):
    """`since` and `marks`: the token and the watermarks that the subscriber has counted its deliveries from."""

    attachment: U32
    since: Token | None = None
    marks: list[Token] = []


class Go(Struct, array_like=True, frozen=True, tag=81):
    """Everything before the cut has been had by these: deliver what was held."""

    session: Name
    members: list[GoItem]


class CheckItem(Struct, array_like=True, frozen=True):
    """A member that has counted what it was delivered, from a token and watermarks on: what was due to this list?

    `epoch` is its owner epoch at the target.
    """

    subscriber: Name
    epoch: OwnerEpoch
    since: Token
    marks: list[Token]
    subscriptions: list[Text]


class Done(Struct, array_like=True, frozen=True, tag=82):
    """These have moved. `checks`, from `edge`: of those and of others that have moved by resuming there."""

    session: Name
    members: list[Name]
    edge: Text = ""
    checks: list[CheckItem] = []


class Stay(Struct, array_like=True, frozen=True, tag=83):
    """The session is off for this subscriber."""

    attachment: U32
    session: Name


class Abort(Struct, array_like=True, frozen=True, tag=84):
    session: Name
    members: list[MemberItem]


class HeldItem(Struct, array_like=True, frozen=True):
    attachment: U32
    version: U63


class Held(Struct, array_like=True, frozen=True, tag=85):
    """The target has these versions of lists, and will ask for them at the cut. It is not a SUBACK."""

    members: list[HeldItem]


class Nak(Struct, array_like=True, frozen=True, tag=86):
    session: Name
    members: list[Name]
    reason: Text


class Part(Struct, array_like=True, frozen=True, tag=87):
    """`drain_seconds` after the cut: close the attachments of these; their place stays for its lease."""

    session: Name
    members: list[MemberItem]


class Route(Struct, array_like=True, frozen=True, tag=88):
    """A record on its way through the tree, from the head `source` to the head `to`, or to an edge of that."""

    to: Name
    source: Name
    edge: Text
    item: Raw


class MoveToItem(Struct, array_like=True, frozen=True):
    attachment: U32
    epoch: OwnerEpoch


class MoveTo(Struct, array_like=True, frozen=True, tag=89):
    """Attach to this edge as well, whoever has this owner epoch; END or STAY follows here."""

    session: Name
    members: list[MoveToItem]
    edge: Name
    endpoint: Text
    public_key: Text


class Orphan(Struct, array_like=True, frozen=True, tag=90):
    """The head that decided these sessions has forgotten them, or cannot be reached."""

    session: Name
    members: list[Name]


class Mediator(Struct, array_like=True, frozen=True, tag=91):
    """The highest mediator epoch heard of: who comes with a lower one is not obeyed."""

    epoch: U63


class JoinFor(Struct, array_like=True, frozen=True, tag=92):
    """A JOIN for an edge of another head."""

    join: Join


class PlacedFor(Struct, array_like=True, frozen=True, tag=93):
    """The answer to a JOIN_FOR; `edge` is empty if there is no place."""

    subscriber: Name
    edge: Text
    endpoint: Text
    public_key: Text


class DueItem(Struct, array_like=True, frozen=True):
    """What was due to a member that has this owner epoch."""

    subscriber: Name
    epoch: OwnerEpoch
    due: list[Due]


class DueList(Struct, array_like=True, frozen=True, tag=94):
    """What the log of the head `judge` has had for these; it is in their stream already. Ask them what they had."""

    session: Name
    judge: Name
    members: list[DueItem]


COUNTED_MARKS_AT_MOST = 32
"""With watermarks of more origins than this a subscriber counts nothing: they travel with GO, and in DONE."""


class AskItem(Struct, array_like=True, frozen=True):
    attachment: U32
    due: list[Due]


class Count(Struct, array_like=True, frozen=True, tag=95):
    """So many were due to these attachments since what GO or RESUME said: how many have there been?"""

    session: Name
    members: list[AskItem]


class ToldItem(Struct, array_like=True, frozen=True):
    """What the application was given against what was due. `suppressed`: came again, and was not given to it."""

    attachment: U32
    lost: U63
    duplicated: U63
    reordered: U63
    suppressed: U63


class Counted(Struct, array_like=True, frozen=True, tag=96):
    """What was counted by those who could; of the others there is nothing."""

    session: Name
    members: list[ToldItem]


class CountItem(Struct, array_like=True, frozen=True):
    subscriber: Name
    lost: U63
    duplicated: U63
    reordered: U63
    suppressed: U63


class Counts(Struct, array_like=True, frozen=True, tag=97):
    """What members have counted, for the head `judge`."""

    session: Name
    judge: Name
    members: list[CountItem]
