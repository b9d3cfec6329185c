"""Every reason that the code gives is explained, and no other.

Add the row of a new reason to a `*reasons.py` of core/spec/status/; docs/reasons.md is made of them.
A word that looks like a reason but is none is listed here.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import get_args

from tests.contracts.source_trees import ROOT, nodes, tree

from plimsoll.core.session.state import Phase
from plimsoll.core.spec import kinds
from plimsoll.core.spec.status import data_reasons, head_reasons, reasons, session_reasons, topic_reasons

SESSIONS = ROOT / "core/src/plimsoll/core/session"
WORD = re.compile(r"[A-Z][a-z]+(?:[A-Z][a-z]+)*")
ANSWERS = {"True", "False", "Unknown", "Normal", "Warning"}
CONDITIONS = {
    "Ready",
    "Progressing",
    "Degraded",
    "LoadDataFresh",
    "Balanced",
    "Calibrated",
    "Succeeded",
    "SparkReady",
    "StatusUncomputed",
    "KeysReplaced",
    "TakesPublishers",
    "LogSafe",
    "WithinLimits",
    "StandbyFollows",
    "Accepted",
}

BESIDE_SESSIONS = [
    "mediator/src/plimsoll/mediator/balance.py",
    "mediator/src/plimsoll/mediator/calibration.py",
    "mediator/src/plimsoll/mediator/limit_condition.py",
    "mediator/src/plimsoll/mediator/log_condition.py",
    "mediator/src/plimsoll/mediator/head_pair.py",
    "mediator/src/plimsoll/mediator/standby_condition.py",
    "mediator/src/plimsoll/mediator/resource_status.py",
    "mediator/src/plimsoll/mediator/topic_status.py",
    "mediator/src/plimsoll/mediator/fleet_resources.py",
    "local/src/plimsoll/local/supervision/supervised_broker.py",
    "local/src/plimsoll/local/supervision/supervised_head.py",
    "local/src/plimsoll/local/mediator.py",
    "local/src/plimsoll/local/supervision/evacuations.py",
    "local/src/plimsoll/local/supervision/fleet_events.py",
    "local/src/plimsoll/local/supervision/fleet_status_writer.py",
    "local/src/plimsoll/local/supervision/write_faults.py",
    "local/src/plimsoll/local/status_age.py",
    "local/src/plimsoll/local/supervision/supervisor.py",
    "operator/src/plimsoll/operator/reconcile/retries.py",
    "operator/src/plimsoll/operator/reconcile/fleet.py",
    "operator/src/plimsoll/operator/reconcile/head_drain.py",
    "operator/src/plimsoll/operator/reconcile/executor.py",
    "operator/src/plimsoll/operator/reconcile/mediator_supervisor.py",
    "operator/src/plimsoll/operator/security/key_manager.py",
    "operator/src/plimsoll/operator/mediator/runner.py",
    "local/src/plimsoll/local/supervision/spark_process.py",
    "local/src/plimsoll/local/supervision/scheduled_jobs.py",
    "operator/src/plimsoll/operator/objects/spark_application.py",
    "operator/src/plimsoll/operator/reconcile/observed.py",
    "operator/src/plimsoll/operator/objects/spark_jobs.py",
    "sparkjobs/src/plimsoll/sparkjobs/launch/live_job_health.py",
    "operator/src/plimsoll/operator/status.py",
    "operator/src/plimsoll/operator/spec_faults.py",
    "operator/src/plimsoll/operator/reconcile/broker_events.py",
    "core/src/plimsoll/core/spec/usable.py",
    "local/src/plimsoll/local/supervision/feed_processes.py",
    "feeds/src/plimsoll/feeds/status.py",
    "channels/src/plimsoll/channels/status.py",
    "operator/src/plimsoll/operator/dataset_status.py",
    "local/src/plimsoll/local/supervision/channel_process.py",
    "channels/src/plimsoll/channels/runner.py",
]
"""Modules that give reasons to brokers, clusters and fleets."""

KEPT = ("Mediator", "Collector", "Recorder", "Spark", "ChannelDriver")
OF_KEPT = {f"{kind}{what}" for kind in KEPT for what in ("Started", "Exited")} | {
    "RecorderKilled", "SparkKilled", "ChannelDriverKilled",
}  # fmt: skip
"""Reasons that local/supervision/sidecar.py puts together."""

NONE = {
    *ANSWERS, *CONDITIONS, *kinds.KINDS,
    "Recording", "Recorder",  # a condition of feeds, and what the reasons of its process begin with
    "Running", "ChannelDriver",  # a condition of channels, and what the reasons of its process begin with
    "Curve", "Plain",  # how links are protected
    "Local", "Planned",  # a scope of detection, a phase
    "ConfigMap", "Pod", "PodDisruptionBudget", "Secret", "Service", "StatefulSet",  # kinds of Kubernetes
    "None", "Process", "Kubernetes", "SparkOperator", "SparkApplication",  # launchers of Spark
    "Fold", "Spark", "Missing",  # sources of figures; the state of a job that cannot be started
    "ContainerCreating", "PodInitializing", "PodScheduled", "DisruptionTarget", "DeletionByTaintManager",  # its words
    "PreferNoSchedule",
}  # fmt: skip


def constants(path: Path) -> set[str]:
    """Words of a module that look like reasons; what it exports is none."""
    exported = {
        name
        for node in tree(path).body
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == "__all__" for t in node.targets)
        for name in ast.literal_eval(node.value)
    }
    texts = {node.value for node in nodes(path) if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    return {text for text in texts if WORD.fullmatch(text)} - exported


def values_of_fields() -> set[str]:
    """Values of a session's specification, such as Rebalance: words of the code that are not reasons."""
    types = ROOT / "core/src/plimsoll/core/spec/types"
    found = "".join(path.read_text() for path in sorted(types.glob("*.py")))
    return set(re.findall(r'"([A-Za-z]+)"', found))


def said_of_sessions() -> set[str]:
    found = {word for path in SESSIONS.rglob("*.py") for word in constants(path)}
    return found - ANSWERS - {"Succeeded", "Approved"} - set(get_args(Phase)) - values_of_fields()


def said_of_others() -> set[str]:
    return {word for name in BESIDE_SESSIONS for word in constants(ROOT / name)} - NONE | OF_KEPT


def names(*sections: reasons.ReasonSection) -> set[str]:
    return {each.name for section in sections for each in section.reasons}


def test_each_reason_of_a_session_is_explained():
    assert said_of_sessions() - names(*session_reasons.SESSIONS) == set()


def test_no_reason_of_a_session_is_explained_that_is_never_said():
    of_the_mode = {"DryRun", "Simulate"}
    assert names(*session_reasons.SESSIONS) - said_of_sessions() - of_the_mode - {"Approved"} == set()


OTHERS = (
    reasons.BROKERS,
    reasons.BALANCE,
    head_reasons.LOGS,
    head_reasons.LIMITS,
    head_reasons.STANDBYS,
    topic_reasons.TOPICS,
    reasons.PROFILES,
    reasons.SPARK,
    data_reasons.DATA,
    reasons.EVENTS,
)


def test_each_reason_of_a_broker_a_cluster_or_a_fleet_is_explained():
    assert said_of_others() - names(*OTHERS, *session_reasons.SESSIONS) == set()


def test_no_other_reason_is_explained_that_is_never_said():
    assert names(*OTHERS) - said_of_others() - {"Ready", "Accepted"} == set()


def test_what_is_put_together_is_put_together_there():
    text = (ROOT / "local/src/plimsoll/local/supervision/sidecar.py").read_text()
    assert set(re.findall(r'"\{self\._kind\}(\w+)"', text)) == {"Started", "Exited", "Killed"}


def test_words_that_are_no_reasons_are_still_there():
    found = {word for name in BESIDE_SESSIONS for word in constants(ROOT / name)}
    assert NONE - found - set(kinds.KINDS) - ANSWERS - CONDITIONS == set()


def test_each_reason_stands_once_in_its_section_and_reads_well():
    for section in (*OTHERS, reasons.PODS, *session_reasons.SESSIONS):
        listed = [each.name for each in section.reasons]
        assert len(set(listed)) == len(listed), section.title
        for each in section.reasons:
            assert WORD.fullmatch(each.name), each
            assert not each.cause.endswith("."), each
            assert each.remedy == "" or each.remedy.endswith("."), each
