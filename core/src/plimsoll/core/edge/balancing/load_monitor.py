"""The load monitor of an edge: compares its load with that of its peers, and asks for balancing (PADRES 2006, 3.2).

Detection runs once per interval, on loads averaged over the last one. As long as it finds an imbalance, it sends a
TRIGGER each time, for one may be lost. Sessions are begun by mediators, not here.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Protocol

from plimsoll.core.edge.balancing.reservation import EdgeReservation
from plimsoll.core.policies.detection import DetectionResult, Detector, DetectorState
from plimsoll.core.policies.model.load import BrokerLoad, mean_load, named_metric, named_resources
from plimsoll.core.policies.model.parameters import BalancingParameters
from plimsoll.core.policies.model.plan import BrokerAction
from plimsoll.core.protocol import messages as msg

ACTIONS_AT_MOST = 16
"""Lines of the broker-action list that go into one TRIGGER."""

REPORTS_KEPT = 64


class LoadMonitorContext(Protocol):
    """What the load monitor needs of its edge."""

    counters: Counter[str]
    epoch: int

    @property
    def now(self) -> float: ...
    @property
    def name(self) -> str: ...
    def to_head(self, message: msg.ControlRecord, /) -> None: ...


class LoadMonitor:
    """`parameters`: scaled to this fleet's clock. `finding`: the result of the last detection."""

    def __init__(self, host: LoadMonitorContext, parameters: BalancingParameters) -> None:
        self.host, self.parameters = host, parameters
        self.detector = Detector(parameters)
        self.memory = DetectorState()
        self.finding = DetectionResult("OK", (), "nothing has been looked at yet")
        self.reservation = EdgeReservation()
        self.own: deque[BrokerLoad] = deque(maxlen=REPORTS_KEPT)
        self.others: dict[str, deque[BrokerLoad]] = {}
        self._last: Mapping[str, Any] = {}
        self._look_at = 0.0

    @property
    def state(self) -> msg.BrokerState:
        """As the edge reports it."""
        return "BUSY" if self.reservation.session else self.finding.state

    @property
    def balanced(self) -> list[str]:
        """The edges whose loads are within the triggers of this one's."""
        return sorted(self.finding.balanced)

    # -- reports and reservations

    def on_own_report(self, report: Mapping[str, Any]) -> None:
        """Take the load report that this edge has just made."""
        before, took = self._last.get("subscribers"), report.get("interval_seconds")
        self._last = {key: value for key, value in report.items() if key != "counters"}
        if isinstance(before, int) and isinstance(took, float) and took > 0.0:
            self._last["subscribers_growth"] = max(0.0, (report.get("subscribers", 0) - before) / took)
        self._note(self.own, report)

    def on_loads(self, loads: msg.PeerLoads) -> None:
        """Take the reports of peers. Their clocks may differ, so each counts from its arrival."""
        for report in loads.reports:
            name = report.get("broker")
            if not isinstance(name, str) or name == self.host.name:
                continue
            try:
                self._note(self.others.setdefault(name, deque(maxlen=REPORTS_KEPT)), report)
            except (TypeError, ValueError):
                self.host.counters["loads_refused"] += 1
        self.others = {name: loads for name, loads in self.others.items() if loads}

    def _note(self, known: deque[BrokerLoad], report: Mapping[str, Any]) -> None:
        load = replace(BrokerLoad.from_report(report), time=self.host.now)
        if known and (load.epoch, load.seq) <= (known[-1].epoch, known[-1].seq):
            return
        known.append(load)
        while known[0].time < self.host.now - self.parameters.detection_seconds:
            known.popleft()

    def on_reservation(self, reservation: msg.Reservation) -> None:
        """Apply a mediator's reservation, and answer it. One that comes late changes nothing, and gets no answer."""
        if not self.reservation.is_new(reservation):
            return
        before = self.state
        change = self.reservation.take(reservation, before, self.host.now)
        self._changed(change, reservation.tried)
        is_yes = reservation.state == "ASK" and self.reservation.session == reservation.session
        state = "OK" if is_yes else self.state
        self.host.to_head(
            msg.ReservationReply(
                reservation.mediator,
                reservation.number,
                self.host.name,
                self.host.epoch,
                reservation.session,
                state,
                self._averaged(),
            )
        )

    def _changed(self, change: str, items: list[msg.ActionItem]) -> None:
        if change == "began":
            self.memory = self.detector.session_began(self.memory)
        elif change == "moved":
            self.memory = self.detector.session_ended(self.memory, self.host.now, moved=True)
            self.finding = DetectionResult("STABILIZING", (), "load was moved, and may still change")
        elif change == "ended":
            known = (self._tried(item) for item in items if item.target in self.others and self.own)
            tried = [each for each in known if each is not None]
            self.memory = self.detector.session_ended(self.memory, self.host.now, moved=False, tried=tried)
            if tried:
                self._look_at = self.host.now  # for the next line of its list

    def _tried(self, item: msg.ActionItem) -> tuple[BrokerAction, BrokerLoad, BrokerLoad] | None:
        """An action that moved nothing, with both loads; None if its metric is of another policy."""
        if (metric := named_metric(item.metric)) is None:
            return None
        return (
            BrokerAction(item.target, metric, item.difference, named_resources(item.overloaded)),
            mean_load(list(self.own)),
            mean_load(list(self.others[item.target])),
        )

    def _averaged(self) -> dict[str, Any]:
        """The last load report, its measurements averaged over the detection interval."""
        if not self.own:
            return dict(self._last)
        load = mean_load(list(self.own))
        return {**self._last, "state": self.state, **load.measures._asdict()}

    # -- detection

    def tick(self) -> None:
        """Run detection, if it is due."""
        if self.reservation.lapsed(self.host.now):
            self._changed("ended", [])
        if self.host.now < self._look_at or not self.own:
            return
        self._look_at = self.host.now + self.parameters.detection_seconds
        fresh = self.host.now - self.parameters.fresh_seconds
        self.others = {name: loads for name, loads in self.others.items() if loads[-1].time >= fresh}
        others = [mean_load(list(loads)) for loads in self.others.values()]
        self.memory, self.finding = self.detector.run(mean_load(list(self.own)), others, self.memory, self.host.now)
        if self.finding.actions:
            self.host.to_head(self._trigger())

    def _trigger(self) -> msg.Trigger:
        found, last = self.finding.actions[:ACTIONS_AT_MOST], self.own[-1]
        items = [msg.ActionItem(each.target, each.metric, each.difference, list(each.overloaded)) for each in found]
        return msg.Trigger(self.host.name, self.host.epoch, last.seq, items, self.finding.reason)

    def wake_at(self) -> float:
        """When detection is due next."""
        return self._look_at
