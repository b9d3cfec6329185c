"""Small fleets of Pulsar: bundles of equal ranges, each topic with a rate and some subscribers."""

from __future__ import annotations

from collections.abc import Mapping

from plimsoll.core.policies.model.bundle_load import BundleLoad
from plimsoll.core.policies.model.hash_ranges import Partition
from plimsoll.core.policies.model.load import BrokerLoad
from plimsoll.core.policies.model.profile import SubscriptionProfile, profile_rows
from plimsoll.core.policies.model.traffic import SampleBlock, SampledTraffic
from plimsoll.core.policies.rebalancer import FleetSample
from plimsoll.core.protocol.topic_units import unit_name

BANDWIDTH = 1000.0
BUNDLES = 8
RANGES = Partition.of_count(BUNDLES).ranges


def names(numbers: Mapping[int, float] | int) -> list[str]:
    """The names of bundles by number."""
    return [RANGES[number].name for number in ([numbers] if isinstance(numbers, int) else numbers)]


def profile(edge: str, rates: Mapping[int, float]) -> SubscriptionProfile:
    """One subscriber for each bundle, whose topic has this rate, of one byte each."""
    some = sorted(rates)
    traffic = SampledTraffic(SampleBlock(1, rates[number], 1.0) for number in some)
    asked = [(unit_name(f"{edge}-{n}", RANGES[n].low), f"[topic,=,'{n}']", 1 << at, 1) for at, n in enumerate(some)]
    return SubscriptionProfile(traffic, profile_rows(asked))


def load(edge: str, rates: Mapping[int, float]) -> BrokerLoad:
    """All that goes in and out is what its bundles bring; its output is what it can run short of."""
    total = sum(rates.values())
    bundles = tuple(BundleLoad(RANGES[n], 2, 1, RANGES[n].low + 9, rate, rate, rate, rate) for n, rate in rates.items())
    return BrokerLoad(
        name=edge, output_utilization=total / BANDWIDTH, bandwidth=BANDWIDTH, output_bytes_per_second=total,
        input_rate=total, output_rate=total, input_bytes_per_second=total, subscribers=len(rates), bundles=bundles,
    )  # fmt: skip


def sample(staying: Mapping[str, str] | None = None, /, **edges: Mapping[int, float]) -> FleetSample:
    """Edges with the rates of their bundles, by number."""
    owners = {RANGES[number].name: edge for edge, rates in edges.items() for number in rates}
    return FleetSample(
        tuple(load(edge, rates) for edge, rates in sorted(edges.items())),
        {edge: profile(edge, rates) for edge, rates in edges.items()},
        staying or {},
        owners=owners,
    )
