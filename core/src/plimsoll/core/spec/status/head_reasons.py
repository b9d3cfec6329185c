"""Reasons of the conditions of heads: of the log, and of the standby."""

from __future__ import annotations

from plimsoll.core.spec.status.reasons import ReasonSection, StatusReason

LOGS = ReasonSection(
    "Logs of heads",
    "condition",
    "Reasons of `LogSafe`, of clusters ([durability.md](durability.md)). A change of what a disk does is an event of"
    " the cluster with the same reason.",
    (
        StatusReason(
            "LogInMemory",
            "LogSafe",
            "the head keeps its log in memory only: publications that are accepted and not yet delivered are lost when"
            " it ends or restarts, and gaps report them; with a standby only if both end, or one while it is alone",
            "Set `head.log.disk` or `head.standby` where what is accepted must outlast the head; nothing else is needed"
            " if gaps are acceptable.",
        ),
        StatusReason(
            "LogWritten",
            "LogSafe",
            "the head writes its log, and knows of no damage that this status has not had before it started",
        ),
        StatusReason(
            "LogFull",
            "LogSafe",
            "the disk has no room for the next segment; publications are refused, and what is accepted is delivered",
            "Make room on the disk, or give the claim more; the head tries again each second.",
        ),
        StatusReason(
            "LogSlow",
            "LogSafe",
            "a sync has been going on for more than 2 s; answers and deliveries wait for it",
            "Look at the disk and at what else writes to it.",
        ),
        StatusReason(
            "LogDamaged",
            "LogSafe",
            "a part of the log could not be read, at the start or later, and has become a gap",
            "Read the output of the head, which names file and byte. Replace the disk if it happens again. It is said"
            " until the head starts again after this status has had it and publications have come.",
        ),
        StatusReason(
            "LogFailed",
            "LogSafe",
            "the head has ended, as its log could not be read or written: the disk is read-only or broken, or the"
            " folder cannot be used",
            "Read the last line of the output of the head; it names the folder and the error. The head is started again"
            " and recovers what is safe.",
        ),
    ),
)

LIMITS = ReasonSection(
    "Limits of machines",
    "condition",
    "Reasons of `WithinLimits`, of clusters of which a broker has reached a limit of its machine once.",
    (
        StatusReason(
            "OpenFilesReached",
            "WithinLimits",
            "a broker could not accept a connection within the last 30 s, as it may open no more files; the message"
            " names the brokers. Those that are connected are served, and the broker uses more of its processor",
            "Raise the limit of open files (ulimit -n, LimitNOFILE), or spread clients over more brokers.",
        ),
        StatusReason("LimitsKept", "WithinLimits", "all brokers accept connections again"),
    ),
)

STANDBYS = ReasonSection(
    "Standbys",
    "condition",
    "Reasons of `StandbyFollows`, of clusters whose head has a standby ([durability.md](durability.md#a-standby)).",
    (
        StatusReason(
            "Following", "StandbyFollows", "the standby has all of the head's log, and may lead at any moment"
        ),
        StatusReason(
            "LeadsAlone",
            "StandbyFollows",
            "the head has no standby in sync: it promises what its disk promises, or what a log in memory does",
            "It takes seconds after a start or a promotion. If it lasts, look at the standby's process or pod.",
        ),
        StatusReason(
            "NoLeader",
            "StandbyFollows",
            "neither process of the head has been told to lead yet",
            "Look at its pods, and whether the operator runs, which tells them.",
        ),
    ),
)
