"""The messages of protocol version 1 between brokers and clients, by number.

Numbers are never reused. Fields may be added at the end of a message, with a default. docs/protocol.md says who sends
which message, when, and what the answer is.
"""

from __future__ import annotations

from typing import Final, TypeVar

import msgspec
from msgspec import Raw

from plimsoll.core.protocol.messages.balancing import (
    ActionItem,
    BlockItem,
    BrokerState,
    CoverQuery,
    CoverReply,
    EachItem,
    LoadReport,
    Metric,
    PeerClusterLoads,
    PeerLoads,
    ProfileBody,
    ProfileQuery,
    ProfileReply,
    Reservation,
    ReservationReply,
    RowItem,
    TakerItem,
    Trigger,
)
from plimsoll.core.protocol.messages.control import (
    AssignedBundle,
    AuditItem,
    BundleTable,
    ClusterMembers,
    ClusterPolicy,
    Command,
    HandoverPlan,
    HeadAddress,
    Identify,
    Leave,
    ListSubscribers,
    LoadUpdate,
    Outcome,
    Revoke,
    StatusQuery,
    StatusReply,
    SubscriberPage,
)
from plimsoll.core.protocol.messages.feed_reads import (
    FILES_AT_MOST,
    PART_BYTES_AT_MOST,
    FeedFileItem,
    FeedFilePart,
    FeedFilesPage,
    FeedRefused,
    ListFeedFiles,
    ReadFeedFile,
)
from plimsoll.core.protocol.messages.groups import (
    AnswerToMember,
    CachedItem,
    ClusterGroups,
    DeclaredGroupItem,
    FromMember,
    GroupAnswer,
    GroupBeat,
    GroupBeatAnswer,
    GroupDefinition,
    GroupFor,
    GroupFunction,
    GroupFunctions,
    GroupJoin,
    GroupJoined,
    GroupLeave,
    GroupLeft,
    GroupRefused,
    MemberLoad,
    SliceAssigned,
    SliceCache,
    SliceCaching,
    SliceCount,
    SlicePlace,
    SliceReleased,
    SliceReport,
    SliceRevoked,
)
from plimsoll.core.protocol.messages.handover import (
    COUNTED_MARKS_AT_MOST,
    Abort,
    Attach,
    AttachItem,
    AuditQuery,
    AuditQueryItem,
    AuditReply,
    AuditReplyItem,
    AuditRequestItem,
    AuditSummary,
    AuditSummaryItem,
    Cut,
    CutRequest,
    Done,
    End,
    ExpectedCount,
    ExpectedDeliveries,
    ExpectedItem,
    ForceDetach,
    Go,
    GoItem,
    HandoverRejected,
    Held,
    HeldItem,
    Install,
    Installed,
    JoinFor,
    Marker,
    MediatorEpoch,
    MemberItem,
    MoveTo,
    MoveToItem,
    Orphan,
    PlacedFor,
    Prepare,
    Route,
    Slot,
    StartMove,
    Stay,
    TargetAttached,
)
from plimsoll.core.protocol.messages.listings import (
    ListPublications,
    ListSubscriptions,
    PublicationItem,
    PublicationPage,
    SubscriptionListItem,
    SubscriptionPage,
)
from plimsoll.core.protocol.messages.overlay import (
    Confirmed,
    Cover,
    CoverAck,
    CoverItem,
    EdgeReport,
    Expire,
    Fetch,
    Fetched,
    Forget,
    KeepPlace,
    Leaving,
    NameClaim,
    NameClaims,
    NeighborReport,
    OriginPath,
    OwnedItem,
    PlaceItem,
    PlaceLeft,
    PlaceQuery,
    PlaceReply,
    PlaceTaken,
    PublisherPaths,
    Release,
    ReleasedBundle,
    Replay,
    ResumedDown,
    ResumeUp,
    Welcome,
    replay_prefix,
)
from plimsoll.core.protocol.messages.parameters import ListParameters, ParameterItem, ParameterPage
from plimsoll.core.protocol.messages.publications import (
    Accepted,
    Body,
    Close,
    Credit,
    Deliver,
    Gap,
    Open,
    Opened,
    Progress,
    Pub,
    Publish,
    PubOpen,
    Refused,
    Unconfirmed,
)
from plimsoll.core.protocol.messages.publisher_audit import (
    AUDITED_PUBLISHERS_AT_MOST,
    EXAMPLES_AT_MOST,
    AuditedPublisher,
    CountPublishers,
    CountsFrom,
    Example,
    PublisherAuditRequest,
    PublisherAuditStart,
)
from plimsoll.core.protocol.messages.publisher_moves import (
    ListPublishers,
    OpenReturning,
    OpenStandby,
    PublisherArrived,
    PublisherCommand,
    PublisherElsewhere,
    PublisherGo,
    PublisherItem,
    PublisherLeft,
    PublisherListPage,
    PublisherMarker,
    PublisherMove,
    PublisherOutcome,
    PublisherPlan,
    PublisherStandby,
    PublisherStay,
)
from plimsoll.core.protocol.messages.slice_moves import (
    ConsumerItem,
    GroupTrigger,
    HeldSliceItem,
    SliceCommand,
    SliceMovesPlan,
    SliceOutcome,
    SlicePage,
    SliceQuery,
)
from plimsoll.core.protocol.messages.standby import (
    Follow,
    FollowLog,
    GoOnAlone,
    Lead,
    LeadershipQuery,
    LeadershipReply,
    LogBegins,
    LogPart,
    LogStored,
    LogTrimmed,
    Promote,
    Replaced,
    StandbyInSync,
)
from plimsoll.core.protocol.messages.subscribers import (
    AttachmentClosed,
    Continue,
    Detach,
    Epoch,
    Join,
    Moved,
    Pause,
    Placed,
    Policy,
    Resume,
    Resumed,
    SeeHead,
    Suback,
    SubRefused,
    Subs,
    SubscriptionItem,
    Unplaced,
)
from plimsoll.core.protocol.wire import WireError

__all__ = [
    "AUDITED_PUBLISHERS_AT_MOST",
    "COUNTED_MARKS_AT_MOST",
    "EXAMPLES_AT_MOST",
    "FILES_AT_MOST",
    "PART_BYTES_AT_MOST",
    "Abort",
    "Accepted",
    "ActionItem",
    "AnswerToMember",
    "AssignedBundle",
    "Attach",
    "AttachItem",
    "AttachmentClosed",
    "AuditItem",
    "AuditQuery",
    "AuditQueryItem",
    "AuditReply",
    "AuditReplyItem",
    "AuditRequestItem",
    "AuditSummary",
    "AuditSummaryItem",
    "AuditedPublisher",
    "BetweenHeads",
    "BlockItem",
    "Body",
    "BrokerState",
    "BundleTable",
    "CachedItem",
    "Close",
    "ClusterGroups",
    "ClusterMembers",
    "ClusterPolicy",
    "Command",
    "Confirmed",
    "ConsumerItem",
    "Continue",
    "ControlRecord",
    "CountPublishers",
    "CountsFrom",
    "Cover",
    "CoverAck",
    "CoverItem",
    "CoverQuery",
    "CoverReply",
    "Credit",
    "Cut",
    "CutRequest",
    "DeclaredGroupItem",
    "Deliver",
    "Detach",
    "Done",
    "EachItem",
    "EdgeReport",
    "End",
    "Epoch",
    "Example",
    "ExpectedCount",
    "ExpectedDeliveries",
    "ExpectedItem",
    "Expire",
    "FeedAnswer",
    "FeedFileItem",
    "FeedFilePart",
    "FeedFilesPage",
    "FeedRefused",
    "FeedRequest",
    "Fetch",
    "Fetched",
    "Follow",
    "FollowLog",
    "ForceDetach",
    "Forget",
    "FromClient",
    "FromEdge",
    "FromHead",
    "FromMember",
    "FromStandby",
    "Gap",
    "Go",
    "GoItem",
    "GoOnAlone",
    "GroupAnswer",
    "GroupBeat",
    "GroupBeatAnswer",
    "GroupDefinition",
    "GroupFor",
    "GroupFunction",
    "GroupFunctions",
    "GroupJoin",
    "GroupJoined",
    "GroupLeave",
    "GroupLeft",
    "GroupRefused",
    "GroupTrigger",
    "HandoverPlan",
    "HandoverRejected",
    "HeadAddress",
    "Held",
    "HeldItem",
    "HeldSliceItem",
    "Identify",
    "Install",
    "Installed",
    "Join",
    "JoinFor",
    "KeepPlace",
    "Lead",
    "LeadershipQuery",
    "LeadershipReply",
    "Leave",
    "Leaving",
    "LinkMessage",
    "ListFeedFiles",
    "ListParameters",
    "ListPublications",
    "ListPublishers",
    "ListSubscribers",
    "ListSubscriptions",
    "LoadReport",
    "LoadUpdate",
    "LogBegins",
    "LogPart",
    "LogStored",
    "LogTrimmed",
    "Marker",
    "MediatorEpoch",
    "MemberItem",
    "MemberLoad",
    "Metric",
    "MoveTo",
    "MoveToItem",
    "Moved",
    "NameClaim",
    "NameClaims",
    "NeighborReport",
    "Open",
    "OpenReturning",
    "OpenStandby",
    "Opened",
    "OriginPath",
    "Orphan",
    "Outcome",
    "OwnedItem",
    "ParameterItem",
    "ParameterPage",
    "Pause",
    "PeerClusterLoads",
    "PeerLoads",
    "PlaceItem",
    "PlaceLeft",
    "PlaceQuery",
    "PlaceReply",
    "PlaceTaken",
    "Placed",
    "PlacedFor",
    "Policy",
    "Prepare",
    "ProfileBody",
    "ProfileQuery",
    "ProfileReply",
    "Progress",
    "Promote",
    "Pub",
    "PubOpen",
    "PublicationItem",
    "PublicationPage",
    "Publish",
    "PublisherArrived",
    "PublisherAuditRequest",
    "PublisherAuditStart",
    "PublisherCommand",
    "PublisherElsewhere",
    "PublisherGo",
    "PublisherItem",
    "PublisherLeft",
    "PublisherListPage",
    "PublisherMarker",
    "PublisherMove",
    "PublisherOutcome",
    "PublisherPaths",
    "PublisherPlan",
    "PublisherStandby",
    "PublisherStay",
    "ReadFeedFile",
    "Refused",
    "Release",
    "ReleasedBundle",
    "Replaced",
    "Replay",
    "Reservation",
    "ReservationReply",
    "Resume",
    "ResumeUp",
    "Resumed",
    "ResumedDown",
    "Revoke",
    "Route",
    "Routed",
    "RowItem",
    "SeeHead",
    "SliceAssigned",
    "SliceCache",
    "SliceCaching",
    "SliceCommand",
    "SliceCount",
    "SliceMovesPlan",
    "SliceOutcome",
    "SlicePage",
    "SlicePlace",
    "SliceQuery",
    "SliceReleased",
    "SliceReport",
    "SliceRevoked",
    "Slot",
    "StandbyInSync",
    "StartMove",
    "StatusQuery",
    "StatusReply",
    "Stay",
    "SubRefused",
    "Suback",
    "Subs",
    "SubscriberPage",
    "SubscriptionItem",
    "SubscriptionListItem",
    "SubscriptionPage",
    "TakerItem",
    "TargetAttached",
    "ToClient",
    "ToEdge",
    "ToStandby",
    "Trigger",
    "Unconfirmed",
    "Unplaced",
    "Welcome",
    "between_heads",
    "body",
    "cached_item",
    "control",
    "decode",
    "feed_answer",
    "feed_request",
    "from_client",
    "from_edge",
    "from_standby",
    "profile",
    "replay_prefix",
    "routed",
    "to_client",
    "to_edge",
    "to_standby",
]

FromClient = (
    Publish | Open | Close | Join | Resume | Subs | Detach | Pause | Continue | Attach | Go | AuditReply |
    PublisherGo | OpenStandby | OpenReturning | GroupJoin | GroupBeat | SliceReleased | GroupLeave |
    CountsFrom | SliceCaching | SliceCache
)  # fmt: skip
ToClient = (
    Deliver | Progress | Opened | Accepted | Refused | Credit | Unconfirmed | Placed | Unplaced | Resumed | Suback |
    SeeHead | AttachmentClosed | Moved | SubRefused | Epoch | MoveTo | Held | Stay | End | AuditQuery |
    PublisherMove | PublisherStay | PublisherStandby | PublisherLeft | PublisherElsewhere |
    GroupJoined | GroupRefused | GroupBeatAnswer | SliceAssigned | SliceRevoked | GroupLeft |
    CountPublishers | SliceCache | GroupFunctions
)  # fmt: skip
FromEdge = (
    Cover | ResumeUp | Fetch | Expire | EdgeReport | Forget | Leaving | KeepPlace | PlaceLeft | PlaceTaken |
    NameClaims | Slot | TargetAttached | CutRequest | Done | HandoverRejected | AuditSummary | PublisherAuditRequest
)  # fmt: skip
ToEdge = (
    PubOpen | Gap | Progress | CoverAck | ResumedDown | Release | Replay | Fetched | Welcome | Prepare | StartMove |
    Install | Installed | Cut | Abort | ForceDetach | Orphan | MediatorEpoch | ExpectedDeliveries |
    PublisherAuditStart | NameClaims
)  # fmt: skip
BetweenHeads = (
    Pub | Gap | Cover | CoverAck | NeighborReport | Confirmed | Route | MediatorEpoch | PublisherPaths |
    PublisherAuditStart | NameClaims
)  # fmt: skip
FromHead = ToEdge | BetweenHeads
FromStandby = FollowLog | LogStored
ToStandby = LogBegins | LogPart | LogTrimmed | StandbyInSync
LinkMessage = FromClient | ToClient | FromEdge | FromHead | FromStandby | ToStandby
Routed = (
    Prepare | Install | Abort | ForceDetach | Slot | TargetAttached | Marker | Done | HandoverRejected | JoinFor |
    PlacedFor | ExpectedDeliveries | AuditSummary | PublisherMarker | PublisherArrived |
    PublisherAuditRequest | GroupFor | GroupAnswer | PlaceQuery | PlaceReply
)  # fmt: skip
ControlRecord = (
    Identify | LoadUpdate | StatusQuery | StatusReply | Leave | Revoke | ClusterMembers | Command | Outcome |
    ListSubscribers | SubscriberPage | PeerLoads | Reservation | ReservationReply | Trigger | ProfileQuery |
    ProfileReply | PeerClusterLoads | CoverQuery | CoverReply | ClusterPolicy | BundleTable |
    ListPublications | PublicationPage | ListSubscriptions | SubscriptionPage | ListParameters | ParameterPage |
    PublisherCommand | PublisherOutcome | ListPublishers | PublisherListPage | PublisherPaths | ClusterGroups |
    GoOnAlone | Promote | Lead | Follow | Replaced | LeadershipQuery | LeadershipReply |
    SliceCommand | SliceOutcome | SliceQuery | SlicePage | GroupTrigger
)  # fmt: skip

FeedRequest = ListFeedFiles | ReadFeedFile
FeedAnswer = FeedFilesPage | FeedFilePart | FeedRefused

from_client: Final = msgspec.msgpack.Decoder(FromClient)
to_client: Final = msgspec.msgpack.Decoder(ToClient)
from_edge: Final = msgspec.msgpack.Decoder(FromEdge)
to_edge: Final = msgspec.msgpack.Decoder(ToEdge)
between_heads: Final = msgspec.msgpack.Decoder(BetweenHeads)
from_standby: Final = msgspec.msgpack.Decoder(FromStandby)
to_standby: Final = msgspec.msgpack.Decoder(ToStandby)
routed: Final = msgspec.msgpack.Decoder(Routed)
cached_item: Final = msgspec.msgpack.Decoder(CachedItem)
control: Final = msgspec.msgpack.Decoder(ControlRecord)
feed_request: Final = msgspec.msgpack.Decoder(FeedRequest)
feed_answer: Final = msgspec.msgpack.Decoder(FeedAnswer)
body: Final = msgspec.msgpack.Decoder(Body)
profile: Final = msgspec.msgpack.Decoder(ProfileBody)


_T = TypeVar("_T")


def decode(decoder: msgspec.msgpack.Decoder[_T], data: bytes | Raw) -> _T:
    """Decode one record.

    Raises:
        WireError: `malformed`.

    """
    try:
        return decoder.decode(data)
    except (msgspec.MsgspecError, RecursionError, ValueError, OverflowError) as error:
        raise WireError("malformed", f"record: {error}") from error
