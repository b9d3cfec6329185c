"""Write helm/plimsoll/README.md: how to install, and a table of all values, made from the comments of values.yaml.

Run by `make chart`; a test fails if the page and the values disagree.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

CHART = Path(__file__).resolve().parent.parent / "helm" / "plimsoll"

INTRODUCTION = """# The chart of Plimsoll

Installs the operator, its rights, and the definitions of `plimsoll.dev/v1alpha1`. Brokers are made by the operator
from the objects that you apply; the chart never touches them, so `helm uninstall` leaves a running fleet as it is.

```
helm install plimsoll helm/plimsoll --namespace plimsoll --create-namespace
kubectl --namespace plimsoll apply -f examples/kubernetes/quickstart.yaml
kubectl --namespace plimsoll get plimsoll -w
helm test plimsoll --namespace plimsoll
```

- **Images** are built from a checkout by `make images IMAGE_TAG=0.1.0` (docker, podman or buildah). Push them to a
  registry that the nodes reach and set `image.repository`, `brokerImage.repository` and their tags; in a kind cluster
  `kind load docker-image` is enough. `kubectl get pods` shows `ImagePullBackOff` while a node cannot find one, and so
  do `Ready` and an event of the broker.
- **Upgrades**: `helm upgrade` replaces the operator, its rights and the definitions. The new operator resumes the
  sessions of that moment. Brokers keep running, unless the image of brokers is another one: then edges are replaced one
  by one, each after its subscribers have moved, and then the heads, one at a time. To upgrade the operator alone,
  keep `brokerImage.tag`, or name an image in `spec.pods.image` of the fleet.
- **Under an umbrella chart** set values below `plimsoll:`. `global.imagePullSecrets` is used, too; `nameOverride` and
  `fullnameOverride` change the names of objects.
- **Definitions** are templates of the chart, so `helm upgrade` upgrades them. They are kept on `helm uninstall` unless
  `crds.keep` is false; all fleets are removed with them. If they were applied by other means first, install with
  `--set crds.install=false`, or let Helm adopt them with `--take-ownership`.
- **Rights**: by default a Role in the release's namespace. `watchNamespaces` names others; `rbac.scope=Cluster` watches
  all. Secrets are named after brokers and clients, which no Role can know; Kubernetes can restrict neither `create` nor
  `list` by name or label. So the operator may read the Secrets of a watched namespace, and asks only for those with
  its label: keep fleets in namespaces of their own.
- **A namespace can be deleted** with its fleet and the operator in it: no object has a finalizer.
- **Restricted** pod security is kept by everything that the chart and the operator make.
- **Dashboards** for Grafana 11 or later: `--set dashboards.enabled=true` creates a ConfigMap for each, with the label
  by which Grafana's sidecar finds them; or import `files/dashboards/*.json` by hand. They need
  `metrics.serviceMonitor.enabled`. [docs/kubernetes.md](../../docs/kubernetes.md#metrics) describes them, and
  [docs/alerts.md](../../docs/alerts.md) says what to do about an alert.

## Values

| value | default | what it is |
|---|---|---|
"""


def described(text: str) -> Iterator[tuple[str, str]]:
    """Each value that a comment describes: its path with dots, and the description."""
    path: list[str] = []
    words: list[str] = []
    for line in text.splitlines():
        if (comment := re.match(r" *# (-- )?(.*)", line)) is not None:
            words = [comment[2]] if comment[1] else [*words, comment[2]]
        elif (key := re.match(r"( *)([A-Za-z]\w*):", line)) is not None:
            path = [*path[: len(key[1]) // 2], key[2]]
            if words and "-- " + words[0] in text:
                yield ".".join(path), " ".join(words)
            words = []


def value_at(values: dict[str, Any], path: str) -> Any:
    found: Any = values
    for name in path.split("."):
        found = found[name]
    return found


def page() -> str:
    """The whole page."""
    text = (CHART / "values.yaml").read_text(encoding="utf-8")
    values = yaml.safe_load(text)
    rows = [f"| `{path}` | `{json.dumps(value_at(values, path))}` | {words} |\n" for path, words in described(text)]
    return INTRODUCTION + "".join(rows)


if __name__ == "__main__":
    (CHART / "README.md").write_text(page(), encoding="utf-8")
