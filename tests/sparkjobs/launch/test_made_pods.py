"""The pods that Spark itself makes of our templates and settings, as an API server would be asked for them.

No cluster is needed: the server here keeps what it is sent, and starts nothing.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from tests.operator.dataset_world import dataset_world, pod_spec
from tests.operator.objects.test_channel_launch import NAME, SETTINGS
from tests.sparkjobs import needs  # noqa: F401  # skips this module by name where Spark cannot run

from plimsoll.sparkjobs.launch.executors import TEMPLATE_FILE, TEMPLATE_FOLDER
from plimsoll.sparkjobs.launch.local_process import job_environment
from plimsoll.sparkjobs.launch.operator_manifests import DRIVER_CONTAINER
from plimsoll.sparkjobs.launch.spec import SUBMIT_VARIABLE

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]

START_SECONDS = 300.0
MASTER = "k8s://https://kubernetes.default.svc"
PROGRAM = "from plimsoll.sparkjobs.spark_session import make_spark_session as m; m('plimsoll-channels'); input()"
Object = dict[str, Any]


class KeepingServer(ThreadingHTTPServer):
    """Answers requests for pods; `made`: the objects that it was asked to make, in their order."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.made: list[Object] = []
        self.driver: Object = {
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"{NAME}-0", "namespace": "ns", "uid": "driver"},
            "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
        }  # fmt: skip

    def wait_for(self, kind: str, process: subprocess.Popen[bytes], output: Path) -> Object:
        """The first object of this kind."""
        end = time.monotonic() + START_SECONDS
        while time.monotonic() < end and process.poll() is None:
            if found := [item for item in self.made if item["kind"] == kind]:
                return found[0]
            time.sleep(0.1)
        raise AssertionError(f"Spark asked for no {kind}: {output.read_text()[-2000:]}")


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: KeepingServer

    def log_message(self, *_: Any) -> None:
        return

    def do_GET(self) -> None:
        if "/pods/" in self.path:
            self._answer(self.server.driver)
            return
        items = [self.server.driver] if "fieldSelector" in self.path else []
        self._answer({"apiVersion": "v1", "kind": "PodList", "metadata": {"resourceVersion": "1"}, "items": items})

    def do_POST(self) -> None:
        item = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.made.append(item)
        self._answer({**item, "metadata": {**item["metadata"], "uid": "made"}})

    def do_PATCH(self) -> None:
        self.do_POST()

    def do_DELETE(self) -> None:
        self._answer({"kind": "Status", "apiVersion": "v1", "status": "Success"})

    def _answer(self, item: Object) -> None:
        body = json.dumps(item).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@pytest.fixture
def server() -> Iterator[KeepingServer]:
    with KeepingServer() as found:
        thread = threading.Thread(target=found.serve_forever)
        thread.start()
        yield found
        found.shutdown()
        thread.join()


def asked(server: KeepingServer, kind: str, command: list[str], folder: Path, **environment: str) -> Object:
    """What a program asks the server for first, of this kind; the program is ended then."""
    output = folder / "output"
    outer = {**job_environment(os.environ), "HOME": str(folder), "PLIMSOLL_CLASS_ARCHIVE": "", **environment}
    with output.open("wb") as file:
        process = subprocess.Popen(
            command, env=outer, cwd=folder, start_new_session=True, stdin=subprocess.PIPE, stdout=file, stderr=file
        )
    try:
        return server.wait_for(kind, process, output)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def master(server: KeepingServer) -> str:
    return f"k8s://http://127.0.0.1:{server.server_port}"


def datasets(launcher: str) -> Object:
    return {"volumeClaim": "records", "storeSecret": "store", "spark": {"launcher": launcher}}


def test_a_driver_in_its_own_pod_makes_executors_of_the_template(server: KeepingServer, tmp_path: Path):
    world = dataset_world(SETTINGS, datasets=datasets("Kubernetes"))
    (container,) = pod_spec(world, NAME)["containers"]
    (tmp_path / TEMPLATE_FILE).write_text(world.objects["ConfigMap", f"{NAME}-executor"]["data"][TEMPLATE_FILE])
    text = next(each["value"] for each in container["env"] if each["name"] == SUBMIT_VARIABLE)
    here = {
        "$(POD_NAME)": f"{NAME}-0", "$(POD_IP)": "127.0.0.1", TEMPLATE_FOLDER: str(tmp_path), MASTER: master(server),
        "spark.driver.port=7078": "spark.driver.port=0",
        # The server has no watches.
        "pyspark-shell": "--conf spark.kubernetes.executor.enableApiWatcher=false pyspark-shell",
    }  # fmt: skip
    for before, after in here.items():
        assert before in text
        text = text.replace(before, after)
    pod = asked(server, "Pod", [sys.executable, "-c", PROGRAM], tmp_path, **{SUBMIT_VARIABLE: text})
    (made,) = pod["spec"]["containers"]
    assert {each["name"]: each["mountPath"] for each in made["volumeMounts"] if each.get("readOnly")} == {
        "data": "/data"
    }
    assert (made["image"], made["args"]) == ("plimsoll/spark:1", ["executor"])
    assert made["securityContext"]["readOnlyRootFilesystem"]
    assert made["resources"]["limits"] == {"memory": "912Mi"}
    assert pod["metadata"]["ownerReferences"][0]["uid"] == "driver", "they go with its pod"
    assert pod["metadata"]["labels"]["plimsoll.dev/job"] == "channels"
    assert "secret" not in json.dumps(pod["spec"]["volumes"])
    assert not pod["spec"]["automountServiceAccountToken"]


@pytest.mark.sweep
def test_an_operator_for_spark_submits_the_driver_with_all_that_it_needs(server: KeepingServer, tmp_path: Path):
    """What Apache's operator gives `spark-submit`; Kubeflow's has the same template."""
    import pyspark

    (item,) = dataset_world(SETTINGS, datasets=datasets("SparkApplication")).desired().applications
    spec = item["spec"]
    template = tmp_path / "driver.yaml"
    template.write_text(json.dumps({"apiVersion": "v1", "kind": "Pod", **spec["driverSpec"]["podTemplateSpec"]}))
    settings = {
        **spec["sparkConf"], "spark.kubernetes.driver.podTemplateFile": str(template),
        "spark.kubernetes.driver.podTemplateContainerName": DRIVER_CONTAINER,
        "spark.kubernetes.submission.waitAppCompletion": "false",
    }  # fmt: skip
    words = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    submit = str(Path(pyspark.__file__).parent / "bin" / "spark-submit")
    place = ["--master", master(server), "--deploy-mode", "cluster", "--name", NAME]
    pod = asked(server, "Pod", [submit, *place, *words, spec["pyFiles"], *spec["driverArgs"]], tmp_path)
    (made,) = pod["spec"]["containers"]
    assert made["args"][-3:] == ["local:///opt/plimsoll/channels.py", "--config", "/etc/plimsoll/config/config.json"]
    assert {"config", "keys", "control-keys", "data"} <= {each["name"] for each in made["volumeMounts"]}
    assert made["envFrom"] == [{"secretRef": {"name": "store"}}]
    assert {each["name"]: each["containerPort"] for each in made["ports"]}["http"] == 7420
    assert made["livenessProbe"]["httpGet"] == {"path": "/livez", "port": "http"}
    assert made["resources"]["limits"] == {"memory": "2300Mi"}
    assert pod["metadata"]["labels"]["plimsoll.dev/dataset-pod"] == NAME
    assert pod["spec"]["serviceAccountName"] == NAME
