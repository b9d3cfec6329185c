"""Asks edges, again and again, which parameters of channels have changed; runs on a thread of its own."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from typing import Final

from plimsoll.channels.subscriptions import SubscribedParameters
from plimsoll.core.config import PeerBroker
from plimsoll.core.protocol import messages as msg
from plimsoll.mediator.control_plane import ControlPlane, ListingReceived, MediatorKeyPair

ASK_SECONDS: Final = 0.3
WAIT_SECONDS: Final = 0.1


class EdgePoller:
    """Keeps `parameters` up to date; its users hold `lock`."""

    def __init__(self, name: str, curve: MediatorKeyPair | None) -> None:
        self.parameters = SubscribedParameters()
        self.lock = threading.Lock()
        self._edges: dict[str, PeerBroker] = {}
        self._control = ControlPlane(name, curve, 0, role="collector")
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="edge-poller", daemon=True)
        self._thread.start()

    def set_edges(self, edges: Mapping[str, PeerBroker]) -> None:
        """Follow these edges from the next round on."""
        with self.lock:
            self._edges = dict(edges)
            self.parameters.set_edges(edges)

    def close(self) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        due, number = 0.0, 0
        while not self._stop.is_set():
            now = time.monotonic()
            if now >= due:
                due, number = now + ASK_SECONDS, number + 1
                self._ask(number)
            for event in self._control.poll(WAIT_SECONDS):
                if isinstance(event, ListingReceived) and isinstance(event.page, msg.ParameterPage):
                    self._take(event.broker, event.page)
        self._control.close()

    def _ask(self, number: int) -> None:
        with self.lock:
            edges = dict(self._edges)
            requests = {name: self.parameters.request(name, number) for name in edges}
        for name in self._control.dialled - edges.keys():
            self._control.hang_up(name)
        for name, peer in edges.items():
            self._control.dial(peer, "edge")
            self._control.ask_for_page(name, requests[name])

    def _take(self, edge: str, page: msg.ParameterPage) -> None:
        with self.lock:
            more = self.parameters.take(edge, page)
            request = self.parameters.request(edge, page.id) if more else None
        if request is not None:
            self._control.ask_for_page(edge, request)
