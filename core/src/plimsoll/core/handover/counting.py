"""The target of a hand-over: it asks the head what was due to those who have come, and them what they were given.

Laws of the place:
- The list that is due is the one that this edge holds; the subscriber answers only if it is still its own.
- A question is asked in the stream, behind all that it is about: not while the subscriber is behind.
- Nobody waits for any of this, and what is lost on the way is not repeated: then it is not known.
"""

from __future__ import annotations

from collections import defaultdict

from plimsoll.core import records as r
from plimsoll.core.attachment import Attachment, State
from plimsoll.core.link import Link
from plimsoll.core.roster import Host, Roster

SUBSCRIPTIONS_AT_MOST = 64
CHARACTERS_AT_MOST = 8 * 1024
"""A list that is longer is not asked about."""

CHECKS_AT_ONCE = 32
"""So many members are asked about in one DONE, so that it fits into a frame."""


class Counting:
    """What is asked for those who have come. `checks`: by session and subscriber, to go with DONE."""

    def __init__(self, host: Host, roster: Roster) -> None:
        self.host, self.roster = host, roster
        self.checks: dict[str, dict[str, r.CheckItem]] = {}
        self._due: dict[Attachment, tuple[str, str, list[r.Due]]] = {}
        self._asked: dict[Attachment, tuple[str, str]] = {}
        self._counts: defaultdict[tuple[str, str], list[r.CountItem]] = defaultdict(list)

    # -- towards the head

    def check(self, one: Attachment, session: str) -> None:
        """One has moved here: what was due to it since it began to count, if it does?"""
        since, marks = one.counts_from or (None, [])
        one.counts_from = None
        texts = [str(subscription) for subscription, _ in one.subscriptions.values()]
        fits = len(texts) <= SUBSCRIPTIONS_AT_MOST and sum(map(len, texts)) <= CHARACTERS_AT_MOST
        if since is not None and fits and len(marks) <= r.COUNTED_MARKS_AT_MOST:
            self.checks.setdefault(session, {})[one.subscriber] = r.CheckItem(
                one.subscriber, one.epoch, since, marks, texts
            )

    def gathered(self) -> list[r.Counts]:
        """What has been counted in this round."""
        told = [r.Counts(session, judge, items) for (session, judge), items in self._counts.items()]
        self._counts.clear()
        return told

    # -- towards the subscriber

    def on_due(self, told: r.DueList) -> None:
        for item in told.members:
            one = self.roster.records.get(item.subscriber)
            if one is not None and one.epoch == item.epoch:
                self._due[one] = (told.session, told.judge, item.due)
        self.ask()

    def ask(self) -> None:
        """Ask those who have all that the question is about; the others when they have."""
        asked: defaultdict[tuple[Link, str], list[r.AskItem]] = defaultdict(list)
        for one, (session, judge, due) in list(self._due.items()):
            if one.state is State.LIVE and not one.queue and one.dropped is None:
                self._asked[one] = (session, judge)
                asked[one.link, session].append(r.AskItem(one.id, due))
            elif one.state is not State.CLOSED:
                continue
            del self._due[one]
        for (link, session), items in asked.items():
            for start in range(0, len(items), CHECKS_AT_ONCE):
                self.host.say(link, r.Count(session, items[start : start + CHECKS_AT_ONCE]))
        for one in [one for one in self._asked if one.state is State.CLOSED]:
            del self._asked[one]

    def on_counted(self, link: Link, counted: r.Counted) -> None:
        for item in counted.members:
            one = self.roster.attached(link, item.attachment)
            if one is None or self._asked.get(one, ("", ""))[0] != counted.session:
                continue
            self._counts[self._asked.pop(one)].append(
                r.CountItem(one.subscriber, item.lost, item.duplicated, item.reordered, item.suppressed)
            )

    def restart(self) -> None:
        """The head has forgotten all sessions."""
        self.checks.clear()
        self._due.clear()
        self._asked.clear()
        self._counts.clear()
