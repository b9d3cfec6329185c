"""Load reports (PIE in the paper) and the control sockets: a broker's reports, and their receivers.

Control records are unnumbered and may be lost; each report stands for itself. An edge reports to its head, a head
passes on what its edges say and adds its own report for every mediator and collector that has identified itself.
A collector receives load reports, and may only identify itself and list parameters of channels.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, Protocol

from plimsoll.core.config import BrokerConfig
from plimsoll.core.metering.meter import FrameCounts, LoadMeter, LoadSample
from plimsoll.core.protocol import messages as msg
from plimsoll.core.transport.link import Peer

Report = dict[str, Any]
SCHEMA = 1
"""The major version of load reports, as telemetry counts it."""

MEDIATOR_SILENT_SECONDS = 30.0


class ReportingNode(Protocol):
    """What a load reporter needs of its broker. `sealed`: what its links have sent since the last report."""

    sealed: FrameCounts
    counters: Counter[str]

    def say_control(self, peer: Peer, /, *said: Any) -> None: ...
    def status(self) -> dict[str, Any]: ...


class LoadReporter:
    """The control side of one broker. The machine fills in its own fields through `describe`."""

    def __init__(self, node: ReportingNode, config: BrokerConfig, epoch: int, meter: LoadMeter) -> None:
        self.node, self.config, self.epoch, self.meter = node, config, epoch, meter
        self.seq = 0
        self.next_report = 0.0
        self.last: Report = {}
        self.heard: dict[str, Report] = {}
        self.mediators: dict[Peer, float] = {}
        self.collectors: dict[Peer, float] = {}
        self.epochs: dict[Peer, int] = {}
        self.clock_offset_seconds = 0.0
        """From the node's time to the wall clock, as the shell last saw it; decisions never ask the wall clock."""
        self.brokers: dict[str, Peer] = {}
        self.cpu_ratio = self.memory_ratio = 0.0
        self.open_files_limit = 0
        """The limit of open files, while connections cannot be accepted for it; else 0."""

    def on_control(self, peer: Peer, record: msg.ControlRecord, now: float) -> msg.ControlRecord | None:
        """Deal with what every broker answers; returns the record if it is for the machine."""
        if isinstance(record, msg.Identify) and record.role == "mediator":
            self.mediators[peer], self.epochs[peer] = now, record.epoch
        elif isinstance(record, msg.Identify) and record.role == "collector":
            self.collectors[peer] = now
        elif peer in self.collectors and not isinstance(record, msg.ListParameters):
            self.node.counters["collectors_refused"] += 1
        elif isinstance(record, msg.Identify):
            self.brokers[record.name] = peer
        elif isinstance(record, msg.StatusQuery):
            if peer in self.mediators:
                self.mediators[peer] = now
            self.node.say_control(peer, msg.StatusReply(record.id, _flat(self.node.status())))
        elif isinstance(record, msg.LoadUpdate) and self.brokers.get(str(record.report.get("broker"))) != peer:
            self.node.counters["control_refused_sender"] += 1  # a broker reports for itself alone
        elif isinstance(record, msg.LoadUpdate):
            self.heard[str(record.report.get("broker"))] = dict(record.report)
            self._tell(record)
            return record
        else:
            return record
        return None

    @property
    def commanding(self) -> list[Peer]:
        """Mediators with an epoch to command with; only they are sent the edges' triggers."""
        return [peer for peer in self.mediators if self.epochs.get(peer)]

    def due(self, now: float) -> bool:
        return now >= self.next_report

    def make(self, now: float, state: str, extra: Report) -> Report:
        """The report of the interval that ends now. PADRES 2006, 3.2, has the definitions."""
        factor = self.config.time_factor
        self.next_report = now + self.config.limits.report_seconds * factor
        self.mediators = {p: at for p, at in self.mediators.items() if now - at < MEDIATOR_SILENT_SECONDS}
        self.collectors = {p: at for p, at in self.collectors.items() if now - at < MEDIATOR_SILENT_SECONDS}
        self.epochs = {p: epoch for p, epoch in self.epochs.items() if p in self.mediators}
        if self.config.role == "head":  # a head's deliveries are the records on its links
            self.meter.deliveries = self.node.sealed.records
        self.meter.take_frame_counts(self.node.sealed)
        hardware, subscriptions = self.config.hardware, int(extra.get("subscriptions", 0))
        bandwidth, downlink = hardware.output_bytes_per_second, hardware.input_bytes_per_second
        sample = self.meter.sample(now, bandwidth, subscriptions, downlink)
        self.seq += 1
        self.last = {
            "schema": SCHEMA,
            "broker": self.config.name,
            "cluster": self.config.cluster,
            "role": self.config.role,
            "epoch": self.epoch,
            "seq": self.seq,
            "time_us": int(now * 1e6),
            "clock_us": int(now * 1e6) + int(self.clock_offset_seconds * 1e6),
            "interval_seconds": sample.seconds,
            "state": state,
            **_measured(sample),
            "cpu_ratio": self.cpu_ratio,
            "memory_ratio": self.memory_ratio,
            **({"open_files_limit": self.open_files_limit} if self.open_files_limit else {}),
            "balanced_set": [],
            **({} if bandwidth is None else {"bandwidth_bytes_per_second": bandwidth}),
            **({} if downlink is None else {"downlink_bandwidth_bytes_per_second": downlink}),
            **extra,
        }
        return self.last

    def tell(self, report: Report) -> None:
        """Send a report of our own to mediators and collectors."""
        self._tell(msg.LoadUpdate(report))

    def _tell(self, load: msg.LoadUpdate) -> None:
        for peer in (*self.mediators, *self.collectors):
            self.node.say_control(peer, load)


def _measured(sample: LoadSample) -> Report:
    names = (
        "input_utilization", "output_utilization", "match_delay_seconds", "index_delay_seconds", "input_rate",
        "output_rate", "output_bytes_per_second", "input_queue_delay_seconds", "output_queue_delay_seconds",
        "input_bytes_per_second", "downlink_utilization",
    )  # fmt: skip
    return {name: getattr(sample, name) for name in names}


def _flat(status: dict[str, Any]) -> dict[str, Any]:
    """Status as it fits into a control record: scalars, lists of names, and maps of scalars."""
    return {
        key: value
        for key, value in status.items()
        if value is None or isinstance(value, str | int | float | list | dict)
    }
