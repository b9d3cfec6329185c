"""Heads with a standby: docs/durability.md, A standby."""

from __future__ import annotations

from tests.simulator.mutants.rewriting import Change, Mutant

from plimsoll.core.head.standby.log_feed import LogFeed
from plimsoll.core.head.standby.log_follower import LogFollower
from plimsoll.core.transport.silent_heads import Attempts, SilentHeads

HEAD, TREE, OFTEN, LOST = "standby-head", "standby-tree", "standby-often", "standby-lost"

MUTANTS = [
    Mutant(
        "sent-is-taken-for-stored",
        "A head waits for its standby's word, not for its own sending.",
        (Change(LogFeed.is_safe, "place <= self._stored", "place <= self._sent"),),
        (OFTEN, TREE),
    ),
    Mutant(
        "sent-before-the-standby-has-it",
        "Nothing of a round leaves a head before its standby has what the round has logged.",
        (Change(LogFeed.is_safe, "return not self.in_sync or", "return True or"),),
        (OFTEN, HEAD, TREE),
    ),
    Mutant(
        "stored-before-it-is-written",
        "A standby says that it has what it has written.",
        (Change(LogFollower._store_part, "self.files.write(name, part.start, part.data)", "pass"),),
        (OFTEN, HEAD),
    ),
    Mutant(
        "lost-head-is-waited-for",
        "A silent head that has a standby is dialled again.",
        (Change(SilentHeads.opened, "if silence := _silence(link):", "if (silence := _silence(link)) and False:"),),
        (LOST,),
    ),
    Mutant(
        "lost-head-is-dialled-once",
        "A silent head is dialled again and again, as its standby may lead later than one attempt.",
        (Change(Attempts.made, "now + pause", "now + 1000.0"),),
        (LOST,),
    ),
]
