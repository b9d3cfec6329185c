"""What a mediator decides about the two processes of a head that start again by themselves: who leads, who follows.

Pure: from what is stored and what the processes say to the next value to be stored, or to what they are told. The value
is stored before anything is told that follows from it. So two mediators at once, and one that starts in the middle, do
no harm: each reads what is stored, and a process obeys a term only if it is the incarnation that the term was given to.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from plimsoll.core.head.standby.leadership import LEASE_SECONDS, HeadLeadership
from plimsoll.core.protocol import messages as msg

FRESH_SECONDS: Final = 2.0
"""An answer that is older says nothing about now."""

SILENT_SECONDS: Final = 5.0
"""A standby in sync for which its head has waited so long is given up, though the mediator may hear it."""

PairRecord = msg.Lead | msg.Follow | msg.Promote | msg.Replaced | msg.GoOnAlone | msg.Leave


@dataclass(frozen=True)
class ProcessView:
    """What is known of one of the two. `status`: its last answer, empty without one. `ended`: incarnations known to be
    over, as their pod or process has gone. `is_leaving`: it has been asked to end. `unheard_seconds`: since its last
    answer, or since it has been there; `silent_seconds`: for how long it has said that the other one is silent.
    """

    status: Mapping[str, Any] = field(default_factory=dict)
    unheard_seconds: float = float("inf")
    silent_seconds: float = 0.0
    ended: frozenset[int] = frozenset()
    is_leaving: bool = False

    @property
    def is_fresh(self) -> bool:
        return bool(self.status) and self.unheard_seconds <= FRESH_SECONDS

    @property
    def role(self) -> str:
        """What it is, by a fresh answer: `waiting`, `standby` or `head`; empty if it is over, or that is not known."""
        return str(self.status.get("role", "")) if self.is_fresh and self.incarnation not in self.ended else ""

    @property
    def incarnation(self) -> int:
        """By its last answer; 0 without one."""
        return whole(self.status, "incarnation")

    @property
    def has_no_term(self) -> bool:
        """Whether it is a head that has had no standby so far."""
        return self.role == "head" and not whole(self.status, "term")

    def has_ended(self, incarnation: int) -> bool:
        """Whether this incarnation of the process is over: it is known, or another one answers."""
        return incarnation in self.ended or (self.is_fresh and self.incarnation != incarnation)


@dataclass(frozen=True)
class PairEvent:
    """What is worth an Event: one of docs/reasons.md."""

    type: Literal["Normal", "Warning"]
    reason: str
    message: str


@dataclass(frozen=True)
class LeadershipChange:
    """The next value to be stored, and what is to be said about it.

    `ends`: the process that is to be ended then, since it holds connections and does nothing with them.
    """

    after: HeadLeadership
    event: PairEvent | None = None
    ends: int | None = None


@dataclass(frozen=True)
class PairDecision:
    """Both processes of one head. `wants`: whether it is to have a standby. `hands_over`: why its standby is to lead
    now, if it can. `has_disk`: a process that starts again has its log.
    """

    stored: HeadLeadership
    views: tuple[ProcessView, ProcessView]
    wants: bool = True
    hands_over: str = ""
    has_disk: bool = False

    @property
    def leader(self) -> ProcessView:
        return self.views[self.stored.leader]

    @property
    def other(self) -> ProcessView:
        return self.views[1 - self.stored.leader]

    @property
    def leads(self) -> bool:
        """Whether the process that the store names has answered as the head of this term."""
        return self.leader.role == "head" and whole(self.leader.status, "term") == self.stored.term > 0

    @property
    def may_promote(self) -> bool:
        """Whether the standby that is in sync, as stored, is there."""
        other = self.other
        return other.role == "standby" and other.incarnation == self.stored.standby != 0

    # -- what is stored

    def change(self) -> LeadershipChange | None:
        """The next value to be stored, if there is one."""
        stored, other = self.stored, self.other
        if (mended := stored.mended([view.status for view in self.views])) != stored:
            text = f"the status had numbers that no process has reached; process {mended.leader} has term {mended.term}"
            return LeadershipChange(mended, PairEvent("Warning", "Leads", text))
        if (found := self._forgotten()) is not None:
            text = f"process {found.leader} leads in term {found.term}, which the status had lost"
            return LeadershipChange(found, PairEvent("Warning", "Leads", text))
        if self.may_promote and (why := self._why_promote()):
            after = stored.promoted()
            is_planned = bool(self.hands_over)
            text = f"{why}; process {after.leader} leads now, in term {after.term}"
            event = PairEvent("Normal" if is_planned else "Warning", "Promoted", text)
            return LeadershipChange(after, event, ends=stored.leader if self._is_leader_silent else None)
        if stored.standby and other.has_ended(stored.standby):
            return self._alone("StandbyExited", "its standby has ended; the head goes on alone")
        if self.leads and (alone := self._given_up()) is not None:
            return alone
        if self.leads and not self.wants and stored.leader == 0 and stored.standby:
            return self._alone("StandbyRemoved", "the standby was removed; the head goes on alone", "Normal")
        if (begins := self._begins()) is not None:
            text = f"process {begins.leader} leads, in term {begins.term}"
            return LeadershipChange(begins, PairEvent("Normal", "Leads", text))
        after = stored.noted(other.status) if other.role == "standby" and self.wants else stored
        if after == stored:
            return None
        text = f"its standby has all of its log, in term {after.term}"
        return LeadershipChange(after, PairEvent("Normal", "StandbyInSync", text))

    def _forgotten(self) -> HeadLeadership | None:
        """A head of a later term than the stored one: the status was lost, as in a restored backup. It leads on."""
        said = [(whole(view.status, "term"), number, view) for number, view in enumerate(self.views)]
        later = [each for each in said if each[2].role == "head" and each[0] > self.stored.term]
        if not later:
            return None
        term, number, view = max(later, key=lambda each: each[:2])
        ended = whole(view.status, "standby_syncs")
        return HeadLeadership(term, number, ended=ended, leads=view.incarnation)

    def _why_promote(self) -> str:
        stored, leader, other = self.stored, self.leader, self.other
        if leader.has_ended(stored.leads):
            return f"process {stored.leader} has ended"
        if (self.hands_over or leader.is_leaving) and not other.status.get("linked"):
            return self.hands_over or f"process {stored.leader} was asked to end"
        return f"process {stored.leader} has been silent for {LEASE_SECONDS:g} s" if self._is_leader_silent else ""

    @property
    def _is_leader_silent(self) -> bool:
        """Whether neither the mediator nor the standby hears it, though it may live."""
        if self.leader.has_ended(self.stored.leads):
            return False
        return self.leader.unheard_seconds > LEASE_SECONDS and self.other.silent_seconds > 0

    @property
    def _is_standby_silent(self) -> bool:
        """Whether neither the mediator nor the head hears it, as when its node is lost."""
        return self.other.unheard_seconds > LEASE_SECONDS and self.leader.silent_seconds > 0

    def _given_up(self) -> LeadershipChange | None:
        """Of a head that lives: whether it goes on without the standby that it waits for, and may have just told so."""
        waits_for = whole(self.leader.status, "standby_in_sync")
        if not waits_for or whole(self.leader.status, "standby_syncs") <= self.stored.ended:
            return None
        if self.other.has_ended(waits_for):
            return self._alone("StandbyExited", "its standby has ended; the head goes on alone")
        if self._is_standby_silent or self.leader.silent_seconds > SILENT_SECONDS:
            return self._alone("StandbySilent", "its standby is silent; the head goes on alone")
        return None

    def _alone(self, reason: str, text: str, type_: Literal["Normal", "Warning"] = "Warning") -> LeadershipChange:
        said = self.leader.status if self.leads else {}
        return LeadershipChange(self.stored.without_standby(said), PairEvent(type_, reason, text))

    def _begins(self) -> HeadLeadership | None:
        """A term for a process that waits, if neither has what the last head had, or only this one has it.

        Or for a head that runs, and is to have its first standby.
        """
        stored = self.stored
        if stored.standby or (stored.leads and not self.leader.has_ended(stored.leads)):
            return None
        if self.leader.role == "waiting" or (self.leader.has_no_term and self.wants):
            return stored.begun(stored.leader, self.leader.incarnation)
        # In memory nothing is left of the last head. The first one is process 0, which may have had a disk before.
        may_switch = stored.leads and not self.has_disk and not self.leader.is_fresh
        if may_switch and self.other.role == "waiting":
            return stored.begun(1 - stored.leader, self.other.incarnation)
        return None

    # -- what they are told

    def commands(self) -> Iterator[tuple[int, PairRecord]]:
        """What each of the two is told, by what is stored; repeated until they say that they have done it."""
        stored, leader, other = self.stored, self.leader, self.other
        if leader.role and leader.incarnation == stored.leads:
            if leader.role == "waiting" or leader.has_no_term:
                yield stored.leader, msg.Lead(stored.term, stored.leads)
            elif leader.role == "standby":
                yield stored.leader, msg.Promote(stored.term)
            elif stored.waits_in_vain(leader.status):
                # Of the period that it waits in: it obeys no other, and this one is over as well.
                yield stored.leader, msg.GoOnAlone(stored.term, whole(leader.status, "standby_syncs"))
            elif self.hands_over and self.may_promote:
                yield stored.leader, msg.Leave()
        elif leader.role in ("standby", "head") and not leader.has_no_term:
            yield stored.leader, msg.Replaced(stored.term)  # it starts over, and may be given a term then
        if other.role == "waiting" and self.leads and self.wants:
            yield 1 - stored.leader, msg.Follow(other.incarnation)
        elif other.role == "standby" and self.leads and not self.wants and stored.leader == 0 and not stored.standby:
            yield 1, msg.Leave()
        elif other.role == "head" and whole(other.status, "term") < stored.term:
            yield 1 - stored.leader, msg.Replaced(stored.term)


def whole(status: Mapping[str, Any], name: str) -> int:
    """A whole number of a status; 0 if there is none."""
    value = status.get(name, 0)
    return value if isinstance(value, int) and not isinstance(value, bool) else 0
