"""What subscribers count of a hand-over is what happened: judged by the journal of the run, whoever keeps the rules."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from tests.simulator.mutants import worlds
from tests.simulator.mutants.catalogue import ALL
from tests.simulator.mutants.rewriting import plant

from plimsoll.core.client import handover
from plimsoll.core.client.delivery_tally import TallyResult
from plimsoll.core.head.handover.delivery_audit import DeliveryAudit
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol.wire import Token
from plimsoll.core.session.batch import sum_audits
from plimsoll.core.session.state import Session
from plimsoll.core.verify import observations as seen
from plimsoll.core.verify.oracle import matches
from plimsoll.simulator.mediators.session_mediator import SessionBackend
from plimsoll.simulator.run import RunOutcome, SimulationRun
from plimsoll.simulator.scenarios import handover_scenarios


@dataclass(frozen=True)
class Moved:
    """A subscriber that has counted; it did so from `since` and `marks` on, with these subscriptions."""

    session: str
    subscriber: str
    incarnation: int
    since: Token
    marks: dict[tuple[str, int], int]
    subscriptions: list[int]
    found: TallyResult


class Watch:
    """Looks on while subscribers count. `ends`: the end of the log for each of them; `told`: the sums of heads."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.moved: list[Moved] = []
        self.ends: dict[tuple[str, str], int] = {}
        self.told: Counter[str] = Counter()
        tell, counted = DeliveryAudit._tell, DeliveryAudit.counted

        def on_tell(judging: DeliveryAudit, cases: list[Any]) -> None:
            self.ends |= {(case.session, case.subscriber): case.high for case in cases}
            tell(judging, cases)

        def on_counted(judging: DeliveryAudit, counts: msg.AuditSummary, there: Any) -> None:
            for item in counts.members:
                for what in ("lost", "duplicated", "reordered"):
                    self.told[what] += getattr(item, what)
                self.told["subscribers"] += 1
            counted(judging, counts, there)

        patch.setattr(DeliveryAudit, "_tell", on_tell)
        patch.setattr(DeliveryAudit, "counted", on_counted)
        on_count = handover.ClientHandovers.on_count

        def on_asked(handovers: Any, port: Any, count: msg.AuditQuery) -> None:
            for item in count.members:
                if (attachment := port.attachments.get(item.attachment)) is not None:
                    self._note(handovers._client, attachment, count.session, item.due)
            on_count(handovers, port, count)

        patch.setattr(handover.ClientHandovers, "on_count", on_asked)

    def _note(self, client: Any, attachment: Any, session: str, due: list[msg.ExpectedCount]) -> None:
        subscriber = attachment.subscriber
        tally = subscriber.stream.tally_of(session, subscriber.version)
        found = tally.against(due) if tally is not None and handover.is_serving(attachment) else None
        if found is not None:
            marks = {(head, epoch): offset for head, epoch, offset in tally.marks}
            one = Moved(
                session, subscriber.name, client.incarnation, tally.since, marks, list(subscriber.subscriptions),
                found,
            )  # fmt: skip
            self.moved.append(one)

    def lost(self, one: Moved, journal: list[seen.Observation]) -> int:
        """What the journal says that this one was not given, of what its head has logged for it meanwhile."""
        rules = [
            it.predicates
            for it in journal
            if isinstance(it, seen.SubscriptionObserved)
            and (it.subscriber, it.incarnation) == (one.subscriber, one.incarnation)
            and it.id in one.subscriptions
        ]
        said = {
            (it.publisher, it.incarnation, it.seq): it.attributes
            for it in journal
            if isinstance(it, seen.PublicationObserved)
        }
        given = {
            it.origin
            for it in journal
            if isinstance(it, seen.DeliveryObserved)
            and (it.subscriber, it.incarnation) == (one.subscriber, one.incarnation)
        }
        return len(set(self._due(one, journal, rules, said)) - given)

    def _due(
        self, one: Moved, journal: list[Any], rules: list[Any], said: dict[Any, Any]
    ) -> Iterator[seen.LogPosition]:
        head, epoch, low = one.since
        high = self.ends[one.session, one.subscriber]
        for it in journal:
            if (
                not isinstance(it, seen.LogEntryObserved)
                or (it.head, it.epoch) != (head, epoch)
                or not low < it.position <= high
            ):
                continue
            name, era, offset = it.origin
            is_new = offset > one.marks.get((name, era), 0)
            if is_new and any(matches(rule, said[it.publication]) for rule in rules):
                yield it.origin


def watched(world: str, seed: int, patch: pytest.MonkeyPatch) -> tuple[Watch, RunOutcome, list[Any]]:
    watch = Watch(patch)
    for one in worlds.SETTINGS.get(world, ()):
        patch.setattr(one.owner, one.name, one.value)
    run = SimulationRun(worlds.WORLDS[world], seed)
    return watch, run.go(), run.journal.all


def checked(watch: Watch, outcome: RunOutcome, journal: list[Any]) -> None:
    """Each count is what happened, heads are told no more than that, and the audit of the run has no less."""
    for one in watch.moved:
        assert one.found.lost == watch.lost(one, journal), one
    sums = [sum(getattr(one.found, what) for one in watch.moved) for what in WHAT]
    told = [watch.told[what] for what in WHAT]
    verdict = outcome.verdict
    assert all(heard <= said for heard, said in zip(told, sums, strict=True)), "an answer may be lost on its way"
    assert told[0] <= verdict.lost + verdict.excused
    assert told[1] <= verdict.duplicated
    assert told[2] <= verdict.reordered


WHAT = ("lost", "duplicated", "reordered")


@pytest.mark.parametrize("scenario", [one.name for one in handover_scenarios.HANDOVER_SCENARIOS if one.policy is None])
def test_with_all_rules_kept_each_count_is_what_happened(scenario: str):
    counted = 0
    for seed in (0, 1):
        with pytest.MonkeyPatch.context() as patch:
            watch, outcome, journal = watched(scenario, seed, patch)
        assert outcome.ok, f"{scenario} {seed}: {outcome.error or outcome.verdict}"
        checked(watch, outcome, journal)
        assert watch.told["duplicated"] == watch.told["reordered"] == 0
        if not outcome.verdict.gaps:
            assert watch.told["lost"] == 0, "nothing is lost without a gap that is told"
        counted += watch.told["subscribers"]
    assert counted or scenario == "sessions-lag", "the log of that world is too short to know"


BROKEN = [
    ("installed-late", "calm-drain", 0, "lost"),
    ("installed-late", "calm-across", 0, "lost"),
    ("installed-before-cover", "calm-drain", 0, "lost"),
    ("cover-is-not-applied", "calm-drain", 0, "lost"),
    ("hold-is-not-flushed", "calm-drain", 20, "lost"),
    ("target-does-not-hold", "calm-drain", 20, "lost"),
    ("resume-without-token", "calm-replay", 0, "lost"),
    ("cut-loses-the-queue", "slow-cut", 7, "lost"),
    ("cut-late", "calm-drain", 0, "duplicated"),
    ("matched-after-cut", "calm-drain", 0, "duplicated"),
    ("matched-after-cut", "calm-drain", 0, "reordered"),
]
"""Rules of a hand-over, the world in which breaking them shows, the first seed to look at, and what is to show."""

SEEDS = 30


@pytest.mark.parametrize(("name", "world", "first", "what"), BROKEN)
def test_where_a_rule_is_broken_the_count_says_so(name: str, world: str, first: int, what: str):
    mutant = ALL[name]
    for seed in range(first, first + SEEDS):
        with pytest.MonkeyPatch.context() as patch:
            plant(patch, (*mutant.changes, *mutant.partners))
            watch, outcome, journal = watched(world, seed, patch)
        checked(watch, outcome, journal)
        if watch.told[what]:
            return
    raise AssertionError(f"{name} in {world}: no subscriber counts anything {what}, from seed {first} on")


def sessions_of(run: SimulationRun) -> list[Session]:
    """As they are stored at the end."""
    assert isinstance(run.mediators.office, SessionBackend)
    return run.mediators.office.sessions()


@pytest.mark.parametrize("scenario", ["sessions-planned", "sessions-planned-restarts"])
def test_sessions_are_told_and_parents_have_the_sums_of_their_children(scenario: str):
    moved = known = 0
    for seed in range(4):
        run = SimulationRun(worlds.WORLDS[scenario], seed)
        assert run.go().ok, f"{scenario} {seed}"
        found = sessions_of(run)
        for session in found:
            audit = session.audit()
            assert (audit.lost, audit.duplicated, audit.reordered) == (0, 0, 0)
            if not session.children:
                moved += session.counts()["moved"]
                known += audit.subscribers
                assert audit.subscribers <= session.counts()["moved"]
                continue
            ours = [one.audit() for one in found if one.parent == session.uid]
            assert audit == sum_audits(ours), f"{scenario} {seed}: {session.name}"
    assert moved / 2 < known <= moved


def test_what_a_broken_rule_loses_stands_in_the_session():
    """From the machine of a subscriber to the record of the mediator."""
    mutant = ALL["cover-is-not-applied"]
    for seed in range(SEEDS):
        with pytest.MonkeyPatch.context() as patch:
            plant(patch, (*mutant.changes, *mutant.partners))
            run = SimulationRun(worlds.WORLDS["sessions-planned"], seed)
            verdict = run.go().verdict
        told = [session.audit().lost for session in sessions_of(run) if not session.children]
        assert sum(told) <= verdict.lost + verdict.excused
        if any(told):
            return
    raise AssertionError("no session says that anything was lost")
