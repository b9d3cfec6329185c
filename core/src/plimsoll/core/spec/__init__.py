"""The custom resources of `plimsoll.dev/v1alpha1`: their types, validation, and the broker configurations they imply.

`parse` turns loaded documents into `Resources`, or raises `InvalidResourcesError` with every problem located;
`broker_configs` derives the configuration of each broker process. The shells load YAML, find ports and make keys.
"""

from plimsoll.core.spec.broker_config import BrokerEndpoints, broker_configs, wanted_ports
from plimsoll.core.spec.brokers import declared_brokers, edge_brokers, head_name
from plimsoll.core.spec.kinds import API_VERSION, KINDS, kind_named
from plimsoll.core.spec.parser import parse
from plimsoll.core.spec.problems import InvalidResourcesError, ResourceProblem, SourceDocument
from plimsoll.core.spec.resources import Resource, Resources

__all__ = [
    "API_VERSION",
    "KINDS",
    "BrokerEndpoints",
    "InvalidResourcesError",
    "Resource",
    "ResourceProblem",
    "Resources",
    "SourceDocument",
    "broker_configs",
    "declared_brokers",
    "edge_brokers",
    "head_name",
    "kind_named",
    "parse",
    "wanted_ports",
]
