"""Rules between fields as CEL expressions, which an API server keeps to where `checks` does on one machine.

A rule belongs to the block that it speaks of; `ROOT` has those of whole objects, which may look at their status and at
what they were before. What only `checks` can judge, because it takes more than one object, is not here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from plimsoll.core.spec.about import camel
from plimsoll.core.spec.clusters import BrokerClusterSpec
from plimsoll.core.spec.policy import EstimationSpec, OverloadThresholds, PolicySpec
from plimsoll.core.spec.sessions import LoadBalancingSessionSpec, SelectSpec


@dataclass(frozen=True)
class Rule:
    """`cel` must be true, or the object is refused with `message` at `path`, which begins with a dot."""

    cel: str
    message: str
    path: str = ""

    def written(self) -> dict[str, Any]:
        """The rule as `x-kubernetes-validations` has it."""
        found = {"rule": self.cel, "message": self.message, "fieldPath": self.path}
        return {key: value for key, value in found.items() if value}


def _block_of(type_name: str, block: str) -> Rule:
    """In a union, only the block of the type may be there."""
    return Rule(
        f"!has(self.{block}) || self.type == '{type_name}'",
        f"these are parameters of {type_name}, and `type` is another one: remove them, or change `type`",
        f".{block}",
    )


def _unchanged(field: str) -> Rule:
    """A field that a plan is made from, which stands as long as the plan does."""
    name = camel(field)
    new, old = f"self.spec.{name}", f"oldSelf.spec.{name}"
    return Rule(
        f"!has(oldSelf.status) || !has(oldSelf.status.planHash) || (has({new}) ? has({old}) && {new} == {old}"
        f" : !has({old}))",
        "there is a plan (status.planHash), and what it is made from does not change: stop this session, or create"
        " another one",
        f".spec.{name}",
    )


FIXED = ("scope", "source", "target", "action", "select", "candidates", "trigger", "exclusions", "handover")
"""What plans are made from."""

BLOCKS: dict[type, tuple[Rule, ...]] = {
    OverloadThresholds: (
        Rule(
            "quantity(string(self.lower)).compareTo(quantity(string(self.higher))) <= 0",
            "`lower` is above `higher`: lower it, or raise `higher`",
            ".lower",
        ),
    ),
    EstimationSpec: (_block_of("Ring", "ring"), _block_of("Press", "press")),
    PolicySpec: tuple(
        _block_of(name, block)
        for name, block in (
            ("Padres", "padres"), ("Random", "random"), ("LeastLoaded", "leastLoaded"), ("Greedy", "greedy"),
        )
    ),
    BrokerClusterSpec: (
        Rule(
            "!has(self.scale) || (has(self.edges) && self.edges.exists(e, has(e.replicas) &&"
            " (!has(self.scale.group) || self.scale.group == '' || e.name == self.scale.group)))",
            "no group of that name has `replicas`: give one of `edges` its `replicas`, or remove `scale`",
            ".scale",
        ),
        Rule(
            "!has(self.edges) || self.edges.all(e, !has(e.replicas) || e.replicas == 0 ||"
            " size(e.name) + 1 + size(string(e.replicas - 1)) <= 63)",
            "NAME-0, NAME-1, ... would have more than 63 characters: shorten the name of the group",
            ".edges",
        ),
    ),
    SelectSpec: (
        Rule(
            "[has(self.count), has(self.sharePercent), has(self.names) && size(self.names) > 0]"
            ".filter(given, given).size() == 1",
            "write one of `count`, `sharePercent` and `names`",
        ),
    ),
    LoadBalancingSessionSpec: (
        Rule("self.action != 'Drain' || has(self.source)", "say what to drain: `source` is missing", ".source"),
        Rule(
            "self.action != 'Shuffle' || has(self.source)",
            "say which cluster to shuffle: `source` is missing",
            ".source",
        ),
        Rule(
            "self.action != 'Shuffle' || has(self.target) == (self.scope == 'Global')",
            "a Local shuffle names its cluster as `source` and no `target`; a Global one names two clusters",
            ".target",
        ),
        Rule(
            "!has(self.source) || !has(self.target) || self.source.name != self.target.name",
            "target is source: name another one, or none",
            ".target",
        ),
        Rule(
            "!has(self.select) || self.action == 'Rebalance'",
            "Drain and Shuffle select by themselves: remove it, or use `action: Rebalance`",
            ".select",
        ),
        Rule(
            "self.handover != 'Replay' || self.scope == 'Local'",
            "replay works within a cluster only: use `handover: Auto`",
            ".handover",
        ),
        *(
            Rule(
                f"!has(self.{role}) || !has(self.exclusions.brokers) || !(self.{role}.name in self.exclusions.brokers)",
                "it is in exclusions.brokers: take it out of one of the two",
                f".{role}",
            )
            for role in ("source", "target")
        ),
    ),
}  # fmt: skip

ROOT: dict[str, tuple[Rule, ...]] = {
    "BrokerCluster": (
        Rule(
            "!has(self.spec.neighbors) || self.spec.neighbors.all(n, n.name != self.metadata.name)",
            "a cluster cannot be its own neighbor: remove this item",
            ".spec.neighbors",
        ),
        Rule(
            "size(self.metadata.name) <= 58",
            "NAME-head, its head, would have more than 63 characters: shorten the name",
            ".metadata.name",
        ),
    ),
    "EdgeBroker": (
        Rule(
            "self.spec.clusterRef.name == oldSelf.spec.clusterRef.name",
            "an edge does not change its cluster: delete it, and create one there",
            ".spec.clusterRef.name",
        ),
    ),
    "LoadBalancingSession": (
        *(_unchanged(field) for field in FIXED),
        Rule(
            "self.spec.approval.planHash in ['', oldSelf.spec.approval.planHash, self.?status.?planHash.orValue('')]",
            "this is not the plan that stands now (status.planHash): look at it, and approve that one",
            ".spec.approval.planHash",
        ),
    ),
}
