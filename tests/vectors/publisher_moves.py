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
    ("list-publishers", "the publishers after p", msg.ListPublishers(9, "p")),
    ("publisher-list-page", "publisher q has published 12 times, 3400 bytes",
     msg.PublisherListPage(9, 11, [msg.PublisherItem("q", 12, 3400)], False)),
]  # fmt: skip
