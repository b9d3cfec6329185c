"""All reasons of conditions, sessions and events, with cause and remedy; docs/reasons.md is generated from them.

A reason is one word that says why, never a state. A test fails if the code gives a reason that is not listed here, or
if one is listed that the code never gives.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class StatusReason:
    """A reason, its cause, and what to do about it; `remedy` is empty if there is nothing to do.

    `of` is the condition or the phase that has it. `again`: another attempt may succeed, if `retries` allows one.
    """

    name: str
    of: str
    cause: str
    remedy: str = ""
    again: bool = False


@dataclass(frozen=True)
class ReasonSection:
    """A table of reasons; `of` is the title of its second column."""

    title: str
    of: str
    text: str
    reasons: tuple[StatusReason, ...]


BROKERS = ReasonSection(
    "Brokers, clusters and fleets",
    "condition",
    "Reasons of `Accepted`, `Ready`, `Progressing`, `Degraded`, `KeysReplaced`, `LoadDataFresh`,"
    " `StatusUncomputed` and `TakesPublishers`."
    " A cluster or a"
    " fleet has the reasons of its brokers, failures first."
    " `Accepted` is about the present specification, all others about the generation that they name: kubectl wait"
    " counts those of an earlier generation as not yet true.",
    (
        StatusReason("AllReady", "Ready", "every broker answers and is connected to its peers"),
        StatusReason("Answering", "Ready", "the broker answers and is connected to its peers"),
        StatusReason(
            "Starting",
            "Ready, Progressing",
            "the broker has been started and does not answer yet",
            "Wait; if it lasts for more than a minute, read the broker's log.",
        ),
        StatusReason(
            "WaitingForPeers",
            "Ready, Progressing",
            "the broker answers and is waiting for its head, or a head for its neighbours; the message names them",
            "Check the brokers that it names: one of them is down.",
        ),
        StatusReason(
            "PodNotReady",
            "Ready, Progressing",
            "the broker answers, but the readiness probe of its pod does not succeed",
            "Wait for some seconds; if it lasts, read the pod's events: `kubectl describe pod BROKER-0`.",
        ),
        StatusReason(
            "NoBrokers",
            "Ready",
            "the fleet has no cluster yet, so nothing serves",
            "Apply a BrokerCluster.",
        ),
        StatusReason(
            "NotAnswering",
            "Ready, Degraded",
            "the broker runs and no longer answers the mediator",
            "Read its log; check whether a NetworkPolicy or a firewall blocks port 7401 for the mediator.",
        ),
        StatusReason(
            "BackOff",
            "Ready, Degraded",
            "the broker fails repeatedly and is restarted after a pause that grows; the message says how it ended",
            "Read its log; if it ran out of memory, give its profile more.",
        ),
        StatusReason("Stopping", "Ready, Progressing", "the broker lets its subscribers move elsewhere, then ends"),
        StatusReason(
            "Stopped",
            "Ready",
            "the broker does not run and is not about to be started",
            "On one machine: run `plimsoll up`. On Kubernetes: check whether the operator runs.",
        ),
        StatusReason(
            "Unschedulable",
            "Ready, Degraded",
            "no node fits the pod; the message says why",
            "Add nodes, or reduce `cpu`, `memory`, `nodeSelector` or `affinity` of its profile.",
        ),
        StatusReason(
            "PodRefused",
            "Ready, Degraded, event",
            "the API server does not let the pod be created; the message says why: a PriorityClass that does not exist,"
            " a quota, a policy of the namespace",
            "Correct what it names: create the PriorityClass or change `priorityClassName` of its profile, or raise the"
            " quota. Kubernetes tries again by itself, at first within seconds.",
        ),
        StatusReason(
            "Rolling",
            "Ready, Progressing",
            "brokers are replaced one after the other, each after its subscribers have moved: all serve, some of them"
            " with earlier settings; the message says what they wait for",
        ),
        StatusReason("Settled", "Progressing", "no broker is starting, stopping or being replaced"),
        StatusReason(
            "AsExpected",
            "Degraded",
            "no broker has failed, all that run answer, and each cluster has an edge that is not cordoned",
        ),
        StatusReason(
            "NoTarget",
            "Degraded",
            "all edges of a cluster are cordoned: those who come to it, or look for another edge, are served by other"
            " clusters, after a while and with a gap, or not at all",
            "Run `plimsoll uncordon` with the name of an edge, or add one.",
        ),
        StatusReason(
            "Accepted", "Accepted", "the specification is served; the message names a part that is left out, if one is"
        ),
        StatusReason(
            "InvalidSpec",
            "Accepted, Ready, Degraded, event",
            "the object has a fault, or contradicts another one; the message has the field and the remedy. It is"
            " served as it was last accepted, or not at all if it never was; all other objects go on",
            "Correct the field that it names.",
        ),
        StatusReason(
            "DependsOnFault",
            "Accepted, Ready, Degraded, event",
            "the object needs another one, which has a fault of its own; the message names it. A link between heads is"
            " left out, anything else waits",
            "Correct the object that it names.",
        ),
        StatusReason(
            "SecondFleet",
            "Accepted, Ready, Degraded, event",
            "the namespace has an older BrokerFleet, which is served",
            "Delete one of the two; run each fleet in a namespace of its own.",
        ),
        StatusReason(
            "NoCluster",
            "Accepted, Ready, Degraded, event",
            "an EdgeBroker that a user created names a cluster that does not exist",
            "Create the cluster, or delete the edge.",
        ),
        StatusReason(
            "NoFleet",
            "Ready, Degraded, event",
            "the namespace has clusters and no BrokerFleet",
            "Create a BrokerFleet in it; its spec may be empty.",
        ),
        StatusReason(
            "SecretDeleted",
            "KeysReplaced, event",
            "a Secret of keys was deleted; it has new keys, and the old key is accepted for the overlap of a rotation",
            "Have applications read the new key. To revoke a client at once, remove it from `spec.security.clients`.",
        ),
        StatusReason(
            "SecretInvalid",
            "event",
            "a Secret of keys held no pair of keys; it has new ones, as after a deletion",
            "Find out what writes to Secrets of this namespace.",
        ),
        StatusReason(
            "NameTaken",
            "Degraded, event",
            "an object that is needed exists and is not managed by the operator",
            "Rename or delete that object, or rename the broker.",
        ),
        StatusReason(
            "Refused",
            "Degraded, event",
            "the API server refuses a write of the operator; the message says which and why",
            "Grant the operator the permission that it names, or correct the admission policy that refuses.",
        ),
        StatusReason(
            "OperatorFault",
            "Degraded, event",
            "the operator, or the mediator in it, fails at this fleet and tries again; it goes on serving other fleets",
            "Do what the message says; without advice there, take back the last change, and report the message.",
        ),
        StatusReason(
            "Reporting", "LoadDataFresh", "the last load report of every broker is at most three intervals old"
        ),
        StatusReason(
            "NoReports",
            "LoadDataFresh, Balanced",
            "a broker has not reported its load since it started",
            "Wait for one `telemetry.reportInterval`; if it lasts, check whether the broker is Ready.",
        ),
        StatusReason(
            "Stale",
            "LoadDataFresh",
            "a broker has not reported its load for three intervals",
            "Check whether it is Ready: it is overloaded or unreachable.",
        ),
        StatusReason("HeadOpen", "TakesPublishers", "the head of the cluster takes new publishers"),
        StatusReason(
            "HeadCordoned",
            "TakesPublishers",
            "the head takes no new publishers until it has been replaced; those that come are sent to other heads",
            "Replace it, or run `plimsoll uncordon` with its name.",
        ),
        StatusReason(
            "DrainTimeout",
            "event",
            "a head is replaced although publishers are left: they were not moved in time; the message names how many",
            "None. What they had under way may be `unknown`: look for clients that do not answer, or that cannot reach"
            " other heads.",
        ),
        StatusReason(
            "NoOtherHead",
            "event",
            "a head is replaced with its publishers, since no other head could take them",
            "Add a cluster that is linked to this one; with one head a change of it can leave publications `unknown`.",
        ),
        StatusReason(
            "NotSupervised",
            "all",
            "on one machine: no supervisor runs, so the status may be out of date",
            "Run `plimsoll up`.",
        ),
        StatusReason(
            "NotWritten",
            "all",
            "on one machine: the supervisor runs and has written no status for over five seconds, as it is stopped or"
            " its disk is full; on Kubernetes: no operator has renewed the fleet's Lease for over 30 seconds, as"
            " `plimsoll get` finds. `status.writtenSecondsAgo` is the age of the status. Brokers go on",
            "Free space on the disk of `$PLIMSOLL_HOME`, or continue the supervisor with `kill -CONT`; on Kubernetes"
            " look at the operator's pods and their logs.",
        ),
        StatusReason(
            "PartFailed",
            "Ready, StatusUncomputed",
            "the status of this object cannot be computed, and is as of before, or the state of this broker cannot be"
            " read; the message says why",
            "Report it, with the message and the version.",
        ),
    ),
)

SPARK = ReasonSection(
    "Spark over telemetry",
    "condition",
    "Reasons of `SparkReady`, of fleets with Spark. While it is not True the fleet uses the collectors'"
    " own figures, and loses nothing else.",
    (
        StatusReason("Fresh", "SparkReady", "the snapshot of the live job is recent and complete"),
        StatusReason(
            "Starting",
            "SparkReady",
            "the live job was started and has not written a snapshot yet; `status.telemetry.spark.message` says"
            " what its driver waits for",
            "Wait three minutes; then check the events and the log of the driver's pod.",
        ),
        StatusReason(
            "Incomplete",
            "SparkReady",
            "the snapshot contains fewer than 95 % of the expected brokers",
            "Check which collectors and brokers are not ready; collectors and driver must share the volume claim.",
        ),
        StatusReason("Late", "SparkReady", "the newest snapshot is older than 45 s, so it is not used"),
        StatusReason(
            "Dead",
            "SparkReady",
            "the newest snapshot is older than 90 s, although the driver runs; the driver is restarted, at most three"
            " times an hour",
            "Read the driver's log: its last line says what failed and what to do.",
        ),
        StatusReason(
            "NoCollectors",
            "SparkReady",
            "there is no collector to store load reports for Spark",
            "Set `telemetry.collectors.replicas`.",
        ),
        StatusReason(
            "ManyCollectors",
            "SparkReady",
            "a process beside one of several collectors would see only that collector's share",
            "Use one collector, or the launcher `Kubernetes` and a volume that all share.",
        ),
        StatusReason(
            "NoVolume",
            "SparkReady",
            "a driver in its own pod cannot read the files of collectors: they share no volume",
            "Set `telemetry.collectors.volumeClaim`, or use the launcher `Process`.",
        ),
        StatusReason(
            "NotAllowed",
            "SparkReady, Running",
            "the operator has no permission to create Spark's objects",
            "Install the chart with `rbac.spark: true`, or use the launcher `Process`.",
        ),
        StatusReason(
            "NotServed",
            "SparkReady, Running",
            "the API server does not serve the kind of the chosen Spark operator",
            "Install that operator, or use the launcher `Kubernetes`.",
        ),
        StatusReason(
            "NameTaken",
            "SparkReady, Running",
            "a SparkApplication of that name exists and is not managed by the operator",
            "Rename or delete it.",
        ),
        StatusReason(
            "NoSpark",
            "SparkReady, event",
            "on one machine: Java or PySpark is missing; the message says which",
            "Install Java 17 or 21 and `plimsoll-operator[spark]`, and start the fleet again.",
        ),
    ),
)

BALANCE = ReasonSection(
    "Balance of clusters",
    "condition",
    "Reasons of `Balanced`. If the last session moved nothing, its reason is given: see below.",
    (
        StatusReason(
            "NoTrigger",
            "Balanced",
            "no edge is overloaded, or carries more than another by more than the policy's trigger",
        ),
        StatusReason(
            "OneEdge", "Balanced", "there is no other edge to move subscribers to", "Add edges if it is overloaded."
        ),
        StatusReason("Balancing", "Balanced", "a session is open; the message names it"),
        StatusReason(
            "Unbalanced",
            "Balanced",
            "an edge carries more than another by more than the policy's trigger; the message names both",
            "If it lasts, run `explain` on the cluster's last session: it says why nothing was moved.",
        ),
        StatusReason(
            "Overloaded",
            "Balanced",
            "an edge is above an overload threshold, and no session has relieved it yet",
            "If it lasts, run `explain` on the cluster's last session; add edges if all are overloaded.",
        ),
    ),
)

PROFILES = ReasonSection(
    "Hardware",
    "condition",
    "Reasons of `Calibrated`, of HardwareProfiles.",
    (
        StatusReason("Measured", "Calibrated", "brokers with this profile have measured their matching time"),
        StatusReason(
            "Rolling",
            "Calibrated",
            "brokers have measured it, but were started with the profile as it was before, and are yet to be replaced",
        ),
        StatusReason(
            "Stale",
            "Calibrated",
            "brokers have measured it, and none of them has reported for three intervals",
            "Read the reason of `LoadDataFresh` of their cluster.",
        ),
        StatusReason(
            "NotMeasured",
            "Calibrated",
            "no broker with this profile has measured its matching time",
            "Wait for publications. Only edges of clusters with a policy measure it.",
        ),
    ),
)

PODS = ReasonSection(
    "Pods",
    "condition",
    "Kubernetes' own reasons for a container that does not run, passed on in `Ready` and `Degraded`.",
    (
        StatusReason(
            "ImagePullBackOff",
            "Ready, Degraded",
            "the image cannot be pulled",
            "Correct `pods.image`, or the pull secret of the registry.",
        ),
        StatusReason(
            "ErrImagePull",
            "Ready, Degraded",
            "the image cannot be pulled",
            "Correct `pods.image`, or the pull secret of the registry.",
        ),
        StatusReason(
            "InvalidImageName", "Ready, Degraded", "the name of the image is invalid", "Correct `pods.image`."
        ),
        StatusReason(
            "CrashLoopBackOff",
            "Ready, Degraded",
            "the broker fails repeatedly; the message says how",
            "Read its log: `kubectl logs POD --previous`.",
        ),
        StatusReason(
            "CreateContainerConfigError",
            "Ready, Degraded",
            "its ConfigMap or its Secret does not exist",
            "Check whether the operator runs and may create Secrets and ConfigMaps.",
        ),
        StatusReason(
            "RunContainerError",
            "Ready, Degraded",
            "the container could not be started; the message says why",
            "Check the events of the pod.",
        ),
    ),
)

EVENTS = ReasonSection(
    "Events of brokers",
    "type",
    "Events are written once; repeats are counted.",
    (
        StatusReason("Ready", "Normal", "a broker has become ready"),
        StatusReason("PodGone", "Normal", "the pod of a broker has ended; the message says how, if it is known"),
        StatusReason(
            "PlainWithKeys",
            "Warning",
            "the fleet has `security.plain` and clients, whose keys are not used: anyone who reaches a port may"
            " publish",
            "Remove `plain`, or the clients.",
        ),
        StatusReason("KeysCreated", "Normal", "a Secret was created with a new pair of keys"),
        StatusReason("Started", "Normal", "a broker's process was started"),
        StatusReason(
            "Exited",
            "Warning",
            "a broker's process has ended by itself; it is restarted, on Kubernetes three times in a minute at most"
            " within its container, then with pauses by the kubelet",
            "Read its log if it happens again.",
        ),
        StatusReason(
            "Killed",
            "Warning",
            "a broker's process was killed: it did not end in time, or it led and was silent while a standby followed",
        ),
        StatusReason(
            "Promoted",
            "Warning",
            "the process of a head that led has ended, and its standby leads now; the message has the term. Normal for"
            " a planned change",
            "Read the log of the process that has ended. It starts again as the standby.",
        ),
        StatusReason("Leads", "Normal", "a process of a head that waited was told to lead; the message has the term"),
        StatusReason("StandbyStarted", "Normal", "a process was started that follows the log of its head"),
        StatusReason(
            "StandbyRemoved", "Normal", "`standby` was removed: the standby has ended, and the head goes on alone"
        ),
        StatusReason("StandbyInSync", "Normal", "a standby has all of its head's log: it may be promoted from now on"),
        StatusReason(
            "StandbyExited",
            "Warning",
            "the process of a standby has ended; the head goes on alone, and another standby is started",
            "Read its log if it happens again.",
        ),
        StatusReason(
            "StandbySilent",
            "Warning",
            "a standby has not answered its head for long; the head goes on alone until the standby has caught up",
            "Check whether its process is stopped, or its machine overloaded.",
        ),
        StatusReason("Stopped", "Normal", "a broker's process has ended as requested"),
        StatusReason(
            "MalformedAnswer",
            "Warning",
            "a broker sent an invalid answer or report, as a text in place of a number; the message names the"
            " broker and the field. It is ignored, so the broker may count as not answering",
            "Check whether it runs the image of the fleet; read its log.",
        ),
        StatusReason(
            "Evacuating", "Normal", "a session moves the subscribers of an edge before it leaves or is replaced"
        ),
        StatusReason("Restarting", "Normal", "a pod is replaced; the message names the settings that have changed"),
        StatusReason(
            "WriteFailed",
            "Warning",
            "on one machine: the state of the fleet cannot be written, for example as its disk is full; the message"
            " names the file. Brokers go on, sessions wait, and the supervisor tries again each second",
            "Do what the message says: free space on that disk, make it writable, or raise the limit.",
        ),
        StatusReason("WritesResumed", "Normal", "on one machine: the state of the fleet is written again"),
        StatusReason(
            "PartFailed",
            "Warning",
            "on one machine: a fault of the program in one part of the supervisor or of the mediator, as in the status"
            " of one object, or one answer of a broker; the message names both. All else goes on. The same again is"
            " said the tenth time, the hundredth and so on",
            "Report it, with the message and the version.",
        ),
        StatusReason("MediatorStarted", "Normal", "the mediator was started"),
        StatusReason(
            "MediatorExited",
            "Warning",
            "the mediator has failed; it is restarted and resumes its sessions",
            "Read its log if it happens again.",
        ),
        StatusReason(
            "OtherOperator",
            "Warning",
            "on Kubernetes: the operator of another release serves the fleet, as its Lease says; this one"
            " leaves it alone",
            "Uninstall one of the two, or have each watch namespaces of its own.",
        ),
        StatusReason("CollectorStarted", "Normal", "a collector of telemetry was started"),
        StatusReason(
            "CollectorExited",
            "Warning",
            "a collector of telemetry has ended; it is restarted",
            "Read its log if it happens again.",
        ),
        StatusReason("RecorderStarted", "Normal", "the recorder of a feed was started"),
        StatusReason(
            "RecorderKilled",
            "Warning",
            "the recorder of a feed did not end when asked to, and was killed; it goes on behind its last commit",
            "Read its log if it happens again.",
        ),
        StatusReason("ChannelDriverStarted", "Normal", "the driver of channels was started"),
        StatusReason(
            "ChannelDriverKilled",
            "Warning",
            "the driver of channels did not end when asked to, and was killed; channels go on behind their last batch",
            "Read its log if it happens again.",
        ),
        StatusReason("SparkStarted", "Normal", "the live job on Spark was started"),
        StatusReason(
            "SparkExited",
            "Warning",
            "the live job on Spark has ended; it is restarted",
            "Read its log if it happens again.",
        ),
        StatusReason(
            "SparkRestarting",
            "Warning",
            "the live job on Spark runs and writes no snapshots; it is restarted",
            "Read the driver's log if it happens again.",
        ),
        StatusReason(
            "SparkKilled",
            "Warning",
            "the live job on Spark, or what was left of an earlier one, did not end when asked to and was killed with"
            " all processes that it had started",
            "Read the driver's log if it happens again.",
        ),
        StatusReason(
            "SparkFileSetAside",
            "Warning",
            "a file of telemetry that a job could not read was moved to `raw/v1/set-aside`, with its reason in a file"
            " of the same name and `.json`; its rows are not counted",
            "Find out who writes such files; move a repaired one back to `raw/v1/incoming` under a new name.",
        ),
        StatusReason("SparkJobDone", "Normal", "a scheduled job on Spark has ended"),
        StatusReason(
            "SparkJobFailed",
            "Warning",
            "a scheduled job on Spark has failed; it is run again at its next time",
            "Read its log.",
        ),
        StatusReason(
            "PlanLost",
            "Warning",
            "the ConfigMaps with a session's plan are gone or belong to another session; the session is planned again",
            "Find out what deletes ConfigMaps in this namespace.",
        ),
    ),
)


def reason_table(section: ReasonSection) -> str:
    """A section as Markdown: title, text, and a row for each reason."""
    lines = [f"## {section.title}", "", section.text, ""]
    lines += [f"| reason | {section.of} | cause | remedy |", "|---|---|---|---|"]
    for each in section.reasons:
        remedy = " ".join(part for part in (each.remedy, "*again*" if each.again else "") if part)
        lines.append(f"| `{each.name}` | {each.of} | {each.cause} | {remedy} |")
    return "\n".join(lines)
