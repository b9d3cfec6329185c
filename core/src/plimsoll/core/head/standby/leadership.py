"""Which of the two processes of a head leads: a value in the status of its cluster, changed by compare-and-set.

Pure. A change is stored before anything is commanded that follows from it. A standby may be promoted if and only if the
stored value says that it is in sync, and a head goes on alone only once it says that it is not: so at any moment one of
the two has all that was accepted, and the store says which.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

LEASE_SECONDS: Final = 3.0
"""A head that has not answered for so long is replaced, if its standby has not heard it for three heartbeats either."""

SILENT_HEARTBEATS: Final = 3.0
"""A standby in sync that has been silent for so long may have been promoted: nothing leaves the head any more."""


PLAUSIBLE_TERM: Final = 2**31
"""No head is replaced so often, and no standby in sync so often: a higher number in a status is someone else's."""

TERM_AFTER_ALL: Final = 2**30
"""Higher than any term that has been given, with room for as many again: where nobody knows the last one any more."""


def silence_seconds(heartbeat_seconds: float) -> float:
    """How long a head has been silent to those that it heartbeats to when its standby may have been promoted."""
    return max(LEASE_SECONDS, SILENT_HEARTBEATS * heartbeat_seconds) + heartbeat_seconds / 4


class LeadershipConflictError(RuntimeError):
    """The stored value is not the one that was to be changed: another mediator has changed it meanwhile."""


@dataclass(frozen=True)
class HeadLeadership:
    """`term`: how many times one has been made the head. `leader`: which of the two processes, 0 or 1.

    `standby`: the incarnation that is in sync with this leader; 0: none. `sync`: which of the times in this term.
    `ended`: the last such time that is over; the leader goes on without it. `leads`: the incarnation that the term was
    given to; 0 where processes are started as what they are.
    """

    term: int = 0
    leader: int = 0
    standby: int = 0
    sync: int = 0
    ended: int = 0
    leads: int = 0

    def begun(self, process: int, incarnation: int = 0) -> HeadLeadership:
        """The next term: this process starts as the head, without a standby."""
        return HeadLeadership(self.term + 1, process, leads=incarnation)

    def promoted(self) -> HeadLeadership:
        """The next term: the standby is the head.

        Raises:
            ValueError: none is in sync.

        """
        if not self.standby:
            raise ValueError(f"term {self.term} has no standby in sync")
        return self.begun(1 - self.leader, self.standby)

    def noted(self, standby: Mapping[str, Any]) -> HeadLeadership:
        """With what the standby's status says. A status may be old: what is over does not come again.

        The standby's word counts, not the head's: what the head has told it may be lost with the head.
        """
        sync, incarnation = _whole(standby, "sync"), _whole(standby, "incarnation")
        if _whole(standby, "term") != self.term or not incarnation or sync <= max(self.ended, self.sync):
            return self
        return replace(self, standby=incarnation, sync=sync)

    def without_standby(self, head: Mapping[str, Any]) -> HeadLeadership:
        """The standby has gone, or is waited for in vain: the head goes on alone. `head`: what its status says."""
        said = _whole(head, "standby_syncs") if _whole(head, "term") == self.term else 0
        return replace(self, standby=0, sync=0, ended=max(self.ended, self.sync, said))

    def mended(self, said: Sequence[Mapping[str, Any]]) -> HeadLeadership:
        """Without numbers that no process has reached, as far as the processes say which they have. `said`: statuses.

        Anyone with rights on a status may write it, and nothing can follow on such a number: no higher term fits in the
        definition, and a head obeys the end of a sync that it knows.
        """
        found = self
        if found.term > PLAUSIBLE_TERM:
            terms = [term for each in said if 0 < (term := _whole(each, "term")) <= PLAUSIBLE_TERM]
            # Both answer, and neither has a term: those that had one have ended, and edges follow a higher one only.
            unknown = TERM_AFTER_ALL if all(said) else found.term
            found = replace(found, term=max(terms, default=unknown))
        if max(found.sync, found.ended) <= PLAUSIBLE_TERM:
            return found
        if found.standby and found.sync <= PLAUSIBLE_TERM:
            return replace(
                found, ended=found.sync - 1
            )  # exact enough: what is in sync now comes behind all that is over
        leading = [each for each in said if each.get("role") == "head" and _whole(each, "term") == found.term]
        # The head knows all times so far. All are over: it is told so, and the next one has a number of its own.
        return replace(found, standby=0, sync=0, ended=_whole(leading[0], "standby_syncs")) if leading else found

    def waits_in_vain(self, head: Mapping[str, Any]) -> bool:
        """Whether the head still waits for a standby of which the store says that it is not to be promoted."""
        is_over = 0 < _whole(head, "standby_syncs") <= self.ended
        return _whole(head, "term") == self.term and _whole(head, "standby_in_sync") > 0 and is_over


def stored_leadership(status: Mapping[str, Any]) -> HeadLeadership:
    """What the status of a cluster says; of one that has never had a standby, term 0."""
    stored = status.get("leadership")
    found = stored if isinstance(stored, Mapping) else {}
    known = HeadLeadership(**{name: _whole(found, name) for name in asdict(HeadLeadership())})
    return known if known.leader in (0, 1) else replace(known, leader=0)  # anyone with rights may write a status


def leadership_status(leadership: HeadLeadership) -> dict[str, int]:
    """The same as `stored_leadership` reads it."""
    return asdict(leadership)


def _whole(found: Mapping[str, Any], name: str) -> int:
    value = found.get(name, 0)
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0
