"""The edge that a subscriber goes from: it says where to, and where its stream ends.

Laws of the place:
- Only an attachment that has the owner epoch that the head names is touched: anything else is older, or newer.
- CUT is a point in the stream. What came before it reaches the subscriber ahead of END, from its queue or from the
  head's log; nothing behind it does.
- Within a cluster the cut ends the subscriber's place here. Across clusters it stays in the cover until RELEASE:
  publications still come this way for those that do not know better yet.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from functools import partial

from plimsoll.core import records as r
from plimsoll.core import wire
from plimsoll.core.attachment import HANDLE_BYTES, Attachment, State
from plimsoll.core.link import Link
from plimsoll.core.roster import Host, Roster
from plimsoll.core.wire import Token

BEHIND = (State.BLOCKED, State.CATCHUP)


class Giving:
    """An edge's side of the hand-overs that take subscribers away."""

    def __init__(self, host: Host, roster: Roster) -> None:
        self.host, self.roster = host, roster

    def _of(self, item: r.MemberItem) -> Attachment | None:
        """The record that a head means, attached or not."""
        record = self.roster.records.get(item.subscriber)
        return record if record is not None and record.epoch == item.epoch else None

    def on_move(self, move: r.Move) -> None:
        stay = []
        told: defaultdict[Link, list[r.MoveToItem]] = defaultdict(list)
        for item in move.members:
            one = self._of(item)
            if one is None or one.state is not State.LIVE or one.going not in ("", move.session):
                stay.append(item.subscriber)
                continue
            one.going = move.session
            told[one.link].append(r.MoveToItem(one.id, one.epoch))
        for link, members in told.items():
            self.host.say(link, r.MoveTo(move.session, members, move.edge, move.endpoint, move.public_key))
        if stay:
            self.host.up(r.Nak(move.session, stay, "is not attached at the source, or does not keep up there"))

    # -- the cut

    def on_cut(self, cut: r.Cut) -> None:
        """handover.md, Local and Across clusters: all up to here, then END."""
        ending, gone = [], []
        for item in cut.members:
            one = self._of(item)
            if one is None or one.state is State.ENDING:
                continue
            one.keeps_place = one.keeps_place and cut.across
            if one.state is State.LIVE or one.state in BEHIND:
                one.end = (self.host.position, cut.session, cut.token)
                if one.state is State.LIVE or one.position >= self.host.position:
                    ending.append(one)
            elif not one.keeps_place:
                gone.append(one)
        self.end(ending)
        self.roster.evict(gone, "released", "another edge serves this subscriber now")

    def end(self, attachments: Iterable[Attachment]) -> None:
        """All up to the cut has been queued for these: END, and they are matched no more."""
        removes: list[int] = []
        at_once: defaultdict[tuple[Link, str, Token], list[int]] = defaultdict(list)
        for one in attachments:
            if one.end is None:
                raise RuntimeError(f"{one.subscriber} has not been cut")
            (_, session, token), one.end, one.going = one.end, None, ""
            self.roster.cursor.leave(one)
            if not self.roster.queues.end(one, partial(self._end, session, token, [one.id])):
                at_once[one.link, session, token].append(one.id)
            self.roster.holdings.uninstall(one)
            if not one.keeps_place:
                removes += self.roster.holdings.uncover(one)
        for (link, session, token), numbers in at_once.items():
            link.buffer.append(self._end(session, token, numbers))
            self.host.dirty[link] = None
        self.roster.withdraw(removes)

    def _end(self, session: str, token: Token, numbers: list[int]) -> bytes:
        end = r.End(session, token, numbers)
        self.host.count_said(end)
        return wire.encode(end)

    # -- other ends

    def on_abort(self, abort: r.Abort) -> None:
        for item in abort.members:
            one = self._of(item)
            if one is not None and one.going == abort.session and one.state is not State.CLOSED:
                one.going = ""
                self.host.say(one.link, r.Stay(one.id, abort.session))

    def on_part(self, part: r.Part) -> None:
        """handover.md, Time: nobody waits any longer for the subscriber to take what it has here."""
        for item in part.members:
            if (one := self._of(item)) is not None:
                self.roster.shut(one, "parted", "the hand-over took longer than it may; resume from your token")

    def on_revoke(self, revoke: r.Revoke) -> None:
        """handover.md, Replay: not in the stream, so nothing that has not left its link goes to these any more."""
        if revoke.head_epoch != self.host.head_epoch:
            return
        by_link: defaultdict[Link, list[Attachment]] = defaultdict(list)
        for item in revoke.members:
            one = self._of(item)
            if one is not None and one.state not in (State.CLOSED, State.DARK, State.ENDING):
                by_link[one.link].append(one)
        for link, attachments in by_link.items():
            self._revoke(revoke, link, attachments)

    def _revoke(self, revoke: r.Revoke, link: Link, attachments: list[Attachment]) -> None:
        queued = {handle for one in attachments for handle in (one.handle, one.epoch_handle)}
        numbers = [one.id for one in attachments]
        for one in attachments:
            self.roster.close(one)
        moved = r.Moved(numbers, revoke.edge, revoke.endpoint, revoke.public_key, revoke.session)
        self.host.count_said(moved)
        link.buffer[:] = [
            wire.encode(moved),
            *(record for record in link.buffer if record[:HANDLE_BYTES] not in queued),
        ]
        self.roster.ports[link].sent()
        self.host.dirty[link] = None

    def restart(self) -> None:
        """The head has forgotten all sessions."""
        for one in self.roster.records.values():
            one.going = ""
