"""up, down, apply, delete and validate, with real brokers; and each kind of bad input, with its exit code."""

import json
import os
import signal
import socket
import time
from pathlib import Path

import pytest

from plimsoll.local.storage.fleet_folder import FleetFolder

FOLDER = Path(__file__).parents[3] / "examples"
# Each file of kubernetes/ is a fleet of its own, each other folder is one fleet.
EXAMPLES = sorted(
    {
        path if path.parent.name in ("examples", "kubernetes") else path.parent
        for path in FOLDER.rglob("*.yaml")
        if path.parent.name not in ("applications", "worlds")  # pods, and worlds of `plimsoll simulate`
    }
)


def wait_for(check, seconds=300.0):
    deadline = time.monotonic() + seconds
    while not (answer := check()):
        assert time.monotonic() < deadline, "not in time"
        time.sleep(0.05)
    return answer


def processes_of(home):
    """Processes that were started with a file of this home."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                command = (entry / "cmdline").read_bytes()
            except (FileNotFoundError, ProcessLookupError):  # it has ended since the folder was listed
                continue
            if str(home).encode() in command and b"plimsoll.broker" in command:
                found.append(int(entry.name))
    return found


def test_up_runs_until_it_is_interrupted(home, program, quickstart):
    process = program("up", "-f", quickstart)
    assert process.stdout is not None
    lines = iter(process.stdout.readline, "")
    assert any("fleet quickstart is ready: 3 brokers" in line for line in lines), process.communicate()
    assert len(processes_of(home)) == 3
    process.send_signal(signal.SIGINT)
    assert process.wait(300) == 0
    assert processes_of(home) == []


def test_up_in_the_background_and_down(home, run, fleet):
    assert len(processes_of(home)) == 3
    code, _, err = run("up", "-f", str(FOLDER / "quickstart.yaml"))
    assert code == 4
    assert "fleet quickstart is already running" in err
    assert run("down") == (0, "fleet quickstart stopped\n", "")
    assert processes_of(home) == []
    assert run("down", "quickstart") == (0, "fleet quickstart is not running\n", "")


def test_up_takes_the_name_of_the_files(home, run):
    code, _, err = run("up", "-d", "-f", str(FOLDER / "quickstart.yaml"), "--fleet", "other")
    assert code == 2
    assert "the fleet of these files is called quickstart, and --fleet says other: leave it out" in err
    assert processes_of(home) == []


def test_a_killed_supervisor_leaves_nothing(home, run, fleet):
    pid = FleetFolder.of("quickstart").running_pid()
    assert pid
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: processes_of(home) == [])
    _, out, _ = run("get", "bf")
    assert "Unknown  NotSupervised" in out


def test_a_killed_broker_comes_back(run, fleet):
    def status():
        return json.loads(run("get", "eb", "edge-0", "-o", "json")[1])["status"]

    first = status()["pid"]
    os.kill(first, signal.SIGKILL)
    wait_for(lambda: status().get("pid") not in (None, first) and "True" in run("get", "eb", "edge-0")[1])
    assert status()["restarts"] == 1
    assert any("was ended by SIGKILL" in line and "again after 1 s" in line for line in run("events")[1].splitlines())


def test_scaling_a_running_cluster(run, fleet, quickstart, tmp_path):
    text = Path(quickstart).read_text()
    file = tmp_path / "more.yaml"
    file.write_text(text.replace("replicas: 2", "replicas: 3"))
    code, out, _ = run("apply", "-f", str(file))
    assert (code, out.splitlines()[-1]) == (0, "BrokerCluster/east configured")
    wait_for(lambda: "3/3" in run("get", "bc")[1])
    assert run("delete", "eb", "edge-2")[0] == 4
    file.write_text(text.replace("replicas: 2", "replicas: 1"))
    assert run("apply", "-f", str(file))[0] == 0
    wait_for(lambda: "1/1" in run("get", "bc")[1])
    assert run("get", "eb", "edge-2")[0] == 3


def test_what_cannot_change_is_refused(run, fleet, quickstart, tmp_path):
    file = tmp_path / "other.yaml"
    file.write_text(Path(quickstart).read_text().replace("64Mi", "128Mi"))
    code, out, err = run("apply", "-f", str(file))
    assert (code, out) == (4, "")
    assert f"{file}:15: HardwareProfile/small spec: east-head, edge-0, edge-1 run with this profile" in err
    assert "1 change refused; nothing was changed" in err
    code, _, err = run("delete", "hwp", "small")
    assert code == 4
    assert "HardwareProfile/small is in use" in err
    assert run("delete", "hwp", "none")[0] == 3


CLUSTER = """
apiVersion: plimsoll.dev/v1alpha1
kind: HardwareProfile
metadata: {name: p}
---
apiVersion: plimsoll.dev/v1alpha1
kind: BrokerCluster
metadata: {name: %s}
spec: {head: {profile: p}, neighbors: [%s]}
"""


@pytest.mark.parametrize("command", [["up"], ["up", "-d"], ["validate"]])
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: [1,\nb: 2", "bad.yaml:2: this is not YAML"),
        ("a: 1\na: 2", 'bad.yaml:2: the key "a" stands here again after line 1'),
        (CLUSTER.replace("head:", "haed:") % ("a", ""), 'spec.haed: this field is unknown\n    Did you mean "head"?'),
        (CLUSTER % ("a", "{name: a}"), "spec.neighbors[0].name: a cluster cannot be its own neighbor"),
        (CLUSTER % ("a", "{name: b}"), 'there is no BrokerCluster "b"'),
        (CLUSTER.replace("name: p}\n---", "name: p}\nspec: {bandwidth: {outputBytesPerSecond: 0}}\n---") % ("a", ""),
         "bad.yaml:5: HardwareProfile/p spec.bandwidth.outputBytesPerSecond: 0 is too small"),
        ("", "there is no object here"),
    ],
)  # fmt: skip
def test_bad_input_starts_nothing(home, run, tmp_path, command, text, words):
    file = tmp_path / "bad.yaml"
    file.write_text(text)
    code, out, err = run(*command, "-f", str(file))
    assert (code, out) == (2, "")
    assert words in err
    assert "nothing was started or changed" in err
    assert not (home / "home").exists()


def test_a_cycle_over_several_files_is_named(run, tmp_path):
    files = []
    for name, others in (("a", "{name: b}"), ("b", "{name: c}"), ("c", "{name: a}")):
        text = CLUSTER % (name, others)
        files.append(tmp_path / f"{name}.yaml")
        files[-1].write_text(text if name == "a" else text.split("---")[1])
    code, _, err = run("validate", "-f", *map(str, files))
    assert code == 2
    assert "c.yaml:5: BrokerCluster/c spec.neighbors[0].name: this closes a cycle of heads: a - b - c - a" in err


def test_a_used_port_starts_nothing(home, run, tmp_path):
    with socket.socket() as used:
        used.bind(("127.0.0.1", 0))
        used.listen()
        port = used.getsockname()[1]
        file = tmp_path / "used.yaml"
        listeners = f"{{brokers: [{{name: a-head, dataPort: {port}}}]}}"
        file.write_text((CLUSTER % ("a", "")).replace("neighbors: []", f"listeners: {listeners}"))
        for command in (["up"], ["up", "-d"], ["validate", "--ports"]):
            code, out, err = run(*command, "-f", str(file))
            assert (code, out) == (2, "")
            assert f"used.yaml:9: BrokerCluster/a spec.listeners.brokers[0].dataPort: port {port} of 127.0.0.1" in err
            assert "is in use by another process\n    Choose another one, or 0 for any free one." in err
        assert run("validate", "-f", str(file))[0] == 0
    assert processes_of(home) == []


def test_an_address_of_another_machine_starts_nothing(home, run, tmp_path):
    file = tmp_path / "far.yaml"
    file.write_text((CLUSTER % ("a", "")).replace("neighbors: []", "listeners: {bindAddress: 192.0.2.1}"))
    code, _, err = run("up", "-f", str(file))
    assert code == 2
    assert 'spec.listeners.bindAddress: "192.0.2.1" is not an address of this machine' in err
    assert processes_of(home) == []


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_examples_are_valid(run, example):
    code, out, err = run("validate", "-f", str(example))
    assert (code, err) == (0, "")
    assert "valid" in out.splitlines()[0]


def test_validate_says_what_logs_carry_and_that_plain_is_plain(run, tmp_path):
    file = tmp_path / "plain.yaml"
    fleet = "apiVersion: plimsoll.dev/v1alpha1\nkind: BrokerFleet\nmetadata: {name: f}\n"
    file.write_text(CLUSTER % ("a", "") + "---\n" + fleet + "spec: {security: {plain: true}}\n")
    _, out, _ = run("validate", "-f", str(file))
    assert out.splitlines() == [
        "fleet f: 1 heads, 0 edges; valid",
        "  a: a log of 43Mi carries 742Ki of input per second for 2 x reattachWithin 30s",
        "  head.log.disk is not set in a: publications that are accepted and not yet delivered are lost, as gaps, when"
        " the head ends or restarts",
        "  security.plain is set: anyone who reaches a port may publish, read and command",
    ]


def test_validate_says_what_is_lost_with_logs_in_memory_and_nothing_of_disks(run, tmp_path):
    file = tmp_path / "logs.yaml"
    kept = {"a": "", "b": "", "c": ", standby: 1", "d": ", log: {disk: {size: 1Gi}}"}
    profile, one = CLUSTER.split("---", 1)
    file.write_text(profile + "".join(
        "---" + (one % (name, "")).replace("{profile: p}", f"{{profile: p{more}}}")
        for name, more in kept.items()
    ))  # fmt: skip
    code, out, err = run("validate", "-f", str(file))
    assert (code, err) == (0, "")
    lost = "publications that are accepted and not yet delivered are lost, as gaps,"
    assert [line for line in out.splitlines() if "disk" in line] == [
        f"  head.log.disk is not set in a, b: {lost} when the head ends or restarts",
        f"  head.log.disk is not set in c: {lost} if head and standby end, or one while it is alone",
    ]
