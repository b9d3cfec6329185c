"""Topics that are owned singly, and what edges report of them: docs/broker.md, Deadlines."""

from __future__ import annotations

from tests.simulator.mutants.rewriting import Change, Mutant

from plimsoll.core.edge.topic_meter import TopicMeter
from plimsoll.core.head.topic_owners import TopicOwners

CALM, FAULTS = "sessions-deadlines", "sessions-deadlines-faults"

MUTANTS = [
    Mutant(
        "topic-stays-with-an-edge-that-serves-none",
        "A topic whose owner serves none of its units belongs to the edge that serves most.",
        (Change(TopicOwners.reconcile, 'self.owners.get(topic, "") not in edges', "False"),),
        (FAULTS,),
    ),
    Mutant(
        "moved-topic-is-not-assigned",
        "A topic that a session moves belongs to its target.",
        (
            Change(TopicOwners.take_table, "self.owners[assigned.low] = assigned.edge", "pass"),
            Change(TopicOwners.reconcile, 'self.owners.get(topic, "") not in edges', "False"),
        ),
        (CALM, FAULTS),
    ),
    Mutant(
        "each-unit-is-placed-for-itself",
        "All units of a topic go to the edge that owns it.",
        (Change(TopicOwners.key_of, "return unit", "return unit + len(self.owners) * 2**32"),),
        (CALM, FAULTS),
    ),
    Mutant(
        "topics-without-a-deadline-are-not-reported",
        "An edge reports every topic that it serves.",
        (
            Change(
                TopicMeter.report,
                "for topic, units in by_topic.items()]",
                "for topic, units in by_topic.items() if len(units) > 1]",
            ),
        ),
        (CALM, FAULTS),
    ),
]
