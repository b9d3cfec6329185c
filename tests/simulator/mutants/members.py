"""Members, links and replay: docs/handover.md, sections 2, 5 and 9."""

from __future__ import annotations

from tests.simulator.mutants.partners import FORGETFUL, NO_FORCE_DETACH
from tests.simulator.mutants.rewriting import Change, Mutant, Setting

from plimsoll.core.edge.attachments import AttachmentTable
from plimsoll.core.edge.catchup_cursor import CatchupCursor
from plimsoll.core.edge.catchup_replay import CatchupReplay
from plimsoll.core.edge.handover.slots import SlotTable
from plimsoll.core.edge.handover.source import HandoverSource
from plimsoll.core.head import log_reader
from plimsoll.core.head.handover.coordinator import Coordinator
from plimsoll.core.head.handover.cut_decision import CutDecision
from plimsoll.core.head.handover.dispatch import HandoverDispatch
from plimsoll.core.head.handover.table import HandoverTable
from plimsoll.core.head.outbox import Outbox
from plimsoll.core.transport import link_handshake

ANY_EPOCH = Change(HandoverSource._of, "and record.epoch == item.epoch", "")

MUTANTS = [
    Mutant(
        "one-bad-member-is-all",
        "A failed compare and swap refuses only that member.",
        (
            Change(
                HandoverDispatch.on_cut_request,
                "cut = set(good)",
                "cut = set(good) if len(good) == len(request.members) else set()",
            ),
        ),
        ("reborn", "sessions-batch", "churn"),
    ),
    Mutant(
        "all-have-moved",
        "A member that resumes at the target and names the session has `moved`.",
        (Change(Coordinator.resumed, '"moved" if mine and edge == session.plan.target else "returned"', '"moved"'),),
        ("overtaken", "sessions-edge-crash", "vanish"),
    ),
    Mutant(
        "none-has-moved",
        "Only a member that resumes without naming the session has `returned`.",
        (Change(Coordinator.resumed, '"moved" if mine and edge == session.plan.target else "returned"', '"returned"'),),
        ("calm-replay", "sessions-replay"),
    ),
    Mutant(
        "closed-in-silence",
        "An edge that closes an attachment notifies the subscriber.",
        (
            Change(
                AttachmentTable.close_and_notify,
                "self.host.say(attachment.link, msg.AttachmentClosed(attachment.id, code, text, used))",
                "pass",
            ),
        ),
        ("slow-cut", "sessions-head-restart", "sessions-hold"),
    ),
    Mutant(
        "link-forgets",
        "A link that reopens resends the frames that the other side has not received.",
        (Setting(link_handshake, "_again", lambda link: []),),
        ("churn", "sessions-local"),
    ),
    Mutant(
        "lost-link-goes-on",
        "A link whose other side has lost its state ends on both sides, with all attachments on it.",
        (Change(link_handshake.take_answer, "if answer.lost:", "if False:"),),
        ("sessions-edge-crash", "churn", "sessions-everything", "clients"),
    ),
    Mutant(
        "closed-keeps-its-queue",
        "An edge that closes an attachment drops its queue.",
        (
            Change(AttachmentTable.close, "attachment.clear()", "pass"),
            Change(AttachmentTable.close, "link_attachments.queued.pop(attachment, None)", "pass"),
        ),
        ("sessions-hold", "sessions-lag", "sessions-drain-deadline"),
        harmless="the client ignores records of an attachment that has ended",
    ),
    Mutant(
        "revoked-without-compare",
        "The cut by replay compares the owner.",
        (Change(CutDecision.revoke, "if self.table.is_owner(session.members[x], x)", ""),),
        ("overtaken", "edge-crash-replay", "sessions-replay"),
        partners=(
            ANY_EPOCH,
            Change(
                Coordinator.resumed,
                'self.table.undo(session, [subscriber], "returned", "has resumed meanwhile")',
                "pass",
            ),
        ),
        alone="RESUME voids the open session, and the source obeys REVOKE only for its owner epoch",
    ),
    Mutant(
        "revoked-once",
        "REVOKE may be lost, so it is repeated until the subscriber has resumed.",
        (
            Change(
                CutDecision.send_revoke,
                "session.revoke_at, plan = self.host.now + self.revoke_seconds, session.plan",
                "session.revoke_at, plan = float('inf'), session.plan",
            ),
        ),
        ("sessions-replay", "batch-replay"),
        partners=(NO_FORCE_DETACH,),
        alone="after `drain_seconds` the member is detached, and resumes",
    ),
    Mutant(
        "revoked-by-an-old-head",
        "A REVOKE of another head epoch, or about another owner epoch, is ignored.",
        (Change(HandoverSource.on_revoke, "if revoke.head_epoch != self.host.head_epoch:", "if False:"),),
        (
            "sessions-replay",
            "head-and-edge",
            "two-heads",
            "sessions-mediator",
            "sessions-everything",
            "edge-crash-replay",
        ),
        harmless="the wrong subscriber would resume once more",
    ),
    Mutant(
        "revoked-goes-on",
        "A revoked attachment is closed, and its queue dropped, before MOVED is sent.",
        (Change(HandoverSource._revoke, "self.attachments.close(attachment)", "pass"),),
        ("calm-replay", "sessions-replay"),
        harmless="the client accepts nothing more from there, and RELEASE follows",
    ),
    Mutant(
        "revoked-leaves-cover",
        "A revoked subscriber stays in the cover until RELEASE.",
        (
            Change(
                HandoverSource._revoke,
                "self.attachments.close(attachment)",
                "self.attachments.close(attachment)\n        self.attachments.drop([attachment])",
            ),
        ),
        ("lost-replay", "edge-crash-replay"),
    ),
    Mutant(
        "replay-slot-is-not-freed",
        "After a hand-over by replay its slot is freed.",
        (Change(HandoverTable.finish, "if session.plan.replay:", "if False:"),),
        ("calm-replay", "sessions-replay"),
        partners=(Change(SlotTable.pop_expired, "del self[subscriber]", "pass"),),
        alone="a slot expires as well",
    ),
    Mutant(
        "slice-passes-over-members",
        "A member whose position is below the beginning of a slice waits for the next one.",
        (Change(CatchupCursor.begin, "if member.position < after]", "if False]"),),
        ("slow-cut", "slices", "batch-replay"),
    ),
    Mutant(
        "joins-the-running-slice",
        "A member that joins while a slice is read waits for the next one.",
        (
            Change(
                CatchupCursor.join,
                "self._joining[attachment] = None",
                "(self.members if self.reading else self._joining)[attachment] = None",
            ),
        ),
        ("slow-cut", "slices", "batch-replay"),
    ),
    Mutant(
        "live-after-one-slice",
        "An attachment is LIVE again once the log has been read to its end.",
        (Change(CatchupCursor.end, "if fetched.done or", "if True or"),),
        ("slices", "batch-replay"),
    ),
    Mutant(
        "slice-is-always-the-last",
        "A slice is the last one only if it ends where the log ends.",
        (Change(log_reader.answer_fetch, "at >= log.last)", "True)"),),
        ("slices", "batch-replay"),
    ),
    Mutant(
        "replayed-below-the-position",
        "A member is replayed only entries after its own position.",
        (Change(CatchupReplay._take, "if position <= attachment.position:", "if False:"),),
        ("slices", "batch-replay", "churn"),
        partners=(FORGETFUL,),
        alone="the client drops repeated deliveries by its watermarks",
    ),
    Mutant(
        "replayed-beyond-the-cut",
        "A member that is cut is replayed no entries after the cut.",
        (
            Change(
                CatchupReplay.on_replay,
                "if end is None or item.position <= end.position:",
                "if True:",
            ),
        ),
        ("slow-cut", "slices"),
        partners=(FORGETFUL,),
        alone="the client drops repeated deliveries by its watermarks",
    ),
    Mutant(
        "messages-are-lost",
        "A link that falls behind loses publications, but never an in-band message.",
        (
            Change(
                Outbox._lost_range,
                "if isinstance(after, bytes | UncertainRange) or (",
                "if isinstance(after, UncertainRange) or (",
            ),
            Change(
                Outbox._lost_range,
                "high = after.high if isinstance(after, LostRange) else after",
                "high = after.high if isinstance(after, LostRange) else high if isinstance(after, bytes) else after",
            ),
        ),
        ("held-gap", "lag-local", "sessions-lag"),
    ),
    Mutant(
        "gaps-cross-messages",
        "A gap never extends across an in-band message.",
        (
            Change(
                Outbox._lost_range,
                "if isinstance(after, bytes | UncertainRange) or (isinstance(after, int) and after >= log.first):",
                "if isinstance(after, bytes) and any(isinstance(i, int) and i < log.first for i in self.backlog):\n"
                "            self.backlog.rotate(-1)\n"
                "            continue\n"
                "        if isinstance(after, bytes | UncertainRange) or (\n"
                "            isinstance(after, int) and after >= log.first\n"
                "        ):",
            ),
        ),
        ("held-gap", "lag-local", "sessions-lag"),
    ),
]
