"""A namespace under restricted pod security with the chart in it, if there are a cluster and the images."""

from __future__ import annotations

import os
import secrets
import shutil
import time
from collections.abc import Iterator

import pytest
from tests.e2e.cluster import ROOT, TAG, Cluster, run
from tests.e2e.kills import cells, seed
from tests.images import tag


def pytest_report_header() -> str:
    """Print which cells of the kill matrix are tried, and how to try the same again."""
    tried = ", ".join(f"{victim} in {state}" for victim, state in cells())
    return f"kill matrix: PLIMSOLL_KILL_SEED={seed()} tries {tried}"


def missing() -> str:
    """What these tests need and lack; empty if nothing is missing."""
    if not os.environ.get("KUBECONFIG"):
        return "needs a Kubernetes cluster: KUBECONFIG is not set"
    for program in ("kubectl", "helm"):
        if shutil.which(program) is None:
            return f"needs {program} on PATH"
    if not os.environ.get("PLIMSOLL_IMAGE_TAG"):
        return "needs the images in the cluster: PLIMSOLL_IMAGE_TAG is not set"
    return ""


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """The namespace; its objects are deleted with it."""
    if why := missing():
        pytest.skip(why)
    name = f"plimsoll-test-{secrets.token_hex(4)}"
    run("kubectl", "create", "namespace", name)
    run("kubectl", "label", "namespace", name, "pod-security.kubernetes.io/enforce=restricted")
    found = Cluster(name)
    # The definitions are the cluster's, and other tests use them, too: they are applied, not owned by this release.
    run("kubectl", "apply", "--server-side", "--force-conflicts", "-f", str(ROOT / "crds"))
    try:
        yield found
    finally:
        clear(found)


def clear(cluster: Cluster) -> None:
    """Delete the namespace with the operator in it: nothing may hold that up."""
    run("kubectl", "delete", "namespace", cluster.namespace, "--ignore-not-found", "--timeout=120s", seconds=150)


@pytest.fixture(scope="module")
def installed(cluster: Cluster) -> Cluster:
    """With the operator running."""
    chart = str(ROOT / "helm" / "plimsoll")
    sets = [f"image.tag={TAG}", f"brokerImage.tag={TAG}", "crds.install=false"]
    sets += [f"{name}Image.tag={tag(name) or TAG}" for name in ("collector", "spark")]
    arguments = [part for each in sets for part in ("--set", each)]
    cluster.began_at = time.monotonic()
    cluster.helm("install", "plimsoll", chart, *arguments)
    cluster.helm("test", "plimsoll")  # right behind: it waits by itself
    return cluster
