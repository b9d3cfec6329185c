"""The node that tests may drain and lose; and what only the node of a pod can do to it: freeze it, fill its volume.

A pod with more rights than brokers have does it, in a namespace of its own. Its programs run in the brokers' image, so
they import nothing of this project.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import yaml
from tests.e2e.cluster import TAG, Cluster, Object, run

AWAY = os.environ.get("PLIMSOLL_DRAIN_NODE", "")
LOSE, FIND = os.environ.get("PLIMSOLL_LOSE_NODE", ""), os.environ.get("PLIMSOLL_FIND_NODE", "")
HOST = "kubernetes.io/hostname"

LOSE_POD = """
import ctypes, fcntl, os, pathlib, signal, socket, struct, sys
uid = sys.argv[1]
found = []
for each in pathlib.Path("/proc").glob("[0-9]*"):
    try:
        groups = (each / "cgroup").read_text()
    except OSError:
        continue  # it has ended
    if uid in groups or uid.replace("-", "_") in groups:
        found.append(int(each.name))
if not found:
    sys.exit(f"no process here is in a cgroup of pod {uid}")
with open(f"/proc/{found[0]}/ns/net") as there:
    if ctypes.CDLL(None, use_errno=True).setns(there.fileno(), 0x40000000):
        sys.exit(os.strerror(ctypes.get_errno()))
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
    for _, name in socket.if_nameindex():
        if name != "lo":
            asked = struct.pack("16sH22x", name.encode(), 0)
            _, flags = struct.unpack("16sH22x", fcntl.ioctl(any_socket, 0x8913, asked))  # SIOCGIFFLAGS
            fcntl.ioctl(any_socket, 0x8914, struct.pack("16sH22x", name.encode(), flags & ~1))  # not IFF_UP
for pid in found:
    os.kill(pid, signal.SIGSTOP)
print(f"{len(found)} processes are frozen")
"""
"""The network of a pod goes down, so that no connection is closed and none answers; then its processes are frozen."""

ON_NODE = """
import pathlib, subprocess, sys
kubelets = [each.parent.name for each in pathlib.Path("/proc").glob("[0-9]*/comm") if each.read_text() == "kubelet\\n"]
sys.exit(subprocess.call(["nsenter", "--target", (kubelets or ["1"])[0], "--mount", "--", *sys.argv[1:]]))
"""
"""A command among the file systems that the kubelet of the node has."""


DETACH = """
import fcntl, os, pathlib, struct, sys
kubelets = [each.parent.name for each in pathlib.Path("/proc").glob("[0-9]*/comm") if each.read_text() == "kubelet\\n"]
there = os.open(f"/proc/{(kubelets or ['1'])[0]}/root{sys.argv[1]}", os.O_RDONLY)
fcntl.ioctl(there, 0x8004587D, struct.pack("I", 2))  # EXT4_IOC_SHUTDOWN, nothing is written any more
"""
"""A file system answers everything with an input/output error from now on, as one whose device has gone."""

ATTACH = """
set -e
umount "$1"
for i in $(seq 600); do
    [ -n "$(losetup -j "$1.img")" ] || break
    sleep 0.1
done
mount -o loop "$1.img" "$1"
"""
"""Once no process has the old one open. Meanwhile the volume has no folder, so no head begins with an empty log."""


def host_of(node: Object) -> str:
    return str(node["metadata"]["labels"][HOST])


def others() -> list[Object]:
    """Nodes besides the drained one, on which pods can be placed."""
    found = Cluster("default").get("nodes")
    return [
        node for node in found
        if node["metadata"]["name"] != AWAY and not node["spec"].get("unschedulable") and not node["spec"].get("taints")
    ]  # fmt: skip


def home_host() -> str:
    """The host that stays when the node is drained or lost; skips the test if there are not two nodes for it."""
    if not AWAY:
        pytest.skip("needs a node that may be drained: PLIMSOLL_DRAIN_NODE is not set")
    if not (found := others()):
        pytest.skip(f"needs a node besides {AWAY} that takes pods")
    return host_of(found[0])


def run_on_node(node: str, program: str, *arguments: str) -> str:
    """Run a program in Python with all rights on a node; returns its output."""
    name = f"plimsoll-node-{secrets.token_hex(4)}"
    run("kubectl", "create", "namespace", name)
    try:
        run("kubectl", "apply", "-f", "-", text=yaml.safe_dump(_pod(name, node, ["python", "-c", program, *arguments])))
        ended = ".status.containerStatuses[0].state.terminated"
        run("kubectl", "-n", name, "wait", f"pod/{name}", f"--for=jsonpath={{{ended}}}", "--timeout=90s")
        output = run("kubectl", "-n", name, "logs", name)
        code = run("kubectl", "-n", name, "get", "pod", name, "-o", f"jsonpath={{{ended}.exitCode}}")
        assert code == "0", f"on node {node}: exit code {code}: {output}"
        return output
    finally:
        run("kubectl", "delete", "namespace", name, "--ignore-not-found", "--wait=false")


def _pod(name: str, node: str, command: list[str]) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": name},
        "spec": {
            "restartPolicy": "Never",
            "nodeName": node,
            "hostPID": True,
            "automountServiceAccountToken": False,
            "containers": [{
                "name": "on-node",
                "image": f"plimsoll/broker:{TAG}",
                "imagePullPolicy": "IfNotPresent",
                "command": command,
                "securityContext": {"runAsUser": 0, "runAsNonRoot": False, "privileged": True},
            }],
        },
    }  # fmt: skip


def lose_pod(pod: Object) -> None:
    """What peers of a pod see when its node is lost: silence, on connections that nothing closes."""
    print(run_on_node(pod["spec"]["nodeName"], LOSE_POD, pod["metadata"]["uid"]).strip())


@contextmanager
def small_folder(node: str, path: str, size: str) -> Iterator[None]:
    """A folder of a node that holds no more than `size`, as `24m`; it is gone in the end."""
    run_on_node(node, ON_NODE, "mkdir", "-p", path)
    run_on_node(node, ON_NODE, "mount", "-t", "tmpfs", "-o", f"size={size},mode=0777", "plimsoll-test", path)
    try:
        yield
    finally:
        run_on_node(node, ON_NODE, "umount", "-l", path)
        run_on_node(node, ON_NODE, "rmdir", path)


def resize_folder(node: str, path: str, size: str) -> None:
    """Give a small folder more room."""
    run_on_node(node, ON_NODE, "mount", "-o", f"remount,size={size}", path)


def has_disk_folders(node: str) -> bool:
    """Whether the node can make them."""
    needed = "command -v mkfs.ext4 && command -v losetup && test -e /dev/loop-control"
    return run_on_node(node, ON_NODE, "sh", "-c", f"{needed} >/dev/null && echo all || true").strip().endswith("all")


@contextmanager
def disk_folder(node: str, path: str, size: str) -> Iterator[str]:
    """A folder in a file system of its own, which can be detached; it is gone in the end."""
    run_on_node(node, ON_NODE, "truncate", "-s", size, f"{path}.img")
    run_on_node(node, ON_NODE, "mkfs.ext4", "-q", "-F", f"{path}.img")
    run_on_node(node, ON_NODE, "mkdir", "-p", path)
    run_on_node(node, ON_NODE, "mount", "-o", "loop", f"{path}.img", path)
    try:
        run_on_node(node, ON_NODE, "mkdir", "-m", "0777", f"{path}/log")
        yield f"{path}/log"
    finally:
        run_on_node(node, ON_NODE, "umount", "-l", path)
        run_on_node(node, ON_NODE, "rm", "-r", path, f"{path}.img")


def detach_disk(node: str, path: str) -> None:
    """Take away the device below a folder that `disk_folder` has made at `path`."""
    run_on_node(node, DETACH, path)


def attach_disk(node: str, path: str) -> None:
    """The device is there again."""
    run_on_node(node, ON_NODE, "sh", "-c", ATTACH, "attach", path)
