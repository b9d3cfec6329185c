"""CustomResourceDefinitions of all kinds: names, columns, subresources, and the schemas of the described fields.

Columns summarise an object in one line; those shown only by `kubectl get -o wide` have priority 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from plimsoll.core.spec.field_info import NAME
from plimsoll.core.spec.kinds import GROUP, KINDS, VERSION, WRITTEN_KINDS, ResourceKind
from plimsoll.core.spec.schemas.cel_rules import ROOT_RULES
from plimsoll.core.spec.schemas.openapi import Schema, block_schema
from plimsoll.core.spec.status.objects import (
    BundleLoadStatus,
    ChannelStatus,
    ClusterStatus,
    EdgeStatus,
    FeedStatus,
    FleetStatus,
    ProfileStatus,
)
from plimsoll.core.spec.status.session import SessionStatus

CATEGORY = "plimsoll"

STATUSES: dict[str, type] = {
    "BrokerFleet": FleetStatus,
    "BrokerCluster": ClusterStatus,
    "EdgeBroker": EdgeStatus,
    "HardwareProfile": ProfileStatus,
    "LoadBalancingSession": SessionStatus,
    "Feed": FeedStatus,
    "Channel": ChannelStatus,
    "Bundle": BundleLoadStatus,
}


@dataclass(frozen=True)
class PrinterColumn:
    """One column of `kubectl get`."""

    name: str
    path: str
    text: str
    type: str = "string"
    wide: bool = False

    def written(self) -> dict[str, Any]:
        """The column as written in a definition."""
        found = {"name": self.name, "type": self.type, "description": self.text, "jsonPath": self.path}
        return {**found, "priority": 1} if self.wide else found


def _condition(type_: str, part: str = "status") -> str:
    return f'.status.conditions[?(@.type=="{type_}")].{part}'


_ACCEPTED = PrinterColumn("Accepted", _condition("Accepted"), "Whether its present specification is served.")
_FAULT = PrinterColumn("Fault", _condition("Accepted", "message"), "What is wrong with it, in a sentence.", wide=True)
_AGE = PrinterColumn("Age", ".metadata.creationTimestamp", "Age of the object.", "date")


def _column(name: str, path: str, text: str, type_: str = "string") -> PrinterColumn:
    return PrinterColumn(name, path, text, type_)


def _wide(name: str, path: str, text: str, type_: str = "string") -> PrinterColumn:
    return PrinterColumn(name, path, text, type_, wide=True)


_LOAD = ".status.load"

COLUMNS: dict[str, tuple[PrinterColumn, ...]] = {
    "BrokerFleet": (
        _column("Clusters", ".status.clusters", "Number of clusters.", "integer"),
        _column("Brokers", ".status.brokers.desired", "Desired number of brokers.", "integer"),
        _column("Up", ".status.brokers.ready", "Brokers that are ready.", "integer"),
        _column("Ready", _condition("Ready"), "Whether all brokers are ready."),
        _column("Reason", _condition("Ready", "reason"), "Why."),
        _ACCEPTED,
        _column("Fresh", _condition("LoadDataFresh"), "Whether load reports of all brokers are recent."),
        _column(
            "Source", ".status.telemetry.source", "Source of the figures that clusters are compared by: Spark or Fold."
        ),
        _wide("Snapshot-s", ".status.telemetry.snapshotAgeSeconds", "Age of Spark's snapshot in seconds.", "integer"),
        _wide("Security", ".status.security", "How links are protected."),
        _wide("Epoch", ".status.mediatorEpoch", "Epoch of its mediator.", "integer"),
        _wide("Message", _condition("Ready", "message"), "Why, in a sentence."),
        _FAULT,
        _AGE,
    ),
    "BrokerCluster": (
        _column("Edges", ".status.edges.desired", "Desired number of edges.", "integer"),
        _column("Up", ".status.edges.ready", "Edges that are ready.", "integer"),
        _column("Ready", _condition("Ready"), "Whether head and edges are ready."),
        _column("Reason", _condition("Ready", "reason"), "Why."),
        _ACCEPTED,
        _column("Balanced", _condition("Balanced"), "Whether its edges are balanced."),
        _column(
            "Imbalance%",
            ".status.imbalancePercent",
            "Largest difference of a utilisation between two edges.",
            "integer",
        ),
        _column("Subs", ".status.subscribers", "Subscribers that its edges serve.", "integer"),
        _column("LastSession", ".status.lastSession.reason", "How the last session of its edges ended."),
        _wide("Session", ".status.lastSession.name", "The last session of its edges that ended."),
        _wide("Endpoint", ".status.endpoint", "Where publishers connect."),
        _wide("Leads", ".status.head.pod", "The pod of its head; with a standby, the one that leads."),
        _wide("Term", ".status.leadership.term", "With a standby: how many times a process was made head.", "integer"),
        _wide("Standby", _condition("StandbyFollows", "reason"), "Whether a standby has all of the head's log."),
        _wide("Message", _condition("Ready", "message"), "Why, in a sentence."),
        _FAULT,
        _AGE,
    ),
    "EdgeBroker": (
        _column("Cluster", ".spec.clusterRef.name", "Its cluster."),
        _column("Profile", ".spec.profile", "Its hardware profile."),
        _column("Ready", _condition("Ready"), "Whether it is ready for subscribers."),
        _column("Reason", _condition("Ready", "reason"), "Why."),
        _ACCEPTED,
        _column("State", ".status.state", "Whether it can take part in balancing, as it reports."),
        _column("Cordoned", ".spec.cordoned", "Whether newcomers are placed elsewhere.", "boolean"),
        _column("Subs", ".status.subscribers", "Subscribers that it serves.", "integer"),
        _column("In%", f"{_LOAD}.inputUtilizationPercent", "Input utilisation.", "integer"),
        _column("Out%", f"{_LOAD}.outputUtilizationPercent", "Output utilisation.", "integer"),
        _wide("CPU%", f"{_LOAD}.cpuPercent", "CPU time / the profile's limit.", "integer"),
        _wide("Mem%", f"{_LOAD}.memoryPercent", "Memory / the profile's limit.", "integer"),
        _wide("Match-us", f"{_LOAD}.matchDelayMicroseconds", "Microseconds to match a publication.", "integer"),
        _wide("Pub/s", f"{_LOAD}.publicationsPerSecond", "Incoming publications per second.", "integer"),
        _wide("Del/s", f"{_LOAD}.deliveriesPerSecond", "Outgoing deliveries per second.", "integer"),
        _wide("Restarts", ".status.restarts", "Number of restarts.", "integer"),
        _wide("Node", ".status.node", "The node of its pod."),
        _FAULT,
        _AGE,
    ),
    "HardwareProfile": (
        _column("CPU", ".spec.cpu", "Cores."),
        _column("Memory", ".spec.memory", "Memory."),
        _column("In", ".spec.bandwidth.inputBytesPerSecond", "Bytes per second into the broker."),
        _column("Out", ".spec.bandwidth.outputBytesPerSecond", "Bytes per second out of the broker."),
        _column("Brokers", ".status.brokers", "Number of brokers with this profile.", "integer"),
        _ACCEPTED,
        _column("Match-ns", ".status.calibrated.matchNanoseconds", "Measured nanoseconds per match.", "integer"),
        _column(
            "Err%",
            ".status.calibrated.errorPercent",
            "Largest deviation of the fit from the last measurements.",
            "integer",
        ),
        _wide(
            "Publication-ns",
            ".status.calibrated.publicationNanoseconds",
            "Measured nanoseconds per publication without matches.",
            "integer",
        ),
        _wide("Emulated", ".spec.emulation.base", "Fixed time per publication on emulated hardware."),
        _FAULT,
        _AGE,
    ),
    "LoadBalancingSession": (
        _column("Source", ".status.source", "The source."),
        _column("Target", ".status.target", "The target."),
        _column("Mode", ".spec.mode", "Whether its plan is carried out."),
        _column("Phase", ".status.phase", "Its phase."),
        _column("Reason", ".status.reason", "Why it is in this phase, in one word."),
        _column("Moved", ".status.progress.moved", "Subscribers that have moved.", "integer"),
        _column("Planned", ".status.progress.planned", "Subscribers that are to move.", "integer"),
        _column("Lost", ".status.audit.lost", "Deliveries that audited subscribers did not get.", "integer"),
        _column("ETA", ".status.progress.etaSeconds", "Seconds until the rest has moved.", "integer"),
        _column("Err%", ".status.measured.errorPercentMax", "Largest error of a predicted utilisation.", "integer"),
        _wide(
            "Audited", ".status.audit.subscribers", "Moved subscribers that have counted their deliveries.", "integer"
        ),
        _wide("Duplicated", ".status.audit.duplicated", "Deliveries that audited subscribers got twice.", "integer"),
        _wide(
            "Reordered", ".status.audit.reordered", "Deliveries that audited subscribers got out of order.", "integer"
        ),
        _wide("Succeeded", _condition("Succeeded"), "Whether it succeeded; Unknown until its end."),
        _wide("Ended", ".status.endedAt", "Time since its end; absent while it goes on.", "date"),
        _wide("Delivered", _condition("Delivered"), "Whether audited subscribers got all that was due to them."),
        _wide("Action", ".spec.action", "Rebalance, Drain or Shuffle."),
        _wide("Trigger", ".spec.trigger.broker", "The broker that asked for it."),
        _wide("Plan", ".status.planHash", "Hash of the present plan."),
        _wide("Message", ".status.message", "Why it is in this phase, in a sentence."),
        _AGE,
    ),
    "Feed": (
        _column("Recording", _condition("Recording"), "Whether its recorder runs and commits."),
        _column("Reason", _condition("Recording", "reason"), "Why."),
        _column("Rows", ".status.rows", "Publications recorded.", "integer"),
        _column("DeadLetters", ".status.deadLetters", "Publications that did not fit.", "integer"),
        _column("Gaps", ".status.gaps", "Gaps that the fleet has reported.", "integer"),
        _column("Bytes", ".status.sizeBytes", "Size of its files.", "integer"),
        _wide("Path", ".status.path", "Folder of its dataset."),
        _wide("Message", _condition("Recording", "message"), "Why, in a sentence."),
        _AGE,
    ),
    "Channel": (
        _column("Running", _condition("Running"), "Whether its driver computes and publishes its results."),
        _column("Reason", _condition("Running", "reason"), "Why."),
        _column("Subscriptions", ".status.subscriptions", "Distinct parameters that are subscribed to.", "integer"),
        _column("Mode", ".spec.mode", "Continuous or Repetitive."),
        _column("Batch", ".status.batch", "Number of its last batch.", "integer"),
        _column("Results", ".status.results", "Results so far.", "integer"),
        _column(
            "LateMs",
            ".status.lateMilliseconds",
            "How late its last batch began in its period.",
            "integer",
        ),
        _column("LateRows", ".status.lateRows", "Rows that were gone before a batch could read them.", "integer"),
        _wide("Rows", ".status.rowsIn", "Rows that its batches have consumed.", "integer"),
        _wide("Every", ".spec.every", "The period of a Repetitive channel."),
        _wide("Message", _condition("Running", "message"), "Why, in a sentence."),
        _AGE,
    ),
    "Bundle": (
        _column("Cluster", ".spec.clusterRef.name", "Its cluster."),
        _column("Range", ".spec.range", "The range of the hashes of its topics."),
        _column("Owner", ".status.edge", "The edge that owns it."),
        _column("Topics", ".status.topics", "Topics with subscribers.", "integer"),
        _column("Sessions", ".status.sessions", "Subscribers of its topics, by topic.", "integer"),
        _column("In/s", ".status.publicationsPerSecond", "Incoming publications per second.", "integer"),
        _column("Out/s", ".status.deliveriesPerSecond", "Outgoing deliveries per second.", "integer"),
        _wide("Bytes/s", ".status.bytesPerSecond", "Incoming and outgoing bytes per second.", "integer"),
        _AGE,
    ),
}


def crd(kind: ResourceKind) -> dict[str, Any]:
    """The CustomResourceDefinition of a kind."""
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{kind.plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {
                "kind": kind.name,
                "listKind": f"{kind.name}List",
                "plural": kind.plural,
                "singular": kind.name.lower(),
                "shortNames": [kind.short],
                "categories": [CATEGORY],
            },
            "versions": [
                {
                    "name": VERSION,
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": object_schema(kind)},
                    **({} if kind.name in WRITTEN_KINDS else {"subresources": _subresources(kind)}),
                    "additionalPrinterColumns": [column.written() for column in COLUMNS[kind.name]],
                }
            ],
        },
    }


def all_crds() -> dict[str, dict[str, Any]]:
    """The definitions of all kinds, by the kind's name."""
    return {name: crd(kind) for name, kind in {**KINDS, **WRITTEN_KINDS}.items()}


def object_schema(kind: ResourceKind) -> Schema:
    """The schema of whole objects of a kind."""
    spec, status = block_schema(kind.spec), block_schema(STATUSES[kind.name], status=True)
    schema: Schema = {
        "description": _root_rules(kind.spec),
        "type": "object",
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {
                "type": "object",
                "properties": {"name": {"type": "string", "maxLength": 63, "pattern": f"^{NAME}$"}},
            },
            "spec": {"description": "The desired state.", **_defaulted(spec)},
            "status": {"description": "The observed state.", **status},
        },
    }
    if "default" not in schema["properties"]["spec"]:
        schema["required"] = ["spec"]
    rules = ROOT_RULES.get(kind.name, ())
    return {**schema, "x-kubernetes-validations": [rule.written() for rule in rules]} if rules else schema


def _defaulted(spec: Schema) -> Schema:
    """A specification without required fields may be left out, and then has its defaults."""
    return spec if "required" in spec else {**spec, "default": {}}


def _root_rules(kind: type) -> str:
    return " ".join((kind.__doc__ or "").split())


def _subresources(kind: ResourceKind) -> dict[str, Any]:
    if kind.name != "BrokerCluster":
        return {"status": {}}
    scale = {
        "specReplicasPath": ".spec.scale.replicas",
        "statusReplicasPath": ".status.replicas",
        "labelSelectorPath": ".status.selector",
    }
    return {"status": {}, "scale": scale}
