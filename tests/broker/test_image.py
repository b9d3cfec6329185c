"""The broker's image in a real cluster: restricted, read-only, without an entry in /etc/passwd."""

from __future__ import annotations

import json
import os
import secrets
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from kubernetes import client, config, watch
from tests.images import image

from plimsoll.core.config import BrokerConfig, BrokerHardware, LinkSecurity, encode

pytestmark = [pytest.mark.cluster, pytest.mark.images("broker"), pytest.mark.timeout(1200)]

IMAGE = image("broker")
DEADLINE_SECONDS = 180
VERSION = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]["version"]
HEAD = BrokerConfig(
    name="h",
    role="head",
    cluster="c",
    data="tcp://*:7400",
    control="tcp://*:7401",
    http="tcp://0.0.0.0:7402",
    security=LinkSecurity(plain=True),
    hardware=BrokerHardware(memory_bytes=1024**3),
)
LOOKS = """
import json, os, shutil
from plimsoll.core.matching import kernel
kept = kernel.load().stats
found = {"uid": os.getuid(), "hits": sum(kept.cache_hits.values()), "misses": sum(kept.cache_misses.values())}
found["writable"] = [path for path in ("/", "/opt/plimsoll", "/etc/plimsoll") if os.access(path, os.W_OK)]
found["tools"] = [tool for tool in ("gcc", "make", "hatchling", "uv") if shutil.which(tool)]
print(json.dumps(found))
"""


class Place:
    """A namespace that admits restricted pods only."""

    api: Any

    def __init__(self) -> None:
        self.api = client.CoreV1Api(config.new_client_from_config(os.environ["KUBECONFIG"]))
        self.name = f"plimsoll-test-{secrets.token_hex(4)}"
        labels = {"pod-security.kubernetes.io/enforce": "restricted"}
        self.api.create_namespace({"metadata": {"name": self.name, "labels": labels}})
        self.api.create_namespaced_config_map(
            self.name, {"metadata": {"name": "config"}, "data": {"config.json": encode(HEAD).decode()}}
        )

    def run(self, name: str, **container: Any) -> None:
        sealed = {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}}
        mounts = [{"name": "tmp", "mountPath": "/tmp"}, {"name": "config", "mountPath": "/etc/plimsoll/config"}]  # noqa: S108  # a volume of the pod
        self.api.create_namespaced_pod(
            self.name,
            {
                "metadata": {"name": name},
                "spec": {
                    "automountServiceAccountToken": False,
                    "restartPolicy": "Never",
                    "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
                    "containers": [
                        {
                            "name": "broker",
                            "image": IMAGE,
                            "imagePullPolicy": "IfNotPresent",
                            "securityContext": sealed,
                            "volumeMounts": mounts,
                            **container,
                        }
                    ],
                    "volumes": [{"name": "tmp", "emptyDir": {}}, {"name": "config", "configMap": {"name": "config"}}],
                },
            },
        )

    def until(self, name: str, is_so: Callable[[Any], bool]) -> Any:
        """The status of the pod's container once a condition holds; the API server tells of each change."""
        pod: Any = None
        for change in watch.Watch().stream(
            self.api.list_namespaced_pod, self.name, field_selector=f"metadata.name={name}",
            timeout_seconds=DEADLINE_SECONDS,
        ):  # fmt: skip
            pod = change["object"]
            (status,) = pod.status.container_statuses or [None]
            if status is not None and is_so(status):
                return status
            waiting = status.state.waiting if status else None
            if waiting and waiting.reason in ("ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull"):
                pytest.skip(f"{IMAGE} is not in the cluster: `make images`, and load it")
        raise AssertionError(f"pod {name} has not come so far in {DEADLINE_SECONDS} s: {pod and pod.status}")

    def get(self, name: str, path: str) -> str:
        found: str = self.api.connect_get_namespaced_pod_proxy_with_path(f"{name}:7402", self.name, path)
        return found


@pytest.fixture(scope="module")
def place() -> Iterator[Place]:
    made = Place()
    yield made
    made.api.delete_namespace(made.name)


def test_it_serves_probes_and_metrics_on_a_read_only_root(place: Place):
    place.run("head", readinessProbe={"httpGet": {"path": "/readyz", "port": 7402}, "periodSeconds": 1})
    place.until("head", lambda status: status.ready)
    assert place.get("head", "livez") == "ok\n"
    metrics = place.get("head", "metrics")
    assert "plimsoll_broker_ready 1.0" in metrics
    assert (
        f'plimsoll_broker_info{{broker="h",cluster="c",fleet="default",role="head",version="{VERSION}"}} 1.0' in metrics
    )


def test_it_is_sealed_and_takes_the_matching_loop_that_was_compiled_with_it(place: Place):
    place.run("looks", command=["python", "-c", LOOKS])
    ended = place.until("looks", lambda status: status.state.terminated is not None)
    said = place.api.read_namespaced_pod_log("looks", place.name)
    assert ended.state.terminated.exit_code == 0, said
    assert json.loads(said) == {"uid": 10001, "hits": 1, "misses": 0, "writable": [], "tools": []}


def test_it_ends_in_good_order_when_the_pod_is_asked_to(place: Place):
    """The process is number 1 of its container: SIGTERM reaches it, and is not ignored."""
    program = "import os, signal, threading; from plimsoll.broker import main; " + (
        "threading.Timer(3, os.kill, (os.getpid(), signal.SIGTERM)).start(); "
        "raise SystemExit(main.main(['--config', '/etc/plimsoll/config/config.json']))"
    )
    place.run("leaver", command=["python", "-c", program])
    ended = place.until("leaver", lambda status: status.state.terminated is not None)
    said = place.api.read_namespaced_pod_log("leaver", place.name)
    assert ended.state.terminated.exit_code == 0, said
    assert "h stopped" in said
