"""What is done in the run with bundles: two unloads by hand, and a killed edge. Splits and shedding are automatic.

One bundle is unloaded by Transfer, then, once the cluster's policy says so, the same one by Lookup, so that their
pauses compare. Each look at the bundles is kept for the claims.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from plimsoll.core.spec import Resources
from plimsoll.core.spec.problems import SourceDocument
from plimsoll.demo.analysis.bundle_history import BundleLook, look_of
from plimsoll.demo.audited_run import RunDirector
from plimsoll.demo.fleet import DemoFleet
from plimsoll.demo.live_display import LiveDisplay
from plimsoll.local import runtime, store_edits
from plimsoll.local.storage.fleet_folder import FleetFolder

BY_TRANSFER, BY_LOOKUP = "by-transfer", "by-lookup"
"""The sessions of the two unloads."""


@dataclass(frozen=True, slots=True)
class BundleTimes:
    """Steps in seconds of the traffic. `lookup_policy`: the policy changes to `unload: Lookup`."""

    transfer: float
    lookup_policy: float
    lookup: float
    kill: float


@dataclass(frozen=True, slots=True)
class KilledEdge:
    """An edge that the run has killed, and when."""

    edge: str
    at: float


def times_of(seconds: float) -> BundleTimes:
    """The times of a run of this length."""
    return BundleTimes(0.55 * seconds, 0.61 * seconds, 0.64 * seconds, 0.73 * seconds)


def busiest_bundle(look: BundleLook) -> str | None:
    """The owned bundle with most messages, among edges with more than one; else of all."""
    owners = list(look.owners.values())
    owned = {name: edge for name, edge in look.owners.items() if edge}
    several = [name for name, edge in owned.items() if owners.count(edge) > 1] or list(owned)
    return max(several, key=lambda name: (look.rates.get(name, 0.0), name), default=None)


def fullest_edge(look: BundleLook) -> str | None:
    """The edge that owns most bundles."""
    owners = [edge for edge in look.owners.values() if edge]
    return max(set(owners), key=lambda edge: (owners.count(edge), edge), default=None)


def without_one_end(deaths: Sequence[str], edge: str) -> list[str]:
    """The deaths without the first one of an edge."""
    caused = next((text for text in deaths if text.startswith(f"{edge}: ")), None)
    left = list(deaths)
    if caused is not None:
        left.remove(caused)
    return left


def with_lookup(fleet: Mapping[str, Any]) -> dict[str, Any]:
    """The object of a fleet, with `unload: Lookup`."""
    spec, defaults = fleet["spec"], fleet["spec"]["defaults"]
    policy = defaults["policy"]
    changed = {**policy, "pulsar": {**policy["pulsar"], "unload": "Lookup"}}
    return {**fleet, "spec": {**spec, "defaults": {**defaults, "policy": changed}}}


class BundleDirector(RunDirector):
    """Carries the steps out in their order, each once. `looks`: the bundles over time; `killed`: None until then."""

    def __init__(self, seconds: float, resources: Resources, live: LiveDisplay) -> None:
        self._resources, self._live = resources, live
        (self._cluster,) = resources.clusters
        self.looks: list[BundleLook] = []
        self.killed: KilledEdge | None = None
        self.unloaded: dict[str, str] = {}
        """The bundle of each session by hand."""
        times = times_of(seconds)
        self._steps: list[tuple[float, Callable[[BundleLook], None]]] = [
            (times.transfer, lambda look: self._unload(BY_TRANSFER, busiest_bundle(look))),
            (times.lookup_policy, lambda _: self._change_policy()),
            (times.lookup, lambda look: self._unload(BY_LOOKUP, self._same_bundle(look))),
            (times.kill, self._kill),
        ]
        self._next_look = 0.0

    def begin(self, fleet: DemoFleet, state: FleetFolder) -> None:
        self._fleet, self._state = fleet, state

    def look(self, seconds: float, reports: Mapping[str, Mapping[str, Any]]) -> None:
        head = next((name for name, one in self._fleet.brokers.items() if one.role == "head"), "")
        edges = [report for name, report in reports.items() if name != head]
        self.looks.append(look_of(seconds, reports.get(head, {}), edges))
        while self._steps and self._steps[0][0] <= seconds:
            _, step = self._steps.pop(0)
            step(self.looks[-1])

    def unexpected(self, deaths: Sequence[str]) -> list[str]:
        return list(deaths) if self.killed is None else without_one_end(deaths, self.killed.edge)

    def _same_bundle(self, look: BundleLook) -> str | None:
        """The bundle of the first unload, unless it has been split since then."""
        before = self.unloaded.get(BY_TRANSFER, "")
        return before if look.owners.get(before) else busiest_bundle(look)

    def _unload(self, name: str, bundle: str | None) -> None:
        if bundle is None:
            self._live.say(f"{name}: no bundle has an owner, so none is unloaded")
            return
        self.unloaded[name] = bundle
        self._live.say(f"{name}: unloading {bundle}")
        spec = {
            "scope": "Local", "source": {"name": self._cluster}, "action": "Unload", "select": {"bundles": [bundle]},
            "mode": "Execute", "limits": {"moveInterval": "1s"},
        }  # fmt: skip
        store_edits.create_session(self._state, name, spec)

    def _change_policy(self) -> None:
        runtime.apply(self._state, [SourceDocument(with_lookup(self._resources.fleet.mapping()), "the demo")])
        self._live.say("the policy unloads by Lookup from now on")

    def _kill(self, look: BundleLook) -> None:
        edge = fullest_edge(look)
        pid = None if edge is None else self._fleet.pid(edge)
        if edge is None or pid is None:
            self._live.say("no edge owns a bundle, so none is killed")
            return
        os.kill(pid, signal.SIGKILL)
        self.killed = KilledEdge(edge, look.at)
        owned = sum(owner == edge for owner in look.owners.values())
        self._live.say(f"killed {edge} with {owned} bundles")
