"""The laws over one subscriber's stream: nothing lost (I1), repeated (I2), reordered (I3), late (I7) or untrue (I8).

What a subscriber must have received. A publication is *due* if it was accepted and a matching subscription was in force
when it was logged. A due publication may be missing only inside a gap that the subscriber was told of. Three bands are
uncertain rather than due: between a request and its acknowledgement; publications missing at an end (withdrawal, lapse,
end of the incarnation), unless a later one of the same origin came before that end, since order then rules them out;
and publications that were never answered.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

from plimsoll.core.verify import observations as seen
from plimsoll.core.verify.evidence import PublisherEvidence
from plimsoll.core.verify.histories import (
    FOREVER,
    ObservedHeadTree,
    PublicationHistory,
    StreamNumbers,
    SubscriberHistory,
    SubscriptionHistory,
)
from plimsoll.core.verify.invariants import AuditFindings

StreamPlace = tuple[int, int]


class OffsetHighWaterMarks:
    """The highest offset per origin that a stream had reached by a time, or by a place in it."""

    def __init__(self) -> None:
        self._rises: dict[tuple[str, int], tuple[list[int], list[float], list[int]]] = {}

    def reached(self, origin: seen.LogPosition, place: int, at: float) -> None:
        places, times, highs = self._rises.setdefault(origin[:2], ([], [], []))
        if not highs or origin[2] > highs[-1]:
            places.append(place)
            times.append(at)
            highs.append(origin[2])

    def before(self, origin: seen.LogPosition, at: float) -> int:
        """The highest offset of this head epoch among the deliveries before a time; -1 if none."""
        _, times, highs = self._rises.get(origin[:2], ([], [], []))
        found = bisect_left(times, at)
        return highs[found - 1] if found else -1

    def at_place(self, origin: seen.LogPosition, place: int) -> int:
        """The highest offset of this head epoch among the first `place` deliveries; -1 if none."""
        places, _, highs = self._rises.get(origin[:2], ([], [], []))
        found = bisect_left(places, place)
        return highs[found - 1] if found else -1


def lies_in_gap(gap: seen.GapObserved, one: PublicationHistory) -> bool | None:
    """Whether the publication lies in the positions of the gap; None if its position at that head is not known."""
    known = [(epoch, position) for (head, epoch), position in one.positions.items() if head == gap.head]
    if not known:
        return None
    return any((gap.low_epoch, gap.low) <= key <= (gap.epoch, gap.high) for key in known)


@dataclass(frozen=True, slots=True)
class StreamEvidence:
    """The context of all stream checks: the evidence of the run, and where violations are reported."""

    publishers: PublisherEvidence
    streams: StreamNumbers
    tree: ObservedHeadTree
    claims: Sequence[seen.LatencyClaim]
    found: AuditFindings
    settled_until: float


class StreamAudit:
    """The laws for one incarnation of a subscriber."""

    def __init__(self, reader: SubscriberHistory, context: StreamEvidence, matched: list[array[int]]) -> None:
        self.reader, self.context = reader, context
        self.found, self.all = context.found, context.publishers.publications.all
        self.first: dict[int, int] = {}
        self.highs = OffsetHighWaterMarks()
        self.due: dict[int, list[SubscriptionHistory]] = {}
        for lives in reader.lives.values():
            for life in lives:
                for number in matched[life.filter]:
                    self.due.setdefault(number, []).append(life)

    def run(self) -> None:
        self._check_stream()
        for number in sorted(self.due):
            self._check_due(number, self.all[number], self.due[number])

    def report(self, law: str, text: str, at: float) -> None:
        self.found.add(law, self.reader.subject, text, at)

    # -- deliveries ----------------------------------------------------------------------------------------------------

    def _check_stream(self) -> None:
        """Follow the stream: deliveries and gaps in order of arrival."""
        order = StreamOrderCheck(self)
        told = GapCheck(self)
        gaps = iter(self.reader.gaps)
        upcoming = next(gaps, None)
        for place, (number, at) in enumerate(zip(self.reader.items, self.reader.times, strict=True)):
            while upcoming and upcoming.after <= place:
                told.take(upcoming.gap)
                upcoming = next(gaps, None)
            one = self.all[number]
            if number in self.first:
                self.found.counts["duplicated"] += 1
                self.report("I2", f"{one} came again", at)
                continue
            self.first[number] = place
            order.take(one, at)
            told.check(one, place, at)
            self._check_delivery(number, one, at)
            if one.origin:
                self.highs.reached(one.origin, place, at)
        while upcoming:
            told.take(upcoming.gap)
            upcoming = next(gaps, None)
        self.found.counts["gaps"] += len(self.reader.gaps)

    def _check_delivery(self, number: int, one: PublicationHistory, at: float) -> None:
        if not any(life.could_match(at, one.counts_from) for life in self.due.get(number, ())):
            self.found.counts["unwanted"] += 1
            self.report("I8", f"{one} came, which no subscription of that time matches", at)
        else:
            self.found.counts["delivered"] += 1
        if at > self.reader.ended_at:
            self.report("I8", f"{one} came after the end", at)
        if at < one.published_at < FOREVER:
            self.report("I8", f"{one} came before it was published", at)
        for claim in self._claims(one):
            self.found.counts["undisturbed"] += 1
            if at - one.published_at > claim.latency_seconds:
                late = f"{one} took {at - one.published_at:.3f} s, claimed were {claim.latency_seconds:g} s"
                self.report("I7", late, at)

    def _claims(self, one: PublicationHistory) -> list[seen.LatencyClaim]:
        return [
            claim
            for claim in self.context.claims
            if claim.since <= one.published_at <= claim.until
            and self.reader.name not in claim.exempt
            and one.identity[0] not in claim.exempt
        ]

    # -- due publications ----------------------------------------------------------------------------------------------

    def _check_due(self, number: int, one: PublicationHistory, lives: list[SubscriptionHistory]) -> None:
        """Judge one matching publication: delivered, excused, lost or uncertain."""
        count = self.found.counts
        due_until = self._due_until(one, lives)
        if number in self.first:
            count["expected"] += due_until is not None
        elif due_until is None:
            count["uncertain"] += self._might_be_due(one, lives)
        elif (told := self.is_excused(one)) is None:
            count["uncertain"] += 1
        elif told:
            count["expected"] += 1
            count["excused"] += 1
            if self._claims(one):
                self.report("I7", f"{one} fell into a gap while all was claimed to be undisturbed", one.counts_from)
        elif due_until < FOREVER and not self._overtaken(one, due_until):
            count["uncertain"] += 1
        else:
            count["expected"] += 1
            count["lost"] += 1
            self.report("I1", f"{one} was lost", one.counts_from)

    def _due_until(self, one: PublicationHistory, lives: list[SubscriptionHistory]) -> float | None:
        """Until when it was due (without end, or until an end of the subscription); None if it was not due."""
        at = one.counts_from
        if not one.is_accepted or at >= self.reader.ended_at:
            return None
        ends = []
        for life in lives:
            held = life.acknowledgement_at(at)
            if held and self._reached(one, held[0], held[1]):
                ends.append(held[2])
        if not ends:
            return None
        end = min(max(ends), self.reader.ended_at)
        # Not settled yet: treat it as due until an end that lies after all observations.
        return end if at <= self.context.settled_until else min(end, 1e300)

    def _reached(self, one: PublicationHistory, head: str, unreached: tuple[str, ...]) -> bool:
        if not unreached:
            return True
        return one.origin is not None and self.context.tree.reaches(head, one.origin[0], unreached)

    def _might_be_due(self, one: PublicationHistory, lives: list[SubscriptionHistory]) -> bool:
        if one.answer == "refused" or one.published_at >= self.reader.ended_at:
            return False
        return any(life.requested_at <= one.answered_at and life.withdrawn_at >= one.published_at for life in lives)

    def _overtaken(self, one: PublicationHistory, end: float) -> bool:
        return one.origin is not None and self.highs.before(one.origin, end) > one.origin[2]

    # -- gaps ----------------------------------------------------------------------------------------------------------

    def is_excused(self, one: PublicationHistory) -> bool | None:
        """Whether a gap covers it; None if one may, but the journal does not show it."""
        answers = {self._covers(told.gap, told.after, one) for told in self.reader.gaps}
        return True if True in answers else None if None in answers else False

    def _covers(self, gap: seen.GapObserved, after: int, one: PublicationHistory) -> bool | None:
        spans = lies_in_gap(gap, one)
        if spans is not None:
            return spans
        origin = one.origin or self._guess(one)
        if origin is None:
            return self._may_lie_in(gap, one)
        if one.origin is not None and self.highs.at_place(origin, after) >= origin[2]:
            return False
        if any(lost[:2] == origin[:2] and origin[2] <= lost[2] for lost in gap.last):
            return True
        return True if self._crashed_on_the_way(gap, one, origin) else self._may_lie_in(gap, one)

    def _crashed_on_the_way(self, gap: seen.GapObserved, one: PublicationHistory, origin: seen.LogPosition) -> bool:
        """A restarted head has lost entries that only it had: subscribers behind it get a gap without offsets."""
        passed = [origin[:2], *one.positions]
        path = self.context.tree.path(origin[0], gap.head)
        return any(
            at <= gap.at and (where in passed or (where[0] in path and at >= one.counts_from))
            for where, at in self.context.publishers.heads_ended.items()
        )

    def _may_lie_in(self, gap: seen.GapObserved, one: PublicationHistory) -> bool | None:
        """False if it certainly lies outside, by the gap itself or by the log positions of its neighbours; else None.

        A head logs the publications of one publisher in order.
        """
        if gap.last or gap.head in self.context.publishers.logging_heads:
            return False
        after = self._neighbor(one, -1, gap.head)
        before = self._neighbor(one, 1, gap.head)
        low, high = (gap.low_epoch, gap.low), (gap.epoch, gap.high)
        apart = (after is not None and after >= high) or (before is not None and before <= low)
        return False if apart else None

    def _neighbor(self, one: PublicationHistory, step: int, head: str) -> StreamPlace | None:
        publisher, incarnation, seq = one.identity
        numbers = self.context.publishers.publications.numbers
        for other in range(seq + step, seq + 1000 * step, step):
            number = numbers.get((publisher, incarnation, other))
            if number is None:
                return None
            known = [(epoch, at) for (name, epoch), at in self.all[number].positions.items() if name == head]
            if known:
                return min(known) if step > 0 else max(known)
        return None

    def _guess(self, one: PublicationHistory) -> seen.LogPosition | None:
        """The origin of a publication that was never delivered: after its predecessor's, as heads accept in order."""
        publisher, incarnation, seq = one.identity
        numbers = self.context.publishers.publications.numbers
        for earlier in range(seq - 1, max(seq - 1000, 0), -1):
            number = numbers.get((publisher, incarnation, earlier))
            if number is not None and (known := self.all[number].origin):
                return (known[0], known[1], known[2] + 1)
        return None


class StreamOrderCheck:
    """I3: offsets rise per origin, and so do a publisher's sequence numbers within one origin."""

    def __init__(self, stream: StreamAudit) -> None:
        self._stream = stream
        self._offsets: dict[tuple[str, int], int] = {}
        self._numbers: dict[tuple[str, int, str, int], int] = {}

    def take(self, one: PublicationHistory, at: float) -> None:
        if one.origin is None:
            return
        head, epoch, offset = one.origin
        publisher, incarnation, seq = one.identity
        by_origin, by_publisher = (head, epoch), (head, epoch, publisher, incarnation)
        if offset <= self._offsets.get(by_origin, -1) or seq <= self._numbers.get(by_publisher, -1):
            self._stream.found.counts["reordered"] += 1
            text = f"{one} came after offset {self._offsets[by_origin]} of the same head"
            self._stream.report("I3", text, at)
        self._offsets[by_origin] = max(offset, self._offsets.get(by_origin, -1))
        self._numbers[by_publisher] = max(seq, self._numbers.get(by_publisher, -1))


class GapCheck:
    """I8: publications in a gap are not delivered, neither before it nor after it."""

    def __init__(self, stream: StreamAudit) -> None:
        self._stream = stream
        self._gaps: list[seen.GapObserved] = []
        self._highest: dict[str, StreamPlace] = {}
        self._delivered: dict[str, list[StreamPlace]] = {}
        self._last: dict[tuple[str, int], int] = {}

    def take(self, gap: seen.GapObserved) -> None:
        low, high = (gap.low_epoch, gap.low), (gap.epoch, gap.high)
        if low > high:
            self._stream.report("I8", f"gap from {low} to {high} at {gap.head} ends before it begins", gap.at)
        had = self._delivered.get(gap.head, ())
        inside = [key for key in had[bisect_left(had, low) :] if key <= high]
        if inside:
            text = f"is told that positions {low} to {high} at {gap.head} are lost, and had {inside[:3]}"
            self._stream.report("I8", text, gap.at)
        self._gaps.append(gap)
        self._highest[gap.head] = max(high, self._highest.get(gap.head, high))
        for head, epoch, offset in gap.last:
            self._last[head, epoch] = max(offset, self._last.get((head, epoch), -1))

    def check(self, one: PublicationHistory, place: int, at: float) -> None:
        for head, key in self._places(one, place):
            delivered = self._delivered.setdefault(head, [])
            if not delivered or delivered[-1] < key:
                delivered.append(key)
            if head in self._highest and key <= self._highest[head]:
                for gap in self._gaps:
                    if gap.head == head and (gap.low_epoch, gap.low) <= key <= (gap.epoch, gap.high):
                        text = f"{one} came after it was told that {gap.head} {gap.low} to {gap.high} are lost"
                        self._stream.report("I8", text, at)
                        break
        if one.origin and one.origin[2] <= self._last.get(one.origin[:2], -1):
            self._stream.report("I8", f"{one} came after a gap whose last lost offset is later", at)

    def _places(self, one: PublicationHistory, place: int) -> list[tuple[str, StreamPlace]]:
        """The place of a delivery in the log of its head: as the delivery states, or as far as heads' logs are known.

        A restarted head may log a publication twice; one of its places may then lie in a gap.
        """
        reader = self._stream.reader
        stream = reader.streams[place]
        if stream >= 0:
            head, epoch = self._stream.context.streams.all[stream]
            return [(head, (epoch, reader.positions[place]))]
        if len(reader.heads) > 1:
            return []  # with several heads, one may have logged a publication that came through another
        return [(head, (epoch, position)) for (head, epoch), position in one.positions.items() if head in reader.heads]
