"""The vectors of publishers that move between heads, of which `make.py` writes the file."""

from __future__ import annotations

from typing import Any

from plimsoll.core.protocol import messages as msg

PUBLISHER_MOVES: list[tuple[str, str, Any]] = [
    ("publisher-move", "the publisher of handle 1 is to move to head k, by move 3.18",
     msg.PublisherMove(1, "3.18", "k", "tcp://127.0.0.1:7010", "")),
    ("open-standby", "publisher p waits at head k, as handle 2, for the decision of head h",
     msg.OpenStandby(2, "p", 7, "3.18", "h")),
    ("publisher-standby", "handle 2 is on standby", msg.PublisherStandby(2)),
    ("publisher-go", "all that handle 1 has sent is answered, and it sends no more", msg.PublisherGo(1, "3.18")),
    ("publisher-stay", "the move is off", msg.PublisherStay(1, "3.18")),
    ("publisher-elsewhere", "h takes no new publishers; k does",
     msg.PublisherElsewhere(1, "k", "tcp://k:7000", "")),
    ("publisher-left", "handle 1 is closed at head h, which has taken all up to 41", msg.PublisherLeft(1, "3.18", 41)),
    ("open-returning", "p asks the head that it has left to take it again", msg.OpenReturning(3, "p", 7, "3.18")),
    ("publisher-marker", "the next of p at head k is number 42", msg.PublisherMarker("3.18", "p", 7, 41, "app")),
    ("publisher-arrived", "publisher p is open at head k", msg.PublisherArrived("3.18", "p")),
    ("publisher-command", "move publishers p and q to head k within 10 seconds",
     msg.PublisherCommand(3, 11, "3.18", "move", msg.PublisherPlan("k", "tcp://127.0.0.1:7010", "", ["p", "q"], 10.0))),
    ("publisher-outcome", "p has moved, q stays",
     msg.PublisherOutcome("3.18", 3, 11, "done", [("p", "moved"), ("q", "stayed: its link was lost")])),
    ("publisher-outcome-audited", "p has moved; two of three subscribers asked have counted, and lost nothing",
     msg.PublisherOutcome("3.18", 3, 11, "done", [("p", "moved")], "", msg.AuditItem(2, 0, 0, 0, 0, 3, 5, 20))),
    ("publisher-audit-start", "who takes such a publication of p, above number 41, is to count; p moves from h to k",
     msg.PublisherAuditStart("3.18", "h", "k", [msg.AuditedPublisher("p", 7, 41)], [{"class": "STOCK", "high": 25.0}])),
    ("count-publishers", "attachment 6 is to count what comes of p, above number 41",
     msg.CountPublishers("3.18", [6], ["h", "k"], [msg.AuditedPublisher("p", 7, 41)])),
    ("counts-from", "attachment 6 counts, from the log position 40 and offset 12 of h on",
     msg.CountsFrom("3.18", [msg.GoItem(6, ("g", 5, 40), [("h", 11, 12)])])),
    ("publisher-audit-request", "edge g1 has asked one subscriber, s, who counts",
     msg.PublisherAuditRequest("3.18", "h", "g", "g1", 1, [
         msg.AuditRequestItem("s", (7, 3), ("g", 5, 40), [("h", 11, 12)], ["[class,=,'STOCK']"])])),
    ("publisher-audit-request-passed-on", "four publications were due to s of h; k is to say what was due there",
     msg.PublisherAuditRequest("3.18", "h", "g", "g1", 0, [
         msg.AuditRequestItem("s", (7, 3), ("g", 5, 40), [("h", 11, 12)], ["[class,=,'STOCK']"])],
         [[("h", 11, 44, 4)]], [msg.AuditedPublisher("p", 7, 41)])),
    ("audit-summary-of-publishers", "s had 4 publications of h and 9 of another head, and lost none",
     msg.AuditSummary("3.18", "h", [msg.AuditSummaryItem("s", 0, 0, 0, 0, 4, 9)])),
    ("list-publishers", "the publishers after p", msg.ListPublishers(9, "p")),
    ("publisher-list-page", "publisher q has published 12 times, 3400 bytes",
     msg.PublisherListPage(9, 11, [msg.PublisherItem("q", 12, 3400)], False)),
]  # fmt: skip
