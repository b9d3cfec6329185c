"""What counting units costs an edge at each load report, beside counting them one by one.

    python -m bench.broker.bundle_report

Both ways are asked for the same loads before they are timed; milliseconds of processor, the best of nine.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence

from plimsoll.core.edge.bundle_meter import BundleMeter
from plimsoll.core.policies.model.bundle_load import reported_bundles
from plimsoll.core.policies.model.hash_ranges import HashRange, Partition
from plimsoll.core.protocol.topic_units import hash_of_unit, topic_hash, unit_name
from plimsoll.core.spec.types.policy import BundlesSpec, PulsarParameters

BUNDLES = 128
ROUNDS = 9


def one_by_one(names: Sequence[str], partition: Partition) -> dict[HashRange, Counter[int]]:
    """Each name is read, and its range is looked for, at each report."""
    found: dict[HashRange, Counter[int]] = {}
    for name in names:
        topic = hash_of_unit(name)
        if topic is not None:
            found.setdefault(partition.range_of(topic), Counter())[topic] += 1
    return found


def best_milliseconds(do: Callable[[], object]) -> float:
    best = float("inf")
    for _ in range(ROUNDS):
        began = time.process_time()
        do()
        best = min(best, time.process_time() - began)
    return best * 1e3


def main() -> None:
    """Print a line for each size."""
    sys.stdout.write("units   topics   one by one   report   ratio\n")
    for units, topics in ((1_000, 200), (10_000, 1_000), (10_000, 10_000)):
        names = [unit_name(f"subscriber-{n:05}", topic_hash(f"topic-{n % topics}")) for n in range(units)]
        meter = BundleMeter(PulsarParameters(topic_attribute="topic", bundles=BundlesSpec(initial=BUNDLES)), 0.0)
        counted = {load.bundle: (load.topics, load.sessions) for load in reported_bundles(meter.report(names, 1.0))}
        plain = one_by_one(names, meter.partition)
        if counted != {bundle: (len(some), sum(some.values())) for bundle, some in plain.items()}:
            raise AssertionError("the two ways do not count the same")
        slow = best_milliseconds(lambda names=names, meter=meter: one_by_one(names, meter.partition))
        fast = best_milliseconds(lambda names=names, meter=meter: meter.report(names, 2.0))
        sys.stdout.write(f"{units:6,}  {topics:6,}  {slow:8.2f} ms  {fast:6.2f} ms  x{fast / slow:.2f}\n")


if __name__ == "__main__":
    main()
