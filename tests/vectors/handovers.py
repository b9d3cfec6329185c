"""The vectors of a hand-over and of its audit, of which `make.py` writes the file."""

from __future__ import annotations

from typing import Any

import msgspec

from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol import wire

STOCK = "[class,=,'STOCK']"
SESSION_ID = "3.17"
HANDOVERS: list[tuple[str, str, Any]] = [
    (
        "prepare",
        "hand-over 3.17: keep places for s and t for 20 seconds; they attach before the cut",
        msg.Prepare(SESSION_ID, ["s", "t"], 20.0, False, ["app", "app"]),
    ),
    (
        "prepare-replay",
        "the same by replay: no subscriber attaches before the cut",
        msg.Prepare(SESSION_ID, ["s", "t"], 20.0, True),
    ),
    (
        "slot",
        "the target has places for s and t, and is reached here",
        msg.Slot(SESSION_ID, ["s", "t"], "tcp://127.0.0.1:7002", ""),
    ),
    (
        "move",
        "the source asks s to attach to e2 as well, if its owner epoch is (7, 2)",
        msg.StartMove(SESSION_ID, [msg.MemberItem("s", (7, 2))], "e2", "tcp://127.0.0.1:7002", ""),
    ),
    (
        "move-to",
        "the same to attachments 5 and 8",
        msg.MoveTo(
            SESSION_ID, [msg.MoveToItem(5, (7, 2)), msg.MoveToItem(8, (7, 2))], "e2", "tcp://127.0.0.1:7002", ""
        ),
    ),
    (
        "attach",
        "s attaches at the target as attachment 6, in the next owner epoch, with its whole list",
        msg.Attach(SESSION_ID, [msg.AttachItem(6, "s", (7, 3), 1, [msg.SubscriptionItem(1, STOCK, {})], msg.Policy())]),
    ),
    (
        "held",
        "the target has version 1 of the lists of attachments 6 and 9; it is no SUBACK",
        msg.Held([msg.HeldItem(6, 1), msg.HeldItem(9, 1)]),
    ),
    ("attached", "s has attached at the target", msg.TargetAttached(SESSION_ID, ["s"])),
    ("install", "announce s, and ask for the cut", msg.Install(SESSION_ID, ["s"])),
    (
        "cut-request",
        "update 5 of the target's cover includes s, which would have owner epoch (7, 3)",
        msg.CutRequest(SESSION_ID, msg.Cover(5, [msg.CoverItem(9, STOCK)], []), [msg.MemberItem("s", (7, 3))]),
    ),
    (
        "installed",
        "after position 50 the stream of the target has all that s needs; its cover began at (11, 50)",
        msg.Installed(SESSION_ID, ["s"], 50, [(11, 50)]),
    ),
    (
        "cut",
        "nothing after this is for s, which has owner epoch (7, 2) here; the target goes on after position 50",
        msg.Cut(SESSION_ID, [msg.MemberItem("s", (7, 2))], ("h", 11, 50), False),
    ),
    (
        "cut-across",
        "the same where the target's head is k: the position is of its log",
        msg.Cut(SESSION_ID, [msg.MemberItem("s", (7, 2))], ("k", 5, 300), True),
    ),
    (
        "marker",
        "sent behind the cover that leads publications for s to the edge of head k",
        msg.Marker(SESSION_ID, ["s"], ("k", 5, 300)),
    ),
    (
        "end",
        "the last on attachments 5 and 8; their streams go on at the target after position 50",
        msg.End(SESSION_ID, ("h", 11, 50), [5, 8]),
    ),
    ("go", "attachments 6 and 9 have received all before the cut", msg.Go(SESSION_ID, [msg.GoItem(6), msg.GoItem(9)])),
    (
        "go-counted",
        "the same; deliveries have been counted from position 40, and origin offset 35, on",
        msg.Go(SESSION_ID, [msg.GoItem(6, ("h", 11, 40), [("h", 11, 35)])]),
    ),
    ("done", "s is served by the target", msg.Done(SESSION_ID, ["s"])),
    (
        "done-checks",
        "the same, at e2; asks what was due to s since then",
        msg.Done(SESSION_ID, ["s"], "e2", [msg.AuditRequestItem("s", (7, 3), ("h", 11, 40), [("h", 11, 35)], [STOCK])]),
    ),
    (
        "due-list",
        "four publications up to offset 44 were due to s; head h asks how many were delivered",
        msg.ExpectedDeliveries(SESSION_ID, "h", [msg.ExpectedItem("s", (7, 3), [("h", 11, 44, 4)])]),
    ),
    ("count", "the same to attachment 6", msg.AuditQuery(SESSION_ID, [msg.AuditQueryItem(6, [("h", 11, 44, 4)])])),
    (
        "counted",
        "one of them was not given to the application; nothing twice or late, and two were held back",
        msg.AuditReply(SESSION_ID, [msg.AuditReplyItem(6, 1, 0, 0, 2)]),
    ),
    ("counts", "the same to head h", msg.AuditSummary(SESSION_ID, "h", [msg.AuditSummaryItem("s", 1, 0, 0, 2)])),
    ("stay", "attachment 5: the hand-over is cancelled", msg.Stay(5, SESSION_ID)),
    ("abort", "the hand-over is cancelled for s", msg.Abort(SESSION_ID, [msg.MemberItem("s", (7, 2))])),
    (
        "abort-asks",
        "the same to the source, which is asked whether it serves s",
        msg.Abort(SESSION_ID, [msg.MemberItem("s", (7, 2))], ask=True),
    ),
    ("nak-served", "the source serves s", msg.HandoverRejected(SESSION_ID, ["s"], "served: is served as before")),
    ("nak", "the target has no place for t", msg.HandoverRejected(SESSION_ID, ["t"], "full")),
    (
        "part",
        "the hand-over of s has not ended in time: close its attachments",
        msg.ForceDetach(SESSION_ID, [msg.MemberItem("s", (7, 2))]),
    ),
    (
        "route-edge",
        "a PREPARE from head h on its way to edge e3 of head k",
        msg.Route("k", "h", "e3", msgspec.Raw(wire.encode(msg.Prepare(SESSION_ID, ["s"], 20.0, False)))),
    ),
    (
        "route-head",
        "a MARKER from head k on its way to head h",
        msg.Route("h", "k", "", msgspec.Raw(wire.encode(msg.Marker(SESSION_ID, ["s"], ("k", 5, 300))))),
    ),
]
