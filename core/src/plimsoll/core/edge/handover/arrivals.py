"""What the target of a hand-over reports to its head: who has attached, and who has moved here."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from plimsoll.core.edge.handover.delivery_audit import CHECKS_AT_ONCE, DeliveryAuditRelay
from plimsoll.core.protocol import messages as msg

ArrivalMessage = msg.TargetAttached | msg.Done | msg.AuditSummary


class ArrivalReports:
    """Gathers one round's reports, by session: a batch of members costs a few messages, not a few for each."""

    def __init__(self, edge: str, delivery_audit: DeliveryAuditRelay) -> None:
        self.edge, self.delivery_audit = edge, delivery_audit
        self._attached: defaultdict[str, list[str]] = defaultdict(list)
        self._moved: defaultdict[str, list[str]] = defaultdict(list)

    def attached(self, session: str, subscriber: str) -> None:
        """Report a subscriber that is on standby here."""
        self._attached[session].append(subscriber)

    def moved(self, session: str, subscriber: str) -> None:
        """Report a subscriber that this edge serves from now on."""
        self._moved[session].append(subscriber)

    def collect(self) -> list[ArrivalMessage]:
        """Return what has gathered since the last call."""
        gathered: list[ArrivalMessage] = [
            *(msg.TargetAttached(session, members) for session, members in self._attached.items()),
            *self._done(),
            *self.delivery_audit.collect(),
        ]
        self._attached.clear()
        self._moved.clear()
        return gathered

    def _done(self) -> Iterator[msg.Done]:
        """DONE of each session, with its audit requests. Those are large: with them, only some members go into one."""
        requests = self.delivery_audit.requests
        for session in {**self._moved, **requests}:
            members, asked = self._moved.get(session, []), requests.pop(session, {})
            everyone = [*members, *(x for x in asked if x not in members)]
            at_once = CHECKS_AT_ONCE if asked else len(everyone)
            for at in range(0, len(everyone), at_once):
                part = set(everyone[at : at + at_once])
                done = [x for x in members if x in part]
                about = [request for x, request in asked.items() if x in part]
                yield msg.Done(session, done, self.edge if about else "", about)

    def clear(self) -> None:
        """Forget what has gathered: the head has restarted, and knows none of these sessions."""
        self._attached.clear()
        self._moved.clear()
