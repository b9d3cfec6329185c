"""Messages that move live subscribers; see docs/handover.md.

`session` names one hand-over of a batch, "EPOCH.NUMBER": the epoch of the mediator that began it, and a number that
rises within it.
"""

from __future__ import annotations

from msgspec import Raw, Struct

from plimsoll.core.protocol.messages.overlay import Cover
from plimsoll.core.protocol.messages.subscribers import Join, Policy, SubscriptionItem
from plimsoll.core.protocol.wire import U32, U63, Listed, Name, Named, Number, OwnerEpoch, Text, Token

ExpectedCount = tuple[Name, U63, U63, U63]
"""Of an origin (head, epoch): an offset, and the number of publications due up to it."""


class MemberItem(Struct, array_like=True, frozen=True):
    """A subscriber in a hand-over, with its owner epoch at the source."""

    subscriber: Name
    epoch: OwnerEpoch


class Prepare(Struct, array_like=True, frozen=True, tag=70):
    """Reserve a place for each of these for some seconds. With replay, no subscriber attaches before the cut.

    `identities`: of the members, in their order; none if they are not known.
    """

    session: Name
    members: list[Name]
    seconds: Number
    replay: bool
    identities: list[Text] = []

    def identified(self) -> list[tuple[str, str]]:
        """The members, each with its identity, as far as that is known."""
        is_known = len(self.identities) == len(self.members)
        return list(zip(self.members, self.identities if is_known else [""] * len(self.members), strict=True))


class Slot(Struct, array_like=True, frozen=True, tag=71):
    """These have a place, with the address where they reach it."""

    session: Name
    members: list[Name]
    endpoint: Text
    public_key: Text


class StartMove(Struct, array_like=True, frozen=True, tag=72):
    """Ask these to attach to the target as well."""

    session: Name
    members: list[MemberItem]
    edge: Name
    endpoint: Text
    public_key: Text


class AttachItem(Struct, array_like=True, frozen=True):
    """`epoch`: the owner epoch of the subscriber at the target. `lease_seconds`: as in RESUME."""

    attachment: U32
    subscriber: Name
    epoch: OwnerEpoch
    version: U63
    subscriptions: Listed[SubscriptionItem]
    policy: Policy
    lease_seconds: Number = 0.0


class Attach(Struct, array_like=True, frozen=True, tag=73):
    """Second attachments, at the target of a session: nothing is delivered on them before GO."""

    session: Name
    members: Listed[AttachItem]


class TargetAttached(Struct, array_like=True, frozen=True, tag=74):
    session: Name
    members: list[Name]


class Install(Struct, array_like=True, frozen=True, tag=75):
    """Announce the subscriptions of these now, and ask for the cut."""

    session: Name
    members: list[Name]


class CutRequest(Struct, array_like=True, frozen=True, tag=76):
    """The cover including these; epochs are those at the target."""

    session: Name
    cover: Cover
    members: list[MemberItem]


class Installed(Struct, array_like=True, frozen=True, tag=77):
    """After `position` the stream has all that these need: hold it until GO. `again`: those of them that are so again,
    as in RESUMED_DOWN.
    """

    session: Name
    members: list[Name]
    position: U63
    since: list[tuple[U63, U63]]
    again: list[Name] = []


class Cut(Struct, array_like=True, frozen=True, tag=78):
    """Nothing after this is for these. The target begins at `token`; `across`: the target has another head.

    `keeps_place`: also within a cluster the source keeps their places until RELEASE.
    """

    session: Name
    members: list[MemberItem]
    token: Token
    across: bool
    keeps_place: bool = False


class Marker(Struct, array_like=True, frozen=True, tag=79):
    """Follows the cover that switches to the new path: publications after this go to the target."""

    session: Name
    members: list[Name]
    token: Token


class End(Struct, array_like=True, frozen=True, tag=80):
    """The last message on these attachments; their stream continues at the target after `token`."""

    session: Name
    token: Token
    attachments: list[U32]


class GoItem(Struct, array_like=True, frozen=True):
    """`since` and `marks`: the token and the watermarks from which the subscriber counts its deliveries."""

    attachment: U32
    since: Token | None = None
    marks: Named[Token] = []


class Go(Struct, array_like=True, frozen=True, tag=81):
    """These have received everything before the cut: deliver the held publications."""

    session: Name
    members: Listed[GoItem]


class AuditRequestItem(Struct, array_like=True, frozen=True):
    """Asks how many publications were due to a list, for a member that counted deliveries since a token and watermarks.

    `epoch` is its owner epoch at the target.
    """

    subscriber: Name
    epoch: OwnerEpoch
    since: Token
    marks: list[Token]
    subscriptions: list[Text]


class Done(Struct, array_like=True, frozen=True, tag=82):
    """These have moved. `checks`, from `edge`: of these, and of others that have moved by resuming there."""

    session: Name
    members: list[Name]
    edge: Text = ""
    checks: list[AuditRequestItem] = []


class Stay(Struct, array_like=True, frozen=True, tag=83):
    """The session is cancelled for this subscriber."""

    attachment: U32
    session: Name


class Abort(Struct, array_like=True, frozen=True, tag=84):
    """`ask`: the edge is the source, and says by HANDOVER_REJECTED whether it serves each of these members."""

    session: Name
    members: list[MemberItem]
    ask: bool = False


class HeldItem(Struct, array_like=True, frozen=True):
    attachment: U32
    version: U63


class Held(Struct, array_like=True, frozen=True, tag=85):
    """The target has these versions of lists, and will ask for them at the cut. It is not a SUBACK."""

    members: list[HeldItem]


class HandoverRejected(Struct, array_like=True, frozen=True, tag=86):
    session: Name
    members: list[Name]
    reason: Text


class ForceDetach(Struct, array_like=True, frozen=True, tag=87):
    """`drain_seconds` after the cut: close the attachments of these; their place is kept for its lease."""

    session: Name
    members: list[MemberItem]


class Route(Struct, array_like=True, frozen=True, tag=88):
    """A message routed through the tree, from the head `source` to the head `to` or to one of its edges."""

    to: Name
    source: Name
    edge: Text
    item: Raw


class MoveToItem(Struct, array_like=True, frozen=True):
    attachment: U32
    epoch: OwnerEpoch


class MoveTo(Struct, array_like=True, frozen=True, tag=89):
    """Attach to this edge as well, if you have this owner epoch; END or STAY follows on this attachment."""

    session: Name
    members: list[MoveToItem]
    edge: Name
    endpoint: Text
    public_key: Text


class Orphan(Struct, array_like=True, frozen=True, tag=90):
    """The head that decided these sessions has forgotten them, or cannot be reached."""

    session: Name
    members: list[Name]


class MediatorEpoch(Struct, array_like=True, frozen=True, tag=91):
    """The highest mediator epoch known: mediators with a lower one are not obeyed."""

    epoch: U63


class JoinFor(Struct, array_like=True, frozen=True, tag=92):
    """A JOIN for an edge of another head, or, if it names none, of any head; then heads without an edge are silent."""

    join: Join


class PlacedFor(Struct, array_like=True, frozen=True, tag=93):
    """The answer to a JOIN_FOR; `edge` is empty if there is no place."""

    subscriber: Name
    edge: Text
    endpoint: Text
    public_key: Text
    topic_attribute: Text = ""


class ExpectedItem(Struct, array_like=True, frozen=True):
    """The publications due to a member that has this owner epoch."""

    subscriber: Name
    epoch: OwnerEpoch
    due: list[ExpectedCount]


class ExpectedDeliveries(Struct, array_like=True, frozen=True, tag=94):
    """The counts for these from the log of the head `judge`; all is in their stream. Ask them for their counts."""

    session: Name
    judge: Name
    members: list[ExpectedItem]


COUNTED_MARKS_AT_MOST = 32
"""A subscriber with watermarks of more origins than this does not count: they travel with GO and in DONE."""


class AuditQueryItem(Struct, array_like=True, frozen=True):
    attachment: U32
    due: list[ExpectedCount]


class AuditQuery(Struct, array_like=True, frozen=True, tag=95):
    """The numbers due to these attachments since GO or RESUME: how many arrived?"""

    session: Name
    members: list[AuditQueryItem]


class AuditReplyItem(Struct, array_like=True, frozen=True):
    """Deliveries to the application against those due. `suppressed`: duplicates that were not passed to it.

    Clients say what they like: numbers of this size have sums that a report can hold.
    """

    attachment: U32
    lost: U32
    duplicated: U32
    reordered: U32
    suppressed: U32


class AuditReply(Struct, array_like=True, frozen=True, tag=96):
    """The counts of the members that could count; the others are absent."""

    session: Name
    members: Listed[AuditReplyItem]


class AuditSummaryItem(Struct, array_like=True, frozen=True):
    """The counts of a member. `due_of_judge` and `due_of_others`: how many of the publications that were due to it had
    been accepted at the head that judges, and at other heads."""

    subscriber: Name
    lost: U32
    duplicated: U32
    reordered: U32
    suppressed: U32
    due_of_judge: U32 = 0
    due_of_others: U32 = 0


class AuditSummary(Struct, array_like=True, frozen=True, tag=97):
    """The counts of members, for the head `judge`."""

    session: Name
    judge: Name
    members: list[AuditSummaryItem]
