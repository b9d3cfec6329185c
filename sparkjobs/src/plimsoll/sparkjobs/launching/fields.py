"""Which fields the objects of two operators have, as far as we might use them, and whether an object keeps to that.

A subset, written down from their sources (Kubeflow `api/v1beta2`, Apache `spark-operator-api`). A field that is not
here is refused: an API server drops what it does not know without a word. Pod templates are Kubernetes' own and not
looked into.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

TEXT: Final = "text"
NUMBER: Final = "number"
FLAG: Final = "flag"
TEXTS: Final = "list of text"
MAP: Final = "map of text"
ANY: Final = "any"


class Choice(frozenset[str]):
    """One of these words."""


class Fields(dict[str, Any]):
    """An object with these fields; a name that ends in `!` is required."""


_POD = Fields(
    {
        "template": ANY, "cores": NUMBER, "coreLimit": TEXT, "coreRequest": TEXT, "memory": TEXT,
        "memoryOverhead": TEXT, "image": TEXT, "env": ANY, "labels": MAP, "annotations": MAP, "volumeMounts": ANY,
        "affinity": ANY, "tolerations": ANY, "podSecurityContext": ANY, "securityContext": ANY, "nodeSelector": MAP,
        "serviceAccount": TEXT, "javaOptions": TEXT, "terminationGracePeriodSeconds": NUMBER, "priorityClassName": TEXT,
    }
)  # fmt: skip

SPARK_OPERATOR: Final = Fields(
    {
        "type!": Choice({"Java", "Python", "Scala", "R"}),
        "sparkVersion!": TEXT,
        "mode": Choice({"cluster", "client"}),
        "image": TEXT,
        "imagePullPolicy": TEXT,
        "imagePullSecrets": TEXTS,
        "mainClass": TEXT,
        "mainApplicationFile!": TEXT,
        "arguments": TEXTS,
        "sparkConf": MAP,
        "hadoopConf": MAP,
        "volumes": ANY,
        "driver!": Fields({**_POD, "podName": TEXT, "serviceAnnotations": MAP, "serviceLabels": MAP}),
        "executor!": Fields({**_POD, "instances": NUMBER, "deleteOnTermination": FLAG}),
        "deps": ANY,
        "restartPolicy": Fields(
            {
                "type": Choice({"Never", "Always", "OnFailure"}),
                "onSubmissionFailureRetries": NUMBER,
                "onFailureRetries": NUMBER,
                "onSubmissionFailureRetryInterval": NUMBER,
                "onFailureRetryInterval": NUMBER,
            }
        ),
        "pythonVersion": Choice({"2", "3"}),
        "memoryOverheadFactor": TEXT,
        "timeToLiveSeconds": NUMBER,
    }
)
"""`spec` of sparkoperator.k8s.io/v1beta2 SparkApplication."""

SPARK_APPLICATION: Final = Fields(
    {
        "mainClass": TEXT,
        "runtimeVersions!": Fields({"sparkVersion!": TEXT, "scalaVersion": TEXT, "jdkVersion": TEXT}),
        "jars": TEXT,
        "pyFiles": TEXT,
        "files": TEXT,
        "deploymentMode": Choice({"ClusterMode", "ClientMode"}),
        "driverArgs": TEXTS,
        "sparkConf": MAP,
        "applicationTolerations": Fields(
            {
                "restartConfig": Fields(
                    {
                        "restartPolicy": Choice({"Always", "Never", "OnFailure", "OnInfrastructureFailure"}),
                        "maxRestartAttempts": NUMBER,
                        "restartBackoffMillis": NUMBER,
                        "restartCounterResetMillis": NUMBER,
                        "maxRestartOnFailure": NUMBER,
                        "restartBackoffMillisForFailure": NUMBER,
                    }
                ),
                "applicationTimeoutConfig": ANY,
                "instanceConfig": ANY,
                "resourceRetainPolicy": Choice({"Always", "OnFailure", "Never"}),
                "resourceRetainDurationMillis": NUMBER,
                "ttlAfterStopMillis": NUMBER,
            }
        ),
        "driverSpec": Fields({"podTemplateSpec": ANY}),
        "executorSpec": Fields({"podTemplateSpec": ANY}),
    }
)
"""`spec` of spark.apache.org/v1 SparkApplication."""

KNOWN: Final = {
    "sparkoperator.k8s.io/v1beta2": SPARK_OPERATOR,
    "spark.apache.org/v1": SPARK_APPLICATION,
}


def faults(item: Mapping[str, Any]) -> list[str]:
    """What the operator of an object would not understand, place by place; none if all is well."""
    fields = KNOWN.get(str(item.get("apiVersion")))
    if fields is None or item.get("kind") != "SparkApplication":
        return [f"{item.get('apiVersion')} {item.get('kind')} is of no operator that is known here"]
    return list(_faults("spec", fields, item.get("spec")))


def _faults(place: str, wanted: Any, found: Any) -> Iterator[str]:
    if isinstance(wanted, Fields):
        yield from _of_fields(place, wanted, found)
    elif isinstance(wanted, Choice):
        if found not in wanted:
            yield f"{place}: {found!r} is none of {', '.join(sorted(wanted))}"
    elif not _is(wanted, found):
        yield f"{place}: wants {wanted}, found {found!r}"


def _of_fields(place: str, wanted: Fields, found: Any) -> Iterator[str]:
    if not isinstance(found, Mapping):
        yield f"{place}: wants an object, found {found!r}"
        return
    names = {name.removesuffix("!"): kind for name, kind in wanted.items()}
    for name in wanted:
        if name.endswith("!") and name[:-1] not in found:
            yield f"{place}.{name[:-1]}: is required"
    for name, value in found.items():
        if name in names:
            yield from _faults(f"{place}.{name}", names[name], value)
        else:
            yield f"{place}.{name}: is not a field"


def _is(kind: str, value: Any) -> bool:
    if kind == NUMBER:
        return isinstance(value, int) and not isinstance(value, bool)
    if kind == TEXTS:
        return isinstance(value, list) and all(isinstance(each, str) for each in value)
    if kind == MAP:
        return isinstance(value, Mapping) and all(isinstance(each, str) for each in value.values())
    return {TEXT: isinstance(value, str), FLAG: isinstance(value, bool), ANY: True}[kind]
