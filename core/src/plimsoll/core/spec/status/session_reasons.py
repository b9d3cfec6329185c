"""The reasons of sessions: how they end, what they wait for, and why subscribers are not in a plan."""

from __future__ import annotations

from plimsoll.core.spec.status.reasons import ReasonSection, StatusReason

ENDS = ReasonSection(
    "How sessions end",
    "phase",
    "Reasons of `Succeeded` at a session's end. After those marked *again* there is another attempt, if `retries`"
    " allows it.",
    (
        StatusReason("Moved", "Succeeded", "all subscribers of the plan are at the target"),
        StatusReason("Drained", "Succeeded", "the source has no subscribers left"),
        StatusReason("Empty", "Succeeded", "a drain found no subscribers"),
        StatusReason(
            "AllBalanced", "Succeeded", "between two clusters: no edge differs from another by more than the trigger"
        ),
        StatusReason(
            "NothingMore",
            "Succeeded",
            "between two clusters: some edges still differ, and no move would help; the message names them",
            "Add edges to the cluster that carries more.",
        ),
        StatusReason(
            "NothingToMove",
            "Succeeded",
            "all subscribers are excluded, recently moved or in other sessions, and the message counts them by reason;"
            " or the policy found no move that helps, and the message says why. The edge does not ask for the"
            " same again while loads and subscriptions are unchanged",
        ),
        StatusReason(
            "Partial",
            "Succeeded",
            "some subscribers were moved, some were not",
            "`explain` says why for each. Create another session for the rest.",
        ),
        StatusReason(
            "DeliveryFaults",
            "Succeeded; condition `Delivered`; event",
            "moved subscribers have counted deliveries that were lost, duplicated or reordered; the message has the"
            " numbers. The session ended as usual otherwise",
            "Look for restarted heads, full queues and GAPs at that time; if there were none, report it.",
        ),
        StatusReason("DryRun", "Planned", "the plan is in `status.plan`", "`approve` carries it out."),
        StatusReason(
            "Simulate", "Planned", "the plan and its predicted effect are in the status", "`approve` carries it out."
        ),
        StatusReason("Divided", "Succeeded", "the bundles are divided, and the store has their ranges"),
        StatusReason(
            "Storing", "none: it goes on", "the store is to have the new ranges before brokers are told of them"
        ),
        StatusReason(
            "Unloading", "none: it goes on", "bundles are released, and their subscribers look for an edge again"
        ),
        StatusReason(
            "NoBundles",
            "Rejected",
            "bundles are to be split or unloaded in a cluster whose policy has none",
            "Name a cluster whose policy is Pulsar.",
        ),
        StatusReason(
            "NoSplit",
            "Rejected",
            "a bundle cannot be split; the message says why: it is gone, has one topic, or there are as many as may be",
            "Name another one, or raise `bundles.maximum`.",
        ),
        StatusReason(
            "NotStored",
            "RolledBack",
            "the store did not take the new ranges of bundles in time; no broker was told of them",
            "Check the API server, or the disk of the local store.",
            again=True,
        ),
        StatusReason(
            "NobodyMoved",
            "RolledBack",
            "no subscriber could be moved, and none was cut. The message has the first cause",
            "Remove that cause.",
            again=True,
        ),
        StatusReason(
            "NotEmpty",
            "Failed",
            "subscribers are left after the last round of a drain: they refuse to move, or come"
            " back. The message names them",
            "Check what those applications do; drain again.",
            again=True,
        ),
        StatusReason(
            "DeadlineExceeded",
            "Failed or RolledBack",
            "`deadline` passed before the end; moved subscribers stay at the target",
            "Allow more time, or move fewer at a time.",
            again=True,
        ),
        StatusReason(
            "HeadRestarts",
            "Failed or RolledBack",
            "more than three batches were lost because heads restarted",
            "Check the events of these heads.",
            again=True,
        ),
        StatusReason(
            "Refused",
            "Failed or RolledBack",
            "the head refused the batch; the message says why",
            "Correct what it names.",
            again=True,
        ),
        StatusReason(
            "LogTooShort",
            "Rejected",
            "`handover: Replay` was requested, and the head's log is too short for it",
            "Give the head more memory or a larger logSize, or use `handover: Auto`.",
            again=True,
        ),
        StatusReason(
            "Stopped", "RolledBack or Succeeded", "`stop` was set; hand-overs behind their cut were completed"
        ),
        StatusReason(
            "ParentStopped",
            "RolledBack or Succeeded",
            "its parent was stopped; hand-overs behind their cut were completed",
        ),
        StatusReason(
            "Deleted", "RolledBack or Succeeded", "it was deleted; hand-overs behind their cut were completed"
        ),
        StatusReason(
            "NotApproved", "Rejected", "the plan was not approved within `approval.within`", "Create another session."
        ),
        StatusReason(
            "QueueTimeout",
            "Rejected",
            "it waited for other sessions for longer than `limits.queueFor`",
            "Wait for those, or increase `limits.queueFor`.",
            again=True,
        ),
        StatusReason(
            "NotFound",
            "Rejected",
            "there is no edge of that name",
            "Correct the name, or wait: the edge may be about to be created.",
            again=True,
        ),
        StatusReason(
            "SourceNotReady",
            "Rejected",
            "the source is down, starting or being removed",
            "`plimsoll events` says why.",
            again=True,
        ),
        StatusReason(
            "NoRoom",
            "Rejected",
            "in a shuffle: too many subscribers are still at the target that should have left it first",
            "Check the sessions of the earlier wave; shuffle again.",
        ),
        StatusReason(
            "TooMany",
            "Rejected",
            "a shuffle of more than 50 edges",
            "Exclude some of them with `exclusions.brokers`, and shuffle those afterwards.",
        ),
        StatusReason(
            "TargetNotReady",
            "Rejected",
            "the target is down, starting or being removed",
            "`plimsoll events` says why.",
            again=True,
        ),
        StatusReason(
            "HeadNotReady", "Rejected", "a head is down or starting", "`plimsoll events` says why.", again=True
        ),
        StatusReason(
            "TargetCordoned",
            "Rejected",
            "the target is cordoned, or is being drained",
            "`uncordon` it, or choose another.",
            again=True,
        ),
        StatusReason(
            "NobodyTakes",
            "Rejected",
            "a policy chooses, and no edge carries less, or each one asked is BUSY, N/A, STABILIZING, absent or silent",
            "`explain` lists every answer; add edges if all are busy.",
        ),
        StatusReason(
            "NoLoad",
            "Rejected",
            "a policy chooses, and the source has not reported its load",
            "Check whether it is Ready.",
            again=True,
        ),
        StatusReason(
            "FaultyPlan",
            "Rejected",
            "the policy's plan fails an independent check; the message says why. Nothing was moved",
            "This is a bug of the policy: please report it.",
        ),
        StatusReason(
            "OutsideWindow",
            "Rejected, RolledBack or Failed",
            "it was created automatically, and no maintenance window of its clusters is open, or the last one closed"
            " before the end; the message says when the next one opens",
            "Wait for it, extend `maintenanceWindows`, or create a session yourself: that does not wait.",
        ),
        StatusReason(
            "NoTarget",
            "Rejected",
            "no edge can take subscribers: all are cordoned, being removed, down or full",
            "Add edges, or uncordon one.",
            again=True,
        ),
        StatusReason(
            "NotLinked",
            "Rejected",
            "no links of heads lead from the cluster of the source to that of the target",
            "Name one of the clusters in `neighbors` of the other, or another target.",
            again=True,
        ),
        StatusReason(
            "NoSample",
            "Rejected",
            "the head did not list the source's subscribers in time, or the source did not send their profiles",
            "Check whether both are Ready.",
            again=True,
        ),
        StatusReason(
            "NoPolicy",
            "Rejected; Balanced",
            "neither the session nor a policy says which subscribers to move",
            "Set `select`, or give the cluster a policy.",
        ),
        StatusReason(
            "Excluded", "Rejected", "the session excludes its own source or target", "Remove it from one of the two."
        ),
        StatusReason(
            "DifferentClusters", "Rejected", "source and target are edges of two clusters", "Use `scope: Global`."
        ),
        StatusReason(
            "ReplayAcross",
            "Rejected",
            "replay works only within a cluster: two heads have two logs",
            "Use `handover: Auto`.",
        ),
    ),
)

WAITS = ReasonSection(
    "What a session waits for",
    "phase",
    "Reasons of `status.reason` and of conditions of an open session, and of events about it.",
    (
        StatusReason(
            "Queued",
            "Requested, Planned",
            "other sessions use its brokers, or the fleet's limit is reached; the message names them, and its place in"
            " the queue of the fleet",
        ),
        StatusReason(
            "NoView",
            "Requested, Negotiating",
            "the mediator has no recent view of the fleet; the session waits for one and does not end for it",
            "If it stays, check whether the supervisor or the operator runs.",
        ),
        StatusReason(
            "AwaitingApproval",
            "Planned",
            "the plan is ready",
            "Run `approve NAME`, or write its hash to `spec.approval.planHash`.",
        ),
        StatusReason("Approved", "Planned", "the plan was approved and waits for its turn"),
        StatusReason("Joined", "event", "edges of two clusters balance with one another"),
        StatusReason(
            "PlanStale",
            "Planned",
            "the approved plan is not the present one; the message has the difference. Nothing was moved",
            "Check the plan again, and approve that one.",
        ),
        StatusReason(
            "Changed", "Requested", "the spec was edited before the plan was executed; the session is planned again"
        ),
        StatusReason("Paced", "Preparing, Draining", "`limits.maxMovesPerMinute` delays the next batch"),
        StatusReason("Settling", "Stabilizing", "loads settle before they are measured"),
        StatusReason("AnotherRound", "Requested", "a drain found subscribers that are new or still there"),
        StatusReason("Retrying", "Requested", "the next attempt begins at the time in the message"),
        StatusReason(
            "NoAnswer",
            "Negotiating",
            "a policy chooses, and an edge did not answer; the next one is asked",
        ),
        StatusReason(
            "SpecIgnored",
            "event",
            "an edit came too late and does not change the running session",
            "Stop it, or create another session.",
        ),
    ),
)

MEMBERS = ReasonSection(
    "Why a subscriber is not in the plan",
    "where",
    "Reasons of `status.plan.rejected`, and of `explain`.",
    (
        StatusReason("Excluded", "plan", "`exclusions.subscribers` names it"),
        StatusReason("InAnotherSession", "plan", "another session is moving it"),
        StatusReason("MovedAway", "plan", "it was moved away from the target, and the load is as it was then"),
        StatusReason("MovedRecently", "plan", "it was moved less than `limits.moveInterval` ago"),
        StatusReason("NotServed", "plan", "`select.names` or the profile names it, and it is not at the source"),
        StatusReason(
            "OverLimit",
            "plan",
            "`limits.maxMoves` was reached before it",
            "Increase `limits.maxMoves`, or create another session.",
        ),
        StatusReason("NoPlace", "plan", "no target has room for it", "Add edges."),
        StatusReason(
            "NotThere",
            "plan",
            "a publisher that is named is not open at the head of the source; or a slice is not with its giver",
        ),
    ),
)

DELIVERIES = ReasonSection(
    "Deliveries of moved subscribers",
    "status",
    "Reasons of the condition `Delivered` of a session, beside `DeliveryFaults`.",
    (
        StatusReason("Delivered", "True", "the subscribers that have counted were given all that was due"),
        StatusReason(
            "NotAudited",
            "Unknown",
            "the session still runs, nothing has moved, or no subscriber has counted its deliveries",
        ),
        StatusReason(
            "NothingToAudit",
            "Unknown",
            "publishers have moved, and no subscriber takes what they have published lately",
        ),
    ),
)

SESSIONS = (ENDS, WAITS, MEMBERS, DELIVERIES)
