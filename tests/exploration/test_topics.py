"""The owner of a topic in every reachable state, with all rules and without each.

Units join and leave, a session hands the topic over or fails, and heads and edges die at any moment. No newcomer is
told of an edge that is gone, or that has given the topic up; once nothing fails any more, one edge owns the topic, it
serves units of it, and every newcomer goes there.
"""

from __future__ import annotations

import pytest
from tests.exploration.topic_world import Config, explore
from tests.simulator.mutants.rewriting import Change, Setting, plant

from plimsoll.core.head import topic_owners
from plimsoll.core.head.topic_owners import TopicOwners
from plimsoll.core.head.unit_owners import UnitOwners

SMALL = [
    Config(has_session=False), Config(), Config(faults=("head",)), Config(faults=("a",)),
    Config(faults=("unreachable",)), Config(has_session=False, faults=("a", "head")),
]  # fmt: skip
LARGE = [
    Config(3), Config(3, faults=("head",)), Config(3, faults=("a",)), Config(faults=("a", "head")),
    Config(3, faults=("unreachable",)), Config(faults=("a", "b")),
]  # fmt: skip
RULES = {
    "the edge that is drawn becomes the owner": (
        Config(has_session=False),
        Change(UnitOwners.place, "if drawn is not None and owner is None:", "if False:"),
        "and no edge owns the topic",
    ),
    "an owner that is gone is replaced": (
        Config(has_session=False, faults=("a",)),
        Change(UnitOwners.place, "owner is None:", "key not in self.owners:"),
        "a newcomer is told of b, and a owns the topic",
    ),
    "a client that cannot reach the owner leaves it the topic": (
        Config(has_session=False, faults=("unreachable",)),
        Change(UnitOwners.place, "if drawn is not None and owner is None:", "if drawn is not None:"),
        "takes the topic away",
    ),
    "all units go to the owner": (
        Config(has_session=False),
        Change(UnitOwners.place, "if owner is not None and owner.name not in exclude:", "if False:"),
        "and a owns the topic",
    ),
    "a head that starts adopts owners": (
        Config(has_session=False, faults=("head",)),
        Change(UnitOwners.adopt, "self.owners.setdefault(key, most)", "pass"),
        "has no owner after a start",
    ),
    "what is assigned counts": (
        Config(),
        Change(TopicOwners.take_table, "self.owners[assigned.low] = assigned.edge", "pass"),
        "that a session moves is taken back",
    ),
    "what is assigned is kept for some looks": (
        Config(),
        Change(TopicOwners.reconcile, "topic not in self._assigned and ", ""),
        "taken back from its target",
    ),
    "what is assigned ends": (
        Config(),
        Change(TopicOwners.reconcile, "left - 1 for topic", "left for topic"),
        "keeps a topic for good",
    ),
    "an owner that serves none loses the topic": (
        Config(),
        Change(TopicOwners.reconcile, 'self.owners.get(topic, "") not in edges', "False"),
        "keeps a topic for good",
    ),
}  # fmt: skip
"""Each rule: a world in which it is needed, the product without it, and the law that is broken."""


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """One look in place of several, so that the world is small."""
    plant(monkeypatch, [Setting(topic_owners, "ASSIGNED_FOR", 1)])


def holds(config: Config) -> None:
    found = explore(config)
    assert not found.violation, f"{found.violation}\n" + "\n".join(found.path)
    assert any("handed over" in what for what in found.outcomes) == config.has_session
    for fault in config.faults:
        assert any(fault in what or "cannot reach" in what for what in found.outcomes), f"{fault} never happens"


@pytest.mark.parametrize("config", SMALL, ids=str)
def test_no_reachable_state_breaks_a_law(config: Config):
    holds(config)


@pytest.mark.sweep
@pytest.mark.parametrize("config", LARGE, ids=str)
def test_nor_with_more_units_and_more_faults(config: Config):
    holds(config)


@pytest.mark.parametrize("rule", RULES)
def test_each_rule_is_needed(rule: str, monkeypatch: pytest.MonkeyPatch):
    config, change, law = RULES[rule]
    plant(monkeypatch, [change])
    found = explore(config)
    assert law in found.violation, found.violation or f"{found.states} states without this rule"
