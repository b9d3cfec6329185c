"""Collectors of load reports, their files, and the snapshots that decisions use."""

from __future__ import annotations

from typing import Final

from dashboards.expressions import figure, rate_by
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

FOLD: Final = ', source="fold"'
SPARK: Final = ', source="spark"'

TELEMETRY: Final = Dashboard(
    uid="plimsoll-telemetry",
    title="Plimsoll / Telemetry",
    text="Collectors of load reports: whether they hear all brokers, what they write, and which snapshot decisions "
    "may use.",
    links=[dashboard_links()],
    variables=[label_variable("namespace", "Namespace", "plimsoll_telemetry_brokers_known")],
    rows=[
        Row(
            "Now",
            [
                firing("Telemetry|Snapshot"),
                NumberPanel(
                    title="Brokers seen",
                    unit="percentunit",
                    maximum=1,
                    empty="no collectors",
                    steps=((None, "red"), (0.95, "orange"), (1, "green")),
                    text="Share of the expected brokers in the fold, of the collector that sees fewest. Below 95 % "
                    "it is not used.",
                    queries=[Query(f"min({figure('telemetry_brokers_seen_ratio', FOLD)})", "seen")],
                ),
                NumberPanel(
                    title="Brokers known",
                    empty="no collectors",
                    text="Brokers whose report numbers collectors remember.",
                    queries=[Query(f"sum({figure('telemetry_brokers_known')})", "known")],
                ),
                NumberPanel(
                    title="Snapshot of Spark",
                    empty="no collectors",
                    mappings=[("0", "not usable", "orange"), ("1", "usable", "green")],
                    text="Whether Spark's snapshot may be used now. Without Spark it is never usable, and "
                    "decisions use the fold.",
                    queries=[Query(f"min({figure('telemetry_snapshot_usable', SPARK)})", "spark")],
                ),
                NumberPanel(
                    title="Rows waiting",
                    empty="no collectors",
                    text="Reports that wait to be written.",
                    queries=[Query(f"sum({figure('telemetry_rows_waiting')})", "waiting")],
                ),
                NumberPanel(
                    title="Rows dropped",
                    steps=RED_ABOVE_0,
                    empty="no collectors",
                    text="Reports that could not be written in the chosen time, and are missing from the files.",
                    queries=[Query(f"sum(increase({figure('telemetry_rows_dropped_total')}[$__range]))", "dropped")],
                ),
            ],
        ),
        Row(
            "Reports",
            [
                Panel(
                    title="Reports by result",
                    unit="cps",
                    text="Counted, repeated, late and invalid reports a second.",
                    queries=[Query(rate_by("telemetry_rows_total", "outcome"), "{{outcome}}")],
                ),
                Panel(
                    title="Late reports",
                    unit="percentunit",
                    maximum=1,
                    text="Share of reports that came too late to be counted.",
                    queries=[
                        Query(
                            f"sum by (pod) "
                            f'(rate(plimsoll_telemetry_rows_total{{{NAMESPACE}, outcome="late"}}[$__rate_interval])) / '
                            f"({rate_by('telemetry_rows_total', 'pod')} > 0)",
                            "{{pod}}",
                        )
                    ],
                ),
                Panel(
                    title="Invalid reports",
                    unit="cps",
                    text="Reports that were refused, by reason; reports with a wrong clock are dated by their arrival.",
                    queries=[
                        Query(rate_by("telemetry_rows_invalid_total", "reason"), "{{reason}}"),
                        Query(
                            f"sum(rate({figure('telemetry_rows_skewed_total')}[$__rate_interval]))", "dated by arrival"
                        ),
                    ],
                ),
                Panel(
                    title="Brokers seen",
                    unit="percentunit",
                    maximum=1,
                    text="Share of the expected brokers, by collector and source.",
                    queries=[
                        Query(figure("telemetry_brokers_seen_ratio"), "{{pod}} {{source}}"),
                        Query("vector(0.95)", "used from here", is_limit=True),
                    ],
                ),
                Panel(
                    title="Age of snapshots",
                    unit="s",
                    text="Seconds since the end of the snapshot's window. Spark's is refused after 45 s, "
                    "and is absent while it may not be used.",
                    queries=[
                        Query(figure("telemetry_snapshot_age_seconds"), "{{pod}} {{source}}"),
                        Query("vector(45)", "stale", is_limit=True),
                    ],
                ),
                Panel(
                    title="Refused snapshots of Spark",
                    unit="cps",
                    empty="none was refused",
                    text="By reason. Missing is normal in a fleet without Spark.",
                    queries=[Query(rate_by("telemetry_snapshots_refused_total", "fault"), "{{fault}}")],
                ),
            ],
        ),
        Row(
            "Files",
            [
                Panel(
                    title="Rows",
                    unit="cps",
                    text="Rows written and rows dropped, a second.",
                    queries=[
                        Query(rate_by("telemetry_rows_written_total", "pod"), "{{pod}} written"),
                        Query(rate_by("telemetry_rows_dropped_total", "pod"), "{{pod}} dropped"),
                    ],
                ),
                Panel(
                    title="Rows waiting",
                    text="They grow while the volume is full, slow or unavailable.",
                    queries=[Query(figure("telemetry_rows_waiting"), "{{pod}}")],
                ),
                Panel(
                    title="Written",
                    unit="Bps",
                    text="Bytes written to Parquet files, a second.",
                    queries=[Query(rate_by("telemetry_written_bytes_total", "pod"), "{{pod}}")],
                ),
                Panel(
                    title="Files",
                    text="Files in the chosen time: written, removed because of their age, and not written because "
                    "of an error.",
                    queries=[
                        Query(f"sum(increase({figure('telemetry_files_written_total')}[$__rate_interval]))", "written"),
                        Query(f"sum(increase({figure('telemetry_files_removed_total')}[$__rate_interval]))", "removed"),
                        Query(f"sum(increase({figure('telemetry_write_failures_total')}[$__rate_interval]))", "failed"),
                    ],
                ),
                Panel(
                    title="Ended sessions received",
                    unit="cps",
                    text="Sessions that mediators handed over for the record, by result.",
                    queries=[Query(rate_by("telemetry_sessions_total", "outcome"), "{{outcome}}")],
                ),
            ],
        ),
    ],
)
