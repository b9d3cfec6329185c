"""A head with a standby, as tests follow it: who leads, and applications under which it changes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import yaml
from tests.e2e.cluster import ROOT, Cluster, Crowd, Object

HEAD = "east-head"
SUBSCRIBERS = 50
PER_SECOND = 40.0
OPERATORS = "app.kubernetes.io/name=plimsoll-operator"


def quick_start(**head: object) -> list[Object]:
    """The objects of the quick start, whose head has a standby, and these settings."""
    objects: list[Object] = list(
        yaml.safe_load_all((ROOT / "examples" / "kubernetes" / "quickstart.yaml").read_text())
    )  # fmt: skip
    cluster = next(item for item in objects if item["kind"] == "BrokerCluster")
    cluster["spec"]["head"] |= {"standby": 1, **head}
    return objects


def start(cluster: Cluster) -> None:
    """The quick start's fleet, with a standby that follows."""
    cluster.apply(*quick_start())
    cluster.wait(lambda: in_sync(cluster), 180, "the standby to follow")
    cluster.wait(lambda: cluster.is_true("brokercluster", "east", "Ready"), 180, "the cluster to be ready")


def leadership(fleet: Cluster) -> Object:
    found: Object = fleet.get("brokercluster", "east").get("status", {}).get("leadership", {})
    return found


def in_sync(fleet: Cluster) -> bool:
    """As stored: the condition follows within a second."""
    return leadership(fleet).get("standby", 0) > 0


def leader(fleet: Cluster) -> str:
    return f"{HEAD}-{leadership(fleet)['leader']}"


def killed(fleet: Cluster, pod: str) -> None:
    fleet.kubectl("delete", "pod", pod, "--grace-period=0", "--force")


def nodes(fleet: Cluster) -> dict[str, str]:
    """The node of each of the two pods."""
    return {pod: fleet.get("pod", pod)["spec"]["nodeName"] for pod in (f"{HEAD}-0", f"{HEAD}-1")}


@contextmanager
def under_load(fleet: Cluster, promotions: int, host: str = "") -> Iterator[Crowd]:
    """What happens meanwhile promotes the standby `promotions` times; then all is well, and all was delivered."""
    crowd, before = Crowd(fleet, "traders", "east", SUBSCRIBERS, PER_SECOND, host=host), leadership(fleet)["term"]
    try:
        yield crowd
        fleet.wait(lambda: leadership(fleet)["term"] >= before + promotions, 120, "the standby to lead")
        fleet.wait(lambda: in_sync(fleet), 180, "the other one to follow")
        fleet.wait(lambda: fleet.is_true("brokercluster", "east", "Ready"), 180, "the cluster to be ready")
        fleet.wait(lambda: sum(crowd.at().values()) == SUBSCRIBERS, 60, "all to be served")
        print(f"pauses in seconds: {crowd.progress()['pauses']}")  # what was measured
        found = crowd.verdict()
        faults = {name: found[name] for name in ("lost", "duplicated", "reordered", "gaps", "unknown")}
        assert set(faults.values()) == {0}, faults
        assert found["ok"], found
    finally:
        fleet.kubectl("delete", "pod", "traders", "--grace-period=0", "--force", "--ignore-not-found")


def publishes(fleet: Cluster, crowd: Crowd) -> None:
    """Another second of publications is accepted."""
    answered = crowd.progress()["answered"]
    fleet.wait(lambda: crowd.progress()["answered"] > answered + PER_SECOND, 60, "another second of answers")


def publishes_again(fleet: Cluster, crowd: Crowd, before: int) -> None:
    """The term is another one than `before`, and publications are accepted."""
    fleet.wait(lambda: leadership(fleet)["term"] > before, 60, "the standby to lead")
    publishes(fleet, crowd)
