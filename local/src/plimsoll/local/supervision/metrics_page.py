"""The page of a fleet of this machine, for Prometheus: the metrics of its recorders and of its driver of channels.

They are the metrics that pods have on Kubernetes, for all feeds and channels together, at the address given to
`plimsoll up`.
A recorder or driver that does not run has none.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from plimsoll.channels.config import ChannelFigures
from plimsoll.channels.metrics import channel_metrics
from plimsoll.feeds.config import RecorderFigures
from plimsoll.feeds.figures_page import FiguresPage
from plimsoll.feeds.metrics import recorder_metrics
from plimsoll.local.supervision.broker_reconciler import FleetStartError


class MetricsPage:
    """Serves from the moment it is made. `endpoint`: tcp://HOST:PORT. Raises FleetStartError: it cannot be bound."""

    def __init__(self, endpoint: str) -> None:
        try:
            self._page = FiguresPage(endpoint)
        except OSError as error:
            remedy = "choose another one with --metrics"
            raise FleetStartError(f"metrics cannot be served at {endpoint}: {error.strerror}; {remedy}") from error

    @property
    def port(self) -> int:
        return self._page.port

    def update(self, feeds: Mapping[str, RecorderFigures], channels: Mapping[str, ChannelFigures]) -> None:
        """Serve these figures of recorders and channels from now on."""
        figures = msgspec.json.encode({"feeds": feeds, "channels": channels})
        self._page.update(figures, (*recorder_metrics(feeds), *channel_metrics(channels)))

    def close(self) -> None:
        self._page.close()
