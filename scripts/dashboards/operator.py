"""The operator and the API server."""

from __future__ import annotations

from typing import Final

from dashboards.expressions import figure, rate_by
from dashboards.grafana import (
    NAMESPACE,
    RED_ABOVE_0,
    RED_BELOW_1,
    Dashboard,
    NumberPanel,
    Panel,
    Query,
    Row,
    dashboard_links,
    firing,
    label_variable,
)


def process(metric: str) -> str:
    """A figure of the operator's process alone, whatever else is scraped."""
    return f"process_{metric}{{{NAMESPACE}}} and on (namespace, pod) plimsoll_fleets"


def took(share: float) -> str:
    buckets = rate_by("reconcile_duration_seconds_bucket", "controller, le")
    return f"histogram_quantile({share}, {buckets})"


OPERATOR: Final = Dashboard(
    uid="plimsoll-operator",
    title="Plimsoll / Operator",
    text="The operator: whether it keeps up with its objects, what it changes, and how the API server answers.",
    links=[dashboard_links()],
    variables=[label_variable("namespace", "Namespace of the operator", "plimsoll_fleets")],
    rows=[
        Row(
            "Now",
            [
                firing("Operator|Watches|Reconcile|Api"),
                NumberPanel(
                    title="Operators",
                    steps=RED_BELOW_1,
                    empty="none is scraped",
                    text="Operators that are scraped. Brokers go on without one, but nothing is balanced, scaled "
                    "or repaired.",
                    queries=[Query(f"count({figure('fleets')}) or vector(0)", "operators")],
                ),
                NumberPanel(
                    title="Fleets",
                    text="Fleets that are reconciled.",
                    queries=[Query(f"sum({figure('fleets')})", "fleets")],
                ),
                NumberPanel(
                    title="Without an event",
                    unit="s",
                    steps=((None, "green"), (60, "orange"), (90, "red")),
                    text="Time since the last event of any watch. The operator makes one itself every 30 s.",
                    queries=[Query(f"max({figure('watch_silence_seconds')})", "silence")],
                ),
                NumberPanel(
                    title="Waiting",
                    text="Namespaces that have changed and wait for reconciliation.",
                    queries=[Query(f"sum({figure('workqueue_depth')})", "namespaces")],
                ),
                NumberPanel(
                    title="Reconciliations that failed",
                    steps=RED_ABOVE_0,
                    text="In the chosen time. The operator's log and the Degraded conditions say why.",
                    queries=[
                        Query(
                            f'sum(increase(plimsoll_reconcile_total{{{NAMESPACE}, result!="success"}}[$__range])) '
                            "or vector(0)",
                            "failed",
                        )
                    ],
                ),
            ],
        ),
        Row(
            "Reconciliation",
            [
                Panel(
                    title="Reconciliations",
                    unit="cps",
                    text="By result.",
                    queries=[Query(rate_by("reconcile_total", "controller, result"), "{{controller}} {{result}}")],
                ),
                Panel(
                    title="How long they take",
                    unit="s",
                    text="Reconciliations and writing of status: half, and 99 of 100, are faster.",
                    queries=[Query(took(0.5), "{{controller}} 50 %"), Query(took(0.99), "{{controller}} 99 %")],
                ),
                Panel(
                    title="Changes of objects",
                    unit="cps",
                    empty="nothing was changed",
                    text="Steps executed on objects of fleets. At rest there are none.",
                    queries=[Query(rate_by("changes_total", "change, kind"), "{{change}} {{kind}}")],
                ),
                Panel(
                    title="Queue",
                    text="Namespaces that wait for reconciliation.",
                    queries=[Query(figure("workqueue_depth"), "{{pod}}")],
                ),
                Panel(
                    title="Lag of the event loop",
                    unit="s",
                    text="How late a task was woken at most, in the last seconds.",
                    queries=[Query(figure("event_loop_lag_seconds"), "{{pod}}")],
                ),
                Panel(
                    title="Sessions that are stored",
                    text="By operator.",
                    queries=[Query(f"sum by (pod) ({figure('sessions')})", "{{pod}}")],
                ),
            ],
        ),
        Row(
            "API server",
            [
                Panel(
                    title="Requests",
                    unit="cps",
                    text="Without watches.",
                    queries=[Query(rate_by("api_requests_total", "verb, resource"), "{{verb}} {{resource}}")],
                ),
                Panel(
                    title="Answers by code",
                    unit="cps",
                    text="409 is a conflict, which is tried again; 0 means that no answer came.",
                    queries=[Query(rate_by("api_requests_total", "code"), "{{code}}")],
                ),
                Panel(
                    title="Age of the last event",
                    unit="s",
                    text="By kind. Kinds that never change have old events; all of them at once means deaf watches.",
                    queries=[
                        Query(f"time() - {figure('watch_last_event_timestamp_seconds')}", "{{kind}}"),
                        Query(figure("watch_silence_seconds"), "any"),
                    ],
                ),
            ],
        ),
        Row(
            "Process",
            [
                Panel(
                    title="Processor",
                    text="Cores that the operator uses.",
                    queries=[
                        Query(
                            f"rate(process_cpu_seconds_total{{{NAMESPACE}}}[$__rate_interval]) and on (namespace, "
                            "pod) plimsoll_fleets",
                            "{{pod}}",
                        )
                    ],
                ),
                Panel(
                    title="Memory",
                    unit="bytes",
                    text="Resident memory.",
                    queries=[Query(process("resident_memory_bytes"), "{{pod}}")],
                ),
                Panel(
                    title="Open files",
                    text="Open file descriptors and their limit.",
                    queries=[Query(process("open_fds"), "{{pod}}"), Query(process("max_fds"), "{{pod}} limit")],
                ),
            ],
        ),
    ],
)
