"""The fields of the two operators' objects that Plimsoll might use, and a check of an object against them.

They are a subset, taken from the operators' sources (Kubeflow `api/v1beta2`, Apache `spark-operator-api`). A field that
is not listed is refused, since an API server drops unknown fields silently. Pod templates are Kubernetes' own and not
checked.
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


class AllowedWords(frozenset[str]):
    """One of these words."""


class ObjectFields(dict[str, Any]):
    """An object with these fields; a name that ends in `!` is required."""


_POD = ObjectFields(
    {
        "template": ANY, "cores": NUMBER, "coreLimit": TEXT, "coreRequest": TEXT, "memory": TEXT,
        "memoryOverhead": TEXT, "image": TEXT, "env": ANY, "labels": MAP, "annotations": MAP, "volumeMounts": ANY,
        "affinity": ANY, "tolerations": ANY, "podSecurityContext": ANY, "securityContext": ANY, "nodeSelector": MAP,
        "serviceAccount": TEXT, "javaOptions": TEXT, "terminationGracePeriodSeconds": NUMBER, "priorityClassName": TEXT,
    }
)  # fmt: skip

KUBEFLOW_FIELDS: Final = ObjectFields(
    {
        "type!": AllowedWords({"Java", "Python", "Scala", "R"}),
        "sparkVersion!": TEXT,
        "mode": AllowedWords({"cluster", "client"}),
        "image": TEXT,
        "imagePullPolicy": TEXT,
        "imagePullSecrets": TEXTS,
        "mainClass": TEXT,
        "mainApplicationFile!": TEXT,
        "arguments": TEXTS,
        "sparkConf": MAP,
        "hadoopConf": MAP,
        "volumes": ANY,
        "driver!": ObjectFields({**_POD, "podName": TEXT, "serviceAnnotations": MAP, "serviceLabels": MAP}),
        "executor!": ObjectFields({**_POD, "instances": NUMBER, "deleteOnTermination": FLAG}),
        "deps": ANY,
        "restartPolicy": ObjectFields(
            {
                "type": AllowedWords({"Never", "Always", "OnFailure"}),
                "onSubmissionFailureRetries": NUMBER,
                "onFailureRetries": NUMBER,
                "onSubmissionFailureRetryInterval": NUMBER,
                "onFailureRetryInterval": NUMBER,
            }
        ),
        "pythonVersion": AllowedWords({"2", "3"}),
        "memoryOverheadFactor": TEXT,
        "timeToLiveSeconds": NUMBER,
    }
)
"""`spec` of sparkoperator.k8s.io/v1beta2 SparkApplication."""

APACHE_FIELDS: Final = ObjectFields(
    {
        "mainClass": TEXT,
        "runtimeVersions!": ObjectFields({"sparkVersion!": TEXT, "scalaVersion": TEXT, "jdkVersion": TEXT}),
        "jars": TEXT,
        "pyFiles": TEXT,
        "files": TEXT,
        "deploymentMode": AllowedWords({"ClusterMode", "ClientMode"}),
        "driverArgs": TEXTS,
        "sparkConf": MAP,
        "applicationTolerations": ObjectFields(
            {
                "restartConfig": ObjectFields(
                    {
                        "restartPolicy": AllowedWords({"Always", "Never", "OnFailure", "OnInfrastructureFailure"}),
                        "maxRestartAttempts": NUMBER,
                        "restartBackoffMillis": NUMBER,
                        "restartCounterResetMillis": NUMBER,
                        "maxRestartOnFailure": NUMBER,
                        "restartBackoffMillisForFailure": NUMBER,
                    }
                ),
                "applicationTimeoutConfig": ANY,
                "instanceConfig": ANY,
                "resourceRetainPolicy": AllowedWords({"Always", "OnFailure", "Never"}),
                "resourceRetainDurationMillis": NUMBER,
                "ttlAfterStopMillis": NUMBER,
            }
        ),
        "driverSpec": ObjectFields({"podTemplateSpec": ANY}),
        "executorSpec": ObjectFields({"podTemplateSpec": ANY}),
    }
)
"""`spec` of spark.apache.org/v1 SparkApplication."""

FIELDS_BY_API_VERSION: Final = {
    "sparkoperator.k8s.io/v1beta2": KUBEFLOW_FIELDS,
    "spark.apache.org/v1": APACHE_FIELDS,
}


def object_faults(item: Mapping[str, Any]) -> list[str]:
    """The faults of an object, each with its path; empty if the operator knows all of its fields."""
    fields = FIELDS_BY_API_VERSION.get(str(item.get("apiVersion")))
    if fields is None or item.get("kind") != "SparkApplication":
        return [f"{item.get('apiVersion')} {item.get('kind')} is of no known operator"]
    return list(_value_faults("spec", fields, item.get("spec")))


def _value_faults(place: str, wanted: Any, found: Any) -> Iterator[str]:
    if isinstance(wanted, ObjectFields):
        yield from _object_faults(place, wanted, found)
    elif isinstance(wanted, AllowedWords):
        if found not in wanted:
            yield f"{place}: {found!r} is not one of {', '.join(sorted(wanted))}"
    elif not _has_type(wanted, found):
        yield f"{place}: must be {wanted}, found {found!r}"


def _object_faults(place: str, wanted: ObjectFields, found: Any) -> Iterator[str]:
    if not isinstance(found, Mapping):
        yield f"{place}: must be an object, found {found!r}"
        return
    names = {name.removesuffix("!"): kind for name, kind in wanted.items()}
    for name in wanted:
        if name.endswith("!") and name[:-1] not in found:
            yield f"{place}.{name[:-1]}: is required"
    for name, value in found.items():
        if name in names:
            yield from _value_faults(f"{place}.{name}", names[name], value)
        else:
            yield f"{place}.{name}: is not a field"


def _has_type(kind: str, value: Any) -> bool:
    if kind == NUMBER:
        return isinstance(value, int) and not isinstance(value, bool)
    if kind == TEXTS:
        return isinstance(value, list) and all(isinstance(each, str) for each in value)
    if kind == MAP:
        return isinstance(value, Mapping) and all(isinstance(each, str) for each in value.values())
    return {TEXT: isinstance(value, str), FLAG: isinstance(value, bool), ANY: True}[kind]
