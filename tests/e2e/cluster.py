"""kubectl and helm, as users run them, with their output parsed; and waiting for conditions."""

from __future__ import annotations

import json
import os
import re
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import yaml

ROOT = Path(__file__).resolve().parents[2]
CROWD = Path(__file__).with_name("crowd.py")
TAG = os.environ.get("PLIMSOLL_IMAGE_TAG", "dev")
SCRAPE = "import urllib.request as r; print(r.urlopen('http://127.0.0.1:8080/metrics').read().decode())"
FILES = "/tmp"
"""The folder of the applications' files, in their own pod."""
Object = dict[str, Any]
T = TypeVar("T")


class CommandError(AssertionError):
    """A command ended with a code other than 0; the message has all of its output."""


def run(*command: str, text: str | None = None, seconds: float = 120.0) -> str:
    """What a command prints."""
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False, timeout=seconds)
    if done.returncode:
        raise CommandError(f"{' '.join(command)}: {done.stderr}{done.stdout}")
    return done.stdout


def manifest(kind: str, name: str, **spec: Any) -> Object:
    """A custom resource as a user writes it."""
    return {"apiVersion": "plimsoll.dev/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec}


def profile(name: str, microseconds: int) -> Object:
    """A hardware profile with this emulated time per publication and subscription."""
    return manifest(
        "HardwareProfile", name, cpu="500m", memory="96Mi", emulation={"perSubscription": f"{microseconds}us"}
    )


class Cluster:
    """One namespace, in which a release of the chart manages a fleet."""

    def __init__(self, namespace: str) -> None:
        self.namespace = namespace
        self.began_at = time.monotonic()
        """When the chart was installed; before that, when this object was made."""

    def kubectl(self, *arguments: str, text: str | None = None, seconds: float = 120.0) -> str:
        return run("kubectl", "--namespace", self.namespace, *arguments, text=text, seconds=seconds)

    def helm(self, *arguments: str, seconds: float = 300.0) -> str:
        return run("helm", *arguments, "--namespace", self.namespace, seconds=seconds)

    def plimsoll(self, *arguments: str, seconds: float = 300.0) -> str:
        program = str(ROOT / ".venv" / "bin" / "plimsoll")
        return run(program, arguments[0], "--namespace", self.namespace, *arguments[1:], seconds=seconds)

    def own_definitions(self) -> None:
        """Make the definitions the release's, as if it had installed them."""
        for definition in ROOT.glob("crds/*.yaml"):
            name = str(yaml.safe_load(definition.read_text())["metadata"]["name"])
            notes = ("meta.helm.sh/release-name=plimsoll", f"meta.helm.sh/release-namespace={self.namespace}")
            self.kubectl("annotate", "customresourcedefinition", name, "--overwrite", *notes)
            self.kubectl("label", "customresourcedefinition", name, "--overwrite", "app.kubernetes.io/managed-by=Helm")

    def apply(self, *objects: Mapping[str, Any]) -> None:
        self.kubectl("apply", "--server-side", "-f", "-", text=yaml.safe_dump_all(objects))

    def get(self, kind: str, name: str = "", *, selector: str = "") -> Any:
        """One object, or all of a kind."""
        which = [name] if name else ["--selector", selector] if selector else []
        found = json.loads(self.kubectl("get", kind, *which, "-o", "json"))
        return found if name else found["items"]

    def condition(self, kind: str, name: str, type_: str) -> Object:
        conditions = self.get(kind, name).get("status", {}).get("conditions", [])
        return next((each for each in conditions if each["type"] == type_), {})

    def is_true(self, kind: str, name: str, type_: str) -> bool:
        """Whether a condition holds, for the object as it is now."""
        item = self.get(kind, name)
        found = [each for each in item.get("status", {}).get("conditions", []) if each["type"] == type_]
        return [(each["status"], each["observedGeneration"]) for each in found] == [
            ("True", item["metadata"]["generation"])
        ]

    def wait(self, condition: Callable[[], T], seconds: float, what: str) -> T:
        """Wait until a condition is true; fails with the state of the cluster."""
        deadline = time.monotonic() + seconds
        while True:
            try:
                if found := condition():
                    return found
            except CommandError as error:  # not there yet
                last = str(error)
            else:
                last = ""
            if time.monotonic() > deadline:
                raise AssertionError(f"waited {seconds:g} s for {what}. {last}\n{self.told()}")
            time.sleep(0.5)

    @contextmanager
    def watching(self, kind: str) -> Iterator[Callable[[], str]]:
        """What `kubectl get KIND -w` prints meanwhile."""
        with tempfile.NamedTemporaryFile() as file:
            command = ["kubectl", "--namespace", self.namespace, "get", kind, "--watch"]
            process = subprocess.Popen(command, stdout=file, stderr=subprocess.DEVNULL)
            try:
                yield Path(file.name).read_text
            finally:
                process.terminate()
                process.wait(10)

    def asked(self) -> set[tuple[str, str, int]]:
        """The operator's requests to the API server, by its own counter: resource, verb, code."""
        text = self.kubectl("exec", "deploy/plimsoll", "--", "python", "-c", SCRAPE)
        labels = r'plimsoll_api_requests_total\{code="(\d+)",resource="([^"]+)",verb="([^"]+)"\}'
        return {(resource, verb, int(code)) for code, resource, verb in re.findall(labels, text)}

    def told(self) -> str:
        """The output that a user would look at."""
        parts = [("get", "plimsoll,pods,statefulsets"), ("get", "events", "--sort-by=.lastTimestamp")]
        parts.append(("logs", "--tail=60", "-l", "app.kubernetes.io/name=plimsoll-operator"))
        for each in ("broker", "crowd"):
            parts.append(("logs", "--tail=20", "--prefix", "-l", f"app.kubernetes.io/name=plimsoll-{each}"))
        said = []
        for part in parts:
            try:
                said.append(self.kubectl(*part))
            except CommandError as error:
                said.append(str(error))
        return "\n".join(said)


class Crowd:
    """Publishers and subscribers of one fleet, in a pod. `classes` are published in turn, with payloads of `size`.

    `served_at`: the cluster of the subscribers, if it is another one than that of the publishers.
    """

    def __init__(
        self, cluster: Cluster, name: str, of: str, subscribers: int, per_second: float, *, host: str = "",
        classes: tuple[str, ...] = ("STOCK",), size: int = 0, served_at: str = "",
    ) -> None:  # fmt: skip
        self.cluster, self.name, self.subscribers = cluster, name, subscribers
        environment = {
            "CROWD_NAME": name, "CROWD_CLUSTER": of, "CROWD_SERVED_AT": served_at or of,
            "CROWD_SUBSCRIBERS": subscribers, "CROWD_PER_SECOND": per_second,
            "CROWD_CLASSES": ",".join(classes), "CROWD_BYTES": size,
        }  # fmt: skip
        cluster.apply(script(name, CROWD), script_pod(name, CROWD, environment, host=host))
        # Until it is ready, `exec` may still reach a deleted pod of this name.
        cluster.kubectl("wait", f"pod/{name}", "--for=condition=Ready", "--timeout=170s", seconds=180)
        cluster.wait(self.progress, 180, f"{subscribers} subscribers to be served")

    def _read(self, file: str) -> Object:
        found: Object = json.loads(self.cluster.kubectl("exec", self.name, "--", "cat", f"{FILES}/{file}"))
        return found

    def progress(self) -> Object:
        return self._read("progress.json")

    def at(self) -> dict[str, int]:
        """How many subscribers each edge serves."""
        found: dict[str, int] = self.progress()["at"]
        return found

    def of_class(self, name: str) -> dict[str, int]:
        """How many subscribers of a class each edge serves."""
        found: dict[str, int] = self.progress()["at_by_class"][name]
        return found

    def links(self) -> Object:
        """What its connections said of themselves last, and when; for the text of a failure."""
        return self._read("links.json")

    def verdict(self) -> Object:
        """Stop publishing, and judge every delivery."""
        self.cluster.kubectl("exec", self.name, "--", "touch", f"{FILES}/stop")
        return self.cluster.wait(lambda: self._read("verdict.json"), 240, "the verdict")


def script(name: str, file: Path) -> Object:
    """The ConfigMap of a program that runs in a pod."""
    return {
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"{name}-script"},
        "data": {file.name: file.read_text()},
    }  # fmt: skip


def script_pod(name: str, file: Path, environment: Mapping[str, Any], *, host: str = "", client: str = "") -> Object:
    """A pod that runs a program of `script`, with the keys of a client, by default that of the pod's name."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app.kubernetes.io/name": "plimsoll-crowd"}},
        "spec": {
            "restartPolicy": "Never",
            **({"nodeSelector": {"kubernetes.io/hostname": host}} if host else {}),
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "terminationGracePeriodSeconds": 1,
            "securityContext": {
                "runAsNonRoot": True, "runAsUser": 10001, "fsGroup": 10001,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "containers": [{
                "name": "crowd",
                "image": f"plimsoll/broker:{TAG}",
                "imagePullPolicy": "IfNotPresent",
                "command": ["python", f"/crowd/{file.name}"],
                "env": [{"name": key, "value": str(value)} for key, value in environment.items()],
                "securityContext": {
                    "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True,
                    "capabilities": {"drop": ["ALL"]},
                },
                "volumeMounts": [
                    {"name": "script", "mountPath": "/crowd"},
                    {"name": "keys", "mountPath": "/etc/plimsoll/client"},
                    {"name": "tmp", "mountPath": "/tmp"},
                ],
            }],
            "volumes": [
                {"name": "script", "configMap": {"name": f"{name}-script"}},
                {"name": "keys", "secret": {"secretName": f"plimsoll-client-{client or name}", "defaultMode": 0o440}},
                {"name": "tmp", "emptyDir": {}},
            ],
        },
    }  # fmt: skip
