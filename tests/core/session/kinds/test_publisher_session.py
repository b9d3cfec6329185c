"""Sessions that move publishers, with scripted heads: rounds of a drain, lost commands, restarts of heads."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from msgspec.structs import replace
from tests.core.session.model import spec_of

from plimsoll.core.policies.model.publisher_load import PublisherTopicLoad, publisher_report
from plimsoll.core.protocol import messages as msg
from plimsoll.core.session import (
    CreateSession,
    Deposed,
    EdgeView,
    FleetObserved,
    FleetView,
    HeadMessage,
    HeadView,
    MediatorEngine,
    SendMessage,
    Session,
    SessionRequest,
    SessionUpserted,
    Tick,
    decode,
    encode,
)
from plimsoll.core.session.execute import executor
from plimsoll.core.session.state import SessionVerdict
from plimsoll.core.session.status import status
from plimsoll.core.spec.types.policy import PolicySpec

ALL = {"sharePercent": 100}


class ScriptedHead:
    """A head and the publishers that are open there. `stays`: those that do not move. `drops`: commands to lose.

    `load`: fields of its load report.
    """

    def __init__(self, name: str, cluster: str, *publishers: str) -> None:
        self.name, self.cluster, self.epoch = name, cluster, 10
        self.publishers = set(publishers)
        self.rates: dict[str, float] = {}
        self.stays: set[str] = set()
        self.drops = 0
        self.loads: list[PublisherTopicLoad] = []
        self.load: dict[str, Any] = {}
        self.is_slow = False
        self.audit: msg.AuditItem | None = None
        self.commands: list[msg.PublisherCommand] = []
        self.outcomes: dict[str, msg.PublisherOutcome] = {}

    def view(self) -> HeadView:
        report = {"publisher_rates": self.rates, **publisher_report(self.loads), **self.load}
        return HeadView(self.name, self.cluster, self.epoch, True, report, f"tcp://{self.name}", "key")

    def restart(self) -> None:
        self.epoch += 1
        self.outcomes.clear()

    def on_command(self, command: msg.PublisherCommand, heads: dict[str, ScriptedHead]) -> msg.PublisherOutcome | None:
        if self.drops:
            self.drops -= 1
            return None
        self.commands.append(command)
        if command.head_epoch != self.epoch and command.step != "ask":
            return msg.PublisherOutcome(command.session, 0, self.epoch, "failed", [], "head-epoch: another one")
        if command.step == "move" and command.session not in self.outcomes and command.plan is not None:
            self.outcomes[command.session] = self._moved(command, command.plan, heads)
        unknown = msg.PublisherOutcome(command.session, 0, self.epoch, "unknown", [])
        return replace(self.outcomes.get(command.session, unknown), audit=self.audit)

    def _moved(
        self, command: msg.PublisherCommand, plan: msg.PublisherPlan, heads: dict[str, ScriptedHead]
    ) -> msg.PublisherOutcome:
        if self.is_slow:
            asked = [(name, "asked") for name in plan.publishers]
            return msg.PublisherOutcome(command.session, 0, self.epoch, "moving", asked)
        found = []
        for name in plan.publishers:
            goes = name in self.publishers - self.stays
            found.append((name, "moved" if goes else "stayed: had not opened there in time"))
            if goes:
                self.publishers.discard(name)
                heads[plan.head].publishers.add(name)
        return msg.PublisherOutcome(command.session, 0, self.epoch, "done", found)


class World:
    """A mediator and the heads of three clusters, in virtual time."""

    def __init__(self, *publishers: str) -> None:
        self.heads = {
            head.name: head
            for head in (ScriptedHead("a", "east", *publishers), ScriptedHead("b", "west"), ScriptedHead("c", "north"))
        }
        self.engine = MediatorEngine(4)
        self.now, self.is_deposed = 1000.0, False
        self.requests: dict[str, SessionRequest] = {}
        self.policies: dict[str, PolicySpec] = {}
        self.observe()

    @property
    def source(self) -> ScriptedHead:
        return self.heads["a"]

    def observe(self) -> None:
        edges = {f"{head.name}1": EdgeView(f"{head.name}1", head.cluster, head.name) for head in self.heads.values()}
        views = {head.name: head.view() for head in self.heads.values()}
        linked = {"east": frozenset({"west", "north"}), "west": frozenset({"east"}), "north": frozenset({"east"})}
        view = FleetView(views, edges, self.policies, linked)
        self._carry(self.engine.handle(FleetObserved(view), self.now))

    def ask(self, uid: str = "u", **fields: Any) -> None:
        self.observe()
        wanted = {
            "scope": "Global", "mode": "Execute", "source": {"name": "east"}, "action": "MovePublishers", **fields,
        }  # fmt: skip
        known = self.requests.get(uid)
        generation = 1 if known is None else known.generation + 1
        self.requests[uid] = SessionRequest(uid, uid, generation, spec_of(**wanted))
        self._carry(self.engine.handle(SessionUpserted(self.requests[uid]), self.now))

    def run(self, seconds: float) -> None:
        for _ in range(round(seconds * 5)):
            self.now += 0.2
            self._carry(self.engine.handle(Tick(), self.now))
            self.observe()

    def until_over(self, uid: str = "u", seconds: float = 120.0) -> Session:
        for _ in range(round(seconds * 5)):
            if self.session(uid).is_over:
                break
            self.run(0.2)
        return self.session(uid)

    def session(self, uid: str = "u") -> Session:
        return self.engine.sessions[uid]

    def new_mediator(self) -> None:
        stored = [decode(encode(session)) for session in self.engine.sessions.values()]
        self.engine = MediatorEngine(self.engine.epoch + 1, stored)
        self.observe()
        for request in self.requests.values():
            self._carry(self.engine.handle(SessionUpserted(request), self.now))

    def _carry(self, effects: Iterable[Any]) -> None:
        for effect in effects:
            if isinstance(effect, Deposed):
                self.is_deposed = True
            if isinstance(effect, SendMessage) and (answer := self._answer(effect)) is not None:
                self._carry(self.engine.handle(HeadMessage(effect.head, answer), self.now))
            if isinstance(effect, CreateSession):
                self.requests[effect.name] = SessionRequest(effect.name, effect.name, 1, spec_of(**effect.spec))
                self._carry(self.engine.handle(SessionUpserted(self.requests[effect.name]), self.now))

    def _answer(self, sent: SendMessage) -> msg.PublisherOutcome | msg.PublisherListPage | None:
        if isinstance(sent.message, msg.BundleTable):
            return None
        head = self.heads[sent.head]
        if isinstance(sent.message, msg.ListPublishers):
            names = sorted(name for name in head.publishers if name > sent.message.after)
            items = [msg.PublisherItem(name, 0, 0) for name in names[:3]]
            return msg.PublisherListPage(sent.message.id, head.epoch, items, len(names) > 3)
        if isinstance(sent.message, msg.PublisherCommand):
            return head.on_command(sent.message, self.heads)
        return None


NAMES = [f"p{number}" for number in range(8)]


def test_a_drain_moves_all_publishers_over_the_other_heads():
    world = World(*NAMES)
    world.source.rates = {"p0": 50.0, "p1": 30.0, "p2": 20.0}
    world.ask(select=ALL)
    session = world.until_over()
    assert (session.kind, session.phase, session.reason) == ("publishers", "Succeeded", "Drained")
    assert (session.planned, session.counts()["moved"]) == (8, 8)
    assert not world.source.publishers
    assert world.heads["b"].publishers | world.heads["c"].publishers == set(NAMES)
    assert "p0" in world.heads["b"].publishers
    assert {"p1", "p2"} <= world.heads["c"].publishers
    assert len(world.heads["b"].publishers) == len(world.heads["c"].publishers) == 4
    shown = status(session, world.now)
    assert (shown["source"], shown["progress"]["percent"]) == ("a", 100)


def test_those_that_come_meanwhile_go_in_another_round():
    world = World(*NAMES[:3])
    world.ask(select=ALL, target={"name": "west"})
    world.source.publishers.add("late")
    session = world.until_over()
    assert (session.reason, session.counts()["moved"]) == ("Drained", 4)
    assert world.heads["b"].publishers == {*NAMES[:3], "late"}


def test_those_that_do_not_move_are_named_at_the_end():
    world = World(*NAMES)
    world.source.stays = {"p3"}
    world.ask(select=ALL)
    session = world.until_over()
    assert (session.phase, session.reason) == ("Failed", "NotEmpty")
    assert "1 publishers remain: p3" in session.message
    assert session.counts()["moved"] == 7


def test_as_few_as_it_takes_even_out_what_heads_accept():
    world = World(*NAMES)
    world.source.rates = {"p0": 60.0, "p1": 50.0, "p2": 10.0}
    world.heads["b"].rates = {"q": 100.0}
    world.ask()
    session = world.until_over()
    assert (session.phase, session.reason) == ("Succeeded", "Moved")
    assert world.heads["c"].publishers == {"p0"}
    assert not world.heads["b"].publishers
    world.source.rates = {"p1": 50.0, "p2": 10.0}
    world.heads["c"].rates = {"p0": 60.0}
    world.ask("again")
    session = world.until_over("again")
    assert (session.reason, session.plan is not None and session.plan.members) == ("NothingToMove", 0)
    assert "no move lowers the higher of two heads" in session.message


@pytest.mark.parametrize(
    ("select", "moved", "rejected"),
    [
        ({"names": ["p1", "px"]}, {"p1"}, {"NotThere": ["px"]}),
        ({"count": 3}, {"p0", "p1", "p2"}, {}),
        ({"sharePercent": 25}, {"p0", "p1"}, {}),
    ],
)
def test_a_selection_moves(select: dict[str, Any], moved: set[str], rejected: dict[str, list[str]]):
    world = World(*NAMES)
    world.ask(select=select, target={"name": "west"})
    session = world.until_over()
    assert world.heads["b"].publishers == moved
    assert session.plan is not None
    assert session.plan.rejected == rejected


def test_chosen_publishers_go_in_the_order_in_which_they_are_named():
    world = World(*NAMES)
    world.source.rates = {"p0": 1.0, "p5": 90.0, "p2": 40.0}
    world.ask(select={"names": ["p2", "p0", "p5"]}, target={"name": "west"})
    world.until_over()
    (command,) = [each for each in world.source.commands if each.step == "move"]
    assert command.plan is not None
    assert command.plan.publishers == ["p2", "p0", "p5"]


def test_an_approved_plan_is_carried_out_whatever_publishers_publish_by_then():
    world = World(*NAMES)
    world.source.rates = {name: 10.0 + number for number, name in enumerate(NAMES)}
    world.ask(select=ALL, target={"name": "west"}, approval={"policy": "Manual"})
    world.run(3.0)
    planned = world.session().plan
    assert planned is not None
    world.source.rates = {name: 10.0 - number for number, name in enumerate(NAMES)}
    world.ask(select=ALL, target={"name": "west"}, approval={"policy": "Manual", "planHash": planned.hash})
    session = world.until_over()
    assert (session.reason, session.counts()["moved"]) == ("Drained", 8)


def test_an_approved_plan_whose_publishers_have_gone_is_made_again():
    world = World(*NAMES)
    world.ask(select=ALL, target={"name": "west"}, approval={"policy": "Manual"})
    world.run(3.0)
    planned = world.session().plan
    assert planned is not None
    world.source.publishers -= {"p3"}
    world.ask(select=ALL, target={"name": "west"}, approval={"policy": "Manual", "planHash": planned.hash})
    world.run(5.0)
    session = world.session()
    assert (session.phase, session.reason, session.message) == ("Planned", "PlanStale", "no longer at a: p3")
    assert session.plan is not None
    assert session.plan.members == 7
    assert world.source.publishers == {*NAMES} - {"p3"}, "nothing has moved"


def test_commands_that_are_lost_are_repeated():
    world = World(*NAMES)
    world.source.drops = 3
    world.ask(select=ALL)
    assert world.until_over().reason == "Drained"


def test_a_head_that_restarts_has_forgotten_the_move_and_the_next_round_takes_its_publishers():
    world = World(*NAMES)
    world.source.is_slow = True
    world.ask(select=ALL, target={"name": "west"})
    world.run(2.0)
    assert world.session().batch is not None
    world.source.restart()
    world.source.is_slow = False
    session = world.until_over()
    assert (session.reason, session.counts()["moved"]) == ("Drained", 8)


def test_a_head_that_has_restarted_and_does_not_answer_ends_its_move_at_once():
    world = World(*NAMES)
    world.source.is_slow = True
    world.ask(select=ALL, target={"name": "west"})
    world.run(1.0)
    world.source.restart()
    world.source.drops = 1000
    world.run(1.0)
    assert world.session().batch is None or len(world.session().batches) > 1
    assert set(world.session().batches[0].members.values()) <= {"unknown"}


def test_a_publisher_that_comes_back_moves_again_and_counts_once():
    world = World(*NAMES)
    world.source.stays = {"p3"}
    world.ask(select=ALL, target={"name": "west"})
    world.run(1.0)
    assert "p0" in world.heads["b"].publishers
    world.heads["b"].publishers.discard("p0")
    world.source.publishers.add("p0")
    world.source.stays = set()
    session = world.until_over()
    assert (session.reason, session.planned, session.counts()["moved"]) == ("Drained", 8, 8)
    assert world.heads["b"].publishers == set(NAMES)


def test_a_head_that_is_drained_itself_is_no_target():
    world = World(*NAMES)
    world.heads["b"].publishers = {"q"}
    world.heads["b"].is_slow = True
    world.ask("first", source={"name": "west"}, select=ALL, target={"name": "north"})
    world.run(1.0)
    world.ask("second", select=ALL)
    assert world.until_over("second").reason == "Drained"
    assert world.heads["c"].publishers == set(NAMES)


def test_a_new_mediator_asks_how_the_move_stands():
    world = World(*NAMES)
    world.source.is_slow = True
    world.ask(select=ALL, target={"name": "west"})
    world.run(1.0)
    batch = world.session().batch
    assert batch is not None
    world.new_mediator()
    world.source.commands.clear()
    world.run(2.0)
    assert {each.step for each in world.source.commands} == {"ask"}
    done = [(name, "moved") for name in NAMES]
    world.heads["b"].publishers, world.source.publishers = set(NAMES), set()
    world.source.outcomes[batch.id] = msg.PublisherOutcome(batch.id, 0, 10, "done", done)
    assert world.until_over().reason == "Drained"


def test_a_session_that_is_stopped_aborts_what_is_under_way():
    world = World(*NAMES)
    world.source.is_slow = True
    world.ask(select=ALL, target={"name": "west"}, deadline="10s")
    session = world.until_over()
    assert "abort" in {each.step for each in world.source.commands}
    assert (session.phase, session.reason) == ("RolledBack", "DeadlineExceeded")


def test_a_mediator_that_another_has_followed_is_deposed():
    world = World(*NAMES)
    world.source.is_slow = True
    world.ask(select=ALL)
    world.run(1.0)
    later = msg.PublisherOutcome("9.1", 9, 10, "unknown", [])
    world._carry(world.engine.handle(HeadMessage("a", later), world.now))
    assert world.is_deposed


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"source": {"name": "nowhere"}}, "NotFound"),
        ({"target": {"name": "nowhere"}}, "NotFound"),
        ({"exclusions": {"brokers": ["west", "north"]}}, "NoTarget"),
    ],
)
def test_what_cannot_be_is_refused_with_a_reason(fields: dict[str, Any], reason: str):
    world = World(*NAMES)
    world.ask(**fields)
    session = world.until_over()
    assert (session.phase, session.reason) == ("Rejected", reason)


def test_a_dry_run_plans_and_moves_nothing():
    world = World(*NAMES)
    world.ask(select=ALL, mode="DryRun")
    session = world.until_over()
    assert (session.phase, session.reason) == ("Planned", "DryRun")
    assert world.source.publishers == set(NAMES)
    assert "move 4 from a to b, 4 from a to c" in session.message


# -- the audit

COUNTED = msg.AuditItem(2, 0, 0, 0, 1, 3, 10, 20)
"""Two of three subscribers have answered."""


@pytest.mark.parametrize(
    ("audit", "seconds"),
    [(None, 3.0), (COUNTED, 3.0), (replace(COUNTED, members=3), 0.0), (msg.AuditItem(0, 0, 0, 0, 0), 0.0)],
    ids=["unknown", "one-missing", "all", "none-asked"],
)
@pytest.mark.parametrize("select", [ALL, {"count": 2}], ids=["drain", "some"])
def test_it_waits_a_little_for_those_who_have_not_counted(
    audit: msg.AuditItem | None, seconds: float, select: dict[str, Any]
):
    world = World(*NAMES[:2])
    world.source.rates = {"p0": 60.0, "p1": 50.0}
    world.source.audit = audit
    world.ask(select=select, target={"name": "west"})
    session = world.until_over()
    assert (session.phase, session.counts()["moved"]) == ("Succeeded", 2)
    waited = session.spent["Stabilizing"]
    assert seconds <= waited <= seconds + 1.5
    shown = status(session, world.now)["audit"]
    if audit is None:
        assert shown == {"subscribers": 0}
    elif audit.members:
        assert (shown["publishers"], shown["asked"], shown["subscribers"]) == (2, 3, audit.members)
        assert (shown["before"], shown["after"], shown["lost"], shown["suppressed"]) == (10, 20, 0, 1)
    else:
        assert shown == {"subscribers": 0, "publishers": 2, "asked": 0}


def test_a_head_is_asked_for_the_counts_that_come_late_and_a_fault_is_the_reason():
    world = World(*NAMES[:2])
    world.ask(select=ALL, target={"name": "west"})
    assert world.until_over().reason == "Drained"
    world.source.audit = replace(COUNTED, lost=4)
    world.run(2.0)
    session = world.session()
    assert (session.phase, session.reason, session.audit().lost) == ("Succeeded", "DeliveryFaults", 4)
    assert "4 deliveries lost" in session.message
    assert "2 of 3 subscribers asked, about 2 moved publishers" in session.message
    (told,) = [each for each in session.conditions if each["type"] == "Delivered"]
    assert (told["status"], told["reason"]) == ("False", "DeliveryFaults")


def test_counts_are_asked_for_ten_seconds_and_no_longer():
    world = World(*NAMES[:2])
    world.ask(select=ALL, target={"name": "west"})
    world.until_over()
    world.run(15.0)
    world.source.commands.clear()
    world.run(5.0)
    assert [each for each in world.source.commands if each.step == "ask"] == []


@pytest.mark.parametrize(
    ("audit", "status_", "reason", "text"),
    [
        (None, "Unknown", "NotAudited", "their head has not said"),
        (replace(COUNTED, members=0), "Unknown", "NotAudited", "none of the 3 subscribers that were asked"),
        (msg.AuditItem(0, 0, 0, 0, 0), "Unknown", "NothingToAudit", "what the 2 moved publishers have published"),
        (COUNTED, "True", "Delivered", "2 of 3 subscribers asked"),
    ],
)
def test_its_condition_says_who_has_counted(audit: msg.AuditItem | None, status_: str, reason: str, text: str):
    world = World(*NAMES[:2])
    world.source.audit = audit
    world.ask(select=ALL, target={"name": "west"})
    world.until_over()
    world.run(1.0)
    (told,) = [each for each in world.session().conditions if each["type"] == "Delivered"]
    assert (told["status"], told["reason"]) == (status_, reason)
    assert text in told["message"]


def test_a_drain_that_ends_before_the_batches_of_a_later_round_has_not_succeeded():
    """More have moved in earlier rounds than the plan of the last one has."""
    world = World(*NAMES[:5])
    world.source.stays = {"p0"}
    world.ask(select=ALL)
    over = world.until_over()
    assert over.plan is not None
    assert (over.counts()["moved"], over.plan.members) == (4, 1)
    verdict = SessionVerdict(reason="DeadlineExceeded", message="no time is left")
    moving = replace(over, phase="Preparing", ended_at=None, verdict=verdict)
    after = executor.after_last_batch(world.engine._context, world.requests["u"], moving, 1)
    assert (after.phase, after.reason) == ("Failed", "DeadlineExceeded")
