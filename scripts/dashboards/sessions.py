"""Balancing sessions: what they promised, and what was measured."""

from __future__ import annotations

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


def session_sum(metric: str, more: str = "", by: str = "") -> str:
    """The increase of an operator's metric in the chosen time, summed up by labels."""
    return f"sum{by and f' by ({by})'} (increase(plimsoll_session{metric}{{{NAMESPACE}{more}}}[$__range]))"


def mean(metric: str, by: str = "", more: str = "") -> str:
    """The mean of a summary or histogram of sessions in the last 5 minutes, or in the interval that the graph shows."""

    def part(suffix: str) -> str:
        return f"sum{by and f' by ({by})'} (increase(plimsoll_session{metric}_{suffix}{{{NAMESPACE}{more}}}[$window]))"

    return f"{part('sum')} / ({part('count')} > 0)"


def quantile(share: float, metric: str, by: str = "le") -> str:
    buckets = f"sum by ({by}) (increase(plimsoll_session{metric}_bucket{{{NAMESPACE}}}[$window]))"
    return f"histogram_quantile({share}, {buckets})"


ENDED: Final = "s_ended_total"
WINDOW: Final = {
    "name": "window",
    "label": "Means over",
    "type": "custom",
    "query": "15m,1h,6h,1d",
    "description": "The time over which means and quantiles of ended sessions are taken.",
    "current": {"text": "1h", "value": "1h"},
    "options": [{"text": each, "value": each, "selected": each == "1h"} for each in ("15m", "1h", "6h", "1d")],
}
NO_SESSION: Final = "no session has ended"

SESSIONS: Final = Dashboard(
    uid="plimsoll-sessions",
    title="Plimsoll / Sessions",
    text="What balancing sessions promised, what was measured afterwards, and how long and how well they moved "
    "subscribers.",
    links=[dashboard_links()],
    variables=[
        label_variable("namespace", "Namespace", '{__name__=~"plimsoll_sessions|plimsoll_broker_info"}'),
        WINDOW,
    ],
    rows=[
        Row(
            "Now",
            [
                firing("Law|Session|Move|Delivery|Forecast"),
                NumberPanel(
                    title="Open sessions",
                    text="Sessions that have not ended.",
                    queries=[
                        Query(
                            f'sum(plimsoll_sessions{{{NAMESPACE}, phase!~"Succeeded|Failed|RolledBack|Rejected"}})',
                            "open",
                        )
                    ],
                ),
                NumberPanel(
                    title="Overdue",
                    steps=RED_ABOVE_0,
                    text="Sessions that are open a minute after their deadline.",
                    queries=[Query(f"sum(plimsoll_sessions_overdue{{{NAMESPACE}}})", "overdue")],
                ),
                NumberPanel(
                    title="Succeeded",
                    steps=((None, "text"),),
                    empty="none",
                    text="Attempts that succeeded in the chosen time.",
                    queries=[Query(session_sum(ENDED, ', result="Succeeded"'), "succeeded")],
                ),
                NumberPanel(
                    title="Failed or rolled back",
                    steps=RED_ABOVE_0,
                    empty="none",
                    text="Attempts that failed or were rolled back in the chosen time. A rejected one is no failure.",
                    queries=[Query(session_sum(ENDED, ', result=~"Failed|RolledBack"') + " or vector(0)", "failed")],
                ),
                NumberPanel(
                    title="Lost, repeated or out of order",
                    steps=RED_ABOVE_0,
                    text="Deliveries that audited subscribers counted as wrong while they moved, in the chosen time.",
                    queries=[Query(session_sum("_deliveries_total", ', kind=~"lost|duplicated|reordered"'), "faults")],
                ),
            ],
        ),
        Row(
            "Promised and measured",
            [
                Panel(
                    title="Utilisation of the edges of sessions",
                    unit="percentunit",
                    width=12,
                    empty=NO_SESSION,
                    text="Means over edges of ended sessions: before, as the plan promised, and as measured "
                    "afterwards. The lines of "
                    "promised and measured should lie on each other.",
                    queries=[Query(mean("_edge_utilization_ratio", "value"), "{{value}}")],
                ),
                Panel(
                    title="Error of the promise",
                    unit="percentunit",
                    width=12,
                    empty=NO_SESSION,
                    steps=((None, "green"), (0.1, "orange"), (0.2, "red")),
                    text="How far measured utilisation was from the promise, as a share of the edge's capacity.",
                    queries=[
                        Query(mean("_prediction_error_ratio"), "mean"),
                        Query(quantile(0.5, "_prediction_error_ratio"), "50 % are below"),
                        Query(quantile(0.95, "_prediction_error_ratio"), "95 % are below"),
                    ],
                ),
                Panel(
                    title="Time of a hand-over",
                    unit="s",
                    width=12,
                    empty=NO_SESSION,
                    text="From the cut of a batch to its end: promised, measured, and the slowest of twenty.",
                    queries=[
                        Query(mean("_predicted_drain_duration_seconds"), "promised"),
                        Query(mean("_drain_duration_seconds"), "measured"),
                        Query(quantile(0.95, "_drain_duration_seconds"), "95 % are below"),
                    ],
                ),
                Panel(
                    title="Subscribers of ended sessions",
                    width=12,
                    empty=NO_SESSION,
                    text="Moved ones, and those that stayed, were returned or were disconnected, over the window "
                    "that is set above. "
                    "Audited ones counted their deliveries while they moved.",
                    queries=[
                        Query(
                            f"sum by (outcome) (increase(plimsoll_session_subscribers_total{{{NAMESPACE}}}[$window]))",
                            "{{outcome}}",
                        ),
                        Query(
                            f"sum(increase(plimsoll_session_audited_subscribers_total{{{NAMESPACE}}}[$window]))",
                            "audited",
                        ),
                    ],
                ),
            ],
        ),
        Row(
            "Course",
            [
                Panel(
                    title="Stored sessions by phase",
                    is_stacked=True,
                    text="Sessions are kept for a while after their end.",
                    queries=[Query(f"sum by (phase) (plimsoll_sessions{{{NAMESPACE}}})", "{{phase}}")],
                ),
                Panel(
                    title="Ends of attempts",
                    empty=NO_SESSION,
                    text="Attempts that ended, by result and reason, over the window. docs/reasons.md has each "
                    "reason with its remedy.",
                    queries=[
                        Query(
                            f"sum by (result, reason) "
                            f"(increase(plimsoll_sessions_ended_total{{{NAMESPACE}}}[$window]))",
                            "{{result}}: {{reason}}",
                        )
                    ],
                ),
                Panel(
                    title="Time in phases",
                    unit="s",
                    empty=NO_SESSION,
                    is_stacked=True,
                    text="Mean time that sessions spent in each phase.",
                    queries=[Query(mean("_phase_duration_seconds", "phase"), "{{phase}}")],
                ),
                Panel(
                    title="Deliveries that went wrong",
                    text="Counted by audited subscribers. Suppressed ones came again between clusters and "
                    "were not given to the application; the others are always 0.",
                    queries=[
                        Query(
                            f"sum by (kind) (increase(plimsoll_session_deliveries_total{{{NAMESPACE}}}[$window]))",
                            "{{kind}}",
                        )
                    ],
                ),
                Panel(
                    title="Broken laws and impossible answers",
                    text="Both are 0 unless there is a fault in Plimsoll, or a broker is not what it says.",
                    queries=[
                        Query(
                            f"sum by (law) (increase(plimsoll_session_law_violations_total{{{NAMESPACE}}}[$window]))",
                            "law {{law}}",
                        ),
                        Query(
                            f"sum(increase(plimsoll_malformed_answers_total{{{NAMESPACE}}}[$window])) or vector(0)",
                            "impossible answers",
                        ),
                    ],
                ),
                Panel(
                    title="Hand-overs at brokers",
                    text="Hand-overs that heads decide on, and places that edges keep for subscribers on their way.",
                    queries=[
                        Query(f"sum(plimsoll_broker_sessions{{{NAMESPACE}}})", "hand-overs"),
                        Query(f"sum(plimsoll_broker_arriving_subscribers{{{NAMESPACE}}})", "places kept"),
                        Query(
                            f"sum by (outcome) "
                            f"(rate(plimsoll_broker_session_members_total{{{NAMESPACE}}}[$__rate_interval]))",
                            "{{outcome}} a second",
                        ),
                    ],
                ),
                Panel(
                    title="Publishers between heads",
                    text="Publishers that are to move or are on standby, the ends of their moves, and cordoned heads.",
                    queries=[
                        Query(f"sum(plimsoll_broker_moving_publishers{{{NAMESPACE}}})", "moving"),
                        Query(f"sum(plimsoll_broker_arriving_publishers{{{NAMESPACE}}})", "on standby"),
                        Query(f"sum(plimsoll_broker_cordoned{{{NAMESPACE}}})", "cordoned heads"),
                        Query(
                            f"sum by (outcome) "
                            f"(rate(plimsoll_broker_publisher_moves_total{{{NAMESPACE}}}[$__rate_interval]))",
                            "{{outcome}} a second",
                        ),
                    ],
                ),
            ],
        ),
    ],
)
