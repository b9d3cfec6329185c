"""Test vectors of the records between members of consumer groups and their head; `make.py` writes them."""

from __future__ import annotations

from typing import Any

import msgspec

from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol import wire

READINGS = msg.GroupDefinition("[class,=,'READING']", 10, "Modulo", "sensor")
PLACE = msg.SlicePlace(4, 1700000000000007, ("h", 11, 42), [("h", 11, 17)])
CACHED = msg.CachedItem("h", 11, msg.PubOpen(50, "h", 11, 30, "sensor-1", 7, 12, 0, 0, msg.Body({"sensor": 14}, b"")))
COUNTED = msg.SlicePlace(4, 1700000000000007, ("h", 11, 42), [("h", 11, 17)], counted=msg.SliceCount(17))
GROUPS: list[tuple[str, str, Any]] = [
    ("group-join", "worker-1 makes group readings, or joins it, and has slice 4",
     msg.GroupJoin("readings", "worker-1", 7, READINGS, [PLACE])),
    ("group-joined", "it is a member, says a beat every second, and stops after 4 seconds without an answer",
     msg.GroupJoined("readings", READINGS, 1.0, 4.0, "h")),
    ("group-refused", "it is no member; it may ask again in a second",
     msg.GroupRefused("readings", "unknown", "there is no group 'readings' at h", 1.0)),
    ("group-beat", "its beat 3, with its place in slice 4 and its load of 2 seconds",
     msg.GroupBeat("readings", 3, [PLACE], msg.MemberLoad(2.0, 0.5, 0.25, [msg.SliceReport(4, 12.5, 0.01, 3)]))),
    ("group-beat-answer", "the head has had beat 3", msg.GroupBeatAnswer("readings", 3)),
    ("group-beat-answer-over", "the group ends, and why",
     msg.GroupBeatAnswer("readings", 3, "group 'readings' is declared no longer")),
    ("slice-assigned", "slice 4 goes on behind position 42; up to 60 it may have been given to another member",
     msg.SliceAssigned("readings", 4, 1700000000000009, ("h", 11, 42), [("h", 11, 17)], ("h", 11, 60))),
    ("slice-revoked", "slice 4 is to be given up", msg.SliceRevoked("readings", 4, 1700000000000007)),
    ("slice-released", "it is given up behind position 42",
     msg.SliceReleased("readings", msg.SlicePlace(4, 1700000000000007, ("h", 11, 42), [("h", 11, 17)], True))),
    ("slice-released-cut-off", "the member has stopped by itself at position 42, and its application may have had more",
     msg.SliceReleased("readings", msg.SlicePlace(4, 1700000000000007, ("h", 11, 42), [("h", 11, 17)], True, True))),
    ("slice-revoked-caches", "its application is given nothing more of slice 4, which goes on being cached",
     msg.SliceRevoked("readings", 4, 1700000000000007, True)),
    ("slice-caching", "all up to position 60 has come, and is cached from here on",
     msg.SliceCaching("readings", 4, 1700000000000007, ("h", 11, 60), [("h", 11, 35)])),
    ("slice-assigned-caches", "another member is to cache slice 4 from there, under its other name",
     msg.SliceAssigned("readings", 4, 1700000000000009, ("h", 11, 60), [("h", 11, 35)], None, 1, True)),
    ("slice-cache", "a part of the giver's cache: one publication",
     msg.SliceCache("readings", 4, 1700000000000007, [msgspec.Raw(wire.encode(CACHED))])),
    ("slice-released-cached", "all that was cached has gone ahead",
     msg.SliceReleased("readings", PLACE, True)),
    ("slice-cache-last", "all of it has come: the slice is the taker's, behind this place",
     msg.SliceCache("readings", 4, 1700000000000009, [], PLACE)),
    ("group-functions", "what is published here has a stamp of group readings",
     msg.GroupFunctions([msg.GroupFunction("readings", READINGS)])),
    ("group-beat-counted", "its beat 4: of slice 4 its application has finished 17 items up to there",
     msg.GroupBeat("readings", 4, [COUNTED])),
    ("group-leave", "it wants to give up all slices", msg.GroupLeave("readings")),
    ("group-for", "the head of worker-1 takes what it says to that of its group",
     msg.GroupFor(11, 3, 1, "workers", msg.GroupJoin("readings", "worker-1", 7, None))),
    ("group-answer", "which answers", msg.GroupAnswer(11, 3, 1, msg.GroupBeatAnswer("readings", 3))),
    ("group-left", "it has none any more, and is no member", msg.GroupLeft("readings")),
    ("slice-command", "mediator 3 moves slices 4 and 7 from worker-1 to worker-2, and empties worker-1",
     msg.SliceCommand(
         3, 11, "3.1", "move", msg.SliceMovesPlan("readings", "worker-1", "worker-2", [4, 7], 40.0, True))),
    ("slice-outcome", "slice 4 has moved, and its members have counted; of slice 7 worker-1 has yet to let go",
     msg.SliceOutcome("3.1", 3, 11, "moving", [(4, "moved"), (7, "asked")], "", msg.AuditItem(1, 0, 0, 0, 0))),
    ("slice-query", "the consumers and slices of a group, from the first on", msg.SliceQuery(12884901889, "readings")),
    ("slice-page", "one consumer, with slice 4, and slice 7 that it is about to get",
     msg.SlicePage(
         12884901889, 11, "readings", 0, 5, "Rates", True, [msg.ConsumerItem("worker-1", 0.5, 0.25)],
         [msg.HeldSliceItem("worker-1", msg.SliceReport(4, 12.5, 0.01, 3)),
          msg.HeldSliceItem("worker-1", msg.SliceReport(7, 0.0, 0.0, 0), True)],
         False,
     )),
    ("group-trigger", "the policy of a group would move slices",
     msg.GroupTrigger("readings", "worker-1 works 1.80 s a second, the average is 1.20 s")),
]  # fmt: skip
