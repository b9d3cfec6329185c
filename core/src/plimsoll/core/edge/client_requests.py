"""Requests of subscribers: attach, change the list of subscriptions, pause, continue, detach."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import assert_never

from plimsoll.core.edge.attachment import REFUSALS, AttachmentState, EdgeAttachment, out_of_bounds
from plimsoll.core.edge.attachments import AttachmentTable, EdgeContext
from plimsoll.core.edge.handover.target import HandoverTarget
from plimsoll.core.edge.list_change import ListChange
from plimsoll.core.permissions import NOT_PERMITTED, incarnation_fault
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol.slice_names import owner_identity
from plimsoll.core.protocol.wire import WireError
from plimsoll.core.transport.link import Link


class ClientRequests:
    """Dispatches what clients send. The parts of a hand-over go to `HandoverTarget`."""

    def __init__(self, host: EdgeContext, attachments: AttachmentTable, handover_target: HandoverTarget) -> None:
        self.host, self.attachments, self.handover_target = host, attachments, handover_target
        self.list_change = ListChange(host, attachments)

    def handle(self, link: Link, message: msg.FromClient) -> Iterator[int]:
        """Deal with one message of a client, in parts; yields the units of work of each.

        Raises:
            WireError: `misplaced`, a message that belongs to a head; `unknown`, a list of no attachment here.

        """
        match message:
            case msg.Resume():
                yield from self.on_resume(link, message)
            case msg.Subs():
                yield from self.on_subs(link, message)
            case msg.Detach():
                self.on_detach(link, message)
            case msg.Pause():
                self.on_pause(link, message)
            case msg.Continue():
                self.on_continue(link, message)
            case msg.Attach():
                yield from self.handover_target.on_attach(link, message)
            case msg.Go():
                self.handover_target.on_go(link, message)
            case msg.AuditReply():
                self.handover_target.delivery_audit.on_reply(link, message)
            case msg.CountsFrom():
                self.handover_target.publisher_audit.on_counts_from(link, message)
            case msg.Join() | msg.Open():
                self.on_lookup(link)
            case msg.Publish() | msg.Close():
                raise WireError("misplaced", f"{type(message).__name__} is for a head")
            case msg.OpenStandby() | msg.OpenReturning() | msg.PublisherGo():
                raise WireError("misplaced", f"{type(message).__name__} is for a head")
            case (
                msg.GroupJoin() | msg.GroupBeat() | msg.SliceReleased() | msg.GroupLeave() | msg.SliceCaching()
                | msg.SliceCache()
            ):  # fmt: skip
                raise WireError("misplaced", f"{type(message).__name__} is for a head")
            case _:
                assert_never(message)

    def on_lookup(self, link: Link) -> None:
        """A client that takes this edge for a head is told of its head (Pulsar 2023: a client asks any broker)."""
        head = self.host.config.head
        key = head.public_key if head is not None else ""
        if head is not None and (keys := self.host.keys_of(head.name)) and key not in keys:
            key = keys[-1]  # it has been replaced since this edge started
        self.host.say(link, msg.SeeHead(self.host.config.head_name, self.host.head_endpoint, key))

    def on_resume(self, link: Link, resume: msg.Resume) -> Iterator[int]:
        """Attach a subscriber: token and epoch go to the head in one step with the last of the cover."""
        x = resume.subscriber
        old = self.attachments.by_subscriber.get(x)
        if code := self._refusal(link, resume, old):
            self.host.counters["roles_refused"] += code == NOT_PERMITTED
            used = _left_behind(resume, old) if code == "epoch" else 0
            text = self._no_room(link, resume) if code == "full" else REFUSALS[code]
            self.host.say(link, msg.AttachmentClosed(resume.attachment, code, text, used))
            return
        if (foreign := self._foreign(link, resume, old)) is not None:
            self.host.counters["roles_refused"] += foreign[0] == NOT_PERMITTED
            self.host.say(link, msg.AttachmentClosed(resume.attachment, *foreign))
            return
        replaced: list[int] = []
        # The old list leaves the cover in the step that adds the new one: between two steps the head would log
        # publications that neither covers.
        if old is not None:
            self.attachments.close_and_notify(old, "replaced", "the subscriber has attached again")
            replaced = self.attachments.subscription_table.uncover(old)
        attachment = self.attachments.open(link, resume)
        attachment.replaced = replaced
        if old is not None:
            attachment.take_over(old)
        if resume.token is not None and self.handover_target.slots.is_for_replay(x, resume.session):
            attachment.moved_by, attachment.counts_from = str(resume.session), (resume.token, resume.watermarks)

        def announce(cover: msg.Cover) -> None:
            whose = owner_identity(x, link.identity)
            member = "" if whose == link.identity else link.identity
            self.attachments.keep(attachment)
            self.host.up(
                msg.ResumeUp(x, resume.epoch, cover, resume.token, resume.session, whose, member, resume.since)
            )

        yield from self.list_change.apply(attachment, resume.subscriptions, (), resume.version, announce)

    def _refusal(self, link: Link, resume: msg.Resume, old: EdgeAttachment | None) -> str:
        if not link.grant.subscribes:
            return NOT_PERMITTED
        if self.host.is_leaving:
            return "leaving"
        whose = owner_identity(resume.subscriber, link.identity)
        if old is not None and old.identity == whose and old.epoch >= resume.epoch:
            return "epoch"
        return "full" if self._no_room(link, resume) else out_of_bounds(resume)

    def _no_room(self, link: Link, resume: msg.Resume) -> str:
        whose = owner_identity(resume.subscriber, link.identity)
        return self.handover_target.no_room(resume.subscriber, whose, leaves=link.has_key)

    def _foreign(self, link: Link, resume: msg.Resume, old: EdgeAttachment | None) -> tuple[str, str] | None:
        """Why this identity may not have the subscriber, or not with this incarnation: a code and a text."""
        whose = owner_identity(resume.subscriber, link.identity)
        if (refusal := self.handover_target.claims.refusal(resume.subscriber, whose)) is not None:
            return refusal
        last = old.epoch[0] if old is not None and old.identity == whose else 0
        fault = incarnation_fault(resume.epoch[0], last)
        return ("range", fault) if fault else None

    def on_subs(self, link: Link, subs: msg.Subs) -> Iterator[int]:
        attachment = self.attachments.attached(link, subs.attachment)
        if attachment is None:
            raise WireError("unknown", f"no attachment {subs.attachment} is open on this link: RESUME with the list")
        if subs.version <= attachment.version:
            # A repeat, or one that came late: the version that counts is announced again, and SUBACK answers it.
            subs = msg.Subs(subs.attachment, attachment.version, [], [])
        if attachment.state is AttachmentState.STANDBY:
            yield from self.handover_target.on_subs(attachment, subs)
            return
        if attachment.state is AttachmentState.ENDING or attachment.pending_end is not None:
            return  # after the cut the target answers
        announce = partial(self.attachments.announce, attachment)
        yield from self.list_change.apply(attachment, subs.adds, subs.removes, subs.version, announce)

    def on_detach(self, link: Link, detach: msg.Detach) -> None:
        gone = []
        for number in detach.attachments:
            if (attachment := self.attachments.attached(link, number)) is None:
                continue
            self.attachments.close(attachment)
            if detach.withdraw and attachment.keeps_place:
                self.host.up(msg.Forget(attachment.subscriber, attachment.epoch))
                gone.append(attachment)
        self.attachments.drop(gone)

    def on_pause(self, link: Link, pause: msg.Pause) -> None:
        if (attachment := self.attachments.attached(link, pause.attachment)) is not None:
            attachment.paused = True
            self.attachments.queues.route(attachment)

    def on_continue(self, link: Link, go: msg.Continue) -> None:
        if (attachment := self.attachments.attached(link, go.attachment)) is not None:
            attachment.paused = False
            self.attachments.queues.refill(self.attachments.by_link[link])
            self.attachments.queues.route(attachment)
            self.host.dirty[link] = None


def _left_behind(resume: msg.Resume, old: EdgeAttachment | None) -> int:
    """The incarnation of a client that has gone and whose place is still here; 0 if it is there, or no later one."""
    is_gone = old is not None and old.state is AttachmentState.CLOSED
    return old.epoch[0] if old is not None and is_gone and old.epoch[0] > resume.epoch[0] else 0
