"""The audit: takes every observation of a journal, then checks all invariants at once and returns one verdict."""

from __future__ import annotations

from collections.abc import Iterable

from plimsoll.core.verify import observations as seen
from plimsoll.core.verify.evidence import PublisherEvidence, SubscriberEvidence
from plimsoll.core.verify.group_invariants import GroupAudit
from plimsoll.core.verify.handover_invariants import HandoverAudit
from plimsoll.core.verify.histories import FOREVER, ObservedHeadTree, PublicationHistory, SubscriberHistory
from plimsoll.core.verify.invariants import AuditFindings, check_claims, check_counters, check_publications
from plimsoll.core.verify.stream_invariants import StreamAudit, StreamEvidence
from plimsoll.core.verify.verdict import AuditVerdict


class LawAudit:
    """One audit over one journal.

    `take` the observations of each process in the order in which it wrote them; the order between processes is free.
    """

    def __init__(self) -> None:
        self.found = AuditFindings()
        self.publishers = PublisherEvidence()
        self.subscribers = SubscriberEvidence(self.publishers, self.found)
        self.handovers = HandoverAudit(self.found)
        self.groups = GroupAudit(self.found)
        self.tree = ObservedHeadTree()
        self.ended: dict[tuple[str, int], float] = {}
        self._sessions: dict[str, tuple[float, float]] = {}
        self._session_ends: dict[str, float] = {}
        self._claims: list[seen.LatencyClaim] = []
        self._counters: list[seen.CounterObserved] = []

    def take_all(self, observations: Iterable[seen.Observation]) -> None:
        for one in observations:
            self.take(one)

    def take(self, one: seen.Observation) -> None:
        """Take one observation of any kind. Frequent kinds are matched first: a demonstration has millions of them."""
        match one:
            case seen.DeliveryObserved():
                self.subscribers.on_delivery(one)
            case seen.LogEntryObserved():
                self.publishers.on_log_entry(one)
            case seen.PublicationObserved():
                self.publishers.on_publication(one)
            case seen.AnswerObserved():
                self.publishers.on_answer(one)
            case seen.SubscriptionObserved():
                self.subscribers.on_subscription(one)
            case seen.AcknowledgementObserved():
                self.subscribers.on_acknowledgement(one)
            case seen.WithdrawalObserved():
                self.subscribers.on_withdrawal(one)
            case seen.RemovalObserved():
                self.subscribers.on_removal(one)
            case seen.GapObserved():
                self.subscribers.on_gap(one)
            case seen.LeaseEndObserved():
                self.subscribers.on_lease_end(one)
            case seen.HeadEndObserved():
                self.publishers.on_head_end(one)
            case seen.SliceItemObserved():
                self.groups.take(one)
            case seen.OwnerObserved():
                self.handovers.take(one)
                self.groups.on_owner(one)
            case (
                seen.HandoverStartObserved()
                | seen.HandoverResultObserved()
                | seen.UncutMemberObserved()
                | seen.AttachmentObserved()
                | seen.ServingEdgeObserved()
                | seen.GapFreeClaim()
            ):
                self.handovers.take(one)
            case _:
                self._take_of_run(one)

    def _take_of_run(self, one: seen.Observation) -> None:
        """Take an observation of the run as a whole: its shape, sessions, bounds and claims."""
        match one:
            case seen.HeadTreeObserved():
                self.tree.add_links(one)
            case seen.IncarnationEndObserved():
                self.ended[one.name, one.incarnation] = one.at
            case seen.SessionStartObserved():
                self._sessions[one.uid] = (one.at, one.deadline)
            case seen.SessionEndObserved():
                self._session_ends[one.uid] = one.at
            case seen.ResidueObserved():
                if one.count:
                    self.found.add("I5", one.where, f"{one.count} {one.what} left over", one.at)
            case seen.SizeObserved():
                if one.value > one.bound:
                    self.found.add("I6", one.where, f"{one.what} is {one.value:g}, bounded by {one.bound:g}", one.at)
            case seen.LatencyClaim():
                self._claims.append(one)
            case seen.CounterObserved():
                self._counters.append(one)
            case seen.GroupObserved():
                self.groups.take(one)
            case _:
                raise TypeError(f"not an observation: {one!r}")

    def verdict(self, settled_until: float = FOREVER) -> AuditVerdict:
        """Check every invariant, once. Publications after `settled_until` may still be in flight."""
        found, publications = self.found, self.publishers.publications.all
        readers = self.subscribers.readers
        check_publications(found, publications, self.publishers.by_origin, self.ended, settled_until)
        check_claims(found, self._sessions, self._session_ends, settled_until)
        self.handovers.check()
        self.handovers.check_gaps([told.gap for reader in readers.values() for told in reader.gaps])
        matched = self.subscribers.matched()
        context = StreamEvidence(
            self.publishers, self.subscribers.streams, self.tree, self._claims, found, settled_until
        )
        for key in sorted(readers):
            reader = readers[key]
            reader.ended_at = self.ended.get(key, FOREVER)
            StreamAudit(reader, context, matched).run()
        self.groups.check(publications, lambda name, one: self._is_excused(name, one, context))
        check_counters(found, self._counters, publications, readers)
        return found.verdict()

    def _is_excused(self, subscriber: str, one: PublicationHistory, context: StreamEvidence) -> bool | None:
        """Whether a gap that was told in the name of a slice covers a publication."""
        reader = self.subscribers.readers.get((subscriber, 0)) or SubscriberHistory(subscriber, 0)
        return StreamAudit(reader, context, []).is_excused(one)


def audit_journal(observations: Iterable[seen.Observation], settled_until: float = FOREVER) -> AuditVerdict:
    """The verdict over a journal that has ended; see `LawAudit.verdict` for `settled_until`."""
    one = LawAudit()
    one.take_all(observations)
    return one.verdict(settled_until)
