"""Heads with a standby: docs/durability.md, A standby."""

from __future__ import annotations

from tests.simulator.mutants.rewriting import Change, Mutant

from plimsoll.core.head.durability.continuation import EpochContinuation
from plimsoll.core.head.standby.log_copy import LogCopy
from plimsoll.core.head.standby.log_feed import LogFeed
from plimsoll.core.head.standby.log_follower import LogFollower
from plimsoll.core.transport.silent_heads import Attempts, SilentHeads

HEAD, TREE, OFTEN, LOST = "standby-head", "standby-tree", "standby-often", "standby-lost"
SWITCHED, SWITCHED_OFTEN = "standby-switched", "switched-often"

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
    Mutant(
        "journal-before-all-is-copied",
        "A log that is copied for a standby is whole before the head has a journal, and the standby may be in sync.",
        (Change(LogCopy.step, "if self.store.position < log.last or not self._has_dealt():", "if False:"),),
        (SWITCHED_OFTEN, SWITCHED),
    ),
    Mutant(
        "copy-forgets-who-sent-it",
        "An entry that a neighbour has sent is copied as such, and never goes back there.",
        (Change(LogCopy._copy, "source_of(position, entry)", '""'),),
        (SWITCHED_OFTEN, SWITCHED),
    ),
    Mutant(
        "copy-forgets-publishers",
        "From the end of the copy on the head notes what it has to remember of publishers.",
        (
            Change(
                EpochContinuation.begin, "host.journal = host.publishers.journal = journal", "host.journal = journal"
            ),
        ),
        (SWITCHED_OFTEN, SWITCHED),
    ),
    Mutant(
        "copy-forgets-neighbours",
        "The copy says how far neighbours were heard, so that they send what is missing and no gap is needed.",
        (Change(EpochContinuation.begin, "host.distributor.heard.update(", "dict[str, tuple[int, int]]().update("),),
        (SWITCHED,),
    ),
    Mutant(
        "copied-log-is-acknowledged-early",
        "A head has no journal before all that neighbours were told is here has been dealt with.",
        (Change(LogCopy.step, "or not self._has_dealt()", ""),),
        (SWITCHED,),
    ),
    Mutant(
        "term-is-given-twice",
        "A head that is to have its first standby takes the first term that it is given, and no other.",
        (Change(LogFeed.on_control, "isinstance(record, msg.Lead) and not self.term", "isinstance(record, msg.Lead)"),),
        (SWITCHED,),
    ),
    Mutant(
        "admits-against-its-file",
        "A head admits a standby only while its own file names one.",
        (Change(LogFeed.admits, "if not self.wants():", "if False:"),),
        (SWITCHED,),
    ),
    Mutant(
        "evicted-is-not-missed",
        "A neighbour that was away for longer than the log goes back is told of a gap.",
        (Change(EpochContinuation.to_neighbor, "or start + 1 < host.log.first", ""),),
        (TREE,),
    ),
]
