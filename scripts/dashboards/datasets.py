"""Recorders of feeds and channels: what they take in, what becomes of it, and how late."""

from __future__ import annotations

from typing import Final

from dashboards.expressions import figure, rate_by
from dashboards.grafana import (
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

LATE: Final = ', outcome="late"'

DATASETS: Final = Dashboard(
    uid="plimsoll-datasets",
    title="Plimsoll / Feeds and channels",
    text="Feeds that record publications, and channels that query them: rows in and what became of them, results, "
    "delays and failures.",
    links=[dashboard_links()],
    variables=[label_variable("namespace", "Namespace", "plimsoll_feed_files")],
    rows=[
        Row(
            "Now",
            [
                firing("Feed|Channel|Dataset"),
                NumberPanel(
                    title="Channels that run",
                    unit="percentunit",
                    maximum=1,
                    empty="no channels",
                    steps=((None, "red"), (0.5, "orange"), (1, "green")),
                    text="Share of the channels whose batches are computed and published.",
                    queries=[Query(f"avg({figure('channel_running')})", "running")],
                ),
                NumberPanel(
                    title="Gaps of feeds",
                    steps=RED_ABOVE_0,
                    empty="no feeds",
                    text="Gaps that the fleet reported to recorders in the chosen time.",
                    queries=[Query(f"sum(increase({figure('feed_gaps_total')}[$__range]))", "gaps")],
                ),
                NumberPanel(
                    title="Rows gone",
                    steps=RED_ABOVE_0,
                    empty="no channels",
                    text="Rows that retention deleted in the chosen time before a channel could read them.",
                    queries=[
                        Query(
                            f"sum(increase({figure('channel_rows_total', LATE)}[$__range]))",
                            "late",
                        )
                    ],
                ),
                NumberPanel(
                    title="Failed batches",
                    steps=RED_ABOVE_0,
                    empty="no channels",
                    text="Batches that failed in the chosen time, each of which was tried again.",
                    queries=[Query(f"sum(increase({figure('channel_batch_failures_total')}[$__range]))", "failed")],
                ),
            ],
        ),
        Row(
            "Feeds",
            [
                Panel(
                    title="Publications by feed",
                    unit="cps",
                    text="Publications recorded and dead letters a second.",
                    queries=[Query(rate_by("feed_publications_total", "feed, outcome"), "{{feed}} {{outcome}}")],
                ),
                Panel(
                    title="Lag",
                    unit="s",
                    text="How long ago the newest publication was sent when it was received.",
                    queries=[Query(figure("feed_lag_seconds"), "{{feed}}")],
                ),
                Panel(
                    title="Waiting rows",
                    text="Publications that are received and not committed yet.",
                    queries=[Query(figure("feed_waiting_rows"), "{{feed}}")],
                ),
                Panel(
                    title="Since the last commit",
                    unit="s",
                    text="A feed without publications commits its position every 30 s.",
                    queries=[Query(f"time() - {figure('feed_committed_timestamp_seconds')}", "{{feed}}")],
                ),
                Panel(
                    title="Size",
                    unit="bytes",
                    text="Size of the files of each dataset.",
                    queries=[Query(figure("feed_size_bytes"), "{{feed}}")],
                ),
                Panel(
                    title="Files",
                    text="Files of each dataset; small ones are merged.",
                    queries=[Query(figure("feed_files"), "{{feed}}")],
                ),
                Panel(
                    title="Read by applications",
                    unit="Bps",
                    text="Bytes of files a second that applications were sent.",
                    queries=[Query(rate_by("feed_served_bytes_total", "feed"), "{{feed}}")],
                ),
                Panel(
                    title="Requests of readers",
                    unit="cps",
                    text="Requests a second: answered, refused (role, feed, gone, fault), malformed, and dropped.",
                    queries=[Query(rate_by("feed_read_requests_total", "feed, outcome"), "{{feed}} {{outcome}}")],
                ),
                Panel(
                    title="Connections of readers",
                    text="Connections that are open, and those that recorders ended in a minute, by reason.",
                    queries=[
                        Query(figure("feed_read_connections"), "{{feed}}"),
                        Query(f"60 * {rate_by('feed_ended_connections_total', 'feed, reason')}", "{{feed}} {{reason}}"),
                    ],
                ),
            ],
        ),
        Row(
            "Channels",
            [
                Panel(
                    title="Rows by what became of them",
                    unit="cps",
                    text="Rows a second: used, late and invalid; together they are what came in.",
                    queries=[Query(rate_by("channel_rows_total", "channel, outcome"), "{{channel}} {{outcome}}")],
                ),
                Panel(
                    title="Results by what became of them",
                    unit="cps",
                    text="Results a second: accepted by a head, refused, unknown, and those that were not published.",
                    queries=[Query(rate_by("channel_results_total", "channel, outcome"), "{{channel}} {{outcome}}")],
                ),
                Panel(
                    title="Delay",
                    unit="s",
                    text="From the sending of the oldest publication of a batch to the commit of the results.",
                    queries=[
                        Query(figure("channel_delay_seconds"), "{{channel}}"),
                        Query(figure("channel_query_seconds"), "{{channel}} query"),
                    ],
                ),
                Panel(
                    title="Lateness of periods",
                    unit="percentunit",
                    text="How late the last batch of a repetitive channel began, as a share of its period.",
                    empty="no repetitive channel",
                    queries=[
                        Query(
                            f"{figure('channel_lateness_seconds')} / ({figure('channel_period_seconds')} > 0)",
                            "{{channel}}",
                        ),
                        Query("vector(0.1)", "late from here", is_limit=True),
                    ],
                ),
                Panel(
                    title="Periods",
                    text="Periods a second: kept, late if the batch began after a tenth of it, missed without a batch.",
                    empty="no repetitive channel",
                    queries=[Query(rate_by("channel_periods_total", "channel, outcome"), "{{channel}} {{outcome}}")],
                ),
                Panel(
                    title="Subscriptions",
                    text="Distinct parameters that are subscribed to.",
                    queries=[Query(figure("channel_subscriptions"), "{{channel}}")],
                ),
                Panel(
                    title="Since the last batch",
                    unit="s",
                    text="A continuous channel without new rows has no batch.",
                    queries=[Query(f"time() - {figure('channel_batch_timestamp_seconds')}", "{{channel}}")],
                ),
            ],
        ),
    ],
)
