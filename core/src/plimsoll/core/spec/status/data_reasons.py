"""Reasons of what records and queries the data of a fleet: feeds and channels."""

from __future__ import annotations

from plimsoll.core.spec.status.reasons import ReasonSection, StatusReason

DATA = ReasonSection(
    "Feeds and channels",
    "condition",
    "Reasons of `Recording` of a feed and of `Running` of a channel. Those marked as a Warning are events as well.",
    (
        StatusReason("RecorderAttached", "Recording", "the recorder of the feed is attached and commits"),
        StatusReason(
            "RecorderStarting",
            "Recording",
            "the recorder of the feed has been started, or is about to be, and is not attached yet",
            "Wait; if it lasts for more than a minute, read the recorder's log.",
        ),
        StatusReason(
            "RecorderExited",
            "Recording, Warning",
            "the recorder of the feed has ended; it is started again and goes on behind its last commit",
            "Do what the message and its log say: free space, make the folder writable, or choose another path.",
        ),
        StatusReason(
            "NoDatasetVolume",
            "Recording, Running",
            "on Kubernetes: the fleet names no volume for what feeds and channels record, and no object store either;"
            " or channels are to have executors, which need the volume in any case",
            "Make a PersistentVolumeClaim, and name it in `datasets.volumeClaim` of the BrokerFleet; or name a store in"
            " `path` of the Feed and in `datasets.ledgers`, with the launcher `Process` in `datasets.spark`.",
        ),
        StatusReason("ChannelRunning", "Running", "the channel's batches are computed and their results published"),
        StatusReason(
            "ChannelStarting",
            "Running",
            "the driver of channels has been started, or is about to be, and has not started this channel yet",
            "Wait; Spark takes some ten seconds to start. If it lasts, read the log of the driver, `local.channels`.",
        ),
        StatusReason(
            "ChannelNoSpark",
            "Running, Warning",
            "this machine lacks what Spark needs, as the message says; the fleet runs, its channels do not",
            "Install what it names, and start the fleet again: channels go on where they were.",
        ),
        StatusReason(
            "ChannelDriverExited",
            "Running, Warning",
            "the driver of channels has ended; it is started again, and each channel goes on behind its last batch",
            "Read its log if it happens again.",
        ),
        StatusReason(
            "FeedNotRecorded",
            "Running",
            "a feed of the channel has no schema yet, so its query cannot be checked",
            "Publish something that the feed records, or declare its `schema`.",
        ),
        StatusReason(
            "QueryInvalid",
            "Running",
            "Spark cannot analyse the query, or its results cannot be published; the message has line and column",
            "Correct the query, and apply the channel again.",
        ),
        StatusReason(
            "QueryUnkeyed",
            "Running",
            "the query joins without an equality between columns, so its cost is rows times parameters",
            "Add an equality to the join, or write `unkeyedJoins: Allow` if the views are small.",
        ),
        StatusReason(
            "BatchFailed",
            "Running, Warning",
            "a batch of the channel has failed; it is tried again with growing pauses, and other channels go on",
            "Do what the message says: Spark names the column or file.",
        ),
    ),
)
