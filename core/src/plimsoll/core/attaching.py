"""What subscribers ask of their edge: to attach, to change their list, to wait, to go on, to detach."""

from __future__ import annotations

from plimsoll.core import records as r
from plimsoll.core.attachment import REFUSALS, Attachment, State, out_of_bounds
from plimsoll.core.grants import NOT_GRANTED
from plimsoll.core.handover.receiving import Receiving
from plimsoll.core.link import Link
from plimsoll.core.roster import Host, Roster


class Attaching:
    """Deals with RESUME, SUBS, DETACH, PAUSE and CONTINUE."""

    def __init__(self, host: Host, roster: Roster, receiving: Receiving) -> None:
        self.host, self.roster, self.receiving = host, roster, receiving

    def on_resume(self, link: Link, resume: r.Resume) -> None:
        """handover.md, Resume: its list, its token and its epoch, in one step with the cover."""
        x = resume.subscriber
        old = self.roster.records.get(x)
        if code := self._refusal(link, resume, old):
            self.host.counters["roles_refused"] += code == NOT_GRANTED
            self.host.say(link, r.Shut(resume.attachment, code, REFUSALS[code]))
            return
        removes: list[int] = []
        if old is not None:
            self.roster.shut(old, "replaced", "the subscriber has attached again")
            removes = self.roster.holdings.uncover(old)
        attachment = self.roster.open(link, resume)
        if resume.token is not None and self.receiving.keeps(x, resume.session):
            attachment.moved_by, attachment.counts_from = str(resume.session), (resume.token, resume.watermarks)
        taken = self.roster.take(attachment, resume.subscriptions, resume.version)
        cover = self.roster.install({attachment: taken}, removes)
        self.host.up(r.ResumeUp(x, resume.epoch, cover, resume.token, resume.session))

    def _refusal(self, link: Link, resume: r.Resume, old: Attachment | None) -> str:
        if not link.grant.subscribes:
            return NOT_GRANTED
        if self.host.is_leaving:
            return "leaving"
        if old is not None and old.epoch >= resume.epoch:
            return "epoch"
        return out_of_bounds(resume) if self.receiving.has_room(resume.subscriber) else "full"

    def on_subs(self, link: Link, subs: r.Subs) -> None:
        attachment = self.roster.attached(link, subs.attachment)
        if attachment is None or subs.version <= attachment.version:
            return
        if attachment.state is State.DARK:
            self.receiving.on_subs(attachment, subs)
            return
        if attachment.state is State.ENDING or attachment.end is not None:
            return  # after the cut it is the target that answers
        attachment.version = subs.version
        removed = self.roster.holdings.remove(attachment, subs.removes)
        taken = self.roster.take(attachment, subs.adds, subs.version)
        self.host.up(self.roster.install({attachment: taken}, removed))

    def on_detach(self, link: Link, detach: r.Detach) -> None:
        gone = []
        for number in detach.attachments:
            if (attachment := self.roster.attached(link, number)) is None:
                continue
            self.roster.close(attachment)
            if detach.withdraw and attachment.keeps_place:
                self.host.up(r.Forget(attachment.subscriber, attachment.epoch))
                gone.append(attachment)
        self.roster.drop(gone)

    def on_pause(self, link: Link, pause: r.Pause) -> None:
        if (attachment := self.roster.attached(link, pause.attachment)) is not None:
            attachment.paused = True
            self.roster.queues.route(attachment)

    def on_continue(self, link: Link, go: r.Continue) -> None:
        if (attachment := self.roster.attached(link, go.attachment)) is not None:
            attachment.paused = False
            self.roster.queues.refill(self.roster.ports[link])
            self.roster.queues.route(attachment)
            self.host.dirty[link] = None
