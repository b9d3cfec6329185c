"""The delivery audit of hand-overs agrees with the journal of the run, whether the rules are kept or broken."""

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
class AuditedMember:
    """A subscriber that has counted its deliveries, from `since` and `marks` on, with these subscriptions."""

    session: str
    subscriber: str
    incarnation: int
    since: Token
    marks: dict[tuple[str, int], int]
    subscriptions: list[int]
    found: TallyResult


class AuditObserver:
    """Records the audits of a run. `ends`: where the audited log ends, per member; `reported`: the sums at heads."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.members: list[AuditedMember] = []
        self.ends: dict[tuple[str, str], int] = {}
        self.reported: Counter[str] = Counter()
        tell, counted = DeliveryAudit._tell, DeliveryAudit.counted

        def observe_tell(audit: DeliveryAudit, cases: list[Any]) -> None:
            self.ends |= {(case.session, case.subscriber): case.high for case in cases}
            tell(audit, cases)

        def observe_counted(audit: DeliveryAudit, summary: msg.AuditSummary, there: Any) -> None:
            for item in summary.members:
                for count in COUNTS:
                    self.reported[count] += getattr(item, count)
                self.reported["subscribers"] += 1
            counted(audit, summary, there)

        patch.setattr(DeliveryAudit, "_tell", observe_tell)
        patch.setattr(DeliveryAudit, "counted", observe_counted)
        on_count = handover.ClientHandovers.on_count

        def observe_query(handovers: Any, port: Any, query: msg.AuditQuery) -> None:
            for item in query.members:
                if (attachment := port.attachments.get(item.attachment)) is not None:
                    self._note(handovers._client, attachment, query.session, item.due)
            on_count(handovers, port, query)

        patch.setattr(handover.ClientHandovers, "on_count", observe_query)

    def _note(self, client: Any, attachment: Any, session: str, due: list[msg.ExpectedCount]) -> None:
        subscriber = attachment.subscriber
        tally = subscriber.stream.tally_of(session, subscriber.subscription_list.version)
        found = tally.against(due) if tally is not None and handover.is_serving(attachment) else None
        if found is not None:
            marks = {(head, epoch): offset for head, epoch, offset in tally.marks}
            one = AuditedMember(
                session, subscriber.name, client.incarnation, tally.since, marks, list(subscriber.subscriptions),
                found,
            )  # fmt: skip
            self.members.append(one)

    def lost(self, one: AuditedMember, journal: list[seen.Observation]) -> int:
        """How many publications were due to this member during the audit and, by the journal, not delivered."""
        rules = [
            it.predicates
            for it in journal
            if isinstance(it, seen.SubscriptionObserved)
            and (it.subscriber, it.incarnation) == (one.subscriber, one.incarnation)
            and it.id in one.subscriptions
        ]
        published = {
            (it.publisher, it.incarnation, it.seq): it.attributes
            for it in journal
            if isinstance(it, seen.PublicationObserved)
        }
        delivered = {
            it.origin
            for it in journal
            if isinstance(it, seen.DeliveryObserved)
            and (it.subscriber, it.incarnation) == (one.subscriber, one.incarnation)
        }
        return len(set(self._due(one, journal, rules, published)) - delivered)

    def _due(
        self, one: AuditedMember, journal: list[Any], rules: list[Any], published: dict[Any, Any]
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
            if is_new and any(matches(rule, published[it.publication]) for rule in rules):
                yield it.origin


def observed(world: str, seed: int, patch: pytest.MonkeyPatch) -> tuple[AuditObserver, RunOutcome, list[Any]]:
    observer = AuditObserver(patch)
    for one in worlds.SETTINGS.get(world, ()):
        patch.setattr(one.owner, one.name, one.value)
    run = SimulationRun(worlds.WORLDS[world], seed)
    return observer, run.go(), run.journal.all


def check_counts(observer: AuditObserver, outcome: RunOutcome, journal: list[Any]) -> None:
    """Members count what happened, heads report at most that, and the audit of the run finds at least as much."""
    for one in observer.members:
        assert one.found.lost == observer.lost(one, journal), one
    counted = [sum(getattr(one.found, count) for one in observer.members) for count in COUNTS]
    reported = [observer.reported[count] for count in COUNTS]
    verdict = outcome.verdict
    assert all(low <= high for low, high in zip(reported, counted, strict=True)), "an answer may be lost on its way"
    assert reported[0] <= verdict.lost + verdict.excused
    assert reported[1] <= verdict.duplicated
    assert reported[2] <= verdict.reordered


COUNTS = ("lost", "duplicated", "reordered")


SCENARIOS = [
    one.name
    for one in handover_scenarios.HANDOVER_SCENARIOS
    if one.policy is None and not one.name.startswith("sessions-publishers")
]
"""Without those that move publishers, whose audits count by publisher: test_publisher_audit.py has them."""


@pytest.mark.sampled(8)
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_with_all_rules_kept_each_count_is_what_happened(scenario: str):
    audited = 0
    for seed in (0, 1):
        with pytest.MonkeyPatch.context() as patch:
            observer, outcome, journal = observed(scenario, seed, patch)
        assert outcome.ok, f"{scenario} {seed}: {outcome.error or outcome.verdict}"
        check_counts(observer, outcome, journal)
        assert observer.reported["duplicated"] == observer.reported["reordered"] == 0
        if not outcome.verdict.gaps:
            assert observer.reported["lost"] == 0, "a publication may only be missing inside a reported gap"
        audited += observer.reported["subscribers"]
    assert audited or scenario in ("sessions-lag", "sessions-publishers-links"), (
        "the log of the first world is too short for an audit, and in the second mostly publishers move"
    )


BROKEN = [
    ("installed-late", "calm-drain", 0, "lost"),
    ("installed-late", "calm-across", 0, "lost"),
    ("standby-is-announced-late", "calm-drain", 0, "lost"),
    ("standby-is-not-announced", "calm-drain", 0, "lost"),
    ("hold-is-not-flushed", "calm-drain", 20, "lost"),
    ("target-does-not-hold", "calm-drain", 20, "lost"),
    ("resume-without-token", "calm-replay", 0, "lost"),
    ("cut-loses-the-queue", "slow-cut", 7, "lost"),
    ("cut-late", "calm-drain", 0, "duplicated"),
    ("matched-after-cut", "calm-drain", 0, "duplicated"),
    ("matched-after-cut", "calm-drain", 0, "reordered"),
]
"""Broken rules of a hand-over, a world in which each shows, the first seed to try, and the count that must find it."""

SEEDS = 30


@pytest.mark.parametrize(("name", "world", "first", "count"), BROKEN)
def test_a_broken_rule_shows_in_the_counts(name: str, world: str, first: int, count: str):
    mutant = ALL[name]
    for seed in range(first, first + SEEDS):
        with pytest.MonkeyPatch.context() as patch:
            plant(patch, (*mutant.changes, *mutant.partners))
            observer, outcome, journal = observed(world, seed, patch)
        check_counts(observer, outcome, journal)
        if observer.reported[count]:
            return
    raise AssertionError(f"{name} in {world}: no member counts a publication as {count}, from seed {first} on")


def sessions_of(run: SimulationRun) -> list[Session]:
    """The sessions that are stored at the end of a run."""
    assert isinstance(run.mediators.backend, SessionBackend)
    return run.mediators.backend.sessions()


@pytest.mark.parametrize("scenario", ["sessions-planned", "sessions-planned-restarts"])
def test_sessions_hold_their_counts_and_parents_the_sums_of_their_children(scenario: str):
    moved = audited = 0
    for seed in range(4):
        run = SimulationRun(worlds.WORLDS[scenario], seed)
        assert run.go().ok, f"{scenario} {seed}"
        found = sessions_of(run)
        for session in found:
            audit = session.audit()
            assert (audit.lost, audit.duplicated, audit.reordered) == (0, 0, 0)
            if not session.children:
                moved += session.counts()["moved"]
                audited += audit.subscribers
                assert audit.subscribers <= session.counts()["moved"]
                continue
            children = [one.audit() for one in found if one.parent == session.uid]
            assert audit == sum_audits(children), f"{scenario} {seed}: {session.name}"
    assert moved / 2 < audited <= moved


def test_a_loss_is_counted_in_the_stored_session():
    """The whole path of a count: from the machine of a subscriber to the record that the mediator stores."""
    mutant = ALL["standby-is-not-announced"]
    for seed in range(SEEDS):
        with pytest.MonkeyPatch.context() as patch:
            plant(patch, (*mutant.changes, *mutant.partners))
            run = SimulationRun(worlds.WORLDS["sessions-planned"], seed)
            verdict = run.go().verdict
        lost = [session.audit().lost for session in sessions_of(run) if not session.children]
        assert sum(lost) <= verdict.lost + verdict.excused
        if any(lost):
            return
    raise AssertionError("no session has counted a lost publication")
