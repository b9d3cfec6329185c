"""Profiles that sessions wait for: asked for until they are complete. What is no profile is asked for anew."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from plimsoll.core import records as r
from plimsoll.core.balancing.pieces import Gathering, decoded
from plimsoll.core.policies.profile import Profile
from plimsoll.core.session.events import Send
from plimsoll.core.wire import WireError

if TYPE_CHECKING:
    from plimsoll.core.session.turn import Turn


@dataclass(slots=True)
class Asking:
    """One session's question: what do the subscribers of `edge` take, that `target` has or has not already?

    Where `targets` are named, each of them is meant.
    """

    edge: str
    target: str
    id: int
    targets: list[str]
    gathering: Gathering = field(default_factory=Gathering)
    profile: Profile | None = None


class Profiles:
    """By the uid of the session, and by the edge."""

    def __init__(self) -> None:
        self._asked: dict[tuple[str, str], Asking] = {}

    def get(
        self, turn: Turn, uid: str, edge: str, target: str, head: str, targets: Sequence[str] = ()
    ) -> Profile | None:
        """The profile, or None as long as it is not complete; it is asked for meanwhile."""
        asking = self._asked.get((uid, edge))
        if asking is None or (asking.target, asking.targets) != (target, list(targets)):
            asking = self._asked[uid, edge] = Asking(edge, target, turn.next_query(), list(targets))
        if asking.profile is None and turn.is_due(f"profile/{asking.id}", turn.timings.ask):
            turn.effects.append(Send(head, r.ProfileQuery(asking.id, edge, target, targets=asking.targets)))
        return asking.profile

    def heard(self, turn: Turn, reply: r.ProfileReply) -> None:
        """A piece."""
        for asking in self._asked.values():
            if asking.id != reply.id or asking.edge != reply.edge or asking.profile is not None:
                continue
            whole = asking.gathering.take(reply)
            if whole is None:
                return
            try:
                asking.profile = decoded(whole)
            except WireError:
                asking.id, asking.gathering = turn.next_query(), Gathering()
            return

    def forget(self, uid: str) -> None:
        """Nobody waits any more."""
        self._asked = {key: asking for key, asking in self._asked.items() if key[0] != uid}
