"""Under any events in any order each member has one outcome, once; no cut is undone, and nothing is left over."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.core.head.handover.hosts import FAR, A, B, C, FakeHost, coordinator_of, plan
from tests.examples import examples

from plimsoll.core.head.handover.outcomes import ABORTING, ANSWER_SECONDS, CUT, OPEN, OUTCOMES
from plimsoll.core.protocol import messages as msg

NAMES = ["x", "y", "z"]
SESSIONS = ["1.1", "1.2", "1.3", "2.1"]
KEYS = {"a": A, "b": B, "c": C}
PREPARE_SECONDS, DRAIN_SECONDS, SLACK = 10.0, 20.0, 1.0

sessions = st.sampled_from(SESSIONS)
names = st.sampled_from(NAMES)
some = st.lists(names, max_size=3)
steps = st.one_of(
    st.tuples(st.just("prepare"), sessions, some, st.sampled_from(["b", "c", FAR]), st.booleans()),
    st.tuples(st.sampled_from(["cut", "abort", "ask"]), sessions),
    st.tuples(st.sampled_from(["slot", "attached", "nak", "done", "marker"]), sessions, some),
    st.tuples(st.just("cut_request"), sessions, some, st.integers(-1, 2)),
    st.tuples(st.just("resume"), names, st.none() | sessions, st.sampled_from(["a", "b", "c"]), st.integers(0, 3)),
    st.tuples(st.sampled_from(["expire", "forget"]), names),
    st.tuples(st.sampled_from(["edge_lost", "edge_back"]), st.sampled_from(["a", "b", "c"])),
    st.tuples(st.just("head_lost")),
    st.tuples(st.just("answer"), st.sampled_from(["served: here", "away: not connected", "left: not known"])),
    st.tuples(st.just("pass"), st.floats(0.0, 8.0)),
)


class World:
    """A coordinator, and what its head does around it; checks every state that it passes through."""

    def __init__(self) -> None:
        self.host = FakeHost()
        self.host.serve(A, *NAMES)
        self.coordinator = coordinator_of(self.host)
        self.epochs = {x: self.host.owners.newest(x) for x in NAMES}
        self.seen: dict[tuple[str, str], str] = {}
        self.ended: dict[str, str] = {}
        self.begun: dict[str, float] = {}

    # what comes in

    def prepare(self, session: str, members: list[str], target: str, replay: bool) -> None:
        seconds: dict[str, Any] = {"prepare_seconds": PREPARE_SECONDS, "drain_seconds": DRAIN_SECONDS}
        self.coordinator.prepare(session, plan(*members, target=target, replay=replay, **seconds))
        self.begun.setdefault(session, self.host.now)

    def cut(self, session: str) -> None:
        self.coordinator.cut(session)

    def abort(self, session: str) -> None:
        self.coordinator.abort(session)

    def ask(self, session: str) -> None:
        self.coordinator.table.outcome(session)

    def slot(self, session: str, members: list[str]) -> None:
        self.coordinator.on_slot(msg.Slot(session, members, "mem://b", ""))

    def attached(self, session: str, members: list[str]) -> None:
        self.coordinator.on_attached(msg.TargetAttached(session, members))

    def nak(self, session: str, members: list[str]) -> None:
        self.coordinator.on_rejected(msg.HandoverRejected(session, members, "no"))

    def answer(self, reason: str) -> None:
        self.host.answer(self.coordinator, reason)

    def done(self, session: str, members: list[str]) -> None:
        self.coordinator.on_done(msg.Done(session, members))

    def marker(self, session: str, members: list[str]) -> None:
        self.coordinator.cut_decision.on_marker(msg.Marker(session, members, ("k", 8, 30)))

    def cut_request(self, session: str, members: list[str], off: int) -> None:
        found = self.coordinator.sessions.get(session)
        if found is None or found.plan.target_head != "h":
            return
        epochs = {x: found.members[x].epoch if x in found.members else (1, 4) for x in members}
        items = [msg.MemberItem(x, (epochs[x][0], epochs[x][1] + 1 + (off if off > 0 else 0))) for x in members]
        key = KEYS[found.plan.target]
        for x in self.coordinator.cut_decision.cut_members(session, items, key, ("h", 5, 70)):
            assert self.host.owners.entries[x].key == key
            assert found.members[x].state == CUT

    def resume(self, x: str, named: str | None, edge: str, by: int) -> None:
        incarnation, n = self.host.owners.newest(x)
        if edge not in self.host.edges or by == 0:
            return  # an older one is answered by RELEASE, and concerns no session
        self.host.owners.swap(x, self.host.edges[edge], (incarnation, n + by), (5, 0))
        self.coordinator.resumed(x, named, edge)

    def expire(self, x: str) -> None:
        if (entry := self.host.owners.entries.get(x)) is not None:
            self.host.owners.forget(x)
            self.coordinator.lapsed(x, entry.epoch)

    forget = expire

    def edge_lost(self, edge: str) -> None:
        if self.host.edges.pop(edge, None) is not None:
            self.coordinator.edge_lost(edge)

    def edge_back(self, edge: str) -> None:
        self.host.edges[edge] = KEYS[edge]

    def head_lost(self) -> None:
        self.coordinator.heads_lost(["k"])

    def pass_(self, seconds: float) -> None:
        end = self.host.now + seconds
        while (at := self.coordinator.wake_at()) <= end:
            self.host.now = max(self.host.now, at)
            self.coordinator.tick()
            self.check()
        self.host.now = end
        self.coordinator.tick()

    # what must hold

    def check(self) -> None:
        for session_id in SESSIONS:
            outcome = self.coordinator.table.outcome(session_id)
            for x, state in outcome.members:
                before = self.seen.get((session_id, x), "")
                if before in OUTCOMES:
                    assert state == before, f"{x} was {before} in {session_id}, and is {state}"
                if before == CUT:
                    assert state in (CUT, "moved", "returned", "detached"), f"{x} was cut in {session_id}: {state}"
                if before == ABORTING:
                    assert state not in (*OPEN, CUT), f"{x} was undone in {session_id}, and is {state}"
                if before in (*OPEN, ABORTING) and state in ("moved", "detached"):
                    raise AssertionError(f"{x} is {state} in {session_id} without a cut")
                self.seen[session_id, x] = state
            if self.ended.setdefault(session_id, outcome.state) not in ("done", "aborted"):
                self.ended[session_id] = outcome.state
            assert self.ended[session_id] == outcome.state, "an end was undone"
        self._check_books()

    def _check_books(self) -> None:
        coordinator = self.coordinator
        busy: dict[str, str] = {}
        for session in coordinator.sessions.values():
            for x, member in session.members.items():
                if member.state not in OUTCOMES or member.is_draining:
                    if member.state == ABORTING and coordinator.table.busy.get(x) is not session:
                        continue  # it has not entered this session: it was in another one
                    assert x not in busy, f"{x} is in {busy.get(x)} and {session.id}"
                    busy[x] = session.id
            assert session.draining == sum(member.is_draining for member in session.members.values())
            for state in (*OPEN, ABORTING, CUT, *OUTCOMES):
                assert session.counts[state] == len(session.of(state))
        assert {x: session.id for x, session in coordinator.table.busy.items()} == busy
        for x, epoch in self.epochs.items():
            assert self.host.owners.newest(x) >= epoch, f"the owner epoch of {x} has gone down"
            self.epochs[x] = self.host.owners.newest(x)


@settings(max_examples=examples(600), deadline=None)
@given(st.lists(steps, max_size=40))
def test_every_member_ends_once_and_nothing_is_left_over(script: list[tuple[Any, ...]]):
    world = World()
    for name, *arguments in script:
        getattr(world, "pass_" if name == "pass" else name)(*arguments)
        world.check()
    world.pass_(PREPARE_SECONDS + DRAIN_SECONDS + ANSWER_SECONDS + SLACK)
    world.check()
    for session in world.coordinator.sessions.values():
        assert session.draining, f"{session.id} has not ended: {session}"
    for x in NAMES:  # leases end
        world.expire(x)
    world.coordinator.expire()
    world.check()
    assert (world.coordinator.sessions, world.coordinator.table.busy) == ({}, {})
    assert world.coordinator.wake_at() == float("inf")
    for session_id, began in world.begun.items():
        assert began
        outcome = world.coordinator.table.outcome(session_id)
        assert outcome.state in ("done", "aborted", "unknown", "failed")
        assert all(state in OUTCOMES for _, state in outcome.members)


@settings(max_examples=examples(300), deadline=None)
@given(st.sampled_from(["b", FAR]), st.booleans(), st.lists(steps, max_size=12), st.lists(steps, max_size=12))
def test_a_cut_is_never_undone_by_any_event_around_it(
    target: str, replay: bool, before: list[tuple[Any, ...]], behind: list[tuple[Any, ...]]
):
    """As above, with a session that reaches its cut unless an event prevents it."""
    world = World()
    world.prepare("1.1", NAMES, target, replay and target == "b")
    led: list[tuple[Any, ...]] = [
        ("slot", "1.1", NAMES), ("attached", "1.1", NAMES), *before, ("cut", "1.1"), ("cut_request", "1.1", NAMES, 0),
        ("marker", "1.1", NAMES), *behind,
    ]  # fmt: skip
    for name, *arguments in led:
        getattr(world, "pass_" if name == "pass" else name)(*arguments)
        world.check()
    world.pass_(PREPARE_SECONDS + DRAIN_SECONDS + ANSWER_SECONDS + SLACK)
    world.check()
    for x in NAMES:
        world.expire(x)
    world.coordinator.expire()
    assert world.coordinator.sessions == {}
