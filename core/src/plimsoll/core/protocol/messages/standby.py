"""Messages between a head and the standby that follows its log, and of the mediator that decides between the two."""

from __future__ import annotations

from msgspec import Struct

from plimsoll.core.protocol.wire import U63, Figure


class FollowLog(Struct, array_like=True, frozen=True, tag=170):
    """From a standby: send the log from here on. `term`, `epoch`: of the head whose log it has; zeros if of none.

    `segment` and `end`: the last segment that it has, by its first position, and how many bytes of it.
    """

    term: U63
    epoch: U63
    segment: U63
    end: U63


class LogBegins(Struct, array_like=True, frozen=True, tag=171):
    """From a head: what follows is a whole log; what the standby has had before is void."""

    term: U63
    epoch: U63


class LogPart(Struct, array_like=True, frozen=True, tag=172):
    """From a head: bytes of a segment, which lie behind those that were sent before. docs/durability.md."""

    segment: U63
    start: U63
    data: bytes


class LogTrimmed(Struct, array_like=True, frozen=True, tag=173):
    """From a head: segments before this one are gone."""

    segment: U63


class StandbyInSync(Struct, array_like=True, frozen=True, tag=174):
    """From a head: from here on nothing leaves it before the standby has it. `sync` numbers these times in a term."""

    term: U63
    epoch: U63
    sync: U63


class LogStored(Struct, array_like=True, frozen=True, tag=175):
    """From a standby: it has the log up to this place."""

    segment: U63
    end: U63


class GoOnAlone(Struct, array_like=True, frozen=True, tag=176):
    """From a mediator to a head: its standby is not to be promoted, as stored. `sync`: which of the times in sync.

    Control; repeated until the head's status says so.
    """

    term: U63
    sync: U63


class Promote(Struct, array_like=True, frozen=True, tag=177):
    """From a mediator to a standby: be the head in this term, as stored. Control; repeated until it is."""

    term: U63


class Lead(Struct, array_like=True, frozen=True, tag=178):
    """From a mediator to a process that waits: be the head in this term, as stored, with the log that is there.

    Or to a head that runs, and is to have its first standby: this is its term. Control; repeated until it is.
    `incarnation`: the process that is meant; a term is given out once, so one that has started since does not obey.
    """

    term: U63
    incarnation: U63


class Follow(Struct, array_like=True, frozen=True, tag=179):
    """From a mediator to a process that waits: be the standby, and give up the log that is there. Control; repeated.

    `incarnation`: the process that is meant.
    """

    incarnation: U63


class Replaced(Struct, array_like=True, frozen=True, tag=180):
    """From a mediator to a head of an earlier term: another process leads in this one, as stored. Control; repeated.

    It ends at once, and says nothing more. A standby that follows a head of an earlier term starts over.
    """

    term: U63


class LeadershipQuery(Struct, array_like=True, frozen=True, tag=181):
    """From a mediator to a process of a head that has a standby: which of the two are you, and what of the other one?

    Control. Unlike a STATUS_REPLY the answer never waits for the standby: it says nothing about publications.
    """

    id: U63


class LeadershipReply(Struct, array_like=True, frozen=True, tag=182):
    """The answer to LeadershipQuery: scalars, of which `role` says `waiting`, `standby` or `head`. Control."""

    id: U63
    status: dict[str, Figure]
