"""Time of the hourly means on a cluster by number of executors: pods of a fixed share of a core each.

    python -m bench.telemetry.executors --image plimsoll/spark:dev [--executors 1 2 4] [--cpu 0.25]

The cluster is the one that KUBECONFIG names, with one node, which is this machine: the files of
`bench.telemetry.hourly` are written here and mounted there. Driver and executors have the settings of
`plimsoll.sparkjobs.launch.executors`. On a machine with few cores the limit of each executor is what shows whether the
job itself scales: with `--cpu 0.25` four executors need one core. `first` is the query in a new session, when all
executors have registered; `again` is the next one, with classes loaded and code compiled. `busiest` is the processor
time of the executor that worked most: it says how the work is divided, also where other work keeps executors from
their share of a core. Answers must equal DuckDB's.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from bench.telemetry import hourly

from plimsoll.sparkjobs.launch.executors import driver_settings, executor_template, service_account_objects
from plimsoll.sparkjobs.launch.manifests import live_deployment
from plimsoll.sparkjobs.launch.spec import DATA_PATH, Object, SparkLaunch

PROGRAM: Final = "program"
RUNS: Final = 2
RUN_SECONDS: Final = 1200.0
EXECUTOR_CLASS: Final = b"org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend"
MODULES: Final = ("driver.py", "hourly.py", "executors.py")


def in_driver() -> None:
    """In the driver's pod: run the query each time when it is asked for, and write the last answer."""
    folder = Path(DATA_PATH)
    answers = hourly.spark_answers(folder, "plain", {})
    next(answers)
    for number in range(RUNS):
        _say(folder, f"ready-{number}", "")
        while not (folder / f"go-{number}").exists():
            time.sleep(0.05)
        began = time.monotonic()
        answer = next(answers)
        _say(folder, f"done-{number}", json.dumps({"answer": answer, "seconds": time.monotonic() - began}))
    time.sleep(RUN_SECONDS)  # executors end with this pod, which is deleted when their processor time is known


def _say(folder: Path, name: str, text: str) -> None:
    (folder / f".{name}").write_text(text)
    (folder / f".{name}").replace(folder / name)


def driver_pod(launch: SparkLaunch, cpu: float) -> Object:
    """A pod of the driver, like that of the live job, with executors of this share of a core."""
    pod: Object = live_deployment(launch)["spec"]["template"]
    container = pod["spec"]["containers"][0]
    settings = driver_settings(launch) | {
        "spark.kubernetes.executor.request.cores": "50m",
        "spark.kubernetes.executor.limit.cores": str(cpu),
        "spark.sql.shuffle.partitions": "16",
        # All executors are there before the first query.
        "spark.scheduler.minRegisteredResourcesRatio": "1.0",
        "spark.scheduler.maxRegisteredResourcesWaitingTime": "600s",
        "spark.executor.memory": "900m",
        # Starved of processor time, an executor answers late.
        "spark.network.timeout": "600s",
    }
    words = [part for name, value in settings.items() for part in ("--conf", f"{name}={value}")]
    container["args"] = ["driver", *words, f"{DATA_PATH}/{PROGRAM}/bench/telemetry/executors.py"]
    container["env"].append({"name": "PYTHONPATH", "value": f"/opt/plimsoll/lib:{DATA_PATH}/{PROGRAM}"})
    container["env"].append({"name": hourly.IN_DRIVER, "value": "1"})
    return {
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": f"driver-{launch.executors}", "labels": pod["metadata"]["labels"]},
        "spec": {**pod["spec"], "restartPolicy": "Never"},
    }  # fmt: skip


def kubectl(*words: str, given: str | None = None) -> str:
    done = subprocess.run(["kubectl", *words], input=given, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"kubectl {' '.join(words[:4])}: {done.stderr.strip()}")
    return done.stdout


def apply(*objects: Object) -> None:
    kubectl("apply", "-f", "-", given=json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)}))


@contextlib.contextmanager
def namespace(folder: Path) -> Iterator[str]:
    """A namespace with the claim `data` on a folder of this machine, which is the node."""
    name = f"plimsoll-{folder.name.rsplit('-', 1)[1].lower().replace('_', 'x')}"
    node = json.loads(kubectl("get", "nodes", "-o", "json"))["items"][0]["metadata"]["labels"]["kubernetes.io/hostname"]
    terms = [{"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}]}]
    size = {"storage": "2Gi"}
    apply(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}},
        {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": {
            "capacity": size, "accessModes": ["ReadWriteMany"], "storageClassName": name,
            "persistentVolumeReclaimPolicy": "Retain", "local": {"path": str(folder)},
            "nodeAffinity": {"required": {"nodeSelectorTerms": terms}},
        }},
        {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data", "namespace": name}, "spec": {
            "accessModes": ["ReadWriteMany"], "storageClassName": name, "resources": {"requests": size},
        }},
    )  # fmt: skip
    try:
        yield name
    finally:
        kubectl("delete", "namespace", name, "--wait=true")
        kubectl("delete", "persistentvolume", name, "--wait=false")


def executor_seconds() -> dict[str, float]:
    """Processor seconds of each executor on this machine, by the number of its process."""
    found = {}
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it has ended since the folder was listed
            words = (path / "cmdline").read_bytes().split(b"\0")
            if words[0] == b"java" and EXECUTOR_CLASS in words:
                fields = (path / "stat").read_text().rsplit(")", 1)[1].split()
                found[path.name] = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return found


def wait_for(path: Path, driver: str, name: str) -> None:
    """Wait until the driver has written the file."""
    began = time.monotonic()
    while not path.exists():
        phase = kubectl("get", "pod", driver, "-n", name, "-o", "jsonpath={.status.phase}")
        if phase in ("Failed", "Succeeded") and not path.exists():
            raise RuntimeError(f"the driver ended: {kubectl('logs', driver, '-n', name, '--tail=30')}")
        if time.monotonic() - began > RUN_SECONDS:
            raise TimeoutError(f"{driver}: no {path.name} after {RUN_SECONDS:.0f} s")
        time.sleep(0.3)


def measure(folder: Path, name: str, image: str, executors: int, cpu: float) -> list[dict[str, Any]]:
    """Run the query several times with this number of executors: answer, seconds and the busiest executor of each."""
    launch = SparkLaunch(
        fleet="bench", namespace=name, image=image, claim="data", access="ReadWriteMany", executors=executors
    )
    pod = driver_pod(launch, cpu)
    for path in (*folder.glob("ready-*"), *folder.glob("go-*"), *folder.glob("done-*")):
        path.unlink()
    apply(*(each | {"metadata": {**each["metadata"], "namespace": name}} for each in (
        *service_account_objects(launch), executor_template(launch), pod
    )))  # fmt: skip
    driver, found = pod["metadata"]["name"], []
    try:
        for number in range(RUNS):
            wait_for(folder / f"ready-{number}", driver, name)
            before = executor_seconds()
            if len(before) != executors:
                raise RuntimeError(f"{len(before)} executors of {executors} run on this machine, or others do as well")
            (folder / f"go-{number}").touch()
            wait_for(folder / f"done-{number}", driver, name)
            after = executor_seconds()
            spent = [after[process] - before[process] for process in before]
            found.append(json.loads((folder / f"done-{number}").read_text()) | {"busiest": max(spent)})
    finally:
        kubectl("delete", "pod", driver, "-n", name, "--wait=true", "--grace-period=1")
        kubectl("delete", "pods", "-n", name, "--all", "--wait=true", "--grace-period=1")
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.telemetry.executors", description=__doc__)
    parser.add_argument("--image", required=True, help="Spark's image, known to the node")
    parser.add_argument("--rows", type=int, default=10_000_000, help="load reports of the day")
    parser.add_argument("--executors", type=int, nargs="+", default=[1, 2, 4], help="numbers of executors")
    parser.add_argument("--folder", type=Path, help="a folder below /var/tmp that has the files of an earlier run")
    parser.add_argument("--cpu", type=float, default=0.25, help="limit of each executor, in cores")
    asked = parser.parse_args(arguments)
    folder = Path(tempfile.mkdtemp(prefix="plimsoll-bench-", dir="/var/tmp"))
    try:
        folder.chmod(0o777)  # for the jobs' user
        if asked.folder is None:
            print(f"{hourly.write_day(folder, asked.rows):,} reports", flush=True)
        else:
            shutil.copytree(asked.folder / "raw", folder / "raw", copy_function=os.link)
        program = folder / PROGRAM / "bench" / "telemetry"
        program.mkdir(parents=True)
        for each in MODULES:
            shutil.copy(Path(__file__).with_name(each), program / each)
        by_duckdb = hourly.duckdb_answers(folder, "plain")
        next(by_duckdb)
        expected = next(by_duckdb)
        with namespace(folder) as name:
            for executors in asked.executors:
                runs = measure(folder, name, asked.image, executors, asked.cpu)
                if not all(hourly.same(run["answer"], expected) for run in runs):
                    raise RuntimeError(f"{executors} executors and DuckDB do not agree")
                said = (f"{which} {run['seconds']:6.1f} s, busiest {run['busiest']:5.1f} s"
                        for which, run in zip(("first", "again"), runs, strict=True))  # fmt: skip
                print(f"{executors} executors of {asked.cpu} cores: {'; '.join(said)}; load {os.getloadavg()[0]:.1f}",
                      flush=True)  # fmt: skip
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    if os.environ.get(hourly.IN_DRIVER):
        in_driver()
    else:
        main(sys.argv[1:])
