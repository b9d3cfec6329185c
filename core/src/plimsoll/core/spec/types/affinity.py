"""Affinity of brokers' pods to nodes and to other pods, with the field names of Kubernetes: a block can be copied."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Final, Literal

from plimsoll.core.spec.field_info import FieldInfo, name_field

KEY: Final = r"([a-z0-9][-a-z0-9.]*/)?[A-Za-z0-9][-A-Za-z0-9_.]*"
"""Short, as an API server shows it to users: a rule with a message would cost too much in lists within lists."""

LABEL_VALUE: Final = r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?"
LABEL_MAX_LENGTH: Final = 317
VALUE_MAX_LENGTH: Final = 63
ITEMS_AT_MOST: Final = 32

LabelOperator = Literal["In", "NotIn", "Exists", "DoesNotExist"]
NodeOperator = Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]


def _key_field(text: str) -> FieldInfo:
    form = "a label's key, as topology.kubernetes.io/zone"
    return FieldInfo(text, pattern=KEY, form=form, max_length=LABEL_MAX_LENGTH)


def _list_field(text: str) -> FieldInfo:
    return FieldInfo(text, max_items=ITEMS_AT_MOST)


VALUES = FieldInfo(
    "The values; none with Exists and DoesNotExist.",
    pattern=LABEL_VALUE + "|", form="a label's value", max_length=VALUE_MAX_LENGTH, max_items=ITEMS_AT_MOST,
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class NodeExpression:
    """A test of one label of a node."""

    key: Annotated[str, _key_field("The label's key.")]
    operator: Annotated[NodeOperator, FieldInfo("How the label is compared with the values.")]
    values: Annotated[tuple[str, ...], VALUES] = ()


@dataclass(frozen=True, kw_only=True)
class LabelExpression:
    """A test of one label of a pod or a namespace."""

    key: Annotated[str, _key_field("The label's key.")]
    operator: Annotated[LabelOperator, FieldInfo("How the label is compared with the values.")]
    values: Annotated[tuple[str, ...], VALUES] = ()


@dataclass(frozen=True, kw_only=True)
class NodeTerm:
    """Tests that a node has to pass, all of them."""

    match_expressions: Annotated[tuple[NodeExpression, ...], _list_field("Tests of the node's labels.")] = ()
    match_fields: Annotated[tuple[NodeExpression, ...], _list_field("Tests of the node's fields: metadata.name.")] = ()


@dataclass(frozen=True, kw_only=True)
class NodeChoice:
    """Terms of which a node has to meet one."""

    node_selector_terms: Annotated[tuple[NodeTerm, ...], _list_field("The terms; one of them has to hold.")]


WEIGHT = FieldInfo("How much it counts beside the other preferences.", low=1, high=100)


@dataclass(frozen=True, kw_only=True)
class PreferredNodes:
    """Nodes that are preferred."""

    weight: Annotated[int, WEIGHT]
    preference: Annotated[NodeTerm, FieldInfo("The nodes.")]


@dataclass(frozen=True, kw_only=True)
class NodeAffinity:
    """Nodes that pods must be on, or should be."""

    required_during_scheduling_ignored_during_execution: Annotated[
        NodeChoice | None, FieldInfo("Nodes that the pods may be placed on; absent: any.")
    ] = None
    preferred_during_scheduling_ignored_during_execution: Annotated[
        tuple[PreferredNodes, ...], _list_field("Nodes that are preferred.")
    ] = ()


@dataclass(frozen=True, kw_only=True)
class LabelSelector:
    """Objects with these labels."""

    match_labels: Annotated[
        dict[str, str],
        FieldInfo("Labels that they have, as KEY: VALUE.", pattern=LABEL_VALUE + "|", form="a label's value",
                  max_length=VALUE_MAX_LENGTH, max_items=ITEMS_AT_MOST),
    ] = field(default_factory=dict)  # fmt: skip
    match_expressions: Annotated[tuple[LabelExpression, ...], _list_field("Tests of their labels.")] = ()


@dataclass(frozen=True, kw_only=True)
class PodTerm:
    """Pods beside which a pod is placed, or away from which, and how near that is."""

    topology_key: Annotated[str, _key_field("The label of nodes whose equal values mean one place.")]
    label_selector: Annotated[LabelSelector | None, FieldInfo("The pods; absent: none.")] = None
    namespaces: Annotated[
        tuple[str, ...], name_field("Their namespaces; empty: that of the fleet.", max_items=ITEMS_AT_MOST)
    ] = ()
    namespace_selector: Annotated[LabelSelector | None, FieldInfo("Their namespaces by label.")] = None


@dataclass(frozen=True, kw_only=True)
class PreferredPods:
    """Pods that are preferred, or avoided."""

    weight: Annotated[int, WEIGHT]
    pod_affinity_term: Annotated[PodTerm, FieldInfo("The pods.")]


@dataclass(frozen=True, kw_only=True)
class PodAffinity:
    """Pods beside which pods must be placed, or should be; or away from which."""

    required_during_scheduling_ignored_during_execution: Annotated[
        tuple[PodTerm, ...], _list_field("What the nodes of the pods must satisfy.")
    ] = ()
    preferred_during_scheduling_ignored_during_execution: Annotated[
        tuple[PreferredPods, ...], _list_field("What is preferred.")
    ] = ()


@dataclass(frozen=True, kw_only=True)
class AffinitySpec:
    """Affinity as a pod has it."""

    node_affinity: Annotated[NodeAffinity | None, FieldInfo("Nodes for the pods.")] = None
    pod_affinity: Annotated[PodAffinity | None, FieldInfo("Pods to be near to.")] = None
    pod_anti_affinity: Annotated[PodAffinity | None, FieldInfo("Pods to be away from.")] = None
