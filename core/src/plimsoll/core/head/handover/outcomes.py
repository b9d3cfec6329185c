"""States of a member of a session, and the outcomes that a head remembers.

Numbers of sessions rise within a mediator epoch. A head keeps the latest outcomes and refuses sessions that are older
than the newest forgotten one, so that a late command cannot begin a session a second time.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from plimsoll.core.protocol.departures import UNCUT_OUTCOMES, UNKNOWN
from plimsoll.core.protocol.messages import Outcome
from plimsoll.core.protocol.wire import WireError

OPEN: Final = ("preparing", "attached", "cutting")
"""States of members that can still be undone."""

ABORTING: Final = "aborting"
"""State of a member that has been undone, and whose source has not said yet whether it serves it."""

ANSWER_SECONDS: Final = 3.0
"""How long the source may take to answer ABORT. Then the outcome of a member without a word of it is `unknown`."""

CUT: Final = "cut"
OUTCOMES: Final = ("moved", *UNCUT_OUTCOMES, "returned", "detached", UNKNOWN)
REMEMBERED_SESSIONS = 1024
REMEMBERED_MEMBERS = 50_000


def parse_session_id(session_id: str) -> tuple[int, int]:
    """The mediator epoch and the number in the name of a session.

    Raises:
        WireError: `session`, if it is not of the form EPOCH.NUMBER.

    """
    epoch, _, number = session_id.partition(".")
    if not (epoch.isascii() and epoch.isdigit() and number.isascii() and number.isdigit()):
        raise WireError("session", f"a session is named EPOCH.NUMBER, in digits, not {session_id[:40]!r}")
    return int(epoch), int(number)


class OutcomeHistory:
    """Outcomes of sessions that are over, bounded in sessions and in members; the oldest are forgotten first."""

    def __init__(self) -> None:
        self._ended: OrderedDict[str, Outcome] = OrderedDict()
        self._members = 0
        self._forgotten = (0, 0)

    def __len__(self) -> int:
        return len(self._ended)

    def get(self, session_id: str) -> Outcome | None:
        return self._ended.get(session_id)

    def add(self, session_id: str, outcome: Outcome) -> None:
        if (before := self._ended.get(session_id)) is not None:
            self._members -= len(before.members)
        self._ended[session_id] = outcome
        self._members += len(outcome.members)
        while len(self._ended) > REMEMBERED_SESSIONS or (self._members > REMEMBERED_MEMBERS and len(self._ended) > 1):
            oldest, gone = self._ended.popitem(last=False)
            self._members -= len(gone.members)
            self._forgotten = max(self._forgotten, parse_session_id(oldest))

    def has_forgotten(self, session_id: str) -> bool:
        """Whether a session that is not known may have been."""
        return parse_session_id(session_id) <= self._forgotten
