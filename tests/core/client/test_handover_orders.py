"""A subscriber that is moved, under any order of possible events; edges send all their messages sooner or later."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.core.client.handover_rules import EDGES, HEAD_OF, Session, SessionRules
from tests.examples import examples

from plimsoll.core.client import Acknowledged, Delivery, Forgotten, GapNotice, Lapsed
from plimsoll.core.client.attachment import ClientAttachmentState
from plimsoll.core.protocol import messages as msg

ACTIONS = (
    ("publish", 4), ("relay", 3), ("deliver", 6), ("progress", 1), ("hear", 12), ("say", 12), ("ack", 4), ("change", 3),
    ("move", 8), ("stay", 1), ("cut", 8), ("marker", 6), ("end", 8), ("shut", 1), ("shut next", 1), ("moved", 1),
    ("lose", 1), ("drop", 1), ("restart", 1), ("pause", 1), ("place", 6), ("wait", 2),
)  # fmt: skip
PLAIN = (
    "ack", "publish", "move", "exchange", "publish", "cut", "publish", "relay", "marker", "deliver", "end", "exchange",
)  # fmt: skip
STEPS = st.lists(
    st.tuples(st.sampled_from([name for name, weight in ACTIONS for _ in range(weight)]), st.integers(0, 11)),
    min_size=40,
    max_size=160,
)


class Faults(SessionRules):
    """Links that end, attachments that are closed or moved by replay, and a head that restarts."""

    def lose(self, n: int) -> None:
        """The link of an edge is over."""
        edge = EDGES[n % 3]
        script = self.scripts[edge]
        if not script.handshakes.accepted_links():
            return
        self.out[edge].clear()
        self.heard[edge] = len(script.heard)
        if (record := self.records.get(edge)) is not None:
            self.close(edge, record)
        script.handshakes.close(script.link, "lost")
        self.run()
        # What the other side had sent on the new link follows; what it sent on the old one is lost.
        self.heard[edge] = self.first_of_new_link(edge)

    def first_of_new_link(self, edge: str) -> int:
        heard = self.scripts[edge].heard
        at = len(heard)
        while at > self.heard[edge] and isinstance(heard[at - 1], msg.Resume | msg.Attach):
            at -= 1
        return at

    def drop(self, n: int) -> None:
        """A connection breaks, and is made again."""
        self.stage.wire.drop(self.address(EDGES[n % 3]))
        self.run(0.1)

    def wait(self, n: int) -> None:
        self.run((0.05, 0.3, 1.0, 4.0)[n % 4])

    def shut(self, n: int) -> None:
        """An edge that serves closes the attachment."""
        for edge, record in list(self.records.items()):
            if record.state in ("live", "ending"):
                self.shut_record(edge, record, ("parted", "leaving", "released")[n % 3])

    def shut_next(self, n: int) -> None:
        for edge, record in list(self.records.items()):
            if record.state in ("dark", "hold"):
                self.shut_record(edge, record, ("hold", "leaving", "session")[n % 3])

    def moved(self, n: int) -> None:
        """Hand-over by replay, within a cluster."""
        for edge, record in list(self.records.items()):
            if edge != "f" and record.state == "live" and self.session is None and record.until is None:
                to = "o" if edge == "e" else "e"
                if to not in self.records:
                    self.out[edge].append(msg.Moved([record.attachment], to, self.address(to), "", "3.1"))
                    del self.records[edge]

    def restart(self, n: int) -> None:
        """`h` has restarted: publications that its edges had not received are a gap, and it knows of no hand-over."""
        self.logs["g"] += self.behind()
        self.lost_to = self.published
        old, self.epoch = self.epoch, self.epoch + 1
        self.logs["h"] = []
        session = self.session
        for edge, record in list(self.records.items()):
            if HEAD_OF[edge] != "h":
                continue
            if record.state == "live" and record.until is None and not (session and session.state == "cut"):
                record.epoch = self.epoch
                self.out[edge].append(msg.Epoch(record.attachment, self.gap(old, record.at + 1)))
                record.at = 0
            else:
                self.shut_record(edge, record, "head")
        self.after_restart(session)

    def after_restart(self, session: Session | None) -> None:
        if session is None or self.session is None or "h" not in (HEAD_OF[session.source], HEAD_OF[session.target]):
            return
        if session.state == "attaching":
            self.abort(session)
        elif HEAD_OF[session.source] == "h" and (target := self.records.get(session.target)) is not None:
            self.shut_record(session.target, target, "session")


class World(Faults):
    """The application, and the laws that hold whenever it is looked at."""

    def __init__(self, kit: Any) -> None:
        super().__init__(kit)
        self.wanted: dict[int, int] = {}
        self.gone: dict[int, int] = {}
        self.serving: set[int] = set()
        self.served: set[int] = set()
        self.told = 0
        self.got: list[int] = []
        self.excused: set[int] = set()
        self.last_token: Any = None
        self.change(0)
        self.run()

    def run(self, seconds: float = 0.0) -> None:
        super().run(seconds)
        self.check()

    # -- the application

    def change(self, n: int) -> None:
        ids = list(self.subscriber.subscriptions)
        if len(ids) > 2 and n % 2:
            self.subscriber.unsubscribe(ids[0])
            self.gone[ids[0]] = self.subscriber.subscription_list.version
        else:
            new = self.subscriber.subscribe(f"[n,>,{-n}]")
            self.wanted[new] = self.subscriber.subscription_list.version
        if n % 3:
            self.run()

    def pause(self, n: int) -> None:
        self.subscriber.resume() if self.subscriber.is_paused else self.subscriber.pause()
        self.run()

    # -- the laws

    def check(self) -> None:
        serving = self.serves()
        # A target that took over at END, and was closed before this look, has served in between.
        self.serving, self.served = serving | self.served | self.taking_over, serving
        for _, event in self.stage.app.told[self.told :]:
            self.told += 1
            if isinstance(event, Delivery):
                self.got.append(event.attributes["n"])  # type: ignore[arg-type]  # publications of this test have a number there
            elif isinstance(event, GapNotice):
                self.excused.update(range(1, self.lost_to + 1))
            elif isinstance(event, Acknowledged):
                self.check_counted(max(self.wanted[i] for i in event.ids))
            elif isinstance(event, Forgotten):
                self.check_counted(max(self.gone[i] for i in event.ids))
            assert not isinstance(event, Lapsed)
        assert self.got == sorted(set(self.got)), "something is repeated or out of order"
        self.check_attachments()
        self.check_token()

    def serves(self) -> set[int]:
        """The serving attachment, and the one that serves if END has been handled before the next look."""
        subscriber = self.subscriber
        target = subscriber.handover.next if subscriber.handover is not None else None
        if self.session is not None and self.session.state != "ended":
            target = None
        return {each.id for each in (subscriber.current, target) if each is not None}

    def check_counted(self, version: int) -> None:
        """The edge that serves has acknowledged this version, and the one that will serve after a cut has it."""
        session = self.session
        assert any(self.acked.get(each, 0) >= version for each in self.serving), "who serves has not acknowledged this"
        if session is not None and session.state != "attaching":
            target = self.records.get(session.target)
            known = target.version if target is not None else session.version
            assert known >= version, "the target of a cut does not have this"

    def check_attachments(self) -> None:
        held = [each for port in self.stage.client.edge_ports.by_edge.values() for each in port.attachments.values()]
        live = [each for each in held if each.state is ClientAttachmentState.LIVE]
        current, handover = self.subscriber.current, self.subscriber.handover
        assert [each for each in held if each is not current and (handover is None or each is not handover.next)] == []
        assert len(live) <= 1
        assert all(each is current for each in live)

    def check_token(self) -> None:
        token, last = self.subscriber.token, self.last_token
        if token is not None and last is not None and token[:2] == last[:2]:
            assert token[2] >= last[2], "the token has been lowered"
        self.last_token = token

    def settle(self) -> None:
        """No more events; everything under way is finished."""
        if self.subscriber.is_paused:
            self.pause(0)
        for _ in range(60):
            for what in ("relay", "place", "marker", "end", "cut", "ack", "progress"):
                getattr(self, what)(11)
            self.deliver(11)
            self.exchange(12)
            if self.session is not None and self.session.state == "attaching":
                self.abort(self.session)
            self.run(0.5)
            if self.is_settled():
                break
        assert self.is_settled(), "it has not come to rest"
        expected = set(range((self.start or 0) + 1, self.published + 1))
        assert expected - self.excused - set(self.got) == set(), "something is lost"

    def is_settled(self) -> bool:
        quiet = not any(self.out.values()) and all(self.heard[e] == len(self.scripts[e].heard) for e in EDGES)
        records = list(self.records.items())
        return (
            quiet
            and self.session is None
            and len(records) == 1
            and records[0][1].state == "live"
            and records[0][1].at == self.end_of(HEAD_OF[records[0][0]])
            and not self.behind()
            and self.subscriber.subscription_list.is_settled
        )


@settings(max_examples=examples(300))
@given(STEPS)
def test_nothing_is_lost_repeated_or_reordered_in_any_order(kit: Any, steps: list[tuple[str, int]]):
    world = World(kit)
    for name, n in steps:
        getattr(world, name.replace(" ", "_"))(n)
    world.settle()


def test_the_world_moves_subscribers(kit: Any):
    """Plain hand-overs, within a cluster and across."""
    world = World(kit)
    world.place(0)
    world.exchange(9)
    for target in (0, 1, 0, 1):
        assert world.session is None
        for name in PLAIN:
            for n in (9, 10, 11):
                getattr(world, name)(target if name == "move" else n)
    world.settle()
    assert world.moves == 4
    assert world.subscriber.statistics()["moves"] == 4
    assert world.subscriber.statistics()["reconnects"] == 0
    assert world.got == list(range(1, world.published + 1))
    assert world.excused == set()
