"""The fleets of a sweep, derived from the demo's: fewer subscribers on proportionally weaker hardware, other edges."""

import copy
from typing import Any

from plimsoll.core.spec import SourceDocument
from plimsoll.core.spec.quantities import Duration, Quantity
from plimsoll.demo.options import BALANCING_SCENARIO, resource_folder
from plimsoll.local import manifests

FULL = 2000
"""Subscribers of the paper's experiment. In a run with fewer, each stands for several."""

PAPER_MEGAHERTZ, PAPER_BYTES_PER_SECOND = 500, 3_000_000 / 8
"""The edges of figure 6g."""


def documents(subscribers: int, trigger: float | None = None, edges: int = 0) -> list[SourceDocument]:
    """The resources of a run. `trigger` replaces the demo's; `edges`, the number of equal edges, replaces its four."""
    found = []
    for document in manifests.load([str(resource_folder("balancing"))]):
        content: Any = copy.deepcopy(document.content)
        spec = content["spec"]
        if content["kind"] == "HardwareProfile":
            _weaken(spec, FULL / subscribers)
        elif content["kind"] == "BrokerCluster" and edges:
            spec["edges"] = [{"name": f"b{number}", "profile": "alike"} for number in range(1, edges + 1)]
        elif content["kind"] == "BrokerFleet" and trigger is not None:
            written = f"{round(1000 * trigger)}m"
            spec["defaults"]["policy"]["detection"]["localTrigger"] = {"ratio": written, "delay": written}
        found.append(SourceDocument(content, document.file, document.line_of))
    return [*found, _alike(FULL / subscribers)] if edges else found


def _weaken(spec: dict[str, Any], times: float) -> None:
    """Multiply the cost of a subscriber; the cost of a publication by itself stays the same."""
    each = Duration.parse(spec["emulation"]["perSubscription"]).seconds * times
    spec["emulation"]["perSubscription"] = f"{round(each * 1e9)}ns"
    for way, rate in spec["bandwidth"].items():
        if way == "outputBytesPerSecond":
            spec["bandwidth"][way] = str(round(float(Quantity.parse(str(rate)).value) / times))


def _alike(times: float) -> SourceDocument:
    """An edge of 500 MHz and 3 Mbit/s, as fast as those of the demo. PADRES 2006, 6.2."""
    fast = BALANCING_SCENARIO.rate_factor
    base, each = 0.4 / fast / PAPER_MEGAHERTZ, 0.016 / fast / PAPER_MEGAHERTZ * times
    sent = PAPER_BYTES_PER_SECOND * fast
    content = {
        "apiVersion": "plimsoll.dev/v1alpha1",
        "kind": "HardwareProfile",
        "metadata": {"name": "alike"},
        "spec": {
            "cpu": "1", "memory": "512Mi",
            "bandwidth": {"inputBytesPerSecond": round(sent), "outputBytesPerSecond": round(sent / times)},
            "emulation": {"base": f"{round(base * 1e9)}ns", "perSubscription": f"{round(each * 1e9)}ns"},
        },
    }  # fmt: skip
    return SourceDocument(content, "<edges that are alike>")
