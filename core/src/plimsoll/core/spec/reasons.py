"""Every reason that a condition, a session or an event may give, with cause and remedy: docs/reasons.md is this.

A reason is one word, says why, and is never a state. What is said in the code and not here, or here and nowhere in the
code, fails a test.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Reason:
    """One word: its cause, and what to do about it; empty if nothing is to be done.

    `of` is the condition or the phase that it is given for. `again`: another attempt may mend it, if `retries` says so.
    """

    name: str
    of: str
    cause: str
    remedy: str = ""
    again: bool = False


@dataclass(frozen=True)
class Section:
    """Reasons of one sort, with what `of` means for them."""

    title: str
    of: str
    text: str
    reasons: tuple[Reason, ...]


BROKERS = Section(
    "Brokers, clusters and fleets",
    "condition",
    "Reasons of `Ready`, `Progressing`, `Degraded` and `LoadDataFresh`. Those of a cluster or a fleet are the reasons"
    " of its brokers, those that fail first.",
    (
        Reason("AllReady", "Ready", "every broker answers and is joined to its peers"),
        Reason("Answering", "Ready", "the broker answers and is joined to its peers"),
        Reason(
            "Starting",
            "Ready, Progressing",
            "the broker has been started and does not answer yet",
            "Wait; if it lasts for a minute, read the log of the broker.",
        ),
        Reason(
            "WaitingForPeers",
            "Ready, Progressing",
            "the broker answers and waits for its head, or a head for others; the message names them",
            "Look at those that it waits for: one of them is down.",
        ),
        Reason(
            "NotAnswering",
            "Ready, Degraded",
            "the broker runs, and has stopped answering the mediator",
            "Read its log; see whether a NetworkPolicy or a firewall keeps port 7401 from the mediator.",
        ),
        Reason(
            "BackOff",
            "Ready, Degraded",
            "the broker ends again and again, and is started again after a pause that"
            " grows; the message says how it ended",
            "Read its log; give its profile more memory if it was ended for using too much.",
        ),
        Reason("Stopping", "Ready, Progressing", "the broker lets its subscribers go elsewhere, and ends"),
        Reason(
            "Stopped",
            "Ready",
            "nothing runs, and nothing is to be started now",
            "On one machine: `plimsoll up`. On Kubernetes: see whether the operator runs.",
        ),
        Reason(
            "Unschedulable",
            "Ready, Degraded",
            "no node takes the pod; the message says why",
            "Add nodes, or lower cpu, memory or nodeSelector of its profile.",
        ),
        Reason(
            "Rolling",
            "Progressing",
            "brokers are replaced one after the other, each when its subscribers have left;"
            " the message says what is waited for",
        ),
        Reason("Settled", "Progressing", "nothing is on its way up or down"),
        Reason("AsExpected", "Degraded", "no broker has ended, and all that was started answers"),
        Reason(
            "InvalidSpec",
            "Degraded, event",
            "the objects of the namespace do not describe a fleet together; the"
            " message has each problem with its remedy. What runs stays as it is",
            "Mend the object that it names.",
        ),
        Reason(
            "NoCluster",
            "Degraded, event",
            "an edge that was made by hand belongs to a cluster that is not there",
            "Create the cluster, or delete the edge.",
        ),
        Reason(
            "NoFleet",
            "Ready, Degraded, event",
            "a namespace has clusters and no fleet",
            "Create a BrokerFleet in it; its spec may be empty.",
        ),
        Reason(
            "NameTaken",
            "Degraded, event",
            "an object that is needed is there and belongs to somebody else",
            "Rename or delete that object, or name the broker differently.",
        ),
        Reason(
            "Refused",
            "Degraded, event",
            "the API server refuses what the operator wants to write; the message says what and why",
            "Give the operator the right that it names, or mend the admission policy that refuses.",
        ),
        Reason("Reporting", "LoadDataFresh", "the last load report of every broker is at most three intervals old"),
        Reason(
            "NoReports",
            "LoadDataFresh, Balanced",
            "a broker has not reported its load since it started",
            "Wait for one telemetry.reportInterval; if it lasts, see whether the broker is Ready.",
        ),
        Reason(
            "Stale",
            "LoadDataFresh",
            "a broker has not reported its load for three intervals",
            "See whether it is Ready: it is too busy, or cannot be reached.",
        ),
        Reason(
            "NotSupervised",
            "all",
            "on one machine: nobody supervises the fleet, and what was observed last may be long past",
            "`plimsoll up`.",
        ),
    ),
)

SPARK = Section(
    "Spark over telemetry",
    "condition",
    "Reasons of `SparkReady` of a fleet that asks for Spark. While it is not True the fleet goes by the collectors' own"
    " figures, and nothing else is missing.",
    (
        Reason("Fresh", "SparkReady", "the snapshot of the live job is recent and complete"),
        Reason(
            "Starting",
            "SparkReady",
            "the live job has been started and has not written a snapshot yet; `status.telemetry.spark.message` says"
            " what its driver waits for",
            "Wait three minutes; then see the events and the log of the driver's pod.",
        ),
        Reason(
            "Incomplete",
            "SparkReady",
            "the snapshot has seen fewer than 95 % of the brokers that are expected",
            "See which collectors and brokers are not ready; collectors and driver must share the claim.",
        ),
        Reason("Late", "SparkReady", "the newest snapshot is older than 45 s, so it is not used"),
        Reason(
            "Dead",
            "SparkReady",
            "the newest snapshot is older than 90 s, although the driver runs; the driver is started anew, at most"
            " three times an hour",
            "Read the driver's log; a file that is not Parquet of the schema stops it: take the file away.",
        ),
        Reason(
            "NoCollectors",
            "SparkReady",
            "nobody stores load reports that Spark could read",
            "Set `telemetry.collectors.replicas`.",
        ),
        Reason(
            "ManyCollectors",
            "SparkReady",
            "a process beside one of several collectors would know that one's share alone",
            "Ask for one collector, or for the launcher `Kubernetes` and a volume that all share.",
        ),
        Reason(
            "NoVolume",
            "SparkReady",
            "a driver in a pod of its own cannot read what collectors write: they share no volume",
            "Name a claim in `telemetry.collectors.volumeClaim`, or use the launcher `Process`.",
        ),
        Reason(
            "NotAllowed",
            "SparkReady",
            "the operator has no rights to make what Spark consists of",
            "Install the chart with `rbac.spark: true`.",
        ),
        Reason(
            "NotServed",
            "SparkReady",
            "the cluster does not know the kind of the operator for Spark that is named",
            "Install that operator, or use the launcher `Kubernetes`.",
        ),
        Reason(
            "NameTaken",
            "SparkReady",
            "a SparkApplication of that name is there and belongs to somebody else",
            "Rename or delete it.",
        ),
        Reason(
            "NoSpark",
            "SparkReady, event",
            "on one machine: Java or PySpark is missing; the message says which",
            "Install Java 17 or 21 and `plimsoll-operator[spark]`, and start the fleet again.",
        ),
    ),
)

BALANCE = Section(
    "Balance of clusters",
    "condition",
    "Reasons of `Balanced`. Where a session was tried and came to nothing, its reason is given: see below.",
    (
        Reason(
            "NoTrigger",
            "Balanced",
            "no edge is overloaded, or carries more than another by more than the policy's trigger",
        ),
        Reason("OneEdge", "Balanced", "there is no edge to move anybody to", "Add edges if it is overloaded."),
        Reason("Balancing", "Balanced", "a session is going on; the message names it"),
        Reason(
            "Unbalanced",
            "Balanced",
            "an edge carries more than another by more than the policy's trigger; the message names both",
            "If it lasts, `explain` the last session of the cluster: it says why nothing was moved.",
        ),
        Reason(
            "Overloaded",
            "Balanced",
            "an edge is above an overload threshold, and has no relief yet",
            "If it lasts, `explain` the last session of the cluster; add edges if all are overloaded.",
        ),
    ),
)

PROFILES = Section(
    "Hardware",
    "condition",
    "Reasons of `Calibrated`, of HardwareProfiles.",
    (
        Reason("Measured", "Calibrated", "brokers with this profile have measured what matching takes"),
        Reason(
            "NotMeasured",
            "Calibrated",
            "no broker with this profile has measured what matching takes",
            "Wait for publications. Only edges of clusters with a policy measure it.",
        ),
    ),
)

PODS = Section(
    "Pods",
    "condition",
    "Kubernetes' own words for a container that does not run, given as reasons of `Ready` and `Degraded` as they are.",
    (
        Reason(
            "ImagePullBackOff",
            "Ready, Degraded",
            "the image cannot be had",
            "Mend pods.image, or the registry's secret.",
        ),
        Reason(
            "ErrImagePull", "Ready, Degraded", "the image cannot be had", "Mend pods.image, or the registry's secret."
        ),
        Reason("InvalidImageName", "Ready, Degraded", "the name of the image cannot be read", "Mend pods.image."),
        Reason(
            "CrashLoopBackOff",
            "Ready, Degraded",
            "the broker ends again and again; the message says how",
            "Read its log: `kubectl logs POD --previous`.",
        ),
        Reason(
            "CreateContainerConfigError",
            "Ready, Degraded",
            "its configuration or its keys are not there",
            "See whether the operator runs, and may make Secrets and ConfigMaps.",
        ),
        Reason(
            "RunContainerError",
            "Ready, Degraded",
            "the container could not be started; the message says why",
            "See the events of the pod.",
        ),
    ),
)

EVENTS = Section(
    "Events of brokers",
    "type",
    "What happened, told once to people; repeats are counted.",
    (
        Reason("Ready", "Normal", "a broker has become ready"),
        Reason("Started", "Normal", "a broker's process was started"),
        Reason(
            "Exited",
            "Warning",
            "a broker's process has ended by itself; it is started again",
            "Read its log if it happens again.",
        ),
        Reason("Killed", "Warning", "a broker's process did not leave in time, and was ended"),
        Reason("Stopped", "Normal", "a broker's process has left as it should"),
        Reason(
            "MalformedAnswer",
            "Warning",
            "a broker has said of itself what cannot be, as a text where a number belongs; the message names the broker"
            " and the field. That answer or report is ignored, so it may be taken not to answer",
            "See whether it runs the image that the fleet asks for; read its log.",
        ),
        Reason("Evacuating", "Normal", "a session moves the subscribers of an edge before it leaves or is replaced"),
        Reason("Restarting", "Normal", "a pod is replaced; the message says what has changed"),
        Reason("MediatorStarted", "Normal", "the mediator was started"),
        Reason(
            "MediatorExited",
            "Warning",
            "the mediator has ended; it is started again, and goes on where it was",
            "Read its log if it happens again.",
        ),
        Reason("CollectorStarted", "Normal", "a collector of telemetry was started"),
        Reason(
            "CollectorExited",
            "Warning",
            "a collector of telemetry has ended; it is started again",
            "Read its log if it happens again.",
        ),
        Reason("SparkStarted", "Normal", "the live job on Spark was started"),
        Reason(
            "SparkExited",
            "Warning",
            "the live job on Spark has ended; it is started again",
            "Read its log if it happens again.",
        ),
        Reason(
            "SparkRestarting",
            "Warning",
            "the live job on Spark runs and writes no snapshot; it is started anew",
            "Read the driver's log if it happens again.",
        ),
        Reason(
            "PlanLost",
            "Warning",
            "the ConfigMaps with a session's plan are gone, or are not its own: the session begins anew",
            "Find out who deletes ConfigMaps of this namespace.",
        ),
    ),
)


def table(section: Section) -> str:
    """A section as Markdown: its title, what it is about, and a row for each reason."""
    lines = [f"## {section.title}", "", section.text, ""]
    lines += [f"| reason | {section.of} | cause | remedy |", "|---|---|---|---|"]
    for each in section.reasons:
        remedy = " ".join(part for part in (each.remedy, "*again*" if each.again else "") if part)
        lines.append(f"| `{each.name}` | {each.of} | {each.cause} | {remedy} |")
    return "\n".join(lines)
