"""Under any interleaving of publications, changes, pauses and steps of sessions: exactly what matches, once, in order.

A subscriber follows the rules of hand-over between two real edges; a scripted head decides nothing and has no deadline.
"""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.core.head.handover.script import Stage, is_empty, singly
from tests.examples import examples

from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol import wire

ALWAYS = {1: "[k,=,1]", 2: "[k,<,2]"}
ADDED, REMOVED = 3, 4
TEXTS = {**ALWAYS, ADDED: "[k,=,2]", REMOVED: "[k,=,3]"}
LARGE = 700


class Subscriber:
    """`x`, as a client should be. `place`: its current edge and attachment; `next`: those at the target."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.place: tuple[str, int] = ("a", 1)
        self.next: tuple[str, int] | None = None
        self.session = ""
        self.n, self.version, self.last = 2, 1, 1
        self.ids = [1, 2, REMOVED]
        self.token: wire.Token = ("h", 100, 0)
        self.paused = False
        self.acked: dict[tuple[str, int], int] = {}
        self.read = {"a": 0, "b": 0}
        self.taken: list[int] = []
        items = [msg.SubscriptionItem(i, TEXTS[i]) for i in self.ids]
        stage.ask("a", msg.Resume(1, "x", (1, 2), 1, items, msg.Policy("block", 4000), None, []))

    def say(self, place: tuple[str, int] | None, kind: Any, *fields: Any) -> None:
        if place is not None:
            self.stage.client.tell(place[0], kind(place[1], *fields))

    def detach(self, place: tuple[str, int] | None, withdraw: bool) -> None:
        if place is not None:
            self.stage.client.tell(place[0], msg.Detach([place[1]], withdraw))

    def listen(self) -> None:
        """Handle what has arrived."""
        for edge in ("a", "b"):
            heard = self.stage.client.heard[edge]
            while self.read[edge] < len(heard):
                record = heard[self.read[edge]]
                self.read[edge] += 1
                for number, said in singly(record):
                    if (place := (edge, number)) in (self.place, self.next):
                        self.hear(place, said)

    def hear(self, place: tuple[str, int], record: Any) -> None:
        if isinstance(record, msg.Deliver):
            assert place == self.place, "nothing comes from the target before GO"
            assert isinstance(record.item, msg.PubOpen), record
            self.taken.append(record.item.position)
            self.token = (*self.token[:2], record.item.position)
        elif isinstance(record, msg.HeldItem | msg.Suback):
            self.acked[place] = max(self.acked.get(place, 0), record.version)
        elif isinstance(record, msg.MoveTo):
            self.session, self.last = record.session, self.last + 1
            self.next = (record.edge, self.last)
            items = [msg.SubscriptionItem(i, TEXTS[i]) for i in self.ids]
            policy = msg.Policy("block", 4000)
            item = msg.AttachItem(self.last, "x", (1, self.n + 1), self.version, items, policy)
            self.stage.client.tell(record.edge, msg.Attach(record.session, [item]))
        elif isinstance(record, msg.Stay):
            self.detach(self.next, False)
            self.next = None
        elif isinstance(record, msg.End):
            self.end(record)
        elif isinstance(record, msg.AttachmentClosed):
            assert record.code in ("hold", "session"), record
            if place == self.next:
                self.next = None
            else:
                assert record.code == "hold", "it has crossed GO"
                self.resume(place[0])

    def end(self, end: msg.End) -> None:
        self.detach(self.place, False)
        self.n, self.token, self.session = self.n + 1, end.token, end.session
        if self.next is None:  # its hold was full
            self.resume("b" if self.place[0] == "a" else "a")
            return
        self.place, self.next = self.next, None
        if self.paused:
            self.say(self.place, msg.Pause)
        self.stage.client.tell(self.place[0], msg.Go(end.session, [msg.GoItem(self.place[1])]))

    def resume(self, edge: str) -> None:
        self.n, self.last = self.n + 2, self.last + 1
        self.place = (edge, self.last)
        items = [msg.SubscriptionItem(i, TEXTS[i]) for i in self.ids]
        policy = msg.Policy("block", 4000)
        self.say(self.place, msg.Resume, "x", (1, self.n), self.version, items, policy, self.token, [], self.session)
        if self.paused:
            self.say(self.place, msg.Pause)

    def change(self, adds: list[int], removes: list[int]) -> int:
        self.version += 1
        self.ids = [i for i in [*self.ids, *adds] if i not in removes]
        for place in (self.place, self.next):
            self.say(place, msg.Subs, self.version, [msg.SubscriptionItem(i, TEXTS[i]) for i in adds], removes)
        return self.version

    def counts(self, version: int) -> bool:
        """Whether a change is acknowledged by all edges that must."""
        return all(self.acked.get(place, 0) >= version for place in (self.place, self.next) if place is not None)

    def pause(self, paused: bool) -> None:
        if paused != self.paused:
            self.paused = paused
            self.say(self.place, msg.Pause if paused else msg.Continue)


class Run:
    """One interleaving. `published`: position, k, whether the addition and the removal counted then."""

    def __init__(self) -> None:
        self.stage = Stage(block_seconds=1000.0, lease_seconds=1000.0)
        self.x = Subscriber(self.stage)
        self.source, self.target = "a", "b"
        self.number, self.phase = 1, "idle"
        self.added = self.removed = 0
        self.published: list[tuple[int, int, bool, bool]] = []

    @property
    def session(self) -> str:
        return f"7.{self.number}"

    def member(self) -> list[msg.MemberItem]:
        return [msg.MemberItem("x", self.stage.edge(self.source).attachments.by_subscriber["x"].epoch)]

    def do(self, step: str) -> None:
        self.x.listen()
        getattr(self, f"_{step.partition(' ')[0]}")(*step.split()[1:])

    def _pub(self, k: str, size: str) -> None:
        added = bool(self.added) and self.x.counts(self.added)
        removed = bool(self.removed) and self.x.counts(self.removed)
        self.stage.head.publish("a", "b", k=int(k), size=int(size))
        self.published.append((self.stage.head.position, int(k), added, removed))

    def _burst(self) -> None:
        for _ in range(4):
            self._pub("1", str(LARGE))

    def _add(self) -> None:
        self.added = self.added or self.x.change([ADDED], [])

    def _remove(self) -> None:
        self.removed = self.removed or self.x.change([], [REMOVED])

    def _pause(self) -> None:
        self.x.pause(True)

    def _continue(self) -> None:
        self.x.pause(False)

    def _rounds(self, count: str) -> None:
        for _ in range(int(count)):
            self.stage.fleet.round()

    def _wait(self) -> None:
        self.stage.run(0.03)

    def _fetches(self) -> None:
        self.stage.head.fetches = not self.stage.head.fetches

    def _session(self) -> None:
        """The next step of a session, if it is due."""
        head, heard = self.stage.head, self.stage.head.heard
        said = [*heard[self.source], *heard[self.target]]
        mine = [type(record) for record in said if getattr(record, "session", "") == self.session]
        if self.phase == "idle":
            head.tell(self.target, msg.Prepare(self.session, ["x"], 1000.0, False))
            self.phase = "preparing"
        elif msg.HandoverRejected in mine and self.phase in ("moving", "cutting"):
            self._abort()
        elif self.phase == "preparing" and msg.Slot in mine:
            endpoint = f"mem://{self.target}"
            head.tell(self.source, msg.StartMove(self.session, self.member(), self.target, endpoint, ""))
            self.phase = "moving"
        elif self.phase == "moving" and msg.TargetAttached in mine:
            head.tell(self.target, msg.Install(self.session, ["x"]))
            self.phase = "cutting"
        elif self.phase == "cutting" and msg.CutRequest in mine:
            asked = head.of(self.target, msg.CutRequest)[-1]
            installed = msg.Installed(self.session, ["x"], head.position, [(100, 0)])
            head.tell(self.target, msg.CoverAck(asked.cover.seq, []), installed)
            head.tell(self.source, msg.Cut(self.session, self.member(), head.token(), False))
            self.phase = "cut"
        elif self.phase == "cut" and (msg.Done in mine or msg.ResumeUp in mine):
            self.source, self.target = self.target, self.source
            self.number, self.phase = self.number + 1, "idle"

    def _abort(self) -> None:
        if self.phase in ("preparing", "moving", "cutting"):
            for edge in (self.source, self.target):
                self.stage.head.tell(edge, msg.Abort(self.session, self.member()))
            self.number, self.phase = self.number + 1, "idle"

    def finish(self) -> None:
        """Let everything settle, with a cut carried out to its end."""
        self.stage.head.fetches = True
        self.x.pause(False)
        for _ in range(60):
            if self.phase in ("cut", "idle"):
                break
            self.do("session")
            self.stage.run(0.02)
        for _ in range(40):
            self.x.listen()
            self.stage.head.fetch()
            self.stage.run(0.05)
            if self.phase == "cut":
                self.do("session")
        self.x.listen()

    def check(self) -> None:
        taken = self.x.taken
        assert taken == sorted(set(taken)), "each once, in order"
        got = set(taken)
        for position, k, added, removed in self.published:
            if k == 1 or (k == 2 and added):
                assert position in got, f"{position} (k={k}) is lost"
            elif (k == 2 and not self.added) or (k == 3 and removed) or k == 9:
                assert position not in got, f"{position} (k={k}) was not asked for"
        assert self.phase == "idle", "a session that was cut has come to its end"
        self.x.detach(self.x.place, True)
        self.stage.run(0.2)
        assert is_empty(self.stage.edge("a"))
        assert is_empty(self.stage.edge("b"))


STEPS = st.one_of(
    st.sampled_from(["session", "session", "wait", "pub 1 0", "pub 2 0", "pub 3 0", "burst", "pub 9 0"]),
    st.sampled_from(["session", "add", "remove", "pause", "continue", "fetches", "abort", "rounds 1", "rounds 2"]),
)


@settings(max_examples=examples(150), deadline=None)
@given(st.lists(STEPS, max_size=70))
def test_under_any_interleaving_each_comes_once_and_in_order(steps: list[str]):
    run = Run()
    for step in steps:
        run.do(step)
    run.finish()
    run.check()
