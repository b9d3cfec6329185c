"""Rules between fields as CEL expressions, enforced by an API server as `validation` enforces them on one machine.

A rule belongs to the block that it constrains; `ROOT` has the rules of whole objects, which may refer to their status
and to their previous state. Rules over several objects are in `validation` only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from plimsoll.core.spec.field_info import BROKER_NAME_LENGTH, camel_case
from plimsoll.core.spec.quantities import DURATION
from plimsoll.core.spec.types.channel import ChannelFeedSpec, ChannelSpec
from plimsoll.core.spec.types.cluster import BrokerClusterSpec, HeadLogSpec, HeadSpec
from plimsoll.core.spec.types.fleet import TimingDefaults
from plimsoll.core.spec.types.policy import (
    BadParameters,
    BundlesSpec,
    DetectionSpec,
    EstimationSpec,
    HeadThresholds,
    OverloadThresholds,
    PolicySpec,
)
from plimsoll.core.spec.types.session import LoadBalancingSessionSpec, SelectSpec


@dataclass(frozen=True)
class CelRule:
    """`cel` must be true, or the object is refused with `message` at `path`, which begins with a dot."""

    cel: str
    message: str
    path: str = ""

    def written(self) -> dict[str, Any]:
        """The rule as an entry of `x-kubernetes-validations`."""
        found = {"rule": self.cel, "message": self.message, "fieldPath": self.path}
        return {key: value for key, value in found.items() if value}


def duration_test(value: str) -> str:
    """An expression: whether a text is a duration as this project reads it, which not all readers' durations are."""
    return f"{value}.size() > 0 && {value}.matches(r'^{DURATION}$')"


def _block_of(type_name: str, block: str) -> CelRule:
    """In a union, only the block of the chosen type may be present."""
    return CelRule(
        f"!has(self.{block}) || self.type == '{type_name}'",
        f"these are parameters of {type_name}, and `type` is another one: remove them, or change `type`",
        f".{block}",
    )


def _unchanged(field: str) -> CelRule:
    """A field that a plan is made from: it must not change while the plan is in force."""
    name = camel_case(field)
    new, old = f"self.spec.{name}", f"oldSelf.spec.{name}"
    return CelRule(
        f"!has(oldSelf.status) || !has(oldSelf.status.planHash) || (has({new}) ? has({old}) && {new} == {old}"
        f" : !has({old}))",
        "there is a plan (status.planHash), so the fields it is made from cannot change: stop this session, or create"
        " another one",
        f".spec.{name}",
    )


IMMUTABLE_FIELDS = ("scope", "source", "target", "action", "select", "candidates", "trigger", "exclusions", "handover")
"""The fields that plans are made from."""

BLOCK_RULES: dict[type, tuple[CelRule, ...]] = {
    OverloadThresholds: (
        CelRule(
            "quantity(string(self.lower)).compareTo(quantity(string(self.higher))) <= 0",
            "`lower` is above `higher`: lower it, or raise `higher`",
            ".lower",
        ),
    ),
    HeadThresholds: (
        CelRule(
            "!has(self.lower) || !has(self.higher) ||"
            " quantity(string(self.lower)).compareTo(quantity(string(self.higher))) <= 0",
            "`lower` is above `higher`: lower it, or raise `higher`",
            ".lower",
        ),
    ),
    TimingDefaults: (
        CelRule(
            f"!has(self.heartbeat) || !has(self.deadAfter) || !({duration_test('self.heartbeat')}) ||"
            f" !({duration_test('self.deadAfter')}) || duration(self.heartbeat) < duration(self.deadAfter)",
            "`heartbeat` is not below `deadAfter`, so idle peers would count as gone: lower it, or raise `deadAfter`",
            ".heartbeat",
        ),
    ),
    DetectionSpec: (
        CelRule(
            f"!has(self.interval) || !has(self.reportsValidFor) || !({duration_test('self.interval')}) ||"
            f" !({duration_test('self.reportsValidFor')}) ||"
            " duration(self.reportsValidFor) >= duration(self.interval)",
            "`reportsValidFor` is below `interval`, so reports would expire between checks: raise it, remove it, or"
            " lower `interval`",
            ".reportsValidFor",
        ),
    ),
    EstimationSpec: (_block_of("Ring", "ring"), _block_of("Press", "press")),
    BadParameters: (
        CelRule(
            "quantity(string(self.alpha)).compareTo(quantity(string(self.gamma))) <= 0",
            "`alpha` is above `gamma`: lower it, or raise `gamma`",
            ".alpha",
        ),
    ),
    PolicySpec: (
        *(
            _block_of(name, block)
            for name, block in (
                ("Padres", "padres"), ("Random", "random"), ("LeastLoaded", "leastLoaded"), ("Greedy", "greedy"),
                ("Bad", "bad"), ("Pulsar", "pulsar"), ("DelaySensitive", "delaySensitive"),
            )
        ),
        CelRule(
            "self.type != 'Pulsar' || has(self.pulsar)",
            "Pulsar needs to know what a topic is: write `pulsar: {topicAttribute: NAME}`",
            ".pulsar",
        ),
        CelRule(
            "self.type != 'DelaySensitive' || has(self.delaySensitive)",
            "DelaySensitive needs to know what a topic is: write `delaySensitive: {topicAttribute: NAME}`",
            ".delaySensitive",
        ),
    ),
    HeadSpec: (
        CelRule(
            "!has(self.logSize) || !has(self.log) || !has(self.log.memory)",
            "`log.memory` and `logSize` both say how large the log in memory is: remove `logSize`",
            ".logSize",
        ),
        CelRule(
            "!has(self.confirm) || self.confirm == 'Both' ||"
            " (has(self.standby) && self.standby > 0 && has(self.log) && has(self.log.disk))",
            "there is no choice without both a standby and a disk: remove it, or add `standby` and `log.disk`",
            ".confirm",
        ),
    ),
    HeadLogSpec: (
        CelRule(
            "!has(self.sync) || self.sync == 'Always' || has(self.disk)",
            "there is nothing to sync without a disk: remove `sync`, or add `disk`",
            ".sync",
        ),
    ),
    ChannelFeedSpec: (
        CelRule(
            "!has(self.within) || (has(self.rows) && self.rows == 'All')",
            "new rows are seen once, however old they are: remove it, or write `rows: All`",
            ".within",
        ),
    ),
    ChannelSpec: (
        CelRule(
            "!has(self.every) || (has(self.mode) && self.mode == 'Repetitive')",
            "a Continuous channel has no period: remove it, or write `mode: Repetitive`",
            ".every",
        ),
        CelRule(
            "!has(self.mode) || self.mode != 'Repetitive' || has(self.every)",
            "a Repetitive channel needs a period: write one, such as `every: 10s`",
            ".mode",
        ),
    ),
    BundlesSpec: (
        CelRule(
            "(has(self.initial) ? self.initial : 4) <= (has(self.maximum) ? self.maximum : 128)",
            "`initial` is above `maximum`: lower it, or raise `maximum`",
            ".initial",
        ),
    ),
    BrokerClusterSpec: (
        CelRule(
            "!has(self.scale) || (has(self.edges) && self.edges.exists(e, has(e.replicas) &&"
            " (!has(self.scale.group) || self.scale.group == '' || e.name == self.scale.group)))",
            "no group of that name has `replicas`: give one of `edges` its `replicas`, or remove `scale`",
            ".scale",
        ),
        CelRule(
            "!has(self.edges) || self.edges.all(e, !has(e.replicas) || e.replicas == 0 ||"
            f" size(e.name) + 1 + size(string(e.replicas - 1)) <= {BROKER_NAME_LENGTH})",
            f"NAME-0, NAME-1, ... would have more than {BROKER_NAME_LENGTH} characters: shorten the name of the group",
            ".edges",
        ),
        CelRule(
            "!has(self.scale) || self.scale.replicas == 0 || !has(self.edges) ||"
            " !self.edges.exists(e, has(e.replicas)) ||"
            " size(has(self.scale.group) && self.scale.group != '' ? self.scale.group :"
            " self.edges.filter(e, has(e.replicas))[0].name) + 1 + size(string(self.scale.replicas - 1))"
            f" <= {BROKER_NAME_LENGTH}",
            f"with so many edges, NAME-0, NAME-1, ... would have more than {BROKER_NAME_LENGTH} characters: write less,"
            " or shorten the name of the group",
            ".scale.replicas",
        ),
    ),
    SelectSpec: (
        CelRule(
            "[has(self.count), has(self.sharePercent), has(self.names) && size(self.names) > 0,"
            " has(self.bundles) && size(self.bundles) > 0].filter(given, given).size() == 1",
            "write one of `count`, `sharePercent`, `names` and `bundles`",
        ),
    ),
    LoadBalancingSessionSpec: (
        CelRule("self.action != 'Drain' || has(self.source)", "say what to drain: `source` is missing", ".source"),
        CelRule(
            "!(self.action in ['Unload', 'Split']) || (has(self.source) && has(self.select) &&"
            " has(self.select.bundles) && size(self.select.bundles) > 0)",
            "name the cluster as `source`, and the bundles: `select: {bundles: [RANGE]}`",
            ".select",
        ),
        CelRule(
            "!has(self.select) || !has(self.select.bundles) || size(self.select.bundles) == 0 ||"
            " self.action in ['Unload', 'Split']",
            "bundles are moved and divided by `action: Unload` and `action: Split`",
            ".select",
        ),
        CelRule(
            "self.action != 'MovePublishers' || (has(self.source) && self.scope == 'Global')",
            "publishers move from the head of a cluster to others: name it as `source`, and write `scope: Global`",
            ".source",
        ),
        CelRule(
            "(self.action == 'MoveSlices') == has(self.slices)",
            "`action: MoveSlices` and the block `slices` go together: write both, or none",
            ".slices",
        ),
        CelRule(
            "self.action != 'MoveSlices' || (has(self.source) && !has(self.target) && self.scope == 'Local')",
            "slices move between consumers of one cluster: name it as `source`, no `target`, and write `scope: Local`",
            ".source",
        ),
        CelRule(
            "self.action != 'Shuffle' || has(self.source)",
            "say which cluster to shuffle: `source` is missing",
            ".source",
        ),
        CelRule(
            "self.action != 'Shuffle' || has(self.target) == (self.scope == 'Global')",
            "a Local shuffle names its cluster as `source` and no `target`; a Global one names two clusters",
            ".target",
        ),
        CelRule(
            "!has(self.source) || !has(self.target) || self.source.name != self.target.name",
            "target is source: name another one, or none",
            ".target",
        ),
        CelRule(
            "!has(self.select) || self.action in ['Rebalance', 'Unload', 'Split', 'MovePublishers']",
            "Drain and Shuffle select by themselves: remove it, or use `action: Rebalance`",
            ".select",
        ),
        CelRule(
            "self.handover != 'Replay' || self.scope == 'Local'",
            "replay works within a cluster only: use `handover: Auto`",
            ".handover",
        ),
        *(
            CelRule(
                f"!has(self.{role}) || !has(self.exclusions.brokers) || !(self.{role}.name in self.exclusions.brokers)",
                "it is in exclusions.brokers: take it out of one of the two",
                f".{role}",
            )
            for role in ("source", "target")
        ),
    ),
}  # fmt: skip


def _disk(root: str) -> str:
    return f"{root}.spec.head.log.disk"


def _has_disk(root: str) -> str:
    return f"(has({root}.spec.head.log) && has({_disk(root)}))"


def _storage_class(root: str) -> str:
    return f"(has({_disk(root)}.storageClass) ? {_disk(root)}.storageClass : '')"


def _is_plain(root: str) -> str:
    security = f"{root}.spec.security"
    return f"(has({root}.spec) && has({security}) && has({security}.plain) && {security}.plain)"


_BEGINS_WITH_A_LETTER = CelRule(
    "self.metadata.name.matches('^[a-z]')",
    "names of brokers begin with a letter, as those of Services on Kubernetes do",
    ".metadata.name",
)
ROOT_RULES: dict[str, tuple[CelRule, ...]] = {
    "BrokerFleet": (
        CelRule(
            f"{_is_plain('self')} == {_is_plain('oldSelf')}",
            "brokers with keys and brokers without cannot talk to each other, so this stays as it was made: delete"
            " the fleet, and create it again",
            ".spec.security.plain",
        ),
    ),
    "BrokerCluster": (
        CelRule(
            "!has(self.spec.neighbors) || self.spec.neighbors.all(n, n.name != self.metadata.name)",
            "a cluster cannot be its own neighbor: remove this item",
            ".spec.neighbors",
        ),
        CelRule(
            f"size(self.metadata.name) <= {BROKER_NAME_LENGTH - len('-head')}",
            f"NAME-head, its head, would have more than {BROKER_NAME_LENGTH} characters: shorten the name",
            ".metadata.name",
        ),
        _BEGINS_WITH_A_LETTER,
        CelRule(
            f"{_has_disk('self')} == {_has_disk('oldSelf')} && (!{_has_disk('self')} || "
            f"({_disk('self')}.size == {_disk('oldSelf')}.size && "
            f"{_storage_class('self')} == {_storage_class('oldSelf')}))",
            "the disk of a head's log stays as it was made: delete the cluster, and create it again",
            ".spec.head",
        ),
    ),
    "EdgeBroker": (
        CelRule(
            f"size(self.metadata.name) <= {BROKER_NAME_LENGTH}",
            f"names of brokers have at most {BROKER_NAME_LENGTH} characters: shorten it",
            ".metadata.name",
        ),
        _BEGINS_WITH_A_LETTER,
        CelRule(
            "self.spec.clusterRef.name == oldSelf.spec.clusterRef.name",
            "an edge does not change its cluster: delete it, and create one there",
            ".spec.clusterRef.name",
        ),
    ),
    "LoadBalancingSession": (
        *(_unchanged(field) for field in IMMUTABLE_FIELDS),
        CelRule(
            "self.spec.approval.planHash in ['', oldSelf.spec.approval.planHash, self.?status.?planHash.orValue('')]",
            "this is not the present plan (status.planHash): look at that one, and approve it",
            ".spec.approval.planHash",
        ),
    ),
}
