"""Brokers of docs/handover.md, short, with their true state: the rules by which they serve one subscriber and move it.

Three edges: `e` and `o` of the head `h`, `f` of the head `g`, which has everything from `h`, later and under positions
of its own. An action takes a number `n`, by which it chooses. `test_handover_orders.py` has the faults and the laws.
"""

from __future__ import annotations

from collections import deque
from typing import Any

from plimsoll.core.protocol import messages as msg

EDGES = ("e", "o", "f")
HEAD_OF = {"e": "h", "o": "h", "f": "g"}
G_EPOCH, G_FIRST = 9, 100


class Record:
    """The subscriber at an edge. `at`: how far it has been served, in its head's log. `until`: where the cut is."""

    def __init__(self, attachment: int, state: str, version: int, at: tuple[int, int] = (0, 0)) -> None:
        self.attachment, self.state, self.version = attachment, state, version
        self.epoch, self.at = at
        self.until: int | None = None


class Session:
    """One hand-over, as the head of the source sees it."""

    def __init__(self, name: str, source: str, target: str) -> None:
        self.name, self.source, self.target = name, source, target
        self.state = "attaching"
        self.token: Any = None
        self.version = 0


class Brokers:
    """Heads, edges and what is on the way from them."""

    def __init__(self, kit: Any) -> None:
        self.kit, self.stage = kit, kit.stage()
        self.stage.head.edge = None
        self.scripts: dict[str, Any] = {"e": self.stage.edge}
        for name in EDGES[1:]:
            self.scripts[name] = self.stage.wire.add(kit.script(name, "edge", 1), f"tcp://{name}")
        self.records: dict[str, Record] = {}
        self.out: dict[str, deque[Any]] = {name: deque() for name in EDGES}
        self.heard = dict.fromkeys((*EDGES, "h"), 0)
        self.epoch = 5
        self.logs: dict[str, list[tuple[int, int]]] = {"h": [], "g": []}
        self.published = 0
        self.start: int | None = None
        self.owner = 0
        self.session: Session | None = None
        self.sessions = 0
        self.acked: dict[int, int] = {}
        self.taking_over: set[int] = set()
        self.lost_to = 0
        self.moves = 0
        self.subscriber = self.stage.client.subscriber("s")

    # -- the wire

    def run(self, seconds: float = 0.0) -> None:
        """Let the client see what was sent."""
        self.stage.run(seconds)

    def address(self, edge: str) -> str:
        return str(self.kit.edge) if edge == "e" else f"tcp://{edge}"

    def hear(self, n: int) -> None:
        """An edge handles some of the messages it has received."""
        names = [name for name in EDGES if self.heard[name] < len(self.scripts[name].heard)]
        if names:
            edge = names[n % len(names)]
            for record in self.scripts[edge].heard[self.heard[edge] :][: 1 + n // 3]:
                self.heard[edge] += 1
                getattr(self, "receives_" + type(record).__name__.lower())(edge, record)

    def say(self, n: int) -> None:
        """An edge sends some of its pending messages."""
        names = [name for name in EDGES if self.out[name]]
        if names:
            edge = names[n % len(names)]
            if not self.scripts[edge].handshakes.accepted_links():
                self.out[edge].clear()
            for _ in range(min(len(self.out[edge]), 1 + n // 3)):
                self.scripts[edge].tell(self.out[edge].popleft())
            self.run()

    def exchange(self, n: int) -> None:
        """Every pending message is sent and received."""
        for i in range(n):
            self.hear(9 + i)
            self.say(9 + i)

    # -- the stream

    @property
    def h_log(self) -> list[tuple[int, int]]:
        return self.logs["h"]

    def publish(self, n: int) -> None:
        for _ in range(1 + n % 3):
            self.published += 1
            self.h_log.append((self.epoch, self.published))

    def relay(self, n: int) -> None:
        """`g` receives some more of the publications of `h`."""
        behind = self.behind()
        self.logs["g"] += behind[: 1 + n]

    def behind(self) -> list[tuple[int, int]]:
        last = self.logs["g"][-1][1] if self.logs["g"] else 0
        return [each for each in self.h_log if each[1] > last]

    def epoch_of(self, head: str) -> int:
        return self.epoch if head == "h" else G_EPOCH

    def end_of(self, head: str) -> int:
        return len(self.logs[head]) + self.first(head)

    @staticmethod
    def first(head: str) -> int:
        return 0 if head == "h" else G_FIRST

    def deliver(self, n: int) -> None:
        """An edge has more for the subscriber."""
        for edge, record in self.records.items():
            if record.state in ("live", "ending"):
                for _ in range(1 + n):
                    self.deliver_one(edge, record)

    def deliver_one(self, edge: str, record: Record) -> None:
        head = HEAD_OF[edge]
        end = self.end_of(head) if record.until is None else record.until
        if record.at < end:
            record.at += 1
            epoch, index = self.logs[head][record.at - 1 - self.first(head)]
            self.out[edge].append(msg.Deliver(record.attachment, self.pub(record.at, epoch, index)))

    def pub(self, position: int, epoch: int, index: int) -> msg.PubOpen:
        return msg.PubOpen(position, "h", epoch, index, "p", 1, index, 0, 0, msg.Body({"n": index}, b""))

    def progress(self, n: int) -> None:
        edge = EDGES[n % 3]
        record, end = self.records.get(edge), self.end_of(HEAD_OF[edge])
        speaks = record is None or (record.state == "live" and record.at == end and record.until is None)
        behind = [] if speaks else [record.attachment]  # type: ignore[union-attr]  # without a record it speaks
        if self.scripts[edge].handshakes.accepted_links():
            self.out[edge].append(msg.Progress(end, behind))


class EdgeRules(Brokers):
    """Attachments: who is served, and how it ends."""

    def place(self, n: int) -> None:
        """The head answers a subscriber that looks for an edge."""
        script = self.stage.head
        joins = [each for each in script.heard[self.heard["h"] :] if isinstance(each, msg.Join)]
        self.heard["h"] = len(script.heard)
        if joins:
            join = joins[-1]
            edges = [edge for edge in EDGES if join.head in ("", HEAD_OF[edge])]
            edge = ([edge for edge in edges if edge not in join.exclude] or edges)[n % 2 - 1]
            script.tell(msg.Placed("s", edge, self.address(edge), ""))
            self.run()

    def receives_resume(self, edge: str, resume: msg.Resume) -> None:
        if resume.epoch[1] <= self.owner:
            self.out[edge].append(msg.AttachmentClosed(resume.attachment, "epoch", "older"))
            return
        head = HEAD_OF[edge]
        epoch, end = self.epoch_of(head), self.end_of(head)
        self.void(resume)
        self.owner = resume.epoch[1]
        gap, at = None, end
        if resume.token is not None:
            assert resume.token[0] == head, "it has resumed where its token says nothing"
            at = resume.token[2]
            if resume.token[1] != epoch:
                gap, at = self.gap(resume.token[1], at + 1), 0
        else:
            self.start = self.published - (len(self.behind()) if head == "g" else 0)
        self.records[edge] = Record(resume.attachment, "live", resume.version, (epoch, at))
        self.out[edge].append(msg.Resumed(resume.attachment, head, epoch, at, gap, False))

    def void(self, resume: msg.Resume) -> None:
        """A RESUME ends all other state of the subscriber."""
        session, self.session = self.session, None
        if (resume.epoch[1] - self.owner) % 2:
            # END raises the epoch by one, RESUME by two.
            assert session is not None
            assert resume.session == session.name, "a RESUME behind END names the session"
        for edge, record in list(self.records.items()):
            self.shut_record(edge, record, "released")

    def gap(self, epoch: int, low: int) -> msg.Gap:
        """All of older epochs of `h` that the subscriber may have missed."""
        return msg.Gap("h", epoch, low, self.epoch, 0, [("h", epoch, self.lost_to)], "restart")

    def shut_record(self, edge: str, record: Record, code: str) -> None:
        self.out[edge].append(msg.AttachmentClosed(record.attachment, code, "so"))
        self.close(edge, record)

    def close(self, edge: str, record: Record) -> None:
        del self.records[edge]
        session = self.session
        if session is not None and edge == session.target:
            session.version = record.version
        if session is not None and session.state == "attaching" and edge in (session.source, session.target):
            self.abort(session)

    def abort(self, session: Session) -> None:
        self.session = None
        if (source := self.records.get(session.source)) is not None:
            self.out[session.source].append(msg.Stay(source.attachment, session.name))
        target = self.records.get(session.target)
        if target is not None and target.state == "dark":
            self.shut_record(session.target, target, "session")

    def at(self, edge: str, attachment: int) -> Record | None:
        record = self.records.get(edge)
        return record if record is not None and record.attachment == attachment else None

    def receives_detach(self, edge: str, detach: msg.Detach) -> None:
        for number in detach.attachments:
            if (record := self.at(edge, number)) is not None:
                self.close(edge, record)

    def receives_pause(self, edge: str, pause: msg.Pause) -> None:
        """Nothing: deliveries that the edge holds are like any that come late."""

    receives_continue = receives_pause

    def receives_subs(self, edge: str, subs: msg.Subs) -> None:
        if (record := self.at(edge, subs.attachment)) is not None:
            assert subs.version > record.version
            record.version = subs.version
            if record.state == "dark":
                self.out[edge].append(msg.Held([msg.HeldItem(record.attachment, record.version)]))

    def ack(self, n: int) -> None:
        """The edges acknowledge what they have, except one whose stream has ended: it sends no more requests."""
        for edge, record in self.records.items():
            if record.state in ("live", "hold") and record.until is None:
                self.acked[record.attachment] = record.version
                self.out[edge].append(msg.Suback(record.attachment, record.version, []))


class SessionRules(EdgeRules):
    """A hand-over: it begins, both edges have the subscriber, it is cut, and the target goes on."""

    def move(self, n: int) -> None:
        live = [edge for edge, record in self.records.items() if record.state == "live" and record.until is None]
        if self.session is not None or not live:
            return
        source = live[0]
        target = [edge for edge in EDGES if edge != source][n % 2]
        if target in self.records:
            return
        self.sessions += 1
        session = self.session = Session(f"4.{self.sessions}", source, target)
        epoch = (self.stage.client.incarnation, self.owner)
        attachment = self.records[source].attachment
        self.out[source].append(
            msg.MoveTo(session.name, [msg.MoveToItem(attachment, epoch)], target, self.address(target), "")
        )

    def receives_attach(self, edge: str, attach: msg.Attach) -> None:
        session = self.session
        (item,) = attach.members
        if session is None or (session.name, session.target) != (attach.session, edge) or edge in self.records:
            self.out[edge].append(msg.AttachmentClosed(item.attachment, "session", "no slot"))
            return
        assert item.epoch[1] == self.owner + 1
        self.records[edge] = Record(item.attachment, "dark", item.version)
        self.out[edge].append(msg.Held([msg.HeldItem(item.attachment, item.version)]))

    def stay(self, n: int) -> None:
        if self.session is not None and self.session.state == "attaching":
            self.abort(self.session)

    def cut(self, n: int) -> None:
        session = self.session
        if session is None or session.state != "attaching" or session.target not in self.records:
            return
        target, head = self.records[session.target], HEAD_OF[session.target]
        target.state, target.epoch, target.at = "hold", self.epoch_of(head), self.end_of(head)
        session.state, session.version = "cut", target.version
        session.token = (head, target.epoch, target.at)
        if head == HEAD_OF[session.source]:
            self.marked(session)
        elif head == "h":
            # What was accepted before the marker comes before it.
            self.logs["g"] += self.behind()
            self.marked(session)

    def marker(self, n: int) -> None:
        """The marker of a head further on has come back: until then the source goes on."""
        if self.session is not None and self.session.state == "cut":
            self.marked(self.session)

    def marked(self, session: Session) -> None:
        session.state = "draining"
        if (source := self.records.get(session.source)) is not None:
            source.state, source.until = "ending", self.end_of(HEAD_OF[session.source])

    def end(self, n: int) -> None:
        session = self.session
        if session is None or session.state != "draining":
            return
        source = self.records.get(session.source)
        if source is not None and source.at == source.until:
            session.state = "ended"
            if self.subscriber.handover is not None and self.subscriber.handover.next is not None:
                self.taking_over.add(self.subscriber.handover.next.id)
            self.out[session.source].append(msg.End(session.name, session.token, [source.attachment]))
            source.state = "silent"

    def receives_go(self, edge: str, go: msg.Go) -> None:
        record = self.at(edge, go.members[0].attachment)
        if record is not None:
            assert record.state == "hold"
            assert self.session is not None
            assert self.session.name == go.session
            record.state, self.session = "live", None
            self.owner += 1
            self.moves += 1
