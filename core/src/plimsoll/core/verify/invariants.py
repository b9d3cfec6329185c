"""The laws over publications, sessions and counters. Those over a subscriber's stream are in `stream_invariants`."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Mapping, Sequence

from plimsoll.core.verify import observations as seen
from plimsoll.core.verify.histories import FOREVER, PublicationHistory, SubscriberHistory
from plimsoll.core.verify.verdict import AuditVerdict, LawViolation

KEPT_VIOLATIONS = 200
"""How many violations a verdict spells out; all are counted."""


class AuditFindings:
    """Counts and violations as they are found."""

    def __init__(self) -> None:
        self.counts: Tally[str] = Tally()
        self.violated: Tally[str] = Tally()
        self.violations: list[LawViolation] = []

    def add(self, law: str, subject: str, text: str, at: float) -> None:
        self.violated[law] += 1
        if len(self.violations) < KEPT_VIOLATIONS:
            self.violations.append(LawViolation(law, subject, text, at))

    def verdict(self) -> AuditVerdict:
        names = [name for name, kind in AuditVerdict.__annotations__.items() if kind == "int"]
        counts = {name: self.counts[name] for name in names}
        return AuditVerdict(**counts, violated=dict(sorted(self.violated.items())), violations=tuple(self.violations))


def check_publications(
    found: AuditFindings,
    publications: Sequence[PublicationHistory],
    logged: Mapping[seen.LogPosition, set[seen.PublicationIdentity]],
    ended: Mapping[tuple[str, int], float],
    settled_until: float,
) -> None:
    """Each publication has one answer and one origin, and each origin one publication."""
    for one in publications:
        publisher, incarnation, seq = one.identity
        subject, at = f"publication {publisher}/{incarnation}/{seq}", one.published_at
        found.counts["published"] += one.published_at < FOREVER
        found.counts["accepted"] += one.is_accepted
        found.counts["refused"] += one.answer == "refused"
        found.counts["unknown"] += one.answer == "unknown"
        if one.published_at == FOREVER:
            found.add("I8", subject, "was never published", one.answered_at)
        if one.answers > 1:
            found.add("I8", subject, f"answered {one.answers} times, at last {one.answer}", one.answered_at)
        if not one.answers and one.published_at < FOREVER:
            found.counts["unanswered"] += 1
            if (publisher, incarnation) not in ended and at <= settled_until:
                found.add("I8", subject, "never answered", at)
        if one.other_origins:
            every = sorted([one.origin, *one.other_origins]) if one.origin else sorted(one.other_origins)
            found.add("I2", subject, f"accepted more than once, as {' and '.join(map(str, every))}", at)
        if one.answer == "refused" and one.origin:
            found.add("I8", subject, f"refused and yet accepted as {one.origin}", at)
    for origin, identities in logged.items():
        if len(identities) > 1:
            found.add("I8", f"origin {origin}", f"given to {sorted(identities)}", 0.0)


def check_claims(
    found: AuditFindings, began: Mapping[str, tuple[float, float]], ended: Mapping[str, float], settled_until: float
) -> None:
    """I5: every session ends by its deadline."""
    for uid, (at, deadline) in began.items():
        end = ended.get(uid, FOREVER)
        if end > deadline and deadline <= settled_until:
            found.add("I5", f"session {uid}", f"began at {at:g}, has a deadline at {deadline:g}, ended at {end:g}", at)


def check_counters(
    found: AuditFindings,
    counters: Sequence[seen.CounterObserved],
    publications: Sequence[PublicationHistory],
    readers: Mapping[tuple[str, int], SubscriberHistory],
) -> None:
    """I8: the product's own counters agree with the observations."""
    true: Tally[tuple[str, int, str]] = Tally()
    for one in publications:
        publisher, incarnation, _ = one.identity
        true[publisher, incarnation, "published"] += one.published_at < FOREVER
        answer = "accepted" if one.is_accepted else one.answer
        true[publisher, incarnation, answer] += 1
    for (name, incarnation), reader in readers.items():
        true[name, incarnation, "delivered"] += len(reader.items)
        true[name, incarnation, "gaps"] += len(reader.gaps)
    for said in counters:
        known = ("published", "accepted", "refused", "unknown", "delivered", "gaps")
        if said.what not in known:
            raise ValueError(f"counter {said.what!r} is not audited; audited are {' '.join(known)}")
        counted = true[said.name, said.incarnation, said.what]
        if said.value != counted:
            text = f"says {said.value} {said.what}, {counted} were seen"
            found.add("I8", f"{said.name}/{said.incarnation}", text, said.at)
