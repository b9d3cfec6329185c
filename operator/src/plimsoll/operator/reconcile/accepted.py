"""What a fleet was last built of, stored for the next operator, and the objects as the mediator is shown them.

Without it an object that is changed to have a fault while no operator runs could not be served as it was.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

import msgspec

from plimsoll.core.spec import API_VERSION, SourceDocument
from plimsoll.core.spec.parser import parse_each
from plimsoll.core.spec.usable import Content, UsableFleet
from plimsoll.mediator.fleet_resources import BROKER_KINDS, owning_cluster
from plimsoll.operator import names
from plimsoll.operator.names import Object
from plimsoll.operator.objects.manifest import Ref, is_leaving, ref
from plimsoll.operator.reconcile.observed import ObservedObjects


def accepted_map(used: Mapping[Ref, Content], metadata: Object, fleet: str) -> Object:
    """The ConfigMap with one entry for each object that the fleet is built of."""
    data = {
        f"{kind}.{name}": json.dumps({**item["metadata"], "spec": item["spec"]}, sort_keys=True)
        for (kind, name), item in sorted(used.items())
    }
    labels = names.fleet_labels(fleet)
    named = {**metadata, "name": names.ACCEPTED, "labels": labels}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": named, "data": data}


def stored_accepted(observed: ObservedObjects) -> Iterator[Content]:
    """What an earlier operator has stored; an entry that cannot be read counts as none."""
    stored = observed.get("ConfigMap", names.ACCEPTED)
    for key, text in ((stored or {}).get("data") or {}).items():
        kind, _, name = str(key).partition(".")
        try:
            found = msgspec.json.decode(text)  # unlike `json`, it reads neither NaN nor Infinity nor 1e400
            kept = {"name": name, "uid": str(found["uid"]), "generation": int(found["generation"])}
            yield {"apiVersion": API_VERSION, "kind": kind, "metadata": kept, "spec": dict(found["spec"])}
        except (
            KeyError,
            OverflowError,
            RecursionError,
            TypeError,
            ValueError,
        ):  # written by another client: the object counts as new
            continue


def mediated_objects(observed: ObservedObjects, found: UsableFleet) -> Iterator[Object]:
    """The fleet's objects as last accepted; those that are not used are left out, with the edges of their clusters."""
    clusters = {key[1] for key in found.used if key[0] == "BrokerCluster"}
    clusters |= {item["metadata"]["name"] for item in observed.kind("BrokerCluster") if is_leaving(item)}
    for kind in BROKER_KINDS:
        for item in observed.kind(kind):
            if kind == "EdgeBroker" and (owning_cluster(item) is not None or is_leaving(item)):
                if item["spec"]["clusterRef"]["name"] in clusters:
                    yield item
            elif (used := found.used.get(ref(item))) is not None:
                yield {**item, "spec": used["spec"]}
            elif is_leaving(item) and not parse_each([SourceDocument(item, "")])[1]:
                yield item
    for key, used in found.used.items():
        if key not in observed.objects:  # a profile that was deleted under running brokers
            yield dict(used)
