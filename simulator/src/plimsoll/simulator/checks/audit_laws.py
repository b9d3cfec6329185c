"""The law of delivery audits: no batch of a session counts more faults than the run's own audit has found.

An audit may hear of fewer: it looks at some subscribers for some time. It never says that all of those who were asked
have answered when they have not, and never counts what did not happen.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from plimsoll.core.session import Session
from plimsoll.core.session.batch import AuditTotals
from plimsoll.core.verify import AuditVerdict


def disagreements(sessions: Iterable[Session], verdict: AuditVerdict) -> Iterator[str]:
    """What audits of sessions say, and the journal of the run does not."""
    for session in sessions:
        for batch in session.batches:
            if batch.audit is not None:
                for what in _disagreements(batch.audit, verdict):
                    yield f"{session.name}, batch {batch.id}: {what}"


def _disagreements(audit: AuditTotals, verdict: AuditVerdict) -> Iterator[str]:
    # A gap that a subscriber is told of excuses a loss; an audit counts both.
    found = {
        "lost": verdict.lost + verdict.excused,
        "duplicated": verdict.duplicated,
        "reordered": verdict.reordered,
    }
    for count, happened in found.items():
        if getattr(audit, count) > happened:
            yield f"counts {getattr(audit, count)} deliveries as {count}, of {happened} in the run"
    if audit.publishers and audit.subscribers > audit.asked:
        yield f"{audit.subscribers} subscribers have answered, and {audit.asked} were asked"
    if audit.publishers and audit.lost > audit.before + audit.after:
        yield f"{audit.lost} deliveries are lost, of {audit.before + audit.after} that were due"
