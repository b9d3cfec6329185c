"""The same commands at an API server: what they show, write and refuse, without an operator."""

from __future__ import annotations

import io
import json
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest
from tests.crds.conftest import apply_definitions
from tests.crds.server import Server, namespaced

from plimsoll.cli import main
from plimsoll.cli.kubernetes_backend import KubernetesBackend

pytestmark = pytest.mark.cluster

FLEET = """
apiVersion: plimsoll.dev/v1alpha1
kind: HardwareProfile
metadata: {name: small}
spec: {memory: 64Mi}
---
apiVersion: plimsoll.dev/v1alpha1
kind: BrokerCluster
metadata: {name: east}
spec:
  head: {profile: small}
  edges: [{name: e, profile: small, replicas: 2}]
"""
EDGE = """
apiVersion: plimsoll.dev/v1alpha1
kind: EdgeBroker
metadata: {name: NAME}
spec: {clusterRef: {name: east}, profile: small}
"""
Kubectl = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    if not os.environ.get("KUBECONFIG"):
        pytest.skip("needs a Kubernetes cluster: KUBECONFIG is not set")
    with namespaced() as found:
        apply_definitions(found)
        yield found


@pytest.fixture
def kubectl(server: Server) -> Kubectl:
    """Run `kubectl plimsoll ...` in this process: exit code, output, errors."""

    def run(*arguments: str) -> tuple[int, str, str]:
        out, err = io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(err):
            code = main.main([*arguments[:1], "--namespace", server.namespace, *arguments[1:]])
        return code, out.getvalue(), err.getvalue()

    return run


@pytest.fixture
def fleet(kubectl: Kubectl, tmp_path: Path) -> Kubectl:
    """A cluster with two edges, as an operator would have made them."""
    text = FLEET + "".join("---" + EDGE.replace("NAME", f"e-{number}") for number in range(2))
    (tmp_path / "fleet.yaml").write_text(text)
    assert kubectl("apply", "-f", str(tmp_path / "fleet.yaml"))[0] == 0
    return kubectl


def test_objects_are_applied_server_side_and_said_to_be_new_changed_or_as_they_were(kubectl: Kubectl, tmp_path: Path):
    file = tmp_path / "fleet.yaml"
    file.write_text(FLEET.replace("east", "west").replace("small", "tiny"))
    subjects = ["HardwareProfile/tiny", "BrokerCluster/west"]
    for what in ("created", "unchanged"):
        code, out, err = kubectl("apply", "-f", str(file))
        assert (code, out.splitlines()) == (0, [f"{one} {what}" for one in subjects])
        assert err.startswith("no operator watches namespace ")
    file.write_text(file.read_text().replace("replicas: 2", "replicas: 3"))
    assert kubectl("apply", "-f", str(file))[1].splitlines()[-1] == "BrokerCluster/west configured"
    assert kubectl("delete", "bc", "west") == (0, "BrokerCluster/west deleted\n", "")
    code, _, err = kubectl("delete", "bc", "west")
    assert (code, "there is no BrokerCluster" in err) == (3, True)


def test_what_cannot_be_read_is_refused_before_anything_is_sent(kubectl: Kubectl, tmp_path: Path):
    (tmp_path / "bad.yaml").write_text(FLEET.replace("east", "bad").replace("memory: 64Mi", "memroy: 64Mi"))
    code, _, err = kubectl("apply", "-f", str(tmp_path / "bad.yaml"))
    assert (code, "memroy" in err) == (2, True)
    assert kubectl("get", "bc", "bad")[0] == 3


def test_objects_are_shown_as_on_one_machine(fleet: Kubectl, server: Server):
    code, out, _ = fleet("get", "eb")
    assert (code, [line.split()[0] for line in out.splitlines()]) == (0, ["NAME", "e-0", "e-1"])
    shown = json.loads(fleet("get", "eb", "e-0", "-o", "json")[1])
    assert shown["spec"]["clusterRef"] == {"name": "east"}
    assert "Spec (with defaults):" in fleet("describe", "eb", "e-0")[1]
    code, _, err = fleet("get", "eb", "e-00")
    assert (code, err) == (3, f'plimsoll: no EdgeBroker "e-00" in namespace {server.namespace}. Did you mean "e-0"?\n')


def test_edges_are_cordoned(fleet: Kubectl, server: Server):
    assert fleet("cordon", "e-0") == (0, "edgebroker/e-0 cordoned\n", "")
    assert fleet("cordon", "e-0") == (0, "edgebroker/e-0 already cordoned\n", "")
    assert server.get("EdgeBroker", "e-0")["spec"]["cordoned"] is True
    assert fleet("uncordon", "e-0") == (0, "edgebroker/e-0 uncordoned\n", "")
    assert not server.get("EdgeBroker", "e-0")["spec"].get("cordoned", False)


def test_a_session_is_asked_for_stopped_and_not_approved_without_a_plan(fleet: Kubectl, server: Server):
    asked = ("rebalance", "--from", "e-0", "--to", "e-1", "--subscribers", "3", "--no-wait", "--name", "one")
    assert fleet(*asked) == (0, "loadbalancingsession/one created\n", "")
    code, _, err = fleet(*asked)
    assert (code, "already exists" in err) == (4, True)
    code, _, err = fleet("approve", "one")
    assert (code, err) == (4, "plimsoll: session one does not wait for approval: it is Requested\n")
    assert fleet("stop", "one")[0] == 0
    spec = server.get("LoadBalancingSession", "one")["spec"]
    assert (spec["stop"], spec["select"]) == (True, {"count": 3})
    code, _, err = fleet("stop", "onee")
    assert (code, 'Did you mean "one"?' in err) == (3, True)


def test_the_server_s_own_rules_are_told_as_they_are(fleet: Kubectl, server: Server):
    there = KubernetesBackend.from_kubeconfig(server.namespace, None)
    with pytest.raises(Exception, match="select"):
        there.create_session(
            "both", {"scope": "Local", "source": {"name": "e-0"}, "select": {"count": 1, "sharePercent": 5}}
        )


def test_changes_are_watched(fleet: Kubectl, server: Server):
    there = KubernetesBackend.from_kubeconfig(server.namespace, None)
    before, changes = there.watch("EdgeBroker")
    with closing(changes):
        assert [item["metadata"]["name"] for item in before] == ["e-0", "e-1"]
        later = threading.Timer(0.1, lambda: there.set_cordoned("e-1", cordoned=True))
        later.start()
        [change] = next(changes)
        later.join()
    assert (change.type, change.name, change.object["spec"]["cordoned"]) == ("MODIFIED", "e-1", True)


def test_events_are_those_of_our_objects(fleet: Kubectl, server: Server):
    event: dict[str, Any] = {
        "metadata": {"name": "happened"}, "type": "Warning", "reason": "Tested", "message": "it was", "count": 2,
        "firstTimestamp": "2026-01-01T00:00:00Z", "lastTimestamp": "2026-01-01T00:00:05Z",
        "involvedObject": {"kind": "EdgeBroker", "name": "e-0", "namespace": server.namespace},
    }  # fmt: skip
    for name, kind in (("happened", "EdgeBroker"), ("other", "Pod")):
        body = {**event, "metadata": {"name": name}, "involvedObject": {**event["involvedObject"], "kind": kind}}
        assert server.ask("POST", f"/api/v1/namespaces/{server.namespace}/events", body).accepted
    code, out, _ = fleet("events")
    assert code == 0
    [line] = out.splitlines()[1:]
    assert line.split()[1:5] == ["2", "Warning", "Tested", "eb/e-0"]


def test_a_namespace_without_a_fleet_says_so(server: Server):
    err = io.StringIO()
    with redirect_stderr(err):
        assert main.main(["rebalance", "--namespace", "default", "--from", "x", "--subscribers", "1"]) == 3
    assert "there is no BrokerCluster in namespace default" in err.getvalue()
