"""The audit of publishers that move agrees with the journal of the run, whether the rules are kept or broken."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from tests.simulator.mutants import worlds
from tests.simulator.mutants.rewriting import Change, Setting, plant

from plimsoll.core.client import handover
from plimsoll.core.client.delivery_tally import PublisherTally, TallyResult
from plimsoll.core.client.stream import SubscriberStream
from plimsoll.core.edge.machine import Edge
from plimsoll.core.head.distributor import Distributor
from plimsoll.core.protocol import messages as msg
from plimsoll.core.session.attempts import full_audit
from plimsoll.core.session.batch import AuditTotals, sum_audits
from plimsoll.core.verify import observations as seen
from plimsoll.core.verify.oracle import matches
from plimsoll.simulator.mediators.session_mediator import SessionBackend
from plimsoll.simulator.run import RunOutcome, SimulationRun

SCENARIOS = [f"sessions-publishers{kind}" for kind in ("", "-restarts", "-links", "-across", "-replaced")]
COUNTS = ("lost", "duplicated", "reordered")


@dataclass(frozen=True)
class AuditedSubscriber:
    """One that was told what was `due` of the publishers above these numbers, and what it has `found`."""

    session: str
    subscriber: str
    incarnation: int
    marks: dict[tuple[str, int], int]
    above: dict[tuple[str, int], int]
    subscriptions: list[int]
    due: list[msg.ExpectedCount]
    found: TallyResult


class AuditObserver:
    """Notes what each client answers, and judges it by the journal."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.answers: list[AuditedSubscriber] = []
        on_count = handover.ClientHandovers.on_count

        def observe_query(handovers: Any, port: Any, query: msg.AuditQuery) -> None:
            for item in query.members:
                if (attachment := port.attachments.get(item.attachment)) is not None:
                    self._note(handovers._client.incarnation, attachment, query.session, item.due)
            on_count(handovers, port, query)

        patch.setattr(handover.ClientHandovers, "on_count", observe_query)

    def _note(self, incarnation: int, attachment: Any, session: str, due: list[msg.ExpectedCount]) -> None:
        subscriber = attachment.subscriber
        tally = subscriber.stream.tally_of(session, subscriber.subscription_list.version)
        if not isinstance(tally, PublisherTally) or not handover.is_serving(attachment):
            return
        if (found := tally.against(due)) is not None:
            marks = {(head, epoch): offset for head, epoch, offset in tally.marks}
            name, ids = subscriber.name, list(subscriber.subscriptions)
            self.answers.append(
                AuditedSubscriber(session, name, incarnation, marks, tally._above, ids, due, found)
            )  # fmt: skip


class Journal:
    """What happened, by the journal of a run."""

    def __init__(self, journal: list[seen.Observation]) -> None:
        self.all = journal
        self.published = {
            (it.publisher, it.incarnation, it.seq): it.attributes
            for it in journal
            if isinstance(it, seen.PublicationObserved)
        }

    def due(self, one: AuditedSubscriber) -> set[Any]:
        """The publications that were due: those that the two heads had accepted meanwhile and that match its list."""
        rules = [
            it.predicates
            for it in self.all
            if isinstance(it, seen.SubscriptionObserved)
            and (it.subscriber, it.incarnation) == (one.subscriber, one.incarnation)
            and it.id in one.subscriptions
        ]
        through = {(head, epoch): offset for head, epoch, offset, _ in one.due}
        return {it.publication for it in self._accepted(one, through) if self._is_wanted(it, rules)}

    def _accepted(self, one: AuditedSubscriber, through: dict[tuple[str, int], int]) -> Iterator[seen.LogEntryObserved]:
        for it in self.all:
            if not isinstance(it, seen.LogEntryObserved):
                continue
            head, epoch, offset = it.origin
            publisher, incarnation, seq = it.publication
            is_new = one.marks.get((head, epoch), 0) < offset <= through.get((head, epoch), 0)
            if (it.head, it.epoch) == (head, epoch) and is_new and seq > one.above.get((publisher, incarnation), seq):
                yield it

    def _is_wanted(self, it: seen.LogEntryObserved, rules: list[Any]) -> bool:
        return any(matches(rule, self.published[it.publication]) for rule in rules)

    def delivered(self, one: AuditedSubscriber) -> set[Any]:
        return {
            it.publication
            for it in self.all
            if isinstance(it, seen.DeliveryObserved)
            and (it.subscriber, it.incarnation) == (one.subscriber, one.incarnation)
        }


def observed(scenario: str, seed: int, patch: pytest.MonkeyPatch) -> tuple[AuditObserver, RunOutcome, SimulationRun]:
    observer = AuditObserver(patch)
    run = SimulationRun(worlds.WORLDS[scenario], seed)
    return observer, run.go(), run


def audits(run: SimulationRun) -> AuditTotals:
    """The sums of all sessions of publishers."""
    assert isinstance(run.mediators.backend, SessionBackend)
    return sum_audits(full_audit(one) for one in run.mediators.backend.sessions() if one.kind == "publishers")


@pytest.mark.sampled(1)
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_with_all_rules_kept_each_answer_is_what_happened(scenario: str):
    answered = 0
    for seed in range(6):
        with pytest.MonkeyPatch.context() as patch:
            observer, outcome, run = observed(scenario, seed, patch)
        assert outcome.ok, f"{scenario} {seed}: {outcome.error or outcome.verdict}"
        journal = Journal(run.journal.all)
        for one in observer.answers:
            due = journal.due(one)
            assert len(due) == sum(count for *_, count in one.due), one
            assert one.found.lost == len(due - journal.delivered(one)), one
            assert (one.found.duplicated, one.found.reordered) == (0, 0), one
            assert not one.found.lost or outcome.verdict.gaps, "a publication may only be missing inside a gap"
        totals = audits(run)
        assert totals.subscribers <= min(totals.asked, len(observer.answers))
        answered += totals.subscribers
    assert answered


DELIVER, PUBLISH = Edge.deliver, Distributor.publish


def _publish_some_twice(distributor: Distributor, publisher: Any, accepted: msg.Publish, *stamped: Any) -> None:
    for _ in range(2 if accepted.seq % 5 == 3 else 1):
        PUBLISH(distributor, publisher, accepted, *stamped)


def _deliver_across_the_marker(edge: Edge, pub: msg.PubOpen, piece: bytes) -> None:
    """Keep back the last publication of each publisher, until its next one has gone if that is of the other head."""
    kept = edge.__dict__.setdefault("kept_back", {})
    before = kept.pop(pub.publisher, None)
    kept[pub.publisher] = (pub, piece)
    if before is not None and before[0].head == pub.head:
        DELIVER(edge, *before)
    elif before is not None:
        DELIVER(edge, *kept.pop(pub.publisher))
        DELIVER(edge, *before)


LOSES = Change(SubscriberStream.take, "if item.offset > seen:", "if item.offset > seen and item.seq % 5 != 3:")
REPEATS = Setting(Distributor, "publish", _publish_some_twice)
REORDERS = Setting(Edge, "deliver", _deliver_across_the_marker)
BROKEN: dict[str, tuple[Change | Setting, str]] = {
    "client": (LOSES, "lost"),
    "head": (REPEATS, "duplicated"),
    "edge": (REORDERS, "reordered"),
}
SEEDS = 12


@pytest.mark.sampled(2)
@pytest.mark.parametrize("who", BROKEN)
def test_who_loses_repeats_or_reorders_is_found_by_the_audit_itself(who: str):
    change, count = BROKEN[who]
    for seed in range(SEEDS):
        with pytest.MonkeyPatch.context() as patch:
            plant(patch, (change,))
            _, outcome, run = observed("sessions-publishers", seed, patch)
        assert not any("of the run" in str(each) for each in outcome.verdict.violations)
        if getattr(audits(run), count):
            return
    raise AssertionError(f"no session of {SEEDS} runs counts a delivery as {count}")
