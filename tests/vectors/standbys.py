"""The vectors of a head and its standby, of which `make.py` writes the file."""

from __future__ import annotations

from typing import Any

from plimsoll.core.protocol import messages as msg

STANDBYS: list[tuple[str, str, Any]] = [
    ("follow-log-new", "a standby that has nothing", msg.FollowLog(0, 0, 0, 0)),
    ("follow-log-again", "it has 4096 bytes of the segment that begins at 17", msg.FollowLog(3, 11, 17, 4096)),
    ("log-begins", "all of the log of the head of term 3 follows", msg.LogBegins(3, 11)),
    ("log-part", "the next bytes of a segment", msg.LogPart(17, 4096, b"PLB1")),
    ("log-trimmed", "what is before that segment is gone", msg.LogTrimmed(17)),
    ("standby-in-sync", "for the second time in term 3", msg.StandbyInSync(3, 11, 2)),
    ("log-stored", "the standby has it up to there", msg.LogStored(17, 4100)),
    ("go-on-alone", "the standby of that time is not waited for", msg.GoOnAlone(3, 2)),
    ("promote", "the standby leads in term 4", msg.Promote(4)),
    ("lead", "this incarnation leads in term 5", msg.Lead(5, 81)),
    ("follow", "and that one follows it", msg.Follow(82)),
    ("replaced", "another process leads in term 5", msg.Replaced(5)),
    ("leadership-query", "which of the two are you?", msg.LeadershipQuery(7)),
    (
        "leadership-reply",
        "one that has just started, and waits to be told",
        msg.LeadershipReply(7, {"role": "waiting", "incarnation": 82}),
    ),
]
