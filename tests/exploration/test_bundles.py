"""Ranges and owners of bundles in every reachable state, with all rules and without each.

A bundle is split, and moved by hand-over or released and looked up, while one process dies at any moment, and what the
mediator says is lost, late or repeated. Ranges divide the space and never grow older; no broker knows ranges that the
store has not; a lookup never answers an edge that has given the bundle up. From every state it comes to this: head and
edges have the ranges of the store, every unit is served, and the edge that serves it owns its bundle.
"""

from __future__ import annotations

import pytest
from tests.exploration.bundle_world import Config, explore
from tests.simulator.mutants.bundles import MUTANTS
from tests.simulator.mutants.rewriting import plant

FAULTS = ("mediator", "head", "a")
"""Both edges are alike."""
SMALL = [
    Config(), Config(tables=2), Config("transfer", is_split=False), Config("lookup", is_split=False),
    *(Config("transfer", (fault,), is_split=False) for fault in FAULTS),
]  # fmt: skip
LARGE = [
    *(Config("lookup", (fault,), is_split=False) for fault in FAULTS),
    *(Config("transfer", faults) for faults in ((), *((each,) for each in FAULTS))),
    *(Config("lookup", faults) for faults in ((), ("head",), ("a",))),
]  # fmt: skip
RULES = [
    ("halves-have-no-owner", Config(), "a bundle with units has no owner"),
    ("head-takes-older-ranges", Config(tables=2), "an older table has changed the head"),
    ("edge-takes-older-ranges", Config(tables=2), "an older table has changed"),
    ("drawn-edge-is-no-owner", Config(), "a lookup answers a, and no edge owns the bundle"),
    ("owner-that-is-gone-stays", Config("", ("a",)), "a lookup answers b, and a owns the bundle"),
    (
        "releases-repeat",
        Config("lookup", is_split=False),
        "the head carries a release out that an edge has seen before",
    ),
    ("edge-releases-repeat", Config("lookup", is_split=False), "by a release that it has seen before"),
    ("units-outstay-a-release", Config("lookup", is_split=False), "units of a bundle that is released stay"),
    ("head-adopts-no-owners", Config("", ("head",), is_split=False), "a bundle with units has no owner"),
    ("releases-are-not-reported", Config("lookup", ("head",), is_split=False), "that an edge has seen before"),
    ("late-attachment-owns-nothing", Config("", ("head",), is_split=False), "a bundle with units has no owner"),
    ("vacant-bundle-stays-vacant", Config("lookup", is_split=False), "a bundle with units has no owner"),
]
"""Each rule of head and edge, by the mutant without it: a world in which that shows, and the law that is broken."""
OF_THE_MEDIATOR = [
    ("stored-first", Config(), "the head does not know the ranges of the store"),
    ("assigned", Config("transfer", is_split=False), "a bundle that was handed over is not its target's"),
]


def holds(config: Config) -> None:
    result = explore(config)
    assert not result.violation, f"{result.violation}\n" + "\n".join(result.path)
    assert result.outcomes["moved"] > 0 or config.session != "transfer", "a world in which nothing moves tests nothing"
    assert result.outcomes["released"] > 0 or config.session != "lookup", (
        "a world in which nothing is released tests nothing"
    )


@pytest.mark.sampled(without=("mediator", "head", "('a',)"))
@pytest.mark.slow
@pytest.mark.parametrize("config", SMALL, ids=str)
def test_no_reachable_state_breaks_a_law(config: Config):
    holds(config)


@pytest.mark.sweep
@pytest.mark.timeout(1800)  # 1.1 million states
@pytest.mark.parametrize("config", LARGE, ids=str)
def test_nor_while_bundles_are_split_and_processes_die(config: Config):
    holds(config)


@pytest.mark.parametrize(("name", "config", "law"), RULES, ids=[name for name, *_ in RULES])
def test_each_rule_of_head_and_edge_is_needed(
    name: str, config: Config, law: str, monkeypatch: pytest.MonkeyPatch
):  # fmt: skip
    [mutant] = [each for each in MUTANTS if each.name == name]
    plant(monkeypatch, mutant.changes)
    result = explore(config)
    assert law in result.violation, result.violation or f"{result.states} states without this rule"


@pytest.mark.parametrize(("rule", "config", "law"), OF_THE_MEDIATOR, ids=[rule for rule, *_ in OF_THE_MEDIATOR])
def test_each_rule_of_the_mediator_is_needed(rule: str, config: Config, law: str):
    result = explore(config._replace(without=(rule,)))
    assert law in result.violation, result.violation or f"{result.states} states without this rule"
