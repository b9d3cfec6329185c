"""The records of protocol version 1: what brokers and clients say to one another, by number.

Numbers are never used again for something else. Fields may be added at the end of a record, with a default.
docs/protocol.md says who sends which record, when, and what the answer is.
"""

from __future__ import annotations

from typing import Final, TypeVar

import msgspec
from msgspec import Raw

from plimsoll.core.records.balancing import (
    ActionItem,
    BlockItem,
    BrokerState,
    CoverQuery,
    CoverTold,
    Joined,
    LoadReport,
    Metric,
    Pie,
    ProfileBody,
    ProfileQuery,
    ProfileReply,
    RowItem,
    State,
    Stated,
    TakerItem,
    Trigger,
)
from plimsoll.core.records.control import (
    AuditItem,
    Command,
    HandoverPlan,
    Identify,
    Leave,
    Load,
    Members,
    Outcome,
    Revoke,
    Served,
    Serving,
    StatusQuery,
    StatusReply,
)
from plimsoll.core.records.handover import (
    COUNTED_MARKS_AT_MOST,
    Abort,
    AskItem,
    Attach,
    Attached,
    AttachItem,
    CheckItem,
    Count,
    Counted,
    CountItem,
    Counts,
    Cut,
    CutRequest,
    Done,
    Due,
    DueItem,
    DueList,
    End,
    Go,
    GoItem,
    Held,
    HeldItem,
    Install,
    Installed,
    JoinFor,
    Marker,
    Mediator,
    MemberItem,
    Move,
    MoveTo,
    MoveToItem,
    Nak,
    Orphan,
    Part,
    PlacedFor,
    Prepare,
    Route,
    Slot,
    Stay,
    ToldItem,
)
from plimsoll.core.records.overlay import (
    Confirmed,
    Cover,
    CoverAck,
    CoverItem,
    Expire,
    Fetch,
    Fetched,
    Forget,
    Leaving,
    NeighborReport,
    Release,
    Replay,
    Report,
    ReportItem,
    ResumedDown,
    ResumeUp,
    Welcome,
)
from plimsoll.core.records.publications import (
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
from plimsoll.core.records.subscribers import (
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
    Shut,
    Suback,
    SubRefused,
    Subs,
    SubscriptionItem,
    Unplaced,
)
from plimsoll.core.wire import WireError

__all__ = [
    "COUNTED_MARKS_AT_MOST",
    "PUB_TAG",
    "Abort",
    "Accepted",
    "ActionItem",
    "AskItem",
    "Attach",
    "AttachItem",
    "Attached",
    "AuditItem",
    "BetweenHeads",
    "BlockItem",
    "Body",
    "BrokerState",
    "CheckItem",
    "Close",
    "Command",
    "Confirmed",
    "Continue",
    "ControlRecord",
    "Count",
    "CountItem",
    "Counted",
    "Counts",
    "Cover",
    "CoverAck",
    "CoverItem",
    "CoverQuery",
    "CoverTold",
    "Credit",
    "Cut",
    "CutRequest",
    "Deliver",
    "Detach",
    "Done",
    "Due",
    "DueItem",
    "DueList",
    "End",
    "Epoch",
    "Expire",
    "Fetch",
    "Fetched",
    "Forget",
    "FromClient",
    "FromEdge",
    "Gap",
    "Go",
    "GoItem",
    "HandoverPlan",
    "Held",
    "HeldItem",
    "Identify",
    "Install",
    "Installed",
    "Join",
    "JoinFor",
    "Joined",
    "Leave",
    "Leaving",
    "Load",
    "LoadReport",
    "Marker",
    "Mediator",
    "MemberItem",
    "Members",
    "Metric",
    "Move",
    "MoveTo",
    "MoveToItem",
    "Moved",
    "Nak",
    "NeighborReport",
    "Open",
    "Opened",
    "Orphan",
    "Outcome",
    "Part",
    "Pause",
    "Pie",
    "Placed",
    "PlacedFor",
    "Policy",
    "Prepare",
    "ProfileBody",
    "ProfileQuery",
    "ProfileReply",
    "Progress",
    "Pub",
    "PubOpen",
    "Publish",
    "Refused",
    "Release",
    "Replay",
    "Report",
    "ReportItem",
    "Resume",
    "ResumeUp",
    "Resumed",
    "ResumedDown",
    "Revoke",
    "Route",
    "Routed",
    "RowItem",
    "Served",
    "Serving",
    "Shut",
    "Slot",
    "State",
    "Stated",
    "StatusQuery",
    "StatusReply",
    "Stay",
    "SubRefused",
    "Suback",
    "Subs",
    "SubscriptionItem",
    "TakerItem",
    "ToClient",
    "ToEdge",
    "ToldItem",
    "Trigger",
    "Unconfirmed",
    "Unplaced",
    "Welcome",
    "between_heads",
    "body",
    "control",
    "decode",
    "from_client",
    "from_edge",
    "profile",
    "routed",
    "to_client",
    "to_edge",
]

FromClient = (
    Publish | Open | Close | Join | Resume | Subs | Detach | Pause | Continue | Attach | Go |
    Counted
)  # fmt: skip
ToClient = (
    Deliver | Progress | Opened | Accepted | Refused | Credit | Unconfirmed | Placed | Unplaced | Resumed | Suback |
    Shut | Moved | SubRefused | Epoch | MoveTo | Held | Stay | End | Count
)  # fmt: skip
FromEdge = (
    Cover | ResumeUp | Fetch | Expire | Report | Forget | Leaving | Slot | Attached | CutRequest | Done | Nak |
    Counts
)  # fmt: skip
ToEdge = (
    PubOpen | Gap | Progress | CoverAck | ResumedDown | Release | Replay | Fetched | Welcome | Prepare | Move |
    Install | Installed | Cut | Abort | Part | Orphan | Mediator | DueList
)  # fmt: skip
BetweenHeads = Pub | Gap | Cover | CoverAck | NeighborReport | Confirmed | Route | Mediator
Routed = (
    Prepare | Install | Abort | Part | Slot | Attached | Marker | Done | Nak | JoinFor | PlacedFor | DueList | Counts
)  # fmt: skip
ControlRecord = (
    Identify | Load | StatusQuery | StatusReply | Leave | Revoke | Members | Command | Outcome | Serving | Served |
    Pie | State | Stated | Trigger | ProfileQuery | ProfileReply | Joined |
    CoverQuery | CoverTold
)  # fmt: skip

from_client: Final = msgspec.msgpack.Decoder(FromClient)
to_client: Final = msgspec.msgpack.Decoder(ToClient)
from_edge: Final = msgspec.msgpack.Decoder(FromEdge)
to_edge: Final = msgspec.msgpack.Decoder(ToEdge)
between_heads: Final = msgspec.msgpack.Decoder(BetweenHeads)
routed: Final = msgspec.msgpack.Decoder(Routed)
control: Final = msgspec.msgpack.Decoder(ControlRecord)
body: Final = msgspec.msgpack.Decoder(Body)
profile: Final = msgspec.msgpack.Decoder(ProfileBody)

PUB_TAG: Final = 2


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
