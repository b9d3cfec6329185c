"""An edge in the explored world: it serves, and never decides."""

from __future__ import annotations

from typing import Any, NamedTuple

from tests.exploration.world import Epoch, Message, Node, World, get, put

UNCOVERED = ("DARK", "ENDED")
"""States that ask nothing of the head."""


class Rec(NamedTuple):
    """A subscriber at an edge."""

    state: str
    ep: Epoch
    lid: int
    buf: tuple[Message, ...] = ()
    closed: bool = False
    go: bool = False
    session: bool = False
    pos: int = 0
    end: Message | None = None


class Edge(Node):
    """Serves subscribers, and never decides."""

    def __init__(self, name: str, head: str) -> None:
        self.name, self.head = name, head
        self.recs: tuple[Any, ...] = ()
        self.slots: frozenset[str] = frozenset()
        self.cseq = self.acked = self.position = 0
        self.sent: frozenset[str] = frozenset()
        self.waits: tuple[Any, ...] = ()

    def up(self, w: World, kind: str, *args: Any) -> None:
        if kind in ("NAK", "SLOT", "ATTACHED"):
            w.send(self.name, self.head, "VIA", kind, *args)
        else:
            w.send(self.name, self.head, kind, *args)

    def covering(self) -> frozenset[str]:
        return frozenset(x for x, rec in self.recs if rec.state not in UNCOVERED)

    def force(self) -> tuple[int, frozenset[str]]:
        self.cseq, self.sent = self.cseq + 1, self.covering()
        return self.cseq, self.sent

    def recalc(self, w: World) -> None:
        if self.covering() != self.sent:
            self.up(w, "COVER", *self.force())

    def drop(self, w: World, x: str) -> None:
        self.recs = put(self.recs, x, None)
        self.waits = tuple(wait for wait in self.waits if wait[1] != x)
        self.recalc(w)

    def rec(self, x: str, lid: int) -> Rec | None:
        found = get(self.recs, x)
        return found if found and found.lid == lid and not found.closed else None

    def live(self, w: World, x: str, rec: Rec) -> None:
        self.recs = put(self.recs, x, rec._replace(state="LIVE", buf=()))
        for message in rec.buf:
            w.send(self.name, x, "PUB", rec.lid, self.head, *message)

    def shut(self, w: World, x: str, rec: Rec, kind: str = "SHUT") -> None:
        """Close an attachment: its queue goes, and the subscriber sees it at once."""
        if not rec.closed:
            queue = w.chans.pop((self.name, x), ())
            kept = tuple(message for message in queue if message[1] != rec.lid)
            if kept:
                w.chans[self.name, x] = kept
            w.send(self.name, x, kind, rec.lid)
        self.recs = put(self.recs, x, rec._replace(closed=True, buf=()))
        if rec.state in UNCOVERED:
            self.drop(w, x)

    # who is behind is served from the log, in slices

    def fall_behind(self, w: World, x: str) -> None:
        rec = get(self.recs, x)
        if rec is not None and rec.state == "LIVE" and not rec.closed:
            self.recs = put(self.recs, x, rec._replace(state="BEHIND", pos=self.position))
            self.up(w, "FETCH", x, rec.lid, self.position)

    def on_replay(self, w: World, _src: str, x: str, lid: int, at: int, items: tuple[Any, ...], done: bool) -> None:
        rec = self.rec(x, lid)
        if rec is None or rec.state != "BEHIND":
            return
        for lsn, pid in items:
            if rec.end is None or lsn <= rec.end[0] or w.off("nothing-behind-the-cut"):
                w.send(self.name, x, "PUB", rec.lid, self.head, lsn, pid)
        rec = rec._replace(pos=at)
        self.recs = put(self.recs, x, rec)
        if rec.end is not None and at >= rec.end[0]:
            _, position, across = rec.end
            self.on_cut(w, "", ((x, rec.ep),), position, across)
        elif done:
            self.recs = put(self.recs, x, rec._replace(state="LIVE"))
        else:
            self.up(w, "FETCH", x, rec.lid, at)

    # from subscribers

    def on_resume(self, w: World, x: str, lid: int, ep: Epoch, token: Any, named: bool) -> None:
        self.recs = put(self.recs, x, Rec("RESUMING", ep, lid))
        seq, cover = self.force()
        self.waits = (*self.waits, (seq, x, lid))
        self.up(w, "RESUME", x, ep, seq, cover, token, named)

    def on_attach(self, w: World, x: str, lid: int, ep: Epoch) -> None:
        if x not in self.slots or get(self.recs, x):
            w.send(self.name, x, "SHUT", lid)
            return
        self.recs = put(self.recs, x, Rec("DARK", ep, lid, session=True))
        self.up(w, "ATTACHED", x)

    def on_go(self, w: World, x: str, lid: int) -> None:
        rec = self.rec(x, lid)
        if rec is not None and rec.state == "CUTTING":
            if not w.off("remember-go"):
                self.recs = put(self.recs, x, rec._replace(go=True))
        elif rec is not None and rec.state == "HOLD":
            self.live(w, x, rec)
            self.up(w, "DONE", x)

    def on_close(self, w: World, x: str, lid: int) -> None:
        rec = self.rec(x, lid)
        if rec is not None:
            self._closed(w, x, rec)

    def on_wire(self, w: World, x: str) -> None:
        rec = get(self.recs, x)
        if rec is not None and not rec.closed:
            self._closed(w, x, rec)

    def _closed(self, w: World, x: str, rec: Rec) -> None:
        if rec.state in UNCOVERED or w.off("stay-in-the-cover-until-release"):
            self.drop(w, x)
        else:
            self.recs = put(self.recs, x, rec._replace(closed=True, buf=()))

    # from the head

    def on_pub(self, w: World, _src: str, lsn: int, pid: Any) -> None:
        self.position = lsn
        for x, rec in self.recs:
            if rec.closed:
                continue
            if rec.state == "LIVE":
                w.send(self.name, x, "PUB", rec.lid, self.head, lsn, pid)
            elif rec.state == "HOLD" and not w.off("hold-what-comes"):
                self.recs = put(self.recs, x, rec._replace(buf=(*rec.buf, (lsn, pid))))

    def on_ackc(self, w: World, _src: str, seq: int) -> None:
        self.acked = max(self.acked, seq)
        self._acknowledge(w)

    def _acknowledge(self, w: World) -> None:
        kept = []
        for seq, x, lid in self.waits:
            rec = self.rec(x, lid)
            if seq <= self.acked and rec is not None and rec.state != "RESUMING":
                w.send(self.name, x, "ACK", lid)
            elif rec is not None:
                kept.append((seq, x, lid))
        self.waits = tuple(kept)

    def on_prepare(self, w: World, _src: str, xs: tuple[str, ...]) -> None:
        good = tuple(x for x in xs if get(self.recs, x) is None or get(self.recs, x).state == "ENDED")
        bad = tuple(x for x in xs if x not in good)
        for x in good:
            self.recs = put(self.recs, x, None)
        self.slots |= set(good)
        if bad:
            self.up(w, "NAK", bad)
        if good:
            self.up(w, "SLOT", good)

    def on_move(self, w: World, _src: str, xs: tuple[Any, ...]) -> None:
        bad = []
        for x, ep in xs:
            rec = get(self.recs, x)
            if rec is not None and not rec.closed and rec.ep == ep and rec.state == "LIVE":
                w.send(self.name, x, "MOVE", rec.lid, ep)
            else:
                bad.append(x)
        if bad:
            self.up(w, "NAK", tuple(bad))

    def on_install(self, w: World, _src: str, xs: tuple[str, ...]) -> None:
        good = [x for x in xs if (rec := get(self.recs, x)) is not None and rec.session and rec.state == "DARK"]
        bad = tuple(x for x in xs if x not in good)
        if bad:
            self.up(w, "NAK", bad)
        for x in good:
            self.recs = put(self.recs, x, get(self.recs, x)._replace(state="CUTTING"))
        if good:
            seq, cover = self.force()
            self.waits = (*self.waits, *((seq, x, get(self.recs, x).lid) for x in good))
            self.up(w, "CUTREQ", seq, cover, tuple((x, get(self.recs, x).ep) for x in good))

    def on_installed(self, w: World, _src: str, xs: tuple[str, ...], position: int) -> None:
        self.position = max(self.position, position)
        for x in xs:
            self.slots -= {x}
            rec = get(self.recs, x)
            if rec is not None and rec.session and rec.state == "CUTTING":
                rec = rec._replace(state="HOLD")
                self.recs = put(self.recs, x, rec)
                if rec.go:
                    self.live(w, x, rec)
                    self.up(w, "DONE", x)
        self._acknowledge(w)

    def on_cut(self, w: World, _src: str, xs: tuple[Any, ...], position: Any, across: bool) -> None:
        for x, ep in xs:
            rec = get(self.recs, x)
            if rec is None or rec.ep != ep:
                continue
            upto = rec.end[0] if rec.end else self.position
            if rec.state == "BEHIND" and not rec.closed and rec.pos < upto and not w.off("drain-before-end"):
                self.recs = put(self.recs, x, rec._replace(end=(upto, position, across)))
                continue
            if not rec.closed:
                w.send(self.name, x, "END", rec.lid, position)
            drains = across and not w.off("drain-stays-in-the-cover")
            self.recs = put(self.recs, x, rec._replace(state="DRAIN" if drains else "ENDED"))
            if not across and rec.closed:
                self.drop(w, x)
        self.recalc(w)

    def on_abort(self, w: World, _src: str, xs: tuple[Any, ...]) -> None:
        for x, ep in xs:
            self.slots -= {x}
            rec = get(self.recs, x)
            if rec is None:
                continue
            if rec.session and rec.state in ("DARK", "CUTTING", "HOLD"):
                self.shut(w, x, rec)
                if get(self.recs, x) is not None:
                    self.drop(w, x)
            elif rec.ep == ep and rec.state in ("LIVE", "BEHIND") and not rec.closed:
                w.send(self.name, x, "STAY", rec.lid)

    def on_revoke(self, w: World, x: str, ep: Epoch) -> None:
        rec = get(self.recs, x)
        if rec is not None and rec.ep == ep and not rec.closed and rec.state in ("LIVE", "BEHIND", "RESUMING"):
            self.shut(w, x, rec, "MOVED")

    def on_release(self, w: World, _src: str, x: str, ep: Epoch) -> None:
        rec = get(self.recs, x)
        if rec is not None and (rec.ep < ep or w.off("release-by-epoch")):
            self.shut(w, x, rec)
            if get(self.recs, x) is not None:
                self.drop(w, x)

    def on_resumed(self, w: World, _src: str, x: str, ep: Epoch, position: Any, items: tuple[Any, ...]) -> None:
        self.position = max(self.position, position[1])
        rec = get(self.recs, x)
        if rec is None or rec.ep != ep or rec.state != "RESUMING":
            return
        if rec.closed:
            self.recs = put(self.recs, x, rec._replace(state="LIVE"))
            return
        w.send(self.name, x, "RESUMED", rec.lid, position, len(items))
        self.live(w, x, rec._replace(buf=items))
        self._acknowledge(w)
