"""Decisions of the head of the source: docs/handover.md, sections 2 and 7."""

from __future__ import annotations

from tests.simulator.mutants.partners import FORGETFUL, NO_COMPARE, NO_DEADLINE, NO_SWAP_AT_CUT
from tests.simulator.mutants.rewriting import Change, Mutant

from plimsoll.core.client.handover import ClientHandovers
from plimsoll.core.client.subscriber import ClientSubscriber
from plimsoll.core.edge.handover.source import HandoverSource
from plimsoll.core.edge.handover.target import HandoverTarget
from plimsoll.core.head.handover.admission import SessionAdmission
from plimsoll.core.head.handover.commands import MediatorCommands
from plimsoll.core.head.handover.coordinator import Coordinator
from plimsoll.core.head.handover.cut_decision import CutDecision
from plimsoll.core.head.handover.outcomes import OutcomeHistory
from plimsoll.core.head.handover.remote_members import RemoteMembers
from plimsoll.core.head.handover.table import HandoverTable
from plimsoll.core.head.membership import Membership

UNDO_CUT = Change(
    HandoverTable.undo, "if session.members[x].state in OPEN]", 'if session.members[x].state in (*OPEN, "cut")]'
)

MUTANTS = [
    Mutant(
        "abort-after-cut",
        "The first of cut and abort wins.",
        (UNDO_CUT, Change(Coordinator.abort, "session.of(*OPEN)", 'session.of(*OPEN, "cut")')),
        ("sessions-local", "sessions-mediator", "sessions-across"),
    ),
    Mutant(
        "stayed-without-asking",
        "A member has `stayed` only if its source says that it serves it.",
        (Change(HandoverTable.refuse, "outcome or ABORTING", 'outcome or "stayed"'),),
        ("sessions-clients", "vanish"),
    ),
    Mutant(
        "source-is-not-asked",
        "The source is asked by ABORT whether it serves the members.",
        (Change(HandoverTable._ask_source, ", ask=True", ""),),
        ("sessions-clients", "sessions-local"),
    ),
    Mutant(
        "serves-whom-it-has-closed",
        "The source says of each member that it has undone whether it serves it.",
        (Change(HandoverSource._standing, "if attachment.state is AttachmentState.CLOSED:", "if False:"),),
        ("sessions-clients", "vanish"),
    ),
    Mutant(
        "asks-for-ever",
        "A source that does not answer in time leaves the outcome `unknown`.",
        (Change(HandoverTable.end_waiting, "self.host.now >= session.asked[0][0]", "False"),),
        ("sessions-clients", "sessions-edge-crash"),
    ),
    Mutant(
        "no-deadline-before-cut",
        "Before the cut the head has a deadline of its own, at which it aborts.",
        (NO_DEADLINE,),
        ("sessions-drain-deadline", "sessions-mediator", "sessions-everything"),
    ),
    Mutant(
        "deadline-undoes-cut",
        "After the cut no deadline undoes anything.",
        (
            UNDO_CUT,
            Change(
                Coordinator.tick,
                "if now >= session.decides_at and session.is_open:\n"
                "            self.table.refuse(session, session.of(*OPEN)",
                "if now >= session.decides_at and not session.is_settled:\n"
                '            self.table.refuse(session, session.of(*OPEN, "cut")',
            ),
        ),
        ("sessions-drain-deadline", "sessions-local", "sessions-across"),
    ),
    Mutant(
        "target-gives-up",
        "An edge never undoes a hand-over on its own: from CUTTING on the target waits for INSTALLED or ABORT.",
        (
            Change(
                HandoverTarget.on_install,
                "self.slots.free(attachment.subscriber, session)",
                "self.slots[attachment.subscriber] = ReservedSlot(session, self.host.now, False)",
            ),
            Change(HandoverTarget.on_install, "State.CUTTING, True", "State.CUTTING, False"),
            Change(
                HandoverTarget.expire,
                "slot.session, AttachmentState.STANDBY)",
                "slot.session, AttachmentState.STANDBY, AttachmentState.CUTTING)",
            ),
        ),
        ("sessions-across", "edge-crash-across", "far-bumpy", "far"),
    ),
    Mutant(
        "cut-without-compare",
        "The local cut compares the owner with the owner at the start of the session.",
        (NO_SWAP_AT_CUT,),
        ("reborn", "vanish", "churn", "sessions-local"),
        partners=(NO_COMPARE,),
        alone="RESUME voids the open session of a subscriber in the same step that changes its owner",
    ),
    Mutant(
        "marker-without-compare",
        "At the MARKER the head of the source compares the owner as well.",
        (Change(CutDecision.on_marker, "and self.table.is_owner(members[x], x)", ""),),
        ("reborn-across", "vanish", "far-bumpy"),
        partners=(NO_COMPARE,),
        alone="RESUME voids the open session of a subscriber in the same step that changes its owner",
    ),
    Mutant(
        "cut-keeps-the-epoch",
        "A session raises the owner epoch by 1.",
        (
            Change(CutDecision.cut_members, "(incarnation, n + 1)", "(incarnation, n)"),
            Change(CutDecision._may_cut, "member.epoch[1] + 1", "member.epoch[1]"),
            Change(ClientSubscriber.attach_item, "self.number + 1", "self.number"),
            Change(ClientHandovers._count_move, "subscriber.number += 1", "pass"),
        ),
        ("sessions-local", "sessions-calm", "sessions-edge-crash"),
    ),
    Mutant(
        "resume-raises-by-one",
        "A RESUME raises the owner epoch by 2, so it wins against a cut at the same time.",
        (Change(ClientSubscriber.resume_record, "self.number += 2", "self.number += 1"),),
        ("sessions-across", "far-bumpy", "edge-crash-across", "churn", "sessions-edge-crash"),
    ),
    Mutant(
        "owner-stays-at-done",
        "Across clusters the head of the source deletes its owner entry at DONE.",
        (Change(Coordinator._arrived, "self.host.owners.forget(x, self.host.now)", "pass"),),
        ("sessions-across",),
    ),
    Mutant(
        "older-resume-is-accepted",
        "A RESUME with an older owner epoch is refused, and answered with RELEASE.",
        (Change(Membership.on_resume, "if newest >= resume.epoch:", "if False:"),),
        ("overtaken", "churn", "sessions-everything"),
    ),
    Mutant(
        "no-tombstone",
        "An ABORT of an unknown session leaves a tombstone.",
        (
            Change(
                Coordinator.abort,
                'self.table.archive.add(session_id, self.table.empty(session_id, "aborted", why))',
                'return self.table.empty(session_id, "aborted", why)',
            ),
        ),
        ("stale-commands", "sessions-mediator", "sessions-calm"),
    ),
    Mutant(
        "deposed-mediator-is-obeyed",
        "A lower mediator epoch is refused.",
        (Change(MediatorCommands.refusal, "command.mediator < fenced_at", "False"),),
        ("sessions-mediator", "stale-commands", "sessions-everything"),
    ),
    Mutant(
        "prepared-twice",
        "A repeated PREPARE returns the current state.",
        (
            Change(
                Coordinator.prepare,
                'if (known := self.table.outcome(session_id)).state != "unknown":',
                'if (known := self.table.outcome(session_id)).state == "done":',
            ),
        ),
        ("sessions-calm", "sessions-local", "stale-commands"),
    ),
    Mutant(
        "cut-twice",
        "A repeated CUT returns the current state, and is not executed again.",
        (
            Change(Coordinator.cut, 'session.state == "ready"', 'session.state in ("ready", "cutting", "cut")'),
            Change(Coordinator.cut, 'session.of("attached")', 'session.of("attached", "cutting", "cut")'),
        ),
        ("sessions-calm", "sessions-local", "stale-commands"),
    ),
    Mutant(
        "two-sessions-at-once",
        "A subscriber is in one session at a time: the head, both edges and the subscriber check it.",
        (
            Change(SessionAdmission.member, "if self.is_busy(x):", "if False:"),
            Change(HandoverSource.on_start_move, 'or attachment.outgoing_session not in ("", move.session)', ""),
            Change(ClientHandovers._accepts, "and subscriber.handover is None", ""),
        ),
        ("sessions-local", "stale-commands", "sessions-calm", "sessions-mediator"),
        alone="the head, the source, the target and the subscriber each refuse a second session",
    ),
    Mutant(
        "other-head-epoch-is-obeyed",
        "A command for another epoch of the head fails.",
        (Change(MediatorCommands.refusal, "command.head_epoch != self.host.epoch and", "False and"),),
        ("stale-commands", "sessions-mediator", "two-heads", "sessions-head-restart"),
    ),
    Mutant(
        "obeys-while-starting",
        "A head accepts no commands until its edges have reported.",
        (Change(MediatorCommands.refusal, "if self.host.is_starting:", "if False:"),),
        ("stale-restarts", "two-heads", "head-and-edge"),
        harmless="a command names the head epoch, which no mediator learns before the head is ready",
    ),
    Mutant(
        "forgotten-session-is-accepted",
        "A session older than the remembered outcomes is refused.",
        (Change(OutcomeHistory.has_forgotten, "parse_session_id(session_id) <= self._forgotten", "False"),),
        ("stale-commands",),
    ),
    Mutant(
        "remote-members-are-not-busy",
        "A remote member takes part in no other session.",
        (Change(HandoverTable.is_busy, "or subscriber in self.host.remote_members", ""),),
        ("on-and-on", "far", "sessions-across"),
    ),
    Mutant(
        "undone-cut-stays-owned",
        "Across clusters an ABORT deletes the owner entry at the head of the target.",
        (Change(RemoteMembers.on_abort, "self.host.owners.forget(x, self.host.now)", "pass"),),
        ("far-aborts", "edge-crash-across", "sessions-across"),
    ),
    Mutant(
        "watermarks-are-not-kept",
        "The subscriber drops what its watermarks cover: publications between COVER and MARKER are delivered twice.",
        (FORGETFUL,),
        ("sessions-slow", "calm-across", "busy", "far-bumpy", "slices", "sessions-everything"),
    ),
]
