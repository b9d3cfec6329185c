"""The brokers of a fleet, by name.

A broker's name comes from `plimsoll_broker_info`, so any way of scraping works that sets `namespace` and `pod`.
"""

from __future__ import annotations

import json
from typing import Final

from dashboards.grafana import (
    NAMESPACE,
    RED_ABOVE_0,
    Dashboard,
    NumberPanel,
    Panel,
    Query,
    Row,
    dashboard_links,
    firing,
    label_variable,
)

EDGE_NAME: Final = "{{cluster}}/{{broker}}"


def info(role: str) -> str:
    """One series of value 1 for each broker of a role, with its names."""
    chosen = f'{NAMESPACE}, cluster=~"$cluster", broker=~"$broker", role=~"{role}"'
    return f"max by (namespace, pod, cluster, broker, role) (plimsoll_broker_info{{{chosen}}})"


def named(expr: str, role: str = ".+") -> str:
    """The expression, whose series have a namespace and a pod, with the names of the brokers."""
    return f"{expr} * on (namespace, pod) group_left (cluster, broker, role) {info(role)}"


def gauge(metric: str, role: str = ".+") -> str:
    return named(f"plimsoll_broker_{metric}{{{NAMESPACE}}}", role)


def rate(metric: str, role: str = ".+") -> str:
    return named(f"rate(plimsoll_broker_{metric}{{{NAMESPACE}}}[$__rate_interval])", role)


def grown(metric: str) -> str:
    return named(f"increase(plimsoll_broker_{metric}{{{NAMESPACE}}}[$__range])")


UTILIZATION: Final = (
    f'max by (namespace, pod) ({{__name__=~"plimsoll_broker_(input|output)_utilization", {NAMESPACE}}})'
)
EDGE_LOADS: Final = f"({named(UTILIZATION, 'edge')})"


def threshold(resource: str, bound: str) -> str:
    """The lowest threshold of a resource in each cluster, as its edges export it."""
    chosen = f'{NAMESPACE}, resource=~"{resource}", bound="{bound}"'
    line = named(f"plimsoll_broker_load_threshold_ratio{{{chosen}}}", "edge")
    return f"min by (namespace, cluster) ({line})"


def load_line(resource: str) -> Query:
    return Query(threshold(resource, "lower"), "{{cluster}} load line", is_limit=True)


def above_line(resource: str) -> str:
    """The utilisation of brokers that are above their own load line."""
    chosen = f'{NAMESPACE}, resource="{resource}", bound="lower"'
    line = f"max by (namespace, pod) (plimsoll_broker_load_threshold_ratio{{{chosen}}})"
    return f"plimsoll_broker_{resource}_utilization{{{NAMESPACE}}} > on (namespace, pod) {line}"


ABOVE_LINE: Final = named(f"max by (namespace, pod) ({above_line('input')} or {above_line('output')})", "edge")
LOAD_LINE: Final = load_line("input|output")
OVERLOADED: Final = Query(threshold("input|output", "higher"), "{{cluster}} overloaded", is_limit=True)
STATE: Final = f"sum by (namespace, pod) (plimsoll_broker_state{{{NAMESPACE}, state=%s}})"
STATES: Final = " + ".join(
    f"{weight} * {STATE % json.dumps(state)}" for weight, state in ((1, "STABILIZING"), (2, "BUSY"), (3, "N/A"))
)

SERVED: Final = f"rate(plimsoll_broker_match_duration_seconds_%s{{{NAMESPACE}}}[$__rate_interval])"
MATCH_DELAY: Final = named(f"({SERVED % 'sum'} / ({SERVED % 'count'} > 0))")

FLEET: Final = Dashboard(
    uid="plimsoll-fleet",
    title="Plimsoll / Fleet",
    text="The brokers of a fleet: how loaded they are beside their load line, what flows, what waits and what is "
    "refused.",
    links=[dashboard_links()],
    variables=[
        label_variable("namespace", "Namespace", "plimsoll_broker_info"),
        label_variable("cluster", "Cluster", 'plimsoll_broker_info{namespace=~"$namespace"}'),
        label_variable("broker", "Broker", 'plimsoll_broker_info{namespace=~"$namespace", cluster=~"$cluster"}'),
    ],
    rows=[
        Row(
            "Now",
            [
                firing("Gaps|Broker|Bundle|Cluster|Deadline|Edge|HeadAlone|Keys|Log|Slow|Strangers"),
                NumberPanel(
                    title="Brokers",
                    empty="no brokers",
                    text="Heads and edges that are scraped.",
                    queries=[Query(f"count by (role) ({info('.+')})", "{{role}}")],
                ),
                NumberPanel(
                    title="Brokers that are not ready",
                    steps=RED_ABOVE_0,
                    text="Brokers that do not let clients in: they start, leave, or wait for another broker.",
                    queries=[Query(f"count({gauge('ready')} == 0) or vector(0)", "not ready")],
                ),
                NumberPanel(
                    title="Edges above the load line",
                    steps=RED_ABOVE_0,
                    text="Edges whose input or output utilisation is above the load line of their policy.",
                    queries=[Query(f"count({ABOVE_LINE}) or vector(0)", "edges")],
                ),
                NumberPanel(
                    title="Subscribers",
                    empty="none",
                    text="Subscribers of all edges.",
                    queries=[Query(f"sum({gauge('subscribers', 'edge')})", "subscribers")],
                ),
                NumberPanel(
                    title="Gaps",
                    steps=RED_ABOVE_0,
                    text="Gaps in the chosen time: publications that were lost, and were reported to their "
                    "subscribers.",
                    queries=[Query(f"sum({grown('gaps_detected_total')})", "gaps")],
                ),
            ],
        ),
        Row(
            "Loads",
            [
                Panel(
                    title="Utilisation of edges",
                    unit="percentunit",
                    width=12,
                    height=9,
                    text="The higher of input and output utilisation of each edge. 1 is all that the edge can carry.",
                    queries=[Query(EDGE_LOADS, EDGE_NAME), LOAD_LINE, OVERLOADED],
                ),
                Panel(
                    title="Most and least loaded edge",
                    unit="percentunit",
                    width=12,
                    height=9,
                    text="By cluster. Balancing brings the two together; where both are above the load line, add "
                    "edges.",
                    queries=[
                        Query(f"max by (namespace, cluster) ({EDGE_LOADS})", "{{cluster}} most"),
                        Query(f"avg by (namespace, cluster) ({EDGE_LOADS})", "{{cluster}} mean"),
                        Query(f"min by (namespace, cluster) ({EDGE_LOADS})", "{{cluster}} least"),
                        LOAD_LINE,
                    ],
                ),
                Panel(
                    title="States of edges",
                    kind="state-timeline",
                    width=24,
                    height=7,
                    text="OK takes part in balancing; STABILIZING waits for steady figures; BUSY is in a session; "
                    "N/A is above the "
                    "load line and takes nothing more.",
                    mappings=[
                        ("0", "OK", "green"),
                        ("1", "STABILIZING", "blue"),
                        ("2", "BUSY", "yellow"),
                        ("3", "N/A", "red"),
                    ],
                    queries=[Query(named(f"({STATES})", "edge"), EDGE_NAME)],
                ),
                Panel(
                    title="Input utilisation",
                    unit="percentunit",
                    text="Arrival rate times matching delay, by broker. Heads too.",
                    queries=[Query(gauge("input_utilization"), EDGE_NAME), load_line("input")],
                ),
                Panel(
                    title="Output utilisation",
                    unit="percentunit",
                    text="Output over the bandwidth of the profile; 0 where the profile sets none.",
                    queries=[Query(gauge("output_utilization"), EDGE_NAME), load_line("output")],
                ),
                Panel(
                    title="Matching delay",
                    unit="s",
                    text="Mean service time of a publication, from its arrival until it is in the output buffers.",
                    queries=[
                        Query(
                            MATCH_DELAY,
                            EDGE_NAME,
                        )
                    ],
                ),
                Panel(
                    title="Processor",
                    unit="percentunit",
                    text="Processor time over the limit of the profile.",
                    queries=[Query(gauge("cpu_ratio"), EDGE_NAME), load_line("cpu")],
                ),
                Panel(
                    title="Memory",
                    unit="percentunit",
                    text="Resident memory over the limit of the profile. A broker that uses all of it is killed.",
                    queries=[Query(gauge("memory_ratio"), EDGE_NAME), load_line("memory")],
                ),
                Panel(
                    title="Waiting",
                    unit="s",
                    text="Mean wait before matching and before sending, in the last report.",
                    queries=[
                        Query(gauge("input_queue_delay_seconds"), f"{EDGE_NAME} input"),
                        Query(gauge("output_queue_delay_seconds"), f"{EDGE_NAME} output"),
                    ],
                ),
            ],
        ),
        Row(
            "Traffic",
            [
                Panel(
                    title="Publications received",
                    unit="cps",
                    text="Publications a second, by broker.",
                    queries=[Query(rate("messages_received_total"), EDGE_NAME)],
                ),
                Panel(
                    title="Sent on",
                    unit="cps",
                    text="Deliveries of edges and relays of heads, a second.",
                    queries=[Query(rate("messages_delivered_total"), EDGE_NAME)],
                ),
                Panel(
                    title="Output",
                    unit="Bps",
                    text="Bytes of data frames a second.",
                    queries=[Query(rate("output_bytes_total"), EDGE_NAME)],
                ),
                Panel(
                    title="Queues",
                    unit="short",
                    text="Messages that wait in brokers, by queue.",
                    queries=[
                        Query(
                            f"sum by (namespace, cluster, queue) ({gauge('queue_messages')})", "{{cluster}} {{queue}}"
                        )
                    ],
                ),
                Panel(
                    title="Bytes in queues",
                    unit="bytes",
                    text="Bytes that wait in brokers, by queue.",
                    queries=[
                        Query(f"sum by (namespace, cluster, queue) ({gauge('queue_bytes')})", "{{cluster}} {{queue}}")
                    ],
                ),
                Panel(
                    title="Dropped, gaps and repeats",
                    unit="cps",
                    text="Dropped by the policy for slow subscribers or refused; gaps that were found; gaps sent "
                    "because the log had "
                    "evicted what an edge still needed; publications that came again and were ignored.",
                    queries=[
                        Query(f"sum by (reason) ({rate('messages_dropped_total')})", "dropped: {{reason}}"),
                        Query(f"sum({rate('gaps_detected_total')})", "gaps found"),
                        Query(f"sum({rate('gaps_sent_total')})", "gaps sent"),
                        Query(f"sum({rate('duplicates_suppressed_total')})", "repeats ignored"),
                    ],
                ),
                Panel(
                    title="Logs of heads",
                    unit="percentunit",
                    maximum=1,
                    text="Memory that the log uses, over its limit. A full log is normal: it evicts its oldest "
                    "entries.",
                    queries=[
                        Query(
                            named(
                                f"(plimsoll_broker_log_bytes{{{NAMESPACE}}} / "
                                f"(plimsoll_broker_log_limit_bytes{{{NAMESPACE}}} > 0))",
                                "head",
                            ),
                            EDGE_NAME,
                        )
                    ],
                ),
                Panel(
                    title="Rounds of the loop, 99 %",
                    unit="s",
                    text="99 of 100 rounds with data were shorter, by cluster.",
                    queries=[
                        Query(
                            "histogram_quantile(0.99, sum by (namespace, cluster, le) ("
                            + rate("round_duration_seconds_bucket")
                            + "))",
                            "{{cluster}}",
                        )
                    ],
                ),
                Panel(
                    title="Lag of the loop",
                    unit="s",
                    text="The latest tick of the last second. A second or more delays everything.",
                    queries=[Query(gauge("loop_lag_seconds"), EDGE_NAME)],
                ),
            ],
        ),
        Row(
            "Who is connected, and who is refused",
            [
                Panel(
                    title="Subscribers by edge",
                    text="Balancing evens out load, not numbers.",
                    queries=[Query(gauge("subscribers", "edge"), EDGE_NAME)],
                ),
                Panel(
                    title="Subscriptions, publishers and links",
                    text="By cluster.",
                    queries=[
                        Query(
                            f"sum by (namespace, cluster) ({gauge('subscriptions', 'edge')})",
                            "{{cluster}} subscriptions",
                        ),
                        Query(f"sum by (namespace, cluster) ({gauge('publishers', 'head')})", "{{cluster}} publishers"),
                        Query(f"sum by (namespace, cluster) ({gauge('links')})", "{{cluster}} links"),
                    ],
                ),
                Panel(
                    title="Bundles that deliver most",
                    unit="cps",
                    empty="the policy has no bundles",
                    text="Deliveries a second of the ten busiest bundles of topics, under a policy that has them.",
                    queries=[
                        Query(
                            f"topk(10, sum by (bundle) ({gauge('bundle_messages_per_second', 'edge')}))", "{{bundle}}"
                        )
                    ],
                ),
                Panel(
                    title="Deadlines of topics",
                    unit="percentunit",
                    empty="the policy defends no deadlines",
                    text="Latency by what is required, of the ten topics nearest to their deadline: late above 1.",
                    queries=[
                        Query(
                            f"topk(10, max by (topic) ({gauge('topic_latency_seconds', 'edge')}"
                            f" / {gauge('topic_required_latency_seconds', 'edge')}))",
                            "{{topic}}",
                        )
                    ],
                ),
                Panel(
                    title="Round trips",
                    unit="s",
                    text="The longest of each broker's links, by the role of the peer.",
                    queries=[Query(f"max by (peer) ({gauge('link_round_trip_seconds')} > 0)", "{{peer}}")],
                ),
                Panel(
                    title="Connections",
                    unit="cps",
                    text="What happened to connections, a second.",
                    queries=[Query(f"sum by (lane, event) ({rate('connections_total')})", "{{lane}} {{event}}")],
                ),
                Panel(
                    title="Peers refused",
                    unit="cps",
                    text="Peers that could not prove their key, their name or their role, or whose key has been "
                    "removed.",
                    queries=[
                        Query(f"sum by (mechanism) ({rate('auth_failures_total')})", "{{mechanism}}"),
                        Query(f"sum({rate('links_ended_total')})", "links ended"),
                    ],
                ),
                Panel(
                    title="Input refused",
                    unit="cps",
                    empty="none was refused",
                    text="Frames, records and control records that were refused, by the protocol's reason.",
                    queries=[Query(f"sum by (kind, reason) ({rate('refused_total')})", "{{kind}} {{reason}}")],
                ),
                Panel(
                    title="Quotas, slow subscribers and keys",
                    text="Publishers held back by their quota and subscribers disconnected by their policy, a "
                    "second; brokers that cannot "
                    "read their authorised keys.",
                    queries=[
                        Query(f"sum({rate('quota_holds_total')})", "held by quota"),
                        Query(f"sum({rate('subscribers_disconnected_total')})", "disconnected"),
                        Query(f"sum({gauge('keys_fault')})", "keys cannot be read"),
                    ],
                ),
            ],
        ),
    ],
)
