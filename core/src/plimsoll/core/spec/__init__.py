"""The custom resources of `plimsoll.dev/v1alpha1`: what can be asked of a fleet, and what is wrong with what was asked.

`parse` turns loaded documents into `Resources`, or raises `InvalidResourcesError` with every problem located; `plan`
turns resources into what each broker process is told. Loading YAML, finding ports and making keys is for the shells.
"""

from plimsoll.core.spec.brokers import edge_brokers, head_name, places
from plimsoll.core.spec.kinds import API_VERSION, KINDS, kind_named
from plimsoll.core.spec.parsing import parse
from plimsoll.core.spec.planning import Address, plan, wanted_ports
from plimsoll.core.spec.problems import Document, InvalidResourcesError, Problem
from plimsoll.core.spec.resources import Resource, Resources

__all__ = [
    "API_VERSION",
    "KINDS",
    "Address",
    "Document",
    "InvalidResourcesError",
    "Problem",
    "Resource",
    "Resources",
    "edge_brokers",
    "head_name",
    "kind_named",
    "parse",
    "places",
    "plan",
    "wanted_ports",
]
