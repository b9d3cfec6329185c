"""Bundles of topics: docs/pulsar.md."""

from __future__ import annotations

from tests.simulator.mutants.rewriting import Change, Mutant

from plimsoll.core.edge.bundle_meter import BundleMeter
from plimsoll.core.head.bundles import Bundles
from plimsoll.core.head.unit_owners import UnitOwners
from plimsoll.core.policies.pulsar import policy
from plimsoll.core.session.triggers import bundle_tables

CALM, LOOKUP, FAULTS = "sessions-bundles", "sessions-bundles-lookup", "sessions-bundles-faults"

MUTANTS = [
    Mutant(
        "halves-have-no-owner",
        "Both halves of a bundle that is split have its owner.",
        (Change(Bundles._divide, "self.owners.get(before.range_of(bundle.low))", "self.owners.get(bundle)"),),
        (CALM, LOOKUP, FAULTS),
    ),
    Mutant(
        "head-takes-older-ranges",
        "A head takes no ranges that are older than those it knows.",
        (Change(Bundles.take_ranges, " or version < self.version", ""),),
        (FAULTS,),
    ),
    Mutant(
        "edge-takes-older-ranges",
        "An edge takes no ranges that are older than those it knows.",
        (Change(BundleMeter.take_ranges, " or version < self.version", ""),),
        (FAULTS,),
    ),
    Mutant(
        "drawn-edge-is-no-owner",
        "The edge that a lookup draws for a bundle without an owner becomes its owner.",
        (Change(UnitOwners.place, "if drawn is not None and owner is None:", "if False:"),),
        (CALM, LOOKUP, FAULTS),
    ),
    Mutant(
        "owner-that-is-gone-stays",
        "A bundle whose owner takes no newcomers is given to another edge.",
        (Change(UnitOwners.place, "owner is None:", "key not in self.owners:"),),
        (FAULTS,),
    ),
    Mutant(
        "releases-repeat",
        "A release that is repeated takes the owner away only once.",
        (Change(Bundles.take_table, "if self._released.get(bundle) != released.number:", "if True:"),),
        (LOOKUP,),
    ),
    Mutant(
        "units-outstay-a-release",
        "The units of a bundle that is released leave their edge.",
        (Change(BundleMeter.released, "if self._released.get(bundle) != item.number:", "if False:"),),
        (LOOKUP,),
    ),
    Mutant(
        "head-adopts-no-owners",
        "A head that restarts takes the edge that serves most units of a bundle as its owner.",
        (Change(UnitOwners.adopt, "self.owners.setdefault(key, most)", "pass"),),
        (FAULTS,),
    ),
    Mutant(
        "bundle-is-not-assigned",
        "A bundle belongs to its new edge from the beginning of the session that hands it over.",
        (Change(bundle_tables._assigned, 'plan.handover != "lookup"', "False"),),
        (CALM, FAULTS),
    ),
    Mutant(
        "late-units-stay-away",
        "Units that are served by another edge than their bundle are brought to it.",
        (Change(policy._has_late, "each.sessions and", "False and"),),
        (CALM, FAULTS),
    ),
    Mutant(
        "ranges-are-forgotten",
        "After a session that has moved bundles the policy remembers the ranges.",
        (Change(policy.Pulsar.after_moves, '("boundaries", "version")', '("version",)'),),
        (CALM, LOOKUP),
    ),
]
