"""The edge that a subscriber comes to: a place kept for it, a second attachment that is silent, and the turn to it.

Laws of the place:
- An attachment that is on its way here is matched from INSTALLED on, and delivers from GO on. What lies between is
  held, in order, and no policy takes anything from it: a hold that is full ends the attachment, and the subscriber goes
  on at the source.
- Places, and attachments that nobody has asked to cut, end by their time. From INSTALL on only the head, the subscriber
  or the loss of one of them ends anything.
- What is promised to the head can be kept: all of a list is taken, or none of it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from plimsoll.core import records as r
from plimsoll.core.attachment import REFUSALS, Attachment, State, out_of_bounds
from plimsoll.core.grants import NOT_GRANTED
from plimsoll.core.handover.counting import CHECKS_AT_ONCE, Counting
from plimsoll.core.link import Link
from plimsoll.core.roster import Host, Roster

COMING = (State.DARK, State.CUTTING, State.HOLD)
OFF = "the hand-over is off"


class Slot(NamedTuple):
    """A place kept for a subscriber, in one session. By `replay` it is taken by RESUME only."""

    session: str
    until: float
    replay: bool


class Receiving:
    """An edge's side of the hand-overs that bring subscribers here. `slots` by subscriber."""

    def __init__(self, host: Host, roster: Roster) -> None:
        self.host, self.roster = host, roster
        self.slots: dict[str, Slot] = {}
        self._attached: defaultdict[str, list[str]] = defaultdict(list)
        self._done: defaultdict[str, list[str]] = defaultdict(list)
        self.counting = Counting(host, roster)

    def gathered(self) -> list[r.Attached | r.Done | r.Counts]:
        """What the head is to be told of this round."""
        told: list[r.Attached | r.Done | r.Counts] = [
            *(r.Attached(session, members) for session, members in self._attached.items()),
            *self._moved(),
            *self.counting.gathered(),
        ]
        self._attached.clear()
        self._done.clear()
        return told

    def _moved(self) -> Iterator[r.Done]:
        """Who has moved here, with what is asked for them; that takes room, so a record is about some of them."""
        checks = self.counting.checks
        for session in {**self._done, **checks}:
            members, asked = self._done.get(session, []), checks.pop(session, {})
            everybody = [*members, *(x for x in asked if x not in members)]
            at_once = CHECKS_AT_ONCE if asked else len(everybody)
            for at in range(0, len(everybody), at_once):
                part = set(everybody[at : at + at_once])
                told = [x for x in members if x in part]
                about = [check for x, check in asked.items() if x in part]
                yield r.Done(session, told, self.host.config.name if about else "", about)

    def has_room(self, subscriber: str) -> bool:
        """Whether one more subscriber fits in, places that are kept for others counted."""
        records, most = self.roster.records, self.host.config.limits.max_subscribers
        if subscriber in records or subscriber in self.slots or len(records) + len(self.slots) < most:
            return True
        return len(records.keys() | self.slots.keys()) < most

    # -- places

    def on_prepare(self, prepare: r.Prepare) -> None:
        slot = Slot(prepare.session, self.host.now + prepare.seconds, prepare.replay)
        kept, refused = [], defaultdict(list)
        for x in prepare.members:
            if why := self._no_place(x, prepare.session):
                refused[why].append(x)
            else:
                kept.append(x)
                if not self._is_coming(x, prepare.session, State.CUTTING, State.HOLD):
                    self.slots[x] = slot
        for why, members in refused.items():
            self.host.up(r.Nak(prepare.session, members, why))
        if kept:
            self.host.up(r.Slot(prepare.session, kept, self.host.config.advertised, self.host.public_key))

    def keeps(self, x: str, session: str | None) -> bool:
        """Whether there is a place for it here, in a hand-over by replay of this name."""
        slot = self.slots.get(x)
        return slot is not None and slot.replay and slot.session == session

    def _no_place(self, x: str, session: str) -> str:
        name = self.host.config.name
        if self.host.is_leaving:
            return f"{name} is leaving"
        if (slot := self.slots.get(x)) is not None and slot.session != session:
            return f"{name} keeps a place for it in another hand-over"
        record = self.roster.records.get(x)
        if record is not None and record.state is State.ENDING and not record.keeps_place:
            self.roster.close(record)  # it has had its END, and comes back
        elif record is not None and not self._is_coming(x, session, *COMING):
            return f"{name} has a record of it"
        return "" if self.has_room(x) else f"{name} has as many subscribers as it may have"

    def _is_coming(self, x: str, session: str, *states: State) -> bool:
        record = self.roster.records.get(x)
        return record is not None and record.coming == session and record.state in states

    def _free(self, x: str, session: str) -> None:
        if (slot := self.slots.get(x)) is not None and slot.session == session:
            del self.slots[x]

    def expire(self) -> None:
        """Places that were not cut in time, and the attachments in them."""
        for x, slot in [item for item in self.slots.items() if not self.host.now < item[1].until]:
            del self.slots[x]
            if self._is_coming(x, slot.session, State.DARK):
                self.roster.shut(self.roster.records[x], "session", "there was no cut in time; stay where you are")

    # -- attaching

    def on_attach(self, link: Link, attach: r.Attach) -> None:
        held = [
            r.HeldItem(item.attachment, item.version)
            for item in attach.members
            if self._attaches(link, item, attach.session)
        ]
        if held:
            self.host.say(link, r.Held(held))

    def _attaches(self, link: Link, item: r.AttachItem, session: str) -> bool:
        """Whether this one has a place, and its whole list can be taken."""
        self.roster.vacate(link, item.attachment)
        if code := self._refusal(link, item, session):
            self.host.say(link, r.Shut(item.attachment, code, REFUSALS[code]))
            self._give_up(item.subscriber, session, REFUSALS[code])
            return False
        attachment = self.roster.open(link, item)
        attachment.state, attachment.coming, attachment.keeps_place = State.DARK, session, False
        if not self._takes_all(attachment, item.subscriptions):
            return False
        self._attached[session].append(item.subscriber)
        return True

    def _refusal(self, link: Link, item: r.AttachItem, session: str) -> str:
        if not link.grant.subscribes:
            return NOT_GRANTED
        if self.host.is_leaving:
            return "leaving"
        slot = self.slots.get(item.subscriber)
        if slot is None or slot.session != session or slot.replay or item.subscriber in self.roster.records:
            return "session"
        return out_of_bounds(item)

    def _takes_all(self, attachment: Attachment, items: Iterable[r.SubscriptionItem]) -> bool:
        """Take subscriptions; the first that cannot be taken ends the attachment: at the source all of them count."""
        for item in items:
            try:
                self.roster.holdings.take(attachment, item)
            except ValueError as error:
                self.host.counters["subscriptions_refused"] += 1
                text = f"subscription {item.id} cannot be taken here: {error}"
                self.roster.shut(attachment, "session", text)
                self._give_up(attachment.subscriber, attachment.coming, text)
                return False
        return True

    def _give_up(self, x: str, session: str, why: str) -> None:
        """The subscriber will not attach here, unless it has already."""
        slot = self.slots.get(x)
        if slot is not None and slot.session == session and not self._is_coming(x, session, *State):
            del self.slots[x]
            self.host.up(r.Nak(session, [x], why))

    def on_subs(self, attachment: Attachment, subs: r.Subs) -> None:
        """A change of a list that nobody is matched against yet."""
        attachment.version = subs.version
        self.roster.holdings.remove(attachment, subs.removes)
        if self._takes_all(attachment, subs.adds):
            self.host.say(attachment.link, r.Held([r.HeldItem(attachment.id, subs.version)]))

    # -- the cut

    def on_install(self, install: r.Install) -> None:
        """handover.md, Record of x at an edge: from dark to cutting, all members in one covering update."""
        records, session = self.roster.records, install.session
        going = [records[x] for x in install.members if self._is_coming(x, session, State.DARK)]
        missing = [x for x in install.members if not self._is_coming(x, session, *COMING)]
        if missing:
            self.host.up(r.Nak(session, missing, "is not attached at the target"))
        if not going:
            return
        for one in going:
            one.state, one.keeps_place = State.CUTTING, True
            self._free(one.subscriber, session)  # its place is its record from here on
        cover = self.roster.install({one: self.roster.holdings.numbered(one) for one in going})
        items = [r.MemberItem(one.subscriber, one.epoch) for one in going]
        self.host.up(r.CutRequest(session, cover, items))

    def on_installed(self, installed: r.Installed) -> None:
        """From here on what the stream has for these is theirs here."""
        self.host.position = max(self.host.position, installed.position)
        for x, since in zip(installed.members, installed.since, strict=True):
            if not self._is_coming(x, installed.session, State.CUTTING):
                continue
            one = self.roster.records[x]
            one.state, one.since, one.position = State.HOLD, since, installed.position
            one.front_epoch = self.host.head_epoch
            self.roster.queues.route(one)
            if one.has_go:
                self._go(one)

    def on_go(self, link: Link, go: r.Go) -> None:
        for item in go.members:
            one = self.roster.attached(link, item.attachment)
            if one is None or one.coming != go.session:
                continue
            one.counts_from = (item.since, item.marks) if item.since is not None else None
            if one.state is State.HOLD:
                self._go(one)
            else:
                one.has_go = one.state is State.CUTTING

    def _go(self, one: Attachment) -> None:
        self._done[one.coming].append(one.subscriber)
        self.counting.check(one, one.coming)
        one.coming = ""
        self.roster.queues.live(one)

    def resumed(self, one: Attachment) -> None:
        """By replay it has moved with its RESUME, if that named the session; its place here is taken."""
        if one.counts_from is not None:
            self.counting.check(one, one.moved_by)

    def hold_full(self, one: Attachment) -> None:
        """handover.md, Replay, and full hold buffers: it drains the source, and resumes at END from the cut."""
        self.host.counters["holds_full"] += 1
        self.roster.shut(one, "hold", "more was held than your queue may have; go on where you are until END")

    # -- ends

    def on_abort(self, abort: r.Abort) -> None:
        gone = []
        for item in abort.members:
            self._free(item.subscriber, abort.session)
            if self._is_coming(item.subscriber, abort.session, *State):
                gone.append(self.roster.records[item.subscriber])
        self.roster.evict(gone, "session", OFF)

    def on_part(self, part: r.Part) -> None:
        """handover.md, Time: the head's patience after a cut has ended; the place stays under its lease.

        Of who has gone live here DONE has been said: across clusters that may be lost with a link, so it is said again.
        """
        for item in part.members:
            self._free(item.subscriber, part.session)
            record = self.roster.records.get(item.subscriber)
            if record is None or record.epoch != _next(item):
                continue
            if record.coming == part.session:
                self.roster.shut(record, "parted", "the hand-over took longer than it may; resume from your token")
            else:
                self._done[part.session].append(item.subscriber)

    def on_orphan(self, orphan: r.Orphan) -> None:
        """handover.md, Restart of a head: who decides has forgotten, or cannot be reached."""
        gone = []
        for x in orphan.members:
            self._free(x, orphan.session)
            if self._is_coming(x, orphan.session, State.DARK, State.CUTTING):
                gone.append(self.roster.records[x])
            elif self._is_coming(x, orphan.session, State.HOLD):
                self.roster.shut(self.roster.records[x], "session", OFF)
        self.roster.evict(gone, "session", OFF)

    def leave(self) -> None:
        """This edge goes: nobody comes here any more."""
        refused = defaultdict(list)
        for x, slot in self.slots.items():
            refused[slot.session].append(x)
        self.slots.clear()
        for one in [one for one in self.roster.records.values() if one.coming]:
            self.roster.shut(one, "leaving", REFUSALS["leaving"])
        for session, members in refused.items():
            self.host.up(r.Nak(session, members, f"{self.host.config.name} is leaving"))

    def restart(self) -> None:
        """The head has forgotten all sessions, and so does its edge; attachments are dealt with before."""
        self.counting.restart()
        self.slots.clear()
        self._attached.clear()
        self._done.clear()


def _next(item: r.MemberItem) -> tuple[int, int]:
    """The owner epoch that a member has at the target."""
    incarnation, n = item.epoch
    return incarnation, n + 1
