"""The tool against a fleet in pods, from outside of them, line by line as docs/kubernetes.md and docs/cli.md have it.

Names of the pages stand for what there is here: `ships` for the namespace, `kind-plimsoll` for the context of the
kubeconfig, `broker.example` and 192.0.2.10 for a node. The tests of this module continue one another.
"""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml
from tests.e2e.cluster import ROOT, Cluster, run

from plimsoll.operator.objects.network import NODE_PORTS

pytestmark = [pytest.mark.cluster, pytest.mark.e2e, pytest.mark.timeout(1800)]

BROKERS = ("east-head", "edge-0", "edge-1", "edge-2")


def lines_of(page: str, heading: str) -> list[str]:
    """The commands of a section of a page that begin with `plimsoll` or `kubectl plimsoll`, without their comments."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8").partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    found = re.findall(r"^((?:kubectl )?plimsoll .+?)(?:\s{2,}#.*)?$", text, re.MULTILINE)
    assert found, f"{page} has no commands under {heading}"
    return found


class Reader:
    """A shell in an empty folder, with the tool on its path, and what the names of the pages stand for."""

    def __init__(self, folder: Path, cluster: Cluster) -> None:
        self.folder, self.cluster = folder, cluster
        self.meant: dict[str, str] = {"ships": cluster.namespace}
        ours = {"PLIMSOLL_HOME": str(folder / "home"), "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
        dropped = ("PLIMSOLL_CONTEXT", "PLIMSOLL_FLEET", "PLIMSOLL_KUBERNETES")
        self._environment = {**{k: v for k, v in os.environ.items() if k not in dropped}, **ours}

    def types(self, line: str, *, code: int = 0) -> str:
        """What a line of a page prints here."""
        done = self.ends(line)
        assert done.returncode == code, f"{line}: {done.stderr}{done.stdout}\n{self.cluster.told()}"
        return done.stdout + done.stderr

    def ends(self, line: str) -> subprocess.CompletedProcess[str]:
        for name, stands_for in self.meant.items():
            line = re.sub(rf"(?<![\w/.-]){re.escape(name)}(?![\w/-])", stands_for, line)
        where: Mapping[str, str] = self._environment
        return subprocess.run(
            ["bash", "-c", line], cwd=self.folder, env=where, capture_output=True, text=True, check=False, timeout=300
        )

    def begins(self, line: str) -> subprocess.Popen[str]:
        for name, stands_for in self.meant.items():
            line = re.sub(rf"(?<![\w/.-]){re.escape(name)}(?![\w/-])", stands_for, line)
        return subprocess.Popen(
            ["bash", "-c", f"exec {line}"], cwd=self.folder, env=self._environment, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip


def node_and_ports(cluster: Cluster) -> tuple[str, list[int]]:
    """The address of a node, and ports that no Service has."""
    node = json.loads(run("kubectl", "get", "nodes", "-o", "json"))["items"][0]
    services = json.loads(run("kubectl", "get", "services", "-A", "-o", "json"))["items"]
    addresses = {each["type"]: each["address"] for each in node["status"]["addresses"]}
    taken = {port.get("nodePort") for item in services for port in item["spec"].get("ports", [])}
    return addresses["InternalIP"], random.Random(2006).sample(sorted(set(NODE_PORTS) - taken), len(BROKERS))


@pytest.fixture(scope="module")
def reader(installed: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Reader:
    found = Reader(tmp_path_factory.mktemp("reader"), installed)
    found.meant["kind-plimsoll"] = run("kubectl", "config", "current-context").strip()
    return found


def test_a_fleet_without_listeners_says_how_it_is_reached(reader: Reader):
    """The address of its head is a name that pods alone know: that is said at once, not after a time-out."""
    printed = reader.types("plimsoll example kubernetes/quickstart")
    reader.cluster.kubectl("apply", "--server-side", "-f", "-", text=printed)
    reader.cluster.kubectl("wait", "bc/east", "--for=condition=Ready", "--timeout=2m", seconds=150)
    told = reader.types("plimsoll pub -n ships class=STOCK price=25.0", code=1)
    assert f"east-head.{reader.cluster.namespace}.svc is not known here" in told
    assert "`listeners` of BrokerCluster/east" in told


def test_listeners_open_it(reader: Reader):
    cluster = reader.cluster
    address, ports = node_and_ports(cluster)
    page = (ROOT / "docs" / "kubernetes.md").read_text(encoding="utf-8")
    shown = yaml.safe_load(re.findall(r"```yaml\n(listeners:.+?)```", page, re.DOTALL)[0])["listeners"]["brokers"]
    fields = [{**shown[0], "name": name, "advertisedHost": address} for name in BROKERS]
    brokers = [{**each, "advertisedPort": port} for each, port in zip(fields, ports, strict=True)]
    patch = json.dumps({"spec": {"listeners": {"brokers": brokers}}})
    cluster.kubectl("patch", "bc/east", "--type=merge", "-p", patch)
    cluster.kubectl("wait", "bc/east", "--for=condition=Ready", "--timeout=240s", seconds=250)
    advertised = cluster.get("brokercluster", "east")["status"]["endpoint"]
    assert advertised == f"tcp://{address}:{ports[0]}", "Ready is of the settings that were applied"
    reader.meant |= {"192.0.2.10": address, "broker.example:7000": f"{address}:{ports[0]}"}
    reader.meant["tcp://broker.example:7000"] = f"tcp://{address}:{ports[0]}"


def test_the_lines_for_applications_outside(reader: Reader):
    config, pub, sub, bench = lines_of("kubernetes.md", "Applications")
    reader.types(config)
    assert set(json.loads((reader.folder / "app.json").read_text())) == {"heads.json", "public.key", "secret.key"}
    subscriber = reader.begins(sub)
    try:
        assert subscriber.stdout is not None
        assert "subscribed as" in subscriber.stdout.readline()
        assert reader.types(pub) == "1 accepted\n"
        assert json.loads(subscriber.stdout.readline()) == {"class": "STOCK", "price": 25.0}
        assert subscriber.wait(60) == 0
    finally:
        subscriber.kill()
        subscriber.communicate()
    told = reader.types(bench.replace("--seconds 10 --rate 500", "--seconds 3 --rate 50"))
    assert "150 accepted, 0 not" in told
    assert "3,000 of 3,000, 0 missing, 0 gaps" in told


def test_the_examples_of_clients_run_as_they_are(reader: Reader):
    reader.types("plimsoll example clients/publish.py > publish.py")
    assert reader.types("python publish.py app.json").startswith("Summary(accepted=10")


def test_the_lines_about_contexts(reader: Reader):
    lines = lines_of("cli.md", "Which fleet")
    assert [line.split()[1] for line in lines] == ["context", "context", "context", "context", "pub", "bench"]
    for line in lines[:5]:
        told = reader.types(line)
    assert told == "1 accepted\n"
    told = reader.types(lines[5].replace("--seconds 10 --rate 500", "--seconds 3 --rate 50"))
    assert "0 missing, 0 gaps" in told
    assert "Connected" in reader.types("plimsoll get bc")
    assert "True" in reader.types("plimsoll get bc --context lab")
    told = reader.types("plimsoll logs edge-0", code=2)
    assert "use the context of its local fleet, or of its Kubernetes cluster" in told
    reader.types("plimsoll context use --none")


def test_the_lines_of_the_plugin(reader: Reader):
    lines = [line for line in lines_of("kubernetes.md", "A first fleet") if line.startswith("kubectl plimsoll")]
    verbs = {line.split()[2]: line for line in lines}
    assert set(verbs) == {"get", "rebalance", "drain", "explain", "logs"}
    assert "edge-2" in reader.types(verbs["get"])
    assert "listening" in reader.types(verbs["logs"].replace("--tail 5", "--tail 100"))
    told = reader.types(verbs["drain"])
    session = re.findall(r"\b(drain-[\w-]+)", told)[0]
    assert "edge-2" in reader.types(verbs["explain"].replace("NAME", session))
    assert reader.ends(verbs["rebalance"]).returncode in (0, 1), "with no subscribers there is nothing to move"
