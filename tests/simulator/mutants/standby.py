"""Heads with a standby: docs/durability.md, A standby."""

from __future__ import annotations

from tests.simulator.mutants.rewriting import Change, Mutant

from plimsoll.core.head.standby.log_feed import LogFeed
from plimsoll.core.head.standby.log_follower import LogFollower
from plimsoll.mediator.head_leadership import HeadLeadership

HEAD, TREE, BOTH, OFTEN = "standby-head", "standby-tree", "standby-both", "standby-often"

MUTANTS = [
    Mutant(
        "sent-before-the-standby-has-it",
        "Nothing of a round leaves a head before its standby has what the round has logged.",
        (Change(LogFeed.is_safe, "return not self.in_sync or", "return True or"),),
        (OFTEN, HEAD, TREE),
    ),
    Mutant(
        "alone-without-being-told",
        "A head goes on alone only when a mediator has given its standby up.",
        (Change(LogFeed.on_lost, "self.standby, self._follows = None, False", "self.standby, self.in_sync = None, 0"),),
        (OFTEN, HEAD, BOTH),
    ),
    Mutant(
        "in-sync-before-it-has-all",
        "A standby is in sync when all of the log has been sent to it.",
        (Change(LogFeed._send, "if self._sent == self.end and self.in_sync == 0:", "if self.in_sync == 0:"),),
        (OFTEN, HEAD, TREE),
    ),
    Mutant(
        "what-is-over-is-noted-again",
        "A time in sync that is over is not stored again, whatever an old status says.",
        (Change(HeadLeadership.noted, "sync <= max(self.ended, self.sync)", "sync <= self.sync"),),
        (OFTEN, BOTH),
    ),
    Mutant(
        "stored-before-it-is-written",
        "A standby says that it has what it has written.",
        (Change(LogFollower._store_part, "self.files.write(name, part.start, part.data)", "pass"),),
        (OFTEN, HEAD),
    ),
    Mutant(
        "another-log-is-gone-on-with",
        "A standby that has the log of another head begins anew.",
        (Change(LogFeed._on_follow, "(asked.term, asked.epoch) == (self.term, self.epoch)", "True"),),
        (OFTEN, BOTH),
    ),
]
