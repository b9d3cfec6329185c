"""Members, links and replay: docs/handover.md, sections 2, 5 and 9."""

from __future__ import annotations

from tests.simulator.mutants.partners import FORGETFUL, NO_PART
from tests.simulator.mutants.rewriting import Change, Mutant, Setting

from plimsoll.core import reading
from plimsoll.core.catchup import Cursor
from plimsoll.core.handover.coordinator import Coordinator
from plimsoll.core.handover.giving import Giving
from plimsoll.core.handover.office import Office
from plimsoll.core.handover.receiving import Receiving
from plimsoll.core.link import Link
from plimsoll.core.outlet import Outlet
from plimsoll.core.replay import Replayer
from plimsoll.core.roster import Roster

ANY_EPOCH = Change(Giving._of, "and record.epoch == item.epoch", "")

MUTANTS = [
    Mutant(
        "one-bad-member-is-all",
        "A failed compare and swap refuses that member only.",
        (
            Change(
                Office.on_cut_request,
                "cut = set(good)",
                "cut = set(good) if len(good) == len(request.members) else set()",
            ),
        ),
        ("reborn", "sessions-batch", "churn"),
    ),
    Mutant(
        "all-have-moved",
        "`moved` is who names the session at the target.",
        (Change(Coordinator.resumed, '"moved" if mine and edge == session.plan.target else "returned"', '"moved"'),),
        ("overtaken", "sessions-edge-crash", "vanish"),
    ),
    Mutant(
        "none-has-moved",
        "`returned` is who resumed without naming the session.",
        (Change(Coordinator.resumed, '"moved" if mine and edge == session.plan.target else "returned"', '"returned"'),),
        ("calm-replay", "sessions-replay"),
    ),
    Mutant(
        "closed-in-silence",
        "An edge that closes an attachment says so.",
        (Change(Roster.shut, "self.host.say(attachment.link, r.Shut(attachment.id, code, text))", "pass"),),
        ("slow-cut", "sessions-head-restart", "sessions-hold"),
    ),
    Mutant(
        "link-forgets",
        "A link that is open again says what it has, and has the rest sent again.",
        (Setting(Link, "_again", lambda self: []),),
        ("churn", "sessions-local"),
    ),
    Mutant(
        "lost-link-goes-on",
        "A link whose other side has lost its state is over on both sides, with all attachments on it.",
        (Change(Link.on_hello_ok, "if answer.lost:", "if False:"),),
        ("sessions-edge-crash", "churn", "sessions-everything", "clients"),
    ),
    Mutant(
        "closed-keeps-its-queue",
        "An edge that closes an attachment drops its queue.",
        (
            Change(Roster.close, "attachment.clear()", "pass"),
            Change(Roster.close, "port.queued.pop(attachment, None)", "pass"),
        ),
        ("sessions-hold", "sessions-lag", "sessions-drain-deadline"),
        harmless="the client passes over what comes for an attachment that is no more",
    ),
    Mutant(
        "revoked-without-compare",
        "The cut by replay compares the owner.",
        (Change(Coordinator._revoke, "if self._is_owner(session.members[x], x)", ""),),
        ("overtaken", "edge-crash-replay", "sessions-replay"),
        partners=(
            ANY_EPOCH,
            Change(
                Coordinator.resumed, 'self.refuse(session, [subscriber], "returned", "has resumed meanwhile")', "pass"
            ),
        ),
        alone="RESUME voids the open session, and the source obeys for this owner epoch only",
    ),
    Mutant(
        "revoked-once",
        "REVOKE may be lost, and is repeated until the subscriber has resumed.",
        (
            Change(
                Coordinator._say_revoke,
                "session.revoke_at, plan = self.host.now + self.revoke_seconds, session.plan",
                "session.revoke_at, plan = float('inf'), session.plan",
            ),
        ),
        ("sessions-replay", "batch-replay"),
        partners=(NO_PART,),
        alone="after `drain_seconds` the member is detached, and resumes",
    ),
    Mutant(
        "revoked-by-the-dead",
        "A REVOKE of another head epoch, or about another owner epoch, is ignored.",
        (Change(Giving.on_revoke, "if revoke.head_epoch != self.host.head_epoch:", "if False:"),),
        (
            "sessions-replay",
            "head-and-edge",
            "two-heads",
            "sessions-mediator",
            "sessions-everything",
            "edge-crash-replay",
        ),
        harmless="whom it does not mean would resume once more",
    ),
    Mutant(
        "revoked-goes-on",
        "A revoked attachment is closed, and its queue dropped, before MOVED is said.",
        (Change(Giving._revoke, "self.roster.close(one)", "pass"),),
        ("calm-replay", "sessions-replay"),
        harmless="the client takes nothing more from there, and RELEASE follows",
    ),
    Mutant(
        "revoked-leaves-cover",
        "A revoked subscriber stays in the cover until RELEASE.",
        (Change(Giving._revoke, "self.roster.close(one)", "self.roster.close(one)\n        self.roster.drop([one])"),),
        ("lost-replay", "edge-crash-replay"),
    ),
    Mutant(
        "replay-place-is-not-freed",
        "After a hand-over by replay its place is free.",
        (Change(Coordinator._finish, "if session.plan.replay:", "if False:"),),
        ("calm-replay", "sessions-replay"),
        partners=(Change(Receiving.expire, "del self.slots[x]", "pass"),),
        alone="a place ends by its time as well",
    ),
    Mutant(
        "log-is-read-from-the-last",
        "The cursor begins at the lowest place of its members.",
        (
            Change(
                Cursor.begin,
                "min(member.position for member in self.members)",
                "max(member.position for member in self.members)",
            ),
        ),
        ("slow-cut", "slices", "batch-replay"),
    ),
    Mutant(
        "joins-the-running-slice",
        "Who joins while a slice is under way waits for the next one.",
        (
            Change(
                Cursor.join,
                "self._joining[attachment] = None",
                "(self.members if self.reading else self._joining)[attachment] = None",
            ),
        ),
        ("slow-cut", "slices", "batch-replay"),
    ),
    Mutant(
        "live-after-one-slice",
        "The stream serves again when the log has been read to its end.",
        (Change(Cursor.end, "if fetched.done or", "if True or"),),
        ("slices", "batch-replay"),
    ),
    Mutant(
        "slice-says-done",
        "A slice is the last one if it ends where the log ends.",
        (Change(reading.read, "at >= log.last)", "True)"),),
        ("slices", "batch-replay"),
    ),
    Mutant(
        "replayed-below-the-place",
        "A member takes what lies above its own place.",
        (Change(Replayer._take, "if position <= attachment.position:", "if False:"),),
        ("slices", "batch-replay", "churn"),
        partners=(FORGETFUL,),
        alone="what comes twice is below the watermark",
    ),
    Mutant(
        "replayed-beyond-the-cut",
        "A member that is cut takes nothing from behind the cut.",
        (Change(Replayer.on_replay, "and (attachment.end is None or item.position <= attachment.end[0])", ""),),
        ("slow-cut", "slices"),
        partners=(FORGETFUL,),
        alone="what the source then delivers too much is below the watermark when it comes again",
    ),
    Mutant(
        "messages-are-lost",
        "A link that falls behind loses publications, never an in-band message.",
        (
            Change(Outlet._hole, "if isinstance(after, bytes | Doubt) or (", "if isinstance(after, Doubt) or ("),
            Change(
                Outlet._hole,
                "high = after.high if isinstance(after, Hole) else after",
                "high = after.high if isinstance(after, Hole) else high if isinstance(after, bytes) else after",
            ),
        ),
        ("held-gap", "lag-local", "sessions-lag"),
    ),
    Mutant(
        "gaps-cross-messages",
        "A gap never reaches across an in-band message.",
        (
            Change(
                Outlet._hole,
                "if isinstance(after, bytes | Doubt) or (isinstance(after, int) and after >= log.first):",
                "if isinstance(after, bytes) and any(isinstance(i, int) and i < log.first for i in self.backlog):\n"
                "            self.backlog.rotate(-1)\n"
                "            continue\n"
                "        if isinstance(after, bytes | Doubt) or (isinstance(after, int) and after >= log.first):",
            ),
        ),
        ("held-gap", "lag-local", "sessions-lag"),
    ),
]
