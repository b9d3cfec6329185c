"""The reasons of sessions: how they end, what they wait for, and why somebody is not in a plan; with `reasons`."""

from __future__ import annotations

from plimsoll.core.spec.reasons import Reason, Section

ENDS = Section(
    "How sessions end",
    "phase",
    "Reasons of `Succeeded` at a session's end. After those that say *again* there is another attempt, if `retries`"
    " says so.",
    (
        Reason("Moved", "Succeeded", "everybody whom the plan names is served by the target"),
        Reason("Drained", "Succeeded", "the source serves nobody any more"),
        Reason("Empty", "Succeeded", "a drain found nobody there"),
        Reason(
            "AllBalanced", "Succeeded", "between two clusters: no edge differs from another by more than the trigger"
        ),
        Reason(
            "NothingMore",
            "Succeeded",
            "between two clusters: some edges differ still, and want nothing more; the message names them",
            "Add edges to the cluster that carries more.",
        ),
        Reason(
            "NothingToMove",
            "Succeeded",
            "all who could have moved are excluded, resting or in other sessions, and the"
            " message counts them by reason; or the policy found nothing that helps, and the message says why. The"
            " edge does not ask for the same again while loads are as they were",
        ),
        Reason(
            "Partial",
            "Succeeded",
            "some have moved, some have not",
            "`explain` says why for each. Ask again for the rest.",
        ),
        Reason("DryRun", "Planned", "the plan stands in `status.plan`", "`approve` carries it out."),
        Reason("Simulate", "Planned", "the plan and its predicted effect stand in status", "`approve` carries it out."),
        Reason(
            "NobodyMoved",
            "RolledBack",
            "nobody could be moved; all are where they were. The message has the first cause",
            "Mend that cause.",
            again=True,
        ),
        Reason(
            "NotEmpty",
            "Failed",
            "a drain has looked for the last time, and some are left: they refuse, or come back."
            " The message names them",
            "See what those applications do; drain again.",
            again=True,
        ),
        Reason(
            "DeadlineExceeded",
            "Failed or RolledBack",
            "`deadline` left no time for the rest; what was moved stays moved",
            "Allow more time, or fewer at a time.",
            again=True,
        ),
        Reason(
            "HeadRestarts",
            "Failed or RolledBack",
            "more than three batches were lost because heads began anew",
            "See the events of these heads.",
            again=True,
        ),
        Reason(
            "Refused",
            "Failed or RolledBack",
            "the head refuses the batch; the message says why",
            "Mend what it names.",
            again=True,
        ),
        Reason(
            "LogTooShort",
            "Rejected",
            "replay was asked for, and the log would not last",
            "Give the head more memory or a larger logSize, or use `handover: Auto`.",
            again=True,
        ),
        Reason("Stopped", "RolledBack or Succeeded", "it was asked to stop; what was behind its cut has ended"),
        Reason(
            "ParentStopped",
            "RolledBack or Succeeded",
            "its parent was asked to stop; what was behind its cut has ended",
        ),
        Reason("Deleted", "RolledBack or Succeeded", "its deletion was asked for; what was behind its cut has ended"),
        Reason("NotApproved", "Rejected", "nobody approved the plan within `approval.within`", "Ask again."),
        Reason(
            "QueueTimeout",
            "Rejected",
            "it waited for `limits.queueFor` behind other sessions",
            "Wait for those, or allow more.",
            again=True,
        ),
        Reason(
            "NotFound", "Rejected", "there is no edge of that name", "Mend the name; it may be on its way.", again=True
        ),
        Reason(
            "SourceNotReady",
            "Rejected",
            "the source is down, leaving or starting",
            "`plimsoll events` says why.",
            again=True,
        ),
        Reason(
            "NoRoom",
            "Rejected",
            "of a shuffle: too many are still at the target who should have left it before these came",
            "See the sessions of the earlier wave; shuffle again.",
        ),
        Reason(
            "TooMany",
            "Rejected",
            "a shuffle of more than 50 edges",
            "Exclude some of them (exclusions.brokers), and shuffle those afterwards.",
        ),
        Reason(
            "TargetNotReady",
            "Rejected",
            "the target is down, leaving or starting",
            "`plimsoll events` says why.",
            again=True,
        ),
        Reason("HeadNotReady", "Rejected", "a head is down or starting", "`plimsoll events` says why.", again=True),
        Reason(
            "TargetCordoned",
            "Rejected",
            "the target is cordoned, or is being drained",
            "`uncordon` it, or choose another.",
            again=True,
        ),
        Reason(
            "NobodyTakes",
            "Rejected",
            "where a policy chooses: no edge carries less, or each that was asked is BUSY,"
            " N/A, STABILIZING, not there or silent",
            "`explain` has every answer; add edges if all are busy.",
        ),
        Reason(
            "NoLoad",
            "Rejected",
            "where a policy chooses: the source has not reported its load",
            "See whether it is Ready.",
            again=True,
        ),
        Reason(
            "FaultyPlan",
            "Rejected",
            "the plan of the policy does not stand up to an independent check; the message"
            " says what is wrong. Nothing was moved",
            "This is a fault of the policy: please report it.",
        ),
        Reason(
            "OutsideWindow",
            "Rejected, RolledBack or Failed",
            "a broker or the detector wanted it, and no maintenance window of its clusters is open, or the last one has"
            " closed before the end; the message says when the next one opens",
            "Wait for it, widen `maintenanceWindows`, or ask for a session yourself: that does not wait.",
        ),
        Reason(
            "NoTarget",
            "Rejected",
            "no edge can take subscribers: all are cordoned, leaving, down or full",
            "Add edges, or uncordon one.",
            again=True,
        ),
        Reason(
            "NoView",
            "Rejected",
            "the mediator knows nothing recent of the fleet",
            "See whether the supervisor or the operator runs.",
            again=True,
        ),
        Reason(
            "NoSample",
            "Rejected",
            "the head did not say in time whom the source serves, or the source what its subscribers take",
            "See whether both are Ready.",
            again=True,
        ),
        Reason(
            "NoPolicy", "Rejected; Balanced", "nothing says whom to move", "Give `select`, or the cluster a policy."
        ),
        Reason(
            "Excluded", "Rejected", "the session excludes its own source or target", "Take it out of one of the two."
        ),
        Reason("DifferentClusters", "Rejected", "source and target are edges of two clusters", "Use `scope: Global`."),
        Reason(
            "ReplayAcross",
            "Rejected",
            "replay works within a cluster only: two heads have two logs",
            "Use `handover: Auto`.",
        ),
    ),
)

WAITS = Section(
    "What a session waits for",
    "phase",
    "Reasons of `status.reason` and of conditions while a session goes on, and of events about it.",
    (
        Reason(
            "Queued",
            "Requested, Planned",
            "others use its brokers, or the fleet's cap is reached; the message names them",
        ),
        Reason(
            "AwaitingApproval",
            "Planned",
            "the plan is there",
            "`approve NAME`, or write its hash in `spec.approval.planHash`.",
        ),
        Reason("Approved", "Planned", "the plan was approved, and waits for its turn"),
        Reason("Joined", "event", "edges of two clusters balance with one another"),
        Reason(
            "PlanStale",
            "Planned",
            "another plan was approved than the one that stands now; the message has the difference. Nothing was moved",
            "Look at the plan again, and approve that one.",
        ),
        Reason(
            "Changed", "Requested", "the specification was edited before the plan was carried out: it is planned anew"
        ),
        Reason("Paced", "Preparing, Draining", "`limits.maxMovesPerMinute` lets the next batch begin only later"),
        Reason("Settling", "Stabilizing", "loads settle before they are measured"),
        Reason("AnotherRound", "Requested", "a drain found somebody who has come meanwhile, or who is still there"),
        Reason("Retrying", "Requested", "the next attempt begins at a time that the message says"),
        Reason(
            "NoAnswer",
            "Negotiating",
            "where a policy chooses: an edge that was asked has said nothing, and the next one is asked",
        ),
        Reason(
            "SpecIgnored",
            "event",
            "an edit came too late; what runs is not changed by it",
            "Stop it, or ask for another.",
        ),
    ),
)

MEMBERS = Section(
    "Why a subscriber is not in the plan",
    "where",
    "Reasons of `status.plan.rejected`, and of `explain`.",
    (
        Reason("Excluded", "plan", "`exclusions.subscribers` names it"),
        Reason("InAnotherSession", "plan", "another session moves it now"),
        Reason("MovedRecently", "plan", "it was moved less than `limits.moveInterval` ago"),
        Reason("NotServed", "plan", "`select.names` or the profile has it, and the source does not serve it"),
        Reason("OverLimit", "plan", "`limits.maxMoves` was reached before it", "Allow more, or ask again."),
        Reason("NoPlace", "plan", "no target has room for it", "Add edges."),
    ),
)

SESSIONS = (ENDS, WAITS, MEMBERS)
