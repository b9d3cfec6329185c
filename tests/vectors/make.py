"""Make the test vectors of protocol version 1: `python tests/vectors/make.py` writes the JSON files beside it.

Each vector has a name, what it means, its bytes in hex and the same as plain values. A client in another language is
right when it reads the hex as these values, and writes these values so that they are read back the same: the msgpack
encoding of a value is not unique, so its own bytes may differ from these.
`session.json` is a whole conversation of one client with a head and an edge, frame by frame. `dialogues.json` has the
dialogues of a move, record by record, with the state of the client.
"""

from __future__ import annotations

import json
import runpy
from pathlib import Path
from typing import Any

import msgspec

from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol import wire

HERE = Path(__file__).parent
OF_GROUPS = runpy.run_path(str(HERE / "groups.py"))  # not imported: no package
CLIENT = wire.Info("app-1", "client", 7)
HEAD = wire.Info("h", "head", 11)
EDGE = wire.Info("e1", "edge", 12)
TO_HEAD, TO_EDGE = 0x01020304, 0x0A0B0C0D
BODY = wire.encode(
    msg.Body({"class": "STOCK", "symbol": "IBM", "high": 25.5, "volume": 1200, "open": True}, b"\x00\x01")
)
SHORT = wire.encode(msg.Body({"class": "STOCK"}))
STAMPED = wire.encode(msg.Body({"class": "STOCK", "n": 12, "slice.readings": 2}))
STAMPED_TWICE = wire.encode(msg.Body({"slice.mine": 3, "class": "STOCK", "slice.readings": 2, "slice.others": 0}))
STOCK = "[class,=,'STOCK']"
SESSION_ID = "3.17"

PUB = msg.Pub(42, "h", 11, 17, "p", 7, 3, 1, 1700000000000000, msgspec.Raw(BODY))
PUB_STAMPED = msg.Pub(43, "h", 11, 18, "p", 7, 4, 2 << 16 | 1, 1700000000000000, msgspec.Raw(STAMPED_TWICE))
PUB_OPEN = msgspec.msgpack.decode(wire.encode(PUB), type=msg.PubOpen)
GAP = msg.Gap("h", 11, 10, 11, 20, [("h", 11, 9), ("k", 5, 300)], "log")
COVER = msg.Cover(4, [msg.CoverItem(9, STOCK)], [7])

PROFILE = wire.encode(
    msg.ProfileBody([msg.BlockItem(8, 2.5, 120.0)], b"\x0f", 60.0, [msg.RowItem(STOCK, b"\x03", 1, ["s", "t"])])
)

FIRST_NAMES: dict[type[Any], str] = {
    msg.MediatorEpoch: "Mediator",
    msg.AttachmentClosed: "Shut",
    msg.HandoverRejected: "Nak",
    msg.ForceDetach: "Part",
    msg.Reservation: "State",
    msg.ReservationReply: "Stated",
    msg.PeerClusterLoads: "Joined",
    msg.PeerLoads: "Pie",
    msg.CoverReply: "CoverTold",
    msg.ListSubscribers: "Serving",
    msg.SubscriberPage: "Served",
    msg.LoadUpdate: "Load",
    msg.ClusterMembers: "Members",
    msg.AuditQuery: "Count",
    msg.AuditReply: "Counted",
    msg.AuditSummary: "Counts",
    msg.ExpectedDeliveries: "DueList",
    msg.StartMove: "Move",
    msg.TargetAttached: "Attached",
    msg.EdgeReport: "Report",
}
"""Records that are called otherwise by now. The files keep the words that they were published with."""

LISTINGS: list[tuple[str, str, Any]] = runpy.run_path(str(HERE / "listings.py"))["LISTINGS"]
STANDBYS: list[tuple[str, str, Any]] = runpy.run_path(str(HERE / "standbys.py"))["STANDBYS"]
HANDOVERS: list[tuple[str, str, Any]] = runpy.run_path(str(HERE / "handovers.py"))["HANDOVERS"]
PUBLISHER_MOVES: list[tuple[str, str, Any]] = runpy.run_path(str(HERE / "publisher_moves.py"))["PUBLISHER_MOVES"]

RECORDS: list[tuple[str, str, Any]] = [
    (
        "publish",
        "publication 3 of handle 1; every edge that needs it must have it before the answer",
        msg.Publish(1, 3, 1, 1700000000000000, msgspec.Raw(BODY)),
    ),
    (
        "publish-stamped",
        "publication 4 of handle 1, whose client has added one stamp behind what its publisher has written",
        msg.Publish(1, 4, 1 << 16, 1700000000000000, msgspec.Raw(STAMPED)),
    ),
    (
        "pub-stamped",
        "a publication with stamps of two groups, and an attribute that its publisher has named so",
        PUB_STAMPED,
    ),
    ("pub", "a publication at position 42 of the head's log; its origin is offset 17 of head h, epoch 11", PUB),
    ("deliver-pub", "that publication for attachment 5", msg.Deliver(5, PUB_OPEN)),
    ("deliver-gap", "attachment 5 has lost positions 10 to 20", msg.Deliver(5, GAP)),
    ("gap", "positions 10 to 20 are lost, with them offsets up to 9 of h and up to 300 of k", GAP),
    (
        "gap-restart",
        "all after position 30 of epoch 11, and up to position 4 of epoch 12, is in doubt",
        msg.Gap("h", 11, 31, 12, 4, [], "restart"),
    ),
    ("progress", "position 42 is reached by all attachments but 5 and 6", msg.Progress(42, [5, 6])),
    ("open", "open publisher p, in its incarnation 7, as handle 1", msg.Open(1, "p", 7)),
    (
        "opened",
        "handle 1 is open at head h, epoch 11; 0 was the last number, 1024 is the highest that may be used",
        msg.Opened(1, "h", 11, 0, 1024),
    ),
    ("accepted", "all up to 3 are accepted, except those refused singly", msg.Accepted(1, 3)),
    ("refused", "publication 4 is refused", msg.Refused(1, 4, "oversized", "a publication of 300000 bytes")),
    ("credit", "numbers up to 2048 may be used", msg.Credit(1, 2048)),
    ("unconfirmed", "publication 3 is accepted, but edge e2 has not confirmed it", msg.Unconfirmed(1, 3, ["e2"])),
    ("close", "handle 1 is no longer used", msg.Close(1)),
    *PUBLISHER_MOVES,
    *OF_GROUPS["GROUPS"],
    ("join", "subscriber s asks for an edge other than e2", msg.Join("s", ["e2"], "")),
    ("join-location", "s says where it is", msg.Join("s", location=(33.5, -117.75))),
    ("join-elsewhere", "s asks for an edge of head k, whose stream it was consuming", msg.Join("s", [], "", "k")),
    ("placed", "s goes to edge e1", msg.Placed("s", "e1", "tcp://127.0.0.1:7001", "")),
    ("see-head", "an edge that was asked for an edge names its head", msg.SeeHead("h", "tcp://127.0.0.1:7000", "")),
    ("unplaced", "there is no edge for s; it asks again after half a second", msg.Unplaced("s", "no edge", 0.5)),
    (
        "resume",
        "s attaches as attachment 5, with one subscription, from position 41 on",
        msg.Resume(
            5,
            "s",
            (7, 2),
            1,
            [msg.SubscriptionItem(1, STOCK, {"priority": 2})],
            msg.Policy("drop-oldest", 65536, 0.0),
            ("h", 11, 41),
            [("h", 11, 16)],
        ),
    ),
    (
        "resume-since",
        "a new one that wants what has come since a time, and to stay away for a day",
        msg.Resume(5, "s", (7, 2), 1, [], msg.Policy(), None, [], None, 86_400.0, 1_700_000_000.5),
    ),
    ("resumed", "attachment 5 goes on after position 41", msg.Resumed(5, "h", 11, 41, None, False)),
    ("resumed-lease", "and may stay away for a day", msg.Resumed(5, "h", 11, 41, None, False, 86_400.0)),
    (
        "resumed-gap",
        "attachment 5 goes on after position 20, and has lost the positions of the gap",
        msg.Resumed(5, "h", 11, 20, GAP, True),
    ),
    ("suback", "version 1 of the list of attachment 5 is known everywhere but behind head k", msg.Suback(5, 1, ["k"])),
    (
        "subs",
        "version 2 of the list of attachment 5: one subscription is added, number 1 is removed",
        msg.Subs(5, 2, [msg.SubscriptionItem(2, "[high,>,25.0]")], [1]),
    ),
    (
        "subs-latency",
        "version 3: a subscription whose messages are wanted within a quarter of a second",
        msg.Subs(5, 3, [msg.SubscriptionItem(3, STOCK, {"latency_seconds": 0.25})], []),
    ),
    ("detach", "attachments 5 and 8 leave for good", msg.Detach([5, 8], True)),
    (
        "moved-to",
        "attachments 5 and 8 are closed; their subscribers resume at e2, naming hand-over 3.17",
        msg.Moved([5, 8], "e2", "tcp://127.0.0.1:7002", "", SESSION_ID),
    ),
    (
        "resume-moved",
        "s resumes at the target of 3.17, in the next owner epoch but one",
        msg.Resume(
            6, "s", (7, 4), 1, [msg.SubscriptionItem(1, STOCK, {})], msg.Policy(), ("h", 11, 41), [], SESSION_ID
        ),
    ),
    ("shut", "attachment 5 is closed", msg.AttachmentClosed(5, "released", "another edge serves this subscriber now")),
    ("moved", "attachment 5 is closed; the subscriber asks the head for another edge", msg.Moved([5], "", "", "")),
    ("pause", "nothing for attachment 5 until CONTINUE", msg.Pause(5)),
    ("continue", "attachment 5 takes again", msg.Continue(5)),
    (
        "sub-refused",
        "subscription 2 of version 2 cannot be taken",
        msg.SubRefused(5, 2, 2, "column 4: expected an operator"),
    ),
    ("epoch", "attachment 5: the head has restarted", msg.Epoch(5, msg.Gap("h", 11, 31, 12, 4, [], "restart"))),
    ("cover", "update 4 of a link's cover: subscription 9 comes, 7 goes, in one step", COVER),
    ("cover-ack", "updates up to 4 are known everywhere", msg.CoverAck(4, [])),
    (
        "resume-up",
        "an edge hands on a RESUME with its update",
        msg.ResumeUp("s", (7, 2), COVER, ("h", 11, 41), None, "app"),
    ),
    ("resumed-down", "the answer: where to begin", msg.ResumedDown("s", (7, 2), 50, 41, (11, 3), None, False)),
    ("release", "an edge that serves s in an epoch before (7, 4) releases it", msg.Release("s", (7, 4))),
    (
        "release-refused",
        "the RESUME of s in epoch (7, 2) is refused",
        msg.Release("s", (7, 2), "role", "not permitted: subscriber 's' belongs to another identity"),
    ),
    ("fetch", "cursor 2 reads the log after position 41", msg.Fetch(2, 41, [STOCK])),
    ("replay", "an entry of the log for cursor 2", msg.Replay(2, PUB_OPEN)),
    ("fetched", "cursor 2 has read up to 50, and the stream goes on from there", msg.Fetched(2, 50, True)),
    ("expire", "the lease of s has ended", msg.Expire("s", (7, 2))),
    (
        "report",
        "an edge reports its address and its subscribers",
        msg.EdgeReport(
            "tcp://127.0.0.1:7001",
            "",
            msg.Cover(1, [msg.CoverItem(9, STOCK)], []),
            [msg.OwnedItem("s", (7, 2), (11, 3), "app")],
        ),
    ),
    (
        "report-mediator",
        "an edge that knows mediator epoch 3",
        msg.EdgeReport("tcp://127.0.0.1:7001", "", msg.Cover(1, [], []), [], False, 3),
    ),
    (
        "report-bundles",
        "an edge that knows two bundles, and a release of the second",
        msg.EdgeReport(
            "tcp://127.0.0.1:7001",
            "",
            msg.Cover(1, [], []),
            [],
            False,
            3,
            [0, 0x80000000, 0xFFFFFFFF],
            3,
            1,
            released=[msg.ReleasedBundle(0x80000000, 7)],
        ),
    ),
    ("welcome", "the head's log ends at position 50", msg.Welcome(50)),
    ("welcome-address", "and clients reach the head here", msg.Welcome(50, None, "tcp://127.0.0.1:7000")),
    ("neighbor-report", "a head's whole cover of a neighbour's link", msg.NeighborReport(msg.Cover(1, [], []))),
    (
        "neighbor-report-mediator",
        "with the highest mediator epoch that it knows",
        msg.NeighborReport(msg.Cover(1, [], []), 3),
    ),
    ("confirmed", "all edges behind the sender have positions 42 and 43, but for e2", msg.Confirmed([42, 43], ["e2"])),
    ("forget", "s has gone for good", msg.Forget("s", (7, 2))),
    ("leaving", "the edge takes no more subscribers", msg.Leaving()),
    (
        "keep-place",
        "the head keeps a place for s for a day, with its list",
        msg.KeepPlace("s", (7, 2), 86_400.0, ["[class,=,'STOCK']"], "app", 10, 1_000_000),
    ),
    (
        "keep-place-again",
        "one that a hand-over was bringing here; it has gone away, and had been sent the log up to 41",
        msg.KeepPlace("s", (7, 3), 86_400.0, ["[class,=,'STOCK']"], "app", 0, 0, left=41, is_guest=True),
    ),
    ("place-taken", "this edge would report s from now on", msg.PlaceTaken("s", (7, 2))),
    ("place-left", "s has gone away; it had been sent the log up to 41", msg.PlaceLeft("s", (7, 2), 41)),
    ("place-query", "has another head a place of s?", msg.PlaceQuery([msg.PlaceItem("s", (7, 3), "app", True)])),
    ("place-reply", "s is served here", msg.PlaceReply([msg.PlaceItem("s", (7, 2), "app")])),
    ("identify", "a mediator identifies itself on a control socket", msg.Identify("local", "mediator", 3)),
    (
        "load",
        "a load report; a real one has more fields",
        msg.LoadUpdate({"broker": "e1", "state": "OK", "subscribers": 12}),
    ),
    ("status-query", "a query for the status; the answer carries the number 9", msg.StatusQuery(9)),
    ("status-reply", "the answer", msg.StatusReply(9, {"name": "e1", "ready": True})),
    ("leave", "send your subscribers elsewhere, then exit", msg.Leave()),
    ("policy", "the balancing policy of the cluster, for its head and its edges", msg.ClusterPolicy('{"type": "Bad"}')),
    ("no-policy", "the cluster has none", msg.ClusterPolicy()),
    (
        "groups",
        "cluster east has a consumer group",
        msg.ClusterGroups([msg.DeclaredGroupItem("east", "readings", OF_GROUPS["READINGS"])]),
    ),
    ("bundles", "two bundles of equal ranges", msg.BundleTable(3, 1, [0, 0x80000000, 0xFFFFFFFF])),
    (
        "topic-assigned",
        "topics are owned singly: one has another edge",
        msg.BundleTable(3, 0, [], [msg.AssignedBundle(0x4F2B7A11, "e2")]),
    ),
    (
        "publisher-paths",
        "publishers of k are 20 ms away from it, of one topic only 5 ms; k is 30 ms away; one topic has 12.5 a second",
        msg.PublisherPaths(
            "topic", [msg.OriginPath("k", 0.02, 0.03, 0.002, [(0x4F2B7A11, 0.005)])], True, [(0x4F2B7A11, 12.5)]
        ),
    ),
    (
        "name-claims",
        "p is ann's since a time in 2026, and was last used 1.5 seconds ago",
        msg.NameClaims([msg.NameClaim("p", "ann", 1_790_000_000_000, 1500)]),
    ),
    (
        "name-claims-of-subscribers",
        "the subscriber t is ann's no more, and s is bob's",
        msg.NameClaims(
            [],
            [
                msg.NameClaim("t", "ann", 1_790_000_000_000, is_over=True),
                msg.NameClaim("s", "bob", 1_790_000_000_500, 20),
            ],
        ),
    ),
    *STANDBYS,
    (
        "bundles-changed",
        "the second one belongs to e2 now, and the first one to none: its units look it up again",
        msg.BundleTable(
            3, 1, [0, 0x80000000, 0xFFFFFFFF], [msg.AssignedBundle(0x80000000, "e2")], [msg.ReleasedBundle(0, 17)]
        ),
    ),
    ("members", "the head's edges are e1 and e2; e2 takes no newcomers", msg.ClusterMembers(["e1", "e2"], ["e2"])),
    (
        "members-cordoned",
        "the head takes no new publishers while its epoch is at most 5: they go to k",
        msg.ClusterMembers(["e1"], [], 5, [msg.HeadAddress("k", "tcp://k:7000", "")]),
    ),
    *HANDOVERS,
    ("orphan", "the head that decided 3.17 has forgotten it", msg.Orphan(SESSION_ID, ["s"])),
    ("mediator", "mediator epoch 3 is known", msg.MediatorEpoch(3)),
    ("join-for", "a JOIN that is for an edge of another head", msg.JoinFor(msg.Join("s", ["e2"], "e3", "k"))),
    ("placed-for", "and the answer", msg.PlacedFor("s", "e3", "tcp://127.0.0.1:7003", "")),
    ("placed-for-none", "there is no place for s", msg.PlacedFor("s", "", "", "")),
    (
        "revoke",
        "by replay: close the attachment of s with owner epoch (7, 2), and send s to e2",
        msg.Revoke(SESSION_ID, 11, [msg.MemberItem("s", (7, 2))], "e2", "tcp://127.0.0.1:7002", ""),
    ),
    (
        "command-prepare",
        "mediator 3 begins hand-over 3.17 at the head of epoch 11: s and t from e1 to e2",
        msg.Command(3, 11, SESSION_ID, "prepare", msg.HandoverPlan("e1", "e2", "h", ["s", "t"], False, 20.0, 60.0)),
    ),
    ("command-cut", "and cuts", msg.Command(3, 11, SESSION_ID, "cut")),
    (
        "outcome",
        "s has moved, t has stayed",
        msg.Outcome(SESSION_ID, 3, 11, "done", [("s", "moved"), ("t", "stayed")], ""),
    ),
    (
        "outcome-audit",
        "and s has counted: one delivery is missing, two have been held back",
        msg.Outcome(SESSION_ID, 3, 11, "done", [("s", "moved"), ("t", "stayed")], "", msg.AuditItem(1, 1, 0, 0, 2)),
    ),
    (
        "outcome-failed",
        "a command of a mediator that is no longer obeyed",
        msg.Outcome(SESSION_ID, 4, 11, "failed", [], "mediator-epoch"),
    ),
    ("serving", "a query for the subscribers of e1, after s by name", msg.ListSubscribers(10, "e1", "s")),
    ("served", "t and u, and more behind them", msg.SubscriberPage(10, "e1", 11, ["t", "u"], True)),
    (
        "pie",
        "the last load report of e2, for e1; a real one has more fields",
        msg.PeerLoads([{"broker": "e2", "state": "OK", "input_utilization": 0.25}]),
    ),
    (
        "state-ask",
        "mediator 3 asks e2 for session balance-e1: if it is OK, it is BUSY for 5 seconds",
        msg.Reservation(3, 8, "e2", "balance-e1", "ASK", 5.0),
    ),
    (
        "state-ok",
        "the session is over, and no move would balance the input of e1 with e2",
        msg.Reservation(3, 9, "e1", "balance-e1", "OK", 0.0, [msg.ActionItem("e2", "input", 0.5)]),
    ),
    (
        "stated",
        "it was OK, and is BUSY now; here is its load",
        msg.ReservationReply(
            3, 8, "e2", 12, "balance-e1", "OK", {"broker": "e2", "state": "OK", "input_utilization": 0.25}
        ),
    ),
    (
        "trigger",
        "e1 wants to be balanced: its input with e2, or else its matching delay with e3",
        msg.Trigger(
            "e1",
            12,
            40,
            [msg.ActionItem("e2", "input", 0.5, ["input"]), msg.ActionItem("e3", "match", 0.2)],
            "input utilization 0.97 is above 0.95",
        ),
    ),
    (
        "profile-query",
        "a query for what the subscribers of e1 take, and what of that e2 takes in already",
        msg.ProfileQuery(11, "e1", "e2"),
    ),
    (
        "profile-query-edge",
        "the head passes it on, with the covering set of e2 in one part",
        msg.ProfileQuery(11, "e1", "e2", 0, 1, [STOCK]),
    ),
    (
        "profile-query-several",
        "the same for e2 and e3 at once: this part has the covering set of e3",
        msg.ProfileQuery(12, "e1", "e3", 1, 2, [STOCK], ["e2", "e3"]),
    ),
    (
        "profile-query-across",
        "a mediator that has asked another head for the covering set sends it itself",
        msg.ProfileQuery(13, "e1", "w1", 0, 1, [STOCK]),
    ),
    (
        "profile-query-each",
        "a query that wants to know of each subscription as well",
        msg.ProfileQuery(15, "e1", "e2", each=True),
    ),
    ("cover-query", "a query for the covering set of e2", msg.CoverQuery(14, "e2")),
    ("cover-told", "the covering set of e2, in one part", msg.CoverReply(14, "e2", 0, 1, [STOCK])),
    ("profile-reply", "the only piece of the answer", msg.ProfileReply(11, "e1", 12, 0, 1, PROFILE)),
    (
        "joined",
        "a mediator shows a head an edge of another cluster",
        msg.PeerClusterLoads(3, "west", 5.0, [{"broker": "w1", "seq": 9}]),
    ),
    *LISTINGS,
]

FRAMES: list[tuple[str, str, bytes]] = [
    ("hello-new", "a client opens a link", wire.hello_frame(TO_HEAD, 0, False, CLIENT)),
    ("hello-again", "after a reconnect: five frames had arrived", wire.hello_frame(TO_HEAD, 5, True, CLIENT)),
    ("hello-ok", "the head has the link", wire.hello_ok_frame(TO_HEAD, 0, False, HEAD)),
    ("hello-ok-lost", "the head no longer knows the link", wire.hello_ok_frame(TO_HEAD, 0, True, HEAD)),
    ("data", "frame 2 with two records; acknowledges 4, gives credit up to 1028",
     wire.data_frame(TO_HEAD, 0, 2, 4, 1028, [wire.encode(msg.Open(1, "p", 7)), wire.encode(msg.Close(1))], 2)),
    ("data-ack-now", "an empty frame 3 that asks to be acknowledged at once",
     wire.data_frame(TO_HEAD, wire.FLAG_ACK_NOW, 3, 4, 1028, [], 0)),
    ("ack", "frames up to 4 have arrived, and frames up to 1028 may be sent", wire.ack_frame(TO_HEAD, 4, 1028)),
    ("who", "the sender is not known: it must send HELLO", wire.who_frame()),
    ("ping", "a heartbeat at 12.5 s of the sender's clock", wire.ping_frame(TO_HEAD, 12_500_000)),
    ("pong", "its answer, with the same time", wire.pong_frame(TO_HEAD, 12_500_000)),
    ("bye", "the link is over", wire.bye_frame(TO_HEAD, "closed by the application")),
    ("refuse", "the peer is refused", wire.refuse_frame(TO_HEAD, "refused", "x is not an edge of h")),
    ("control", "a control frame with one record", wire.control_frame(msg.StatusQuery(9))),
]  # fmt: skip

BAD: list[tuple[str, str, str]] = [
    ("empty", "malformed", ""),
    ("not-an-array", "malformed", "81a16101"),
    ("array-32", "malformed", "dd0000000201d904"),
    ("version-2", "version", "920204"),
    ("unknown-kind", "malformed", "920163"),
    ("too-short", "malformed", "930100ce01020304"),
    ("link-too-large", "malformed", "950101cf00000001000000000000"),
    ("negative-ack", "malformed", "950101ce01020304ff00"),
    ("a-string-for-a-number", "malformed", "950101ce01020304a16100"),
    ("bytes-behind-the-end", "malformed", "92010400"),
    ("invalid-utf-8", "malformed", "940107ce01020304a2c328"),
    ("a-record-cut-short", "malformed", "980100ce0102030400010000dd0000000194"),
]


SESSION: list[tuple[str, str, str, bytes]] = runpy.run_path(str(HERE / "session.py"))["session"](
    (TO_HEAD, TO_EDGE), (CLIENT, HEAD, EDGE), SHORT
)  # fmt: skip


def plain(encoded: bytes) -> Any:
    """The values in msgpack bytes as JSON has them; bytes become {"hex": ...}."""
    return _json(msgspec.msgpack.decode(encoded))


def _json(value: Any) -> Any:
    if isinstance(value, bytes):
        return {"hex": value.hex()}
    if isinstance(value, list):
        return [_json(one) for one in value]
    return {key: _json(one) for key, one in value.items()} if isinstance(value, dict) else value


def frame_vectors() -> list[dict[str, Any]]:
    return [{"name": n, "means": m, "hex": data.hex(), "value": plain(data)} for n, m, data in FRAMES]


def record_vectors() -> list[dict[str, Any]]:
    return [
        {"name": n, "means": m, "record": FIRST_NAMES.get(type(record), type(record).__name__),
         "hex": wire.encode(record).hex(),
         "value": plain(wire.encode(record))}
        for n, m, record in RECORDS
    ]  # fmt: skip


def session_vectors() -> list[dict[str, Any]]:
    return [
        {"step": i, "from": a, "to": b, "says": says, "hex": data.hex(), "value": plain(data)}
        for i, (a, b, says, data) in enumerate(SESSION, 1)
    ]


def bad_vectors() -> list[dict[str, str]]:
    return [{"name": name, "code": code, "hex": text} for name, code, text in BAD]


FILES: dict[str, Any] = {
    "frames.json": frame_vectors,
    "records.json": record_vectors,
    "session.json": session_vectors,
    "bad_frames.json": bad_vectors,
    "dialogues.json": runpy.run_path(str(HERE / "dialogues.py"))["dialogue_vectors"],  # not imported: no package
}


def text(name: str) -> str:
    """The text of one of the files."""
    return json.dumps(FILES[name](), indent=1, ensure_ascii=True) + "\n"


if __name__ == "__main__":
    for file in FILES:
        (HERE / file).write_text(text(file))
