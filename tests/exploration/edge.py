"""An edge in the explored model: it serves subscribers, and decides nothing."""

from __future__ import annotations

from typing import Any, NamedTuple

from tests.exploration.world import Epoch, Message, Node, World, get, put

UNCOVERED = ("ENDED",)
"""States of an attachment that is not in the cover."""

PLACELESS = ("STANDBY", "ENDED")
"""States of an attachment that leaves nothing behind when it closes."""

SERVED = ("LIVE", "CATCHUP", "BUFFERING", "RESUMING")
"""States in which this edge is the one that serves the subscriber."""

FOR_COORDINATOR = ("HANDOVER_REJECTED", "SLOT", "TARGET_ATTACHED")


class Attachment(NamedTuple):
    """A subscriber at an edge. `by_handover`: it came by ATTACH. `pending_end`: the cut up to which it catches up."""

    state: str
    epoch: Epoch
    number: int
    buffer: tuple[Message, ...] = ()
    is_closed: bool = False
    has_go: bool = False
    by_handover: bool = False
    position: int = 0
    pending_end: Message | None = None


class ServingEdge(Node):
    """Serves subscribers from its head's stream."""

    def __init__(self, name: str, head: str) -> None:
        self.name, self.head = name, head
        self.attachments: tuple[Any, ...] = ()
        self.slots: frozenset[str] = frozenset()
        self.cover_number = self.acked = self.position = 0
        self.announced: frozenset[str] = frozenset()
        self.waits: tuple[Any, ...] = ()

    def up(self, w: World, kind: str, *args: Any) -> None:
        """Send to the head; some messages are for the coordinator, which may be another head."""
        if kind in FOR_COORDINATOR:
            w.send(self.name, self.head, "FOR_COORDINATOR", kind, *args)
        else:
            w.send(self.name, self.head, kind, *args)

    def covering(self) -> frozenset[str]:
        return frozenset(x for x, attachment in self.attachments if attachment.state not in UNCOVERED)

    def next_cover(self) -> tuple[int, frozenset[str]]:
        """A numbered cover, also if the set has not changed."""
        self.cover_number, self.announced = self.cover_number + 1, self.covering()
        return self.cover_number, self.announced

    def update_cover(self, w: World) -> None:
        if self.covering() != self.announced:
            self.up(w, "COVER", *self.next_cover())

    def drop(self, w: World, x: str) -> None:
        is_standby = get(self.attachments, x).state == "STANDBY"
        self.attachments = put(self.attachments, x, None)
        self.waits = tuple(wait for wait in self.waits if wait[1] != x)
        if not is_standby or not w.is_off("standby-leaves-the-cover"):
            self.update_cover(w)

    def attached(self, x: str, number: int) -> Attachment | None:
        found = get(self.attachments, x)
        return found if found and found.number == number and not found.is_closed else None

    def go_live(self, w: World, x: str, attachment: Attachment) -> None:
        self.attachments = put(self.attachments, x, attachment._replace(state="LIVE", buffer=()))
        for message in attachment.buffer:
            w.send(self.name, x, "DELIVER", attachment.number, self.head, *message)

    def close(self, w: World, x: str, attachment: Attachment, kind: str = "ATTACHMENT_CLOSED") -> None:
        """Close an attachment: its queue is dropped, and the subscriber is notified ahead of it."""
        if not attachment.is_closed:
            queue = w.channels.pop((self.name, x), ())
            kept = tuple(message for message in queue if message[1] != attachment.number)
            if kept:
                w.channels[self.name, x] = kept
            w.send(self.name, x, kind, attachment.number)
        self.attachments = put(self.attachments, x, attachment._replace(is_closed=True, buffer=()))
        if attachment.state in PLACELESS:
            self.drop(w, x)

    def serves(self, x: str) -> bool:
        found = get(self.attachments, x)
        return found is not None and not found.is_closed and found.state in SERVED

    def fall_behind(self, w: World, x: str) -> None:
        attachment = get(self.attachments, x)
        if attachment is not None and attachment.state == "LIVE" and not attachment.is_closed:
            self.attachments = put(self.attachments, x, attachment._replace(state="CATCHUP", position=self.position))
            self.up(w, "FETCH", x, attachment.number, self.position)

    def on_resume(self, w: World, x: str, number: int, epoch: Epoch, token: Any, named: bool) -> None:
        self.attachments = put(self.attachments, x, Attachment("RESUMING", epoch, number))
        cover_number, cover = self.next_cover()
        self.waits = (*self.waits, (cover_number, x, number))
        self.up(w, "RESUME", x, epoch, cover_number, cover, token, named)

    def on_detach(self, w: World, x: str, number: int) -> None:
        attachment = self.attached(x, number)
        if attachment is not None:
            self._lose(w, x, attachment)

    def on_connection_lost(self, w: World, x: str) -> None:
        attachment = get(self.attachments, x)
        if attachment is not None and not attachment.is_closed:
            self._lose(w, x, attachment)

    def _lose(self, w: World, x: str, attachment: Attachment) -> None:
        if attachment.state in PLACELESS or w.is_off("stay-in-the-cover-until-release"):
            self.drop(w, x)
        else:
            self.attachments = put(self.attachments, x, attachment._replace(is_closed=True, buffer=()))

    def on_pub(self, w: World, _src: str, position: int, pid: Any) -> None:
        self.position = position
        for x, attachment in self.attachments:
            if attachment.is_closed:
                continue
            if attachment.state == "LIVE":
                w.send(self.name, x, "DELIVER", attachment.number, self.head, position, pid)
            elif attachment.state == "BUFFERING" and not w.is_off("buffer-before-go"):
                buffer = (*attachment.buffer, (position, pid))
                self.attachments = put(self.attachments, x, attachment._replace(buffer=buffer))

    def on_cover_ack(self, w: World, _src: str, number: int) -> None:
        self.acked = max(self.acked, number)
        self._acknowledge(w)

    def _acknowledge(self, w: World) -> None:
        kept = []
        for cover_number, x, number in self.waits:
            attachment = self.attached(x, number)
            if cover_number <= self.acked and attachment is not None and attachment.state != "RESUMING":
                w.send(self.name, x, "SUBACK", number)
            elif attachment is not None:
                kept.append((cover_number, x, number))
        self.waits = tuple(kept)

    def on_release(self, w: World, _src: str, x: str, epoch: Epoch) -> None:
        found = get(self.attachments, x)
        if found is not None and (found.epoch < epoch or w.is_off("release-by-epoch")):
            self.close(w, x, found)
            if get(self.attachments, x) is not None:
                self.drop(w, x)

    def on_resumed(self, w: World, _src: str, x: str, epoch: Epoch, token: Any, items: tuple[Any, ...]) -> None:
        self.position = max(self.position, token[1])
        found = get(self.attachments, x)
        if found is None or found.epoch != epoch or found.state != "RESUMING":
            return
        if found.is_closed:
            self.attachments = put(self.attachments, x, found._replace(state="LIVE"))
            return
        w.send(self.name, x, "RESUMED", found.number, token, len(items))
        self.go_live(w, x, found._replace(buffer=items))
        self._acknowledge(w)


class Edge(ServingEdge):
    """The source and the target of a hand-over, also of one that is behind."""

    def on_replay(self, w: World, _src: str, x: str, number: int, at: int, items: tuple[Any, ...], done: bool) -> None:
        attachment = self.attached(x, number)
        if attachment is None or attachment.state != "CATCHUP":
            return
        end = attachment.pending_end
        for position, pid in items:
            if end is None or position <= end[0] or w.is_off("nothing-after-the-cut"):
                w.send(self.name, x, "DELIVER", attachment.number, self.head, position, pid)
        attachment = attachment._replace(position=at)
        self.attachments = put(self.attachments, x, attachment)
        if end is not None and at >= end[0]:
            _, token, across = end
            self.on_cut(w, "", ((x, attachment.epoch),), token, across)
        elif done:
            self.attachments = put(self.attachments, x, attachment._replace(state="LIVE"))
        else:
            self.up(w, "FETCH", x, attachment.number, at)

    def on_attach(self, w: World, x: str, number: int, epoch: Epoch) -> None:
        if x not in self.slots or get(self.attachments, x):
            w.send(self.name, x, "ATTACHMENT_CLOSED", number)
            return
        self.attachments = put(self.attachments, x, Attachment("STANDBY", epoch, number, by_handover=True))
        self.update_cover(w)
        self.up(w, "TARGET_ATTACHED", x)

    def on_go(self, w: World, x: str, number: int) -> None:
        attachment = self.attached(x, number)
        if attachment is not None and attachment.state == "CUTTING":
            if not w.is_off("remember-go"):
                self.attachments = put(self.attachments, x, attachment._replace(has_go=True))
        elif attachment is not None and attachment.state == "BUFFERING":
            self.go_live(w, x, attachment)
            self.up(w, "DONE", x)

    def on_prepare(self, w: World, _src: str, xs: tuple[str, ...]) -> None:
        good = tuple(x for x in xs if get(self.attachments, x) is None or get(self.attachments, x).state == "ENDED")
        bad = tuple(x for x in xs if x not in good)
        for x in good:
            self.attachments = put(self.attachments, x, None)
        self.slots |= set(good)
        if bad:
            self.up(w, "HANDOVER_REJECTED", bad)
        if good:
            self.up(w, "SLOT", good)

    def on_start_move(self, w: World, _src: str, xs: tuple[Any, ...]) -> None:
        bad = []
        for x, epoch in xs:
            found = get(self.attachments, x)
            if found is not None and not found.is_closed and found.epoch == epoch and found.state == "LIVE":
                w.send(self.name, x, "MOVE_TO", found.number, epoch)
            elif self.serves(x):
                bad.append(x)
            else:
                self.up(w, "HANDOVER_REJECTED", (x,), self._standing(x))
        if bad:
            self.up(w, "HANDOVER_REJECTED", tuple(bad))

    def on_install(self, w: World, _src: str, xs: tuple[str, ...]) -> None:
        good = [x for x in xs if (a := get(self.attachments, x)) is not None and a.by_handover and a.state == "STANDBY"]
        bad = tuple(x for x in xs if x not in good)
        if bad:
            self.up(w, "HANDOVER_REJECTED", bad)
        for x in good:
            self.attachments = put(self.attachments, x, get(self.attachments, x)._replace(state="CUTTING"))
        if good:
            cover_number, cover = self.next_cover()
            self.waits = (*self.waits, *((cover_number, x, get(self.attachments, x).number) for x in good))
            members = tuple((x, get(self.attachments, x).epoch) for x in good)
            self.up(w, "CUT_REQUEST", cover_number, cover, members)

    def on_installed(self, w: World, _src: str, xs: tuple[str, ...], position: int) -> None:
        self.position = max(self.position, position)
        for x in xs:
            self.slots -= {x}
            attachment = get(self.attachments, x)
            if attachment is not None and attachment.by_handover and attachment.state == "CUTTING":
                attachment = attachment._replace(state="BUFFERING")
                self.attachments = put(self.attachments, x, attachment)
                if attachment.has_go:
                    self.go_live(w, x, attachment)
                    self.up(w, "DONE", x)
        self._acknowledge(w)

    def on_cut(self, w: World, _src: str, xs: tuple[Any, ...], token: Any, across: bool) -> None:
        for x, epoch in xs:
            found = get(self.attachments, x)
            if found is None or found.epoch != epoch:
                continue
            upto = found.pending_end[0] if found.pending_end else self.position
            is_behind = found.state == "CATCHUP" and not found.is_closed and found.position < upto
            if is_behind and not w.is_off("drain-before-end"):
                self.attachments = put(self.attachments, x, found._replace(pending_end=(upto, token, across)))
                continue
            if not found.is_closed:
                w.send(self.name, x, "END", found.number, token)
            stays_covered = across and not w.is_off("drain-stays-in-the-cover")
            self.attachments = put(self.attachments, x, found._replace(state="DRAINING" if stays_covered else "ENDED"))
            if not across and found.is_closed:
                self.drop(w, x)
        self.update_cover(w)

    def on_abort(self, w: World, _src: str, xs: tuple[Any, ...], ask: bool = False) -> None:
        for x, _ in xs if ask else ():
            self.up(w, "HANDOVER_REJECTED", (x,), self._standing(x))
        for x, epoch in xs:
            self.slots -= {x}
            found = get(self.attachments, x)
            if found is None:
                continue
            if found.by_handover and found.state in ("STANDBY", "CUTTING", "BUFFERING"):
                self.close(w, x, found)
                if get(self.attachments, x) is not None:
                    self.drop(w, x)
            elif found.epoch == epoch and found.state in ("LIVE", "CATCHUP") and not found.is_closed:
                w.send(self.name, x, "STAY", found.number)

    def _standing(self, x: str) -> str:
        """What the source says of a member: the outcome that its code leads to."""
        found = get(self.attachments, x)
        if self.serves(x) and not found.pending_end:
            return "stayed"
        return "away" if found is not None and found.is_closed else "gone"

    def on_revoke(self, w: World, x: str, epoch: Epoch) -> None:
        found = get(self.attachments, x)
        is_served = found is not None and found.epoch == epoch and not found.is_closed
        if is_served and found.state in ("LIVE", "CATCHUP", "RESUMING"):
            self.close(w, x, found, "MOVED")
