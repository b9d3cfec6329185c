"""docs/protocol.md has every frame and record of the code and no other, field by field, and the vectors' bytes."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest
from tests.core.fleet import one_cluster
from tests.vectors import make

from plimsoll.core.config import BrokerLimits
from plimsoll.core.edge.attachment import REFUSALS
from plimsoll.core.head.client_share import FIRST_WINDOW
from plimsoll.core.head.handover import admission, commands
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol import wire
from plimsoll.core.protocol.wire import WireError
from plimsoll.core.transport import link
from plimsoll.core.transport.hooks import CREDIT_HELD_ABOVE_RECORDS

ROOT = Path(__file__).parents[3]
DOCUMENT = ROOT / "docs" / "protocol.md"
CORE = ROOT / "core" / "src" / "plimsoll" / "core"
FRAMES = ("DATA", "ACK", "HELLO", "HELLO_OK", "WHO", "PING", "PONG", "BYE", "CONTROL", "REFUSE")
FROM_HEAD = {struct for struct in msg.ToClient.__args__ if struct.__struct_fields__[0] == "handle"} | {
    msg.Placed,
    msg.Unplaced,
    msg.GroupJoined,
    msg.GroupRefused,
    msg.GroupBeatAnswer,
    msg.GroupLeft,
    msg.SliceAssigned,
    msg.SliceRevoked,
    msg.SliceCache,
    msg.GroupFunctions,
}
TO_HEAD = {
    msg.Publish, msg.Open, msg.Close, msg.Join, msg.OpenStandby, msg.OpenReturning, msg.PublisherGo, msg.GroupJoin,
    msg.GroupBeat, msg.SliceReleased, msg.GroupLeave, msg.SliceCaching, msg.SliceCache,
}  # fmt: skip
SPEAKERS: dict[str, Any] = {
    "client to head": TO_HEAD,
    "client to edge": set(msg.FromClient.__args__) - TO_HEAD,
    "head to client": FROM_HEAD,
    "edge to client": set(msg.ToClient.__args__) - FROM_HEAD,
    "edge to head": msg.FromEdge,
    "head to edge": msg.ToEdge,
    "head to head": msg.BetweenHeads,
    "inside ROUTE": msg.Routed,
    "standby to head": msg.FromStandby,
    "head to standby": msg.ToStandby,
    "control socket": msg.ControlRecord,
    "reader to recorder": msg.FeedRequest,
    "recorder to reader": msg.FeedAnswer,
}
TYPES = {
    "HeadAddress": "head_address",
    "PublisherItem": "listed_publisher",
    "GroupDefinition": "group",
    "FromMember": "record",
    "AnswerToMember": "record",
    "DeclaredGroupItem": "declared_group",
    "GroupFunction": "group_function",
    "SlicePlace": "place",
    "SliceReport": "slice_load",
    "MemberLoad": "member_load",
    "SliceCount": "slice_count",
    "SliceMovesPlan": "slice_moves",
    "ConsumerItem": "consumer",
    "HeldSliceItem": "held_slice",
    "PublisherPlan": "publisher_plan",
    "Annotated": "",
    "OwnerEpoch": "owner_epoch",
    "Token": "token",
    "SubscriptionItem": "subscription",
    "CoverItem": "cover_item",
    "OwnedItem": "owned_item",
    "NameClaim": "name_claim",
    "AssignedBundle": "assigned_bundle",
    "OriginPath": "origin_path",
    "ReleasedBundle": "released_bundle",
    "Policy": "policy",
    "U32": "u32",
    "U63": "u63",
    "Count": "count",
    "Number": "float",
    "Since": "token or float or nil",
    "Name": "name",
    "Text": "text",
    "PubOpen": "PUB",
    "Gap": "GAP",
    "Cover": "COVER",
    "Raw": "body",
    "Info": "info",
    "None": "nil",
    "MemberItem": "member",
    "PlaceItem": "place_item",
    "HandoverPlan": "plan",
    "Join": "JOIN",
    "ExpectedCount": "expected",
    "Example": "map",
    "AuditedPublisher": "audited_publisher",
    "AuditRequestItem": "audit_request",
    "ExpectedItem": "expected_item",
    "AuditSummaryItem": "audit_summary_item",
    "AuditItem": "audit",
    "AuditQueryItem": "audit_query_item",
    "AttachItem": "attach_item",
    "GoItem": "go_item",
    "HeldItem": "held_item",
    "MoveToItem": "move_to_item",
    "AuditReplyItem": "audit_reply_item",
    "TakerItem": "taker",
    "EachItem": "each",
    "LoadReport": "map",
    "ActionItem": "action",
    "BlockItem": "block",
    "RowItem": "row",
    "PublicationItem": "published",
    "ParameterItem": "parameter",
    "FeedFileItem": "feed_file",
    "FeedTable": '"rows" or "dead-letters"',
    "FeedRefusal": '"role" or "feed" or "gone" or "fault"',
    "DatasetName": "text",
    "PartSize": "u32",
    "SubscriptionListItem": "list",
    "Bits": "bytes",
    "Resource": "name",
    "Metric": "name",
    "BrokerState": '"OK" or "BUSY" or "N/A" or "STABILIZING"',
}
RECORDS_IN_RECORDS = {(msg.Route, "item")}
"""Fields that are kept as bytes, as a body is, but hold a record."""


def words(annotation: str) -> str:
    """A field's type as the document writes it."""
    if (bounded := re.fullmatch(r"Annotated\[(.*), Meta\(max_length=\w+\)\]", annotation)) is not None:
        return words(bounded[1])
    if annotation.startswith("dict["):
        return "map"
    if annotation.startswith("Literal["):
        return " or ".join(f'"{value}"' for value in re.findall(r"'([^']*)'", annotation))
    if (inner := re.fullmatch(r"(?:list|Listed|Named)\[(.*)\]", annotation)) is not None:
        return "[record ...]" if inner[1] == "Raw" else f"[{words(inner[1])} ...]"
    if (inner := re.fullmatch(r"tuple\[(.*)\]", annotation)) is not None:
        return "[" + ", ".join(words(part) for part in inner[1].split(", ")) + "]"
    parts = annotation.split(" | ")
    return " or ".join(words(part) if part.startswith("tuple[") else TYPES.get(part, part) for part in parts)


def fields(struct: Any, skip: int = 0) -> str:
    annotations, optional = inspect.get_annotations(struct), len(struct.__struct_defaults__)
    names = struct.__struct_fields__
    said = [
        f"{name}: {'record' if (struct, name) in RECORDS_IN_RECORDS else words(annotations[name])}"
        + (" ?" if i >= len(names) - optional else "")
        for i, name in enumerate(names)
    ]
    return ", ".join(said[skip:])


def frame_rows() -> list[str]:
    return [f"| {i} | {name} | {fields(wire._FRAMES[i], 2)} |" for i, name in enumerate(FRAMES)]


def record_rows() -> list[str]:
    found: dict[int, str] = {}
    for _, struct in inspect.getmembers(msg, inspect.isclass):
        if (
            issubclass(struct, msgspec.Struct)
            and struct.__struct_config__.tag is not None
            and struct is not msg.PubOpen
        ):
            number = struct.__struct_config__.tag
            assert isinstance(number, int)
            name = re.sub(r"(?<!^)(?=[A-Z])", "_", struct.__name__).upper()
            found[number] = f"| {number} | {name} | {fields(struct)} | {'; '.join(speakers(struct))} |"
    return [found[number] for number in sorted(found)]


def speakers(struct: Any) -> Iterator[str]:
    alike = {struct, msg.PubOpen} if struct is msg.Pub else {struct}
    for who, said in SPEAKERS.items():
        if alike & set(getattr(said, "__args__", said)):
            yield who


def session_blocks() -> str:
    """The session as the document shows it: sender, message, bytes, and values."""
    blocks = []
    for step, (sender, receiver, says, data) in enumerate(make.SESSION, 1):
        text = data.hex(" ")
        lines = [text[i : i + 96].strip() for i in range(0, len(text), 96)]
        blocks.append(f"{step}. **{sender} to {receiver}.** {says}\n\n" + "".join(f"       {line}\n" for line in lines))
    return "\n".join(blocks)


def rows(columns: int) -> list[str]:
    """The rows of the document's tables that begin with a number."""
    pattern = r"^\| \d+ \|" + r"[^|\n]*\|" * (columns - 1) + "$"
    return re.findall(pattern, DOCUMENT.read_text(), re.MULTILINE)


def test_every_frame_is_described_and_no_other():
    assert rows(3) == frame_rows()


def test_every_record_is_described_and_no_other():
    assert rows(4) == record_rows()


def test_every_record_is_explained_in_prose():
    prose = DOCUMENT.read_text().partition("## 5. Publishing")[2]
    names = [row.split(" | ")[1] for row in record_rows()]
    assert [name for name in names if not re.search(rf"(?<![A-Z_]){name}(?![A-Z_])", prose)] == []


def test_the_bytes_of_the_session_are_those_of_the_vectors():
    assert session_blocks() in DOCUMENT.read_text()


def test_the_limits_are_those_of_the_code():
    text, limits = DOCUMENT.read_text(), BrokerLimits()
    assert limits.max_frame_bytes == limits.window_bytes == limits.queue_bytes == 2**20
    assert limits.max_publication_bytes == 256 * 1024
    assert f"{limits.window_frames:,} frames" in text
    assert re.search(rf"{link.LinkLimits().ack_seconds * 1000:g} ms after a frame", text)
    assert re.search(rf"after {link.ACK_EVERY_FRAMES}\s+frames, after {link.ACK_EVERY_BYTES // 1024} KiB", text)
    assert f"above {CREDIT_HELD_ABOVE_RECORDS:,} waiting records" in text
    assert f"a sender closes a DATA frame at {link.FRAME_BYTES // 1024} KiB" in text
    assert f"| {limits.publisher_window:,}, fewer under a quota; {FIRST_WINDOW} at first |" in text
    assert f"{limits.max_subscriptions_per_subscriber:,}; {limits.max_subscriptions:,}" in text
    assert f"{limits.heartbeat_seconds:g} s; {limits.dead_seconds:g} s; {limits.lease_seconds:g} s" in text


def shut_codes() -> set[str]:
    """Second arguments of all calls of `AttachmentClosed`, `shut` and `evict` in core, where they are written out."""
    found = set(REFUSALS)
    for path in CORE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.Call):
                continue
            called = getattr(node.func, "attr", getattr(node.func, "id", ""))
            if called in ("AttachmentClosed", "close_and_notify", "evict"):
                codes = [node.args[1]] if len(node.args) > 1 else [k.value for k in node.keywords if k.arg == "code"]
                parts = (part for code in codes for part in ast.walk(code))
                found |= {p.value for p in parts if isinstance(p, ast.Constant) and isinstance(p.value, str)}
    return found


def test_every_code_of_shut_is_listed():
    table = DOCUMENT.read_text().partition("| code of ATTACHMENT_CLOSED |")[2].partition("\n\n")[0]
    assert shut_codes() == set(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE))


BALANCING: list[tuple[str, Any]] = [
    ("action", msg.ActionItem), ("profile", msg.ProfileBody), ("block", msg.BlockItem), ("row", msg.RowItem),
    ("taker", msg.TakerItem), ("published", msg.PublicationItem), ("parameter", msg.ParameterItem),
    ("list", msg.SubscriptionListItem),
]  # fmt: skip
COUNTING: list[tuple[str, Any]] = [
    ("audit_request", msg.AuditRequestItem),
    ("expected_item", msg.ExpectedItem),
    ("audit_summary_item", msg.AuditSummaryItem),
    ("audit", msg.AuditItem),
    ("audit_query_item", msg.AuditQueryItem),
    ("audit_reply_item", msg.AuditReplyItem),
]


@pytest.mark.parametrize(
    ("word", "struct"),
    [("member", msg.MemberItem), ("place_item", msg.PlaceItem), ("plan", msg.HandoverPlan), *BALANCING, *COUNTING],
)
def test_what_records_are_made_of_is_described(word: str, struct: Any):
    assert re.search(rf"^\| `{word}` \| `\[{re.escape(fields(struct))}\]` \|$", DOCUMENT.read_text(), re.MULTILINE)


def test_every_record_of_a_client_is_taken_by_a_head_or_by_an_edge():
    requests, taken = one_cluster(edges=1).edge("e1").client_intake.handle, set()
    nowhere: Any = None
    for kind in get_args(msg.FromClient):
        try:
            # Without a link or a value in any field no handler gets far, but it is the handler that fails.
            list(requests(nowhere, kind(*[None] * len(kind.__struct_fields__))))
        except WireError as error:
            if error.code == "misplaced":
                continue  # any other refusal is that of a handler of this kind
        except (AttributeError, TypeError):
            pass  # the handler of this kind has failed: there is one
        taken.add(kind)
    sent_on = {msg.Join, msg.Open}  # an edge answers these by naming its head
    assert taken == set(SPEAKERS["client to edge"]) | sent_on


def test_every_reason_not_to_obey_is_listed():
    source = "".join(
        (CORE / "head" / "handover" / name).read_text() for name in ("admission.py", "commands.py", "coordinator.py")
    )
    reasons = set(re.findall(r"^\s*(?:return )?f?\"([a-z-]+): ", source, re.MULTILINE))
    row = re.search(r"^\| `failed` \|.*$", DOCUMENT.read_text(), re.MULTILINE)
    assert row is not None
    assert reasons == set(re.findall(r"`([a-z-]+):`", row[0]))


def test_the_bounds_of_hand_over_are_those_of_the_code():
    text = DOCUMENT.read_text()
    assert f"with at most {admission.MEMBERS_AT_MOST:,} members" in text
    assert re.search(rf"at most {commands.SUBSCRIBERS_PER_PAGE:,}\s+names", text)
    other = (ROOT / "docs" / "handover.md").read_text()
    counts = (admission.SESSIONS_AT_MOST, admission.MEMBERS_AT_MOST, admission.MEMBERS_IN_ALL)
    found = re.search(
        r"at most ([\d,]+)\s+sessions open, with at\s+most\s+([\d,]+)\s+members\s+each\s+and\s+([\d,]+)", other
    )
    assert found is not None
    assert tuple(int(number.replace(",", "")) for number in found.groups()) == counts
