"""What it costs an edge to watch the deadlines of topics, beside the plain edge and one that counts by bundle.

    python -m bench.broker.topics [--units 10000] [--topics 200] [--repeats 5]

The same publications go through three edges in turn, without sockets, in one run: one without a policy, one under
Pulsar, one under DelaySensitive. The last two sample traffic as every policy does. Figures are the least of some
repetitions, as the machine may be busy; ratios are what counts.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

from bench.broker.actors import bodies_of
from bench.broker.machines import EdgeRig

from plimsoll.core.protocol.topic_units import topic_hash, unit_name

POLICIES: dict[str, dict[str, Any] | None] = {
    "plain": None,
    "Pulsar": {"type": "Pulsar", "pulsar": {"topicAttribute": "topic"}},
    "DelaySensitive": {"type": "DelaySensitive",
                       "delaySensitive": {"topicAttribute": "topic", "defaultLatency": "1s"}},
}  # fmt: skip
LINKS = 100
PER_ROUND = 16


def rig_of(policy: dict[str, Any] | None, units: int, topics: int) -> EdgeRig:
    """An edge that serves units of topics, as many of each topic; publications take turns."""
    names = [f"topic{number}" for number in range(topics)]
    texts = [f"[topic,=,'{names[number % topics]}']" for number in range(units)]
    bodies = bodies_of([{"topic": name, "n": number} for number, name in enumerate(names)])
    rig = EdgeRig(texts, bodies, LINKS, policy)
    for number, attachment in enumerate(rig.edge.attachments.by_subscriber.values()):
        (text,) = [str(subscription) for subscription, _ in attachment.subscriptions.values()]
        topic = text.split("'")[1]
        attachment.subscriber = unit_name(f"s{number}", topic_hash(topic))
    return rig


def publication_us(rig: EdgeRig, publications: int) -> float:
    """Microseconds of the edge's thread for one publication."""
    rig.edge_seconds = 0.0
    rig.feed(publications, PER_ROUND)
    return rig.edge_seconds / publications * 1e6


def report_ms(rig: EdgeRig) -> float:
    """Milliseconds of one load report."""
    started = time.thread_time()
    rig.edge.load_reports.send()
    took = time.thread_time() - started
    rig.edge.control_to_send()
    return took * 1e3


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--units", type=int, default=10_000)
    parser.add_argument("--topics", type=int, default=200)
    parser.add_argument("--publications", type=int, default=1_000)
    parser.add_argument("--repeats", type=int, default=5)
    given = parser.parse_args()
    rigs = {name: rig_of(policy, given.units, given.topics) for name, policy in POLICIES.items()}
    costs: dict[str, list[float]] = {name: [] for name in rigs}
    reports: dict[str, list[float]] = {name: [] for name in rigs}
    for _ in range(given.repeats + 1):
        for name, rig in rigs.items():
            costs[name].append(publication_us(rig, given.publications))
            reports[name].append(report_ms(rig))
    each = given.units / given.topics
    plain, plain_report = min(costs["plain"][1:]), min(reports["plain"][1:])
    print(f"{given.units:,} units of {given.topics} topics: {each:g} deliveries a publication")
    for name in rigs:
        cost, report = min(costs[name][1:]), min(reports[name][1:])
        print(
            f"{name:15} {cost:8.1f} us a publication ({cost / plain:.2f}), {cost / each:6.3f} us a delivery;"
            f" a load report {report:7.2f} ms ({report / plain_report:.1f})"
        )


if __name__ == "__main__":
    main()
