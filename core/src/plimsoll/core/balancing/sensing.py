"""What an edge knows of load: its own and that of the others, whether it wants balancing, and what it answers.

It looks every detection interval, at loads averaged over the last one, and says what it wants each time as long as it
wants it. It begins nothing: mediators do.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Protocol

from plimsoll.core import records as r
from plimsoll.core.balancing.standing import Standing
from plimsoll.core.detector import Detector, Finding, Memory
from plimsoll.core.policies.fleet import BrokerLoad, mean
from plimsoll.core.policies.parameters import Parameters
from plimsoll.core.policies.steps import Action

ACTIONS_AT_MOST = 16
"""So many lines of its broker-action list an edge tells of."""

REPORTS_KEPT = 64


class Host(Protocol):
    """What sensing needs of its edge."""

    counters: Counter[str]
    epoch: int

    @property
    def now(self) -> float: ...
    @property
    def name(self) -> str: ...
    def to_head(self, record: Any) -> None: ...


class Sensing:
    """`parameters` are on this fleet's clock. `finding`: what was found when it looked last."""

    def __init__(self, host: Host, parameters: Parameters) -> None:
        self.host, self.parameters = host, parameters
        self.detector = Detector(parameters)
        self.memory = Memory()
        self.finding = Finding("OK", (), "nothing has been looked at yet")
        self.standing = Standing()
        self.own: deque[BrokerLoad] = deque(maxlen=REPORTS_KEPT)
        self.others: dict[str, deque[BrokerLoad]] = {}
        self._last: Mapping[str, Any] = {}
        self._look_at = 0.0

    @property
    def state(self) -> r.BrokerState:
        """As the edge reports it."""
        return "BUSY" if self.standing.session else self.finding.state

    @property
    def balanced(self) -> list[str]:
        """The edges whose loads are within the triggers of this one's."""
        return sorted(self.finding.balanced)

    # -- what is heard

    def reported(self, report: Mapping[str, Any]) -> None:
        """The edge has made a load report."""
        self._last = {key: value for key, value in report.items() if key != "counters"}
        self._note(self.own, report)

    def on_loads(self, pie: r.Pie) -> None:
        """What the others have reported. Their clocks may be others: what counts is when it came."""
        for report in pie.reports:
            name = report.get("broker")
            if not isinstance(name, str) or name == self.host.name:
                continue
            try:
                self._note(self.others.setdefault(name, deque(maxlen=REPORTS_KEPT)), report)
            except (TypeError, ValueError):
                self.host.counters["loads_refused"] += 1
        self.others = {name: loads for name, loads in self.others.items() if loads}

    def _note(self, known: deque[BrokerLoad], report: Mapping[str, Any]) -> None:
        load = replace(BrokerLoad.of(report), time=self.host.now)
        if known and (load.epoch, load.seq) <= (known[-1].epoch, known[-1].seq):
            return
        known.append(load)
        while known[0].time < self.host.now - self.parameters.detection_seconds:
            known.popleft()

    def on_state(self, said: r.State) -> None:
        """A word of a mediator; every one that is not late is answered."""
        if not self.standing.is_new(said):
            return
        before = self.state
        turn = self.standing.take(said, before, self.host.now)
        self._turned(turn, said.tried)
        is_yes = said.state == "ASK" and self.standing.session == said.session
        state = "OK" if is_yes else self.state
        self.host.to_head(
            r.Stated(said.mediator, said.number, self.host.name, self.host.epoch, said.session, state, self._averaged())
        )

    def _turned(self, turn: str, items: list[r.ActionItem]) -> None:
        if turn == "began":
            self.memory = self.detector.began(self.memory)
        elif turn == "moved":
            self.memory = self.detector.ended(self.memory, self.host.now, moved=True)
            self.finding = Finding("STABILIZING", (), "load was moved, and may still change")
        elif turn == "ended":
            tried = [self._tried(item) for item in items if item.target in self.others and self.own]
            self.memory = self.detector.ended(self.memory, self.host.now, moved=False, tried=tried)
            if tried:
                self._look_at = self.host.now  # for the next line of its list

    def _tried(self, item: r.ActionItem) -> tuple[Action, BrokerLoad, BrokerLoad]:
        return (
            Action(item.target, item.metric, item.difference, tuple(item.overloaded)),
            mean(list(self.own)),
            mean(list(self.others[item.target])),
        )

    def _averaged(self) -> dict[str, Any]:
        """The last load report, with what was measured averaged over the detection interval."""
        if not self.own:
            return dict(self._last)
        load = mean(list(self.own))
        return {**self._last, "state": self.state, **load.measures._asdict()}

    # -- what is looked at

    def tick(self) -> None:
        """Look, if it is time."""
        if self.standing.lapsed(self.host.now):
            self._turned("ended", [])
        if self.host.now < self._look_at or not self.own:
            return
        self._look_at = self.host.now + self.parameters.detection_seconds
        fresh = self.host.now - self.parameters.fresh_seconds
        self.others = {name: loads for name, loads in self.others.items() if loads[-1].time >= fresh}
        others = [mean(list(loads)) for loads in self.others.values()]
        self.memory, self.finding = self.detector.run(mean(list(self.own)), others, self.memory, self.host.now)
        if self.finding.actions:
            self.host.to_head(self._trigger())

    def _trigger(self) -> r.Trigger:
        found, last = self.finding.actions[:ACTIONS_AT_MOST], self.own[-1]
        items = [r.ActionItem(each.target, each.metric, each.difference, list(each.overloaded)) for each in found]
        return r.Trigger(self.host.name, self.host.epoch, last.seq, items, self.finding.reason)

    def wake_at(self) -> float:
        """When it looks next."""
        return self._look_at
