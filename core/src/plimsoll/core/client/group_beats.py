"""Beats of a member to the head of its group: how far its slices have got, its load, and the lease that answers give.

Rule of the place (tests/exploration/slice_move.py): an answer to a beat counts from when the beat was sent. Behind its
lease a member gives its application nothing more: its slices go on elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from plimsoll.core.client.slice_subscriber import SliceSubscriber
from plimsoll.core.protocol import messages as msg
from plimsoll.core.transport.link import NEVER, Link

LOAD_SECONDS = 2.0
"""How long the load of a report is measured at least."""

BEAT_PLACES_AT_MOST = 500
"""Slices whose progress one beat has; the others follow with the next."""

UNANSWERED_AT_MOST = 64
"""Beats whose times are remembered until their answers come."""

Usage = Callable[[], tuple[float, float]]
"""Processor and memory of this process, 0 to 1 of what it may use."""


def no_usage() -> tuple[float, float]:
    """For a process that does not measure itself."""
    return 0.0, 0.0


class BeatsHost(Protocol):
    """What beats need of the client."""

    now: float

    def say(self, link: Link, record: msg.FromClient, /) -> None: ...


class BeatingMember(Protocol):
    """The member that they are of."""

    group: str
    slices: dict[int, SliceSubscriber]


class GroupBeats:
    """`number`: of the last beat, 0 for the join before them. `answered`: the last one of which an answer has come.

    `due_at`: when the next is to be said. `heard_at`: when that was sent which the head has answered last.
    `lease_until`: until when the application may be given what it has not taken yet. In seconds.
    """

    def __init__(self, client: BeatsHost, member: BeatingMember, usage: Usage) -> None:
        self._client, self._member, self._usage = client, member, usage
        self.seconds = self._lease_seconds = 1.0
        self.number = self.answered = 0
        self.due_at = NEVER
        self.heard_at = client.now
        self.lease_until = self.heard_at + self._lease_seconds
        self._sent: dict[int, float] = {}
        self._said: dict[int, msg.SlicePlace] = {}
        self._measured_at = client.now

    # -- the lease

    def join_sent(self) -> None:
        """GROUP_JOIN has gone over a new link: beats of the old one are not answered any more."""
        self._sent = {0: self._client.now}

    def begin(self, joined: msg.GroupJoined) -> None:
        """The head takes it as a member, and says how long a beat and the lease are."""
        self.seconds, self._lease_seconds = joined.beat_seconds, joined.lease_seconds
        self._heard(self._sent.pop(0, self.heard_at))
        self.due_at = self._client.now

    def on_answer(self, number: int) -> None:
        """The head had this beat."""
        if (sent := self._sent.pop(number, None)) is not None:
            self._heard(sent)
        self.answered = number

    def _heard(self, sent: float) -> None:
        self.heard_at = max(self.heard_at, sent)
        self.lease_until = self.heard_at + self._lease_seconds

    def stop(self) -> None:
        """Say no more beats, until the head takes it as a member again."""
        self.due_at = NEVER

    def wake_at(self) -> float:
        """When the next beat is due, or the lease is over."""
        return min(self.due_at, self.lease_until + 0.001 if self._member.slices else NEVER)

    # -- beats

    def say(self, link: Link) -> None:
        """Say the next beat, with the slices that have got further since they were last said."""
        self.number += 1
        self._sent[self.number] = self._client.now
        while len(self._sent) > UNANSWERED_AT_MOST:
            del self._sent[next(iter(self._sent))]
        owned = self._member.slices.values()
        changed = [place for each in owned if (place := each.place()) != self._said.get(each.slice)]
        changed = changed[:BEAT_PLACES_AT_MOST]
        self._said.update((place.number, place) for place in changed)
        self._client.say(link, msg.GroupBeat(self._member.group, self.number, changed, self._load()))

    def forget(self, number: int) -> None:
        """This slice is gone. If it comes again, report its place again."""
        self._said.pop(number, None)

    def _load(self) -> msg.MemberLoad | None:
        seconds = self._client.now - self._measured_at
        if seconds < LOAD_SECONDS * self.seconds:
            return None
        self._measured_at = self._client.now
        cpu, memory = self._usage()
        return msg.MemberLoad(seconds, cpu, memory, [_report(each, seconds) for each in self._member.slices.values()])


def _report(owned: SliceSubscriber, seconds: float) -> msg.SliceReport:
    finished, busy = owned.finished, owned.busy_seconds
    owned.finished, owned.busy_seconds = 0, 0.0
    return msg.SliceReport(owned.slice, finished / seconds, busy / finished if finished else 0.0, owned.backlog)
