"""What status says of specifications: which are accepted, which generation is served, and what is wrong.

`observedGeneration` of a status, and of its conditions about brokers, is the generation that the fleet was last built
of. `Accepted` alone is about the generation that was last looked at.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from plimsoll.core.spec.status.conditions import Condition
from plimsoll.core.spec.usable import DEPENDS, SpecFault, UsableFleet
from plimsoll.mediator import resource_status
from plimsoll.mediator.fleet_resources import owning_cluster
from plimsoll.operator.dataset_status import CONDITIONS
from plimsoll.operator.names import Object
from plimsoll.operator.objects.manifest import Ref, ref
from plimsoll.operator.reconcile.observed import ObservedObjects

ACCEPTED = "Accepted"


@dataclass(frozen=True, kw_only=True)
class SpecFaults:
    """What was found at the last reconciliation.

    `judged`: by object, the generation that was looked at. `acted`: the one that the fleet is built of; None for all
    as they are stored.
    """

    found: UsableFleet = field(default_factory=lambda: UsableFleet(None))
    judged: Mapping[Ref, int] = field(default_factory=dict)
    acted: Mapping[Ref, int] | None = None

    def served(self, item: Object) -> Object | None:
        """An object with the generation that is served; None if it is not served, or was not looked at yet."""
        if self.acted is None:
            return item
        generation = self.acted.get(ref(item))
        return None if generation is None else _with_generation(item, generation)

    def told_of(self, key: Ref, *, all_objects: bool = False) -> Sequence[tuple[str, str]]:
        """Reason and message of each fault of an object; `all_objects`: of any, with its name."""
        present = {**self.found.incomplete, **self.found.faults}
        if not all_objects:
            return [(present[key].reason, present[key].message)] if key in present else []
        return [(fault.reason, f"{'/'.join(each)}: {fault.message}") for each, fault in sorted(present.items())]

    def condition(self, item: Object) -> Condition:
        """Whether the specification of an object is accepted."""
        key = ref(item)
        fault = self.found.faults.get(key) or self._of_cluster(item)
        if fault is None:
            left_out = self.found.incomplete.get(key)
            return Condition(ACCEPTED, "True", "Accepted", left_out.message if left_out is not None else "")
        rest = "The last accepted version stays in force." if key in self.found.used else "It is not served until then."
        return Condition(ACCEPTED, "False", fault.reason, f"{fault.message} {rest}")

    def _of_cluster(self, item: Object) -> SpecFault | None:
        """The fault of an edge whose cluster, which made it, is not served."""
        cluster = owning_cluster(item) if item["kind"] == "EdgeBroker" else None
        if cluster is None or ("BrokerCluster", cluster) not in self.found.dropped:
            return None
        return SpecFault(DEPENDS, f"BrokerCluster/{cluster} has a fault of its own. Correct that object.")


def _with_generation(item: Object, generation: int) -> Object:
    return {**item, "metadata": {**item["metadata"], "generation": generation}}


def with_accepted(item: Object, told: Mapping[str, Any], specs: SpecFaults, time: str) -> dict[str, Any]:
    """A status with the condition `Accepted`."""
    judged = specs.judged.get(ref(item), int(item["metadata"].get("generation", 1)))
    owner = {**_with_generation(item, judged), "status": told}
    found = [specs.condition(item)]
    if found[0].status == "False":
        found.append(Condition("Degraded", "True", found[0].reason, found[0].message))
    elif item["kind"] == "HardwareProfile" and any(each["type"] == "Degraded" for each in told["conditions"]):
        found.append(Condition("Degraded", "False", "AsExpected"))  # clear an earlier fault
    return {**told, **resource_status.merged_conditions(owner, found, time)}


def dropped_statuses(
    observed: ObservedObjects, specs: SpecFaults, time: str
) -> Iterator[tuple[Object, dict[str, Any]]]:
    """The status of objects that are not served at all: `observedGeneration` stays that of what was served before."""
    for key in sorted(specs.found.dropped & observed.objects.keys()):
        item, fault = observed.objects[key], specs.found.faults[key]
        yield item, _unserved(item, fault, specs, time)


def fleetless_statuses(
    observed: ObservedObjects, specs: SpecFaults, message: str, time: str
) -> Iterator[tuple[Object, dict[str, Any]]]:
    """The status of a namespace without a fleet that can be served."""
    yield from dropped_statuses(observed, specs, time)
    for kind in ("BrokerFleet", "BrokerCluster", "EdgeBroker", *CONDITIONS):
        for item in observed.kind(kind):
            if ref(item) not in specs.found.dropped:
                yield item, _unserved(item, SpecFault("NoFleet", message), specs, time)


def _unserved(item: Object, fault: SpecFault, specs: SpecFaults, time: str) -> dict[str, Any]:
    judged = specs.judged.get(ref(item), int(item["metadata"].get("generation", 1)))
    found = [Condition("Degraded", "True", fault.reason, fault.message)]
    if item["kind"] != "HardwareProfile":
        type_ = CONDITIONS.get(item["kind"], "Ready")
        found.append(Condition(type_, "False", fault.reason, fault.message))
    if ref(item) in specs.found.faults:
        found.append(specs.condition(item))
    told = resource_status.merged_conditions(_with_generation(item, judged), found, time)
    return {**item.get("status", {}), **told}
