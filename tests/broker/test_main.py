"""The broker as a process: its configuration, its exit codes, and how it leaves."""

from __future__ import annotations

import json
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
import zmq
from tests.ports import free_ports

from plimsoll.broker import main
from plimsoll.broker.main import EXIT_CONFIG, EXIT_ENDPOINT, BrokerConfigError, config_problems, new_epoch, read_config
from plimsoll.core.config import BrokerConfig, BrokerHardware, DiskLog, LinkSecurity, PeerBroker, encode
from plimsoll.core.protocol import messages, wire

PLAIN = LinkSecurity(plain=True)
HEAD = BrokerConfig(
    name="h", role="head", cluster="c", data="tcp://127.0.0.1:*", control="tcp://127.0.0.1:*", security=PLAIN
)
DEADLINE_SECONDS = 300


@pytest.fixture
def start(tmp_path: Path) -> Iterator:
    started: list[subprocess.Popen[str]] = []

    def start(config: BrokerConfig | str, *options: str) -> subprocess.Popen[str]:
        path = tmp_path / f"broker{len(started)}.json"
        path.write_bytes(encode(config) if isinstance(config, BrokerConfig) else config.encode())
        command = [sys.executable, "-m", "plimsoll.broker", "--config", str(path), *options]
        started.append(subprocess.Popen(command, stderr=subprocess.PIPE, text=True))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.wait(DEADLINE_SECONDS)
        assert process.stderr is not None
        process.stderr.close()


def listening(process: subprocess.Popen[str]) -> tuple[str, str]:
    """The endpoints (data, control) on which a broker reports to listen."""
    assert process.stderr is not None
    for line in process.stderr:
        if "listening:" in line:
            data, control = line.strip().partition("listening: data ")[2].split(", control ")
            return data, control
    raise AssertionError(f"the broker ended with {process.wait(DEADLINE_SECONDS)} before it listened")


def ask_status(control: str, server_key: bytes = b"", pair: tuple[bytes, bytes] = (b"", b"")) -> dict:
    context = zmq.Context()
    dealer = context.socket(zmq.DEALER)
    dealer.linger = 0
    if server_key:
        dealer.curve_serverkey = server_key
        dealer.curve_publickey, dealer.curve_secretkey = pair
    try:
        dealer.connect(control)
        dealer.send(wire.control_frame(messages.Identify("tester", "mediator", 1), messages.StatusQuery(7)))
        assert dealer.poll(DEADLINE_SECONDS * 1000), "no answer to a status query"
        frame = wire.decode_frame(dealer.recv())
        assert isinstance(frame, wire.Control)
        reply = messages.decode(messages.control, frame.records[0])
        assert isinstance(reply, messages.StatusReply)
        assert reply.id == 7
        return reply.status
    finally:
        context.destroy(0)


def test_a_head_starts_says_what_it_is_and_leaves_when_asked(start):
    process = start(HEAD)
    _, control = listening(process)
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not (status := ask_status(control))["process"]:
        assert time.monotonic() < deadline
    assert (status["name"], status["role"], status["plain"]) == ("h", "head", True)
    assert status["process"]["pid"] == process.pid
    assert status["process"]["memory_bytes"] > 0
    assert status["process"]["security"] == "plain"
    process.send_signal(signal.SIGTERM)
    assert process.wait(DEADLINE_SECONDS) == 0


def test_damage_is_said_by_the_next_start_if_the_first_is_killed_before_anyone_has_read_of_it(start, tmp_path: Path):
    config = msgspec.structs.replace(HEAD, disk_log=DiskLog(directory=str(tmp_path / "log"), size_bytes=1 << 20))
    process = start(config)
    listening(process)
    process.send_signal(signal.SIGTERM)
    assert process.wait(DEADLINE_SECONDS) == 0
    shutil.rmtree(tmp_path / "log")
    process = start(config)
    listening(process)
    process.kill()
    process.wait(DEADLINE_SECONDS)
    _, control = listening(start(config))
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not (found := ask_status(control)["process"]):
        assert time.monotonic() < deadline
    assert found["log_damages"] == 1


def test_an_edge_without_subscribers_leaves_at_once_although_its_head_is_not_there(start):
    data, control = free_ports(2)
    head = PeerBroker(name="h", data=f"tcp://127.0.0.1:{data}", control=f"tcp://127.0.0.1:{control}")
    process = start(msgspec.structs.replace(HEAD, name="e", role="edge", head=head))
    listening(process)
    process.send_signal(signal.SIGINT)
    assert process.wait(DEADLINE_SECONDS) == 0


def test_a_head_and_an_edge_find_each_other_by_their_keys(start, tmp_path: Path):
    pairs = {name: zmq.curve_keypair() for name in ("h", "e", "tester", "stranger")}
    roles = {"h": "head", "e": "edge", "tester": "mediator"}
    keys = tmp_path / "authorized-keys"
    keys.write_text("\n".join(f"{pairs[name][0].decode()} {role} {name}" for name, role in roles.items()))
    security = {}
    for name in ("h", "e", "stranger"):
        (tmp_path / name).write_bytes(pairs[name][1])
        security[name] = LinkSecurity(secret_key_file=str(tmp_path / name), authorized_keys_file=str(keys))
    head = start(msgspec.structs.replace(HEAD, security=security["h"], edges=("e",)))
    data, control = listening(head)
    peer = PeerBroker(name="h", data=data, control=control, public_key=pairs["h"][0].decode())
    edge = msgspec.structs.replace(HEAD, name="e", role="edge", head=peer, security=security["e"])
    # The same name with another key is not the edge that the head knows.
    impostor = listening(start(msgspec.structs.replace(edge, security=security["stranger"])))[1]
    at_edge = listening(start(edge))[1]
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not (status := ask_status(at_edge, pairs["e"][0], pairs["tester"]))["ready"]:
        assert time.monotonic() < deadline, status
    status = ask_status(control, pairs["h"][0], pairs["tester"])
    assert (status["edges"], status["plain"]) == (["e"], False)
    assert not ask_status(impostor, pairs["stranger"][0], pairs["tester"])["ready"]


def test_a_leave_on_the_control_socket_is_the_same_as_a_signal(start):
    process = start(HEAD)
    _, control = listening(process)
    context = zmq.Context()
    dealer = context.socket(zmq.DEALER)
    dealer.connect(control)
    dealer.send(wire.control_frame(messages.Identify("m", "mediator", 0), messages.Leave()))
    assert process.wait(DEADLINE_SECONDS) == 0
    context.destroy(0)


def test_a_broker_does_not_outlive_the_process_that_it_was_told_to_watch(start):
    parent = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE)
    process = start(HEAD, "--parent-pid", str(parent.pid))
    listening(process)
    parent.kill()
    parent.communicate(timeout=DEADLINE_SECONDS)
    assert process.wait(DEADLINE_SECONDS) == 0


def test_a_used_endpoint_is_named_with_the_remedy(start):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        endpoint = f"tcp://127.0.0.1:{taken.getsockname()[1]}"
        process = start(msgspec.structs.replace(HEAD, data=endpoint))
        said = process.communicate(timeout=DEADLINE_SECONDS)[1]
    assert process.returncode == EXIT_ENDPOINT
    assert f"endpoint in use: {endpoint} (data)" in said
    assert "give this broker another data endpoint" in said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "truncated"),
        ('{"name": "h"}', "missing required field `role`"),
        (json.dumps({**json.loads(encode(HEAD)), "colour": "red"}), "unknown field `colour`"),
        (json.dumps({**json.loads(encode(HEAD)), "hardware": {"memory_bytes": "much"}}), "$.hardware.memory_bytes"),
    ],
)
def test_a_configuration_of_the_wrong_shape_is_refused_with_its_place(text: str, said: str, tmp_path: Path):
    path = tmp_path / "broker.json"
    path.write_text(text)
    with pytest.raises(BrokerConfigError, match=r"broker\.json") as refused:
        read_config(path)
    assert said in str(refused.value)


def test_a_configuration_that_cannot_be_used_ends_the_process(start):
    process = start(msgspec.structs.replace(HEAD, role="edge"))
    said = process.communicate(timeout=DEADLINE_SECONDS)[1]
    assert process.returncode == EXIT_CONFIG
    assert "broker0.json: head: is not set" in said


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"data": "127.0.0.1:5000"}, "data: '127.0.0.1:5000' is not an endpoint"),
        ({"control": "tcp://127.0.0.1:9", "data": "tcp://127.0.0.1:9"}, "control: tcp://127.0.0.1:9 is the data"),
        (
            {"hardware": BrokerHardware(output_bytes_per_second=0.0)},
            "hardware.output_bytes_per_second: 0.0 must be more",
        ),
        ({"hardware": BrokerHardware(memory_bytes=-1)}, "hardware.memory_bytes: -1 must be more"),
        ({"http": "0.0.0.0:7402"}, "http: '0.0.0.0:7402' is not an endpoint; write tcp://HOST:PORT"),
        ({"time_factor": 0.0}, "time_factor: 0.0 must be more"),
        ({"security": LinkSecurity()}, "security.secret_key_file: is not set"),
        ({"neighbors": (PeerBroker(name="h"),)}, "neighbors[0].name: h cannot be its own peer"),
        ({"neighbors": (PeerBroker(name="z"),)}, "neighbors[0]: z is connected to from here"),
        ({"role": "edge", "head": PeerBroker(name="g", data="tcp://127.0.0.1:1")}, "head: g is connected to from here"),
        (
            {
                "role": "edge",
                "data": "tcp://*:5000",
                "head": PeerBroker(name="g", data="tcp://127.0.0.1:1", control="tcp://127.0.0.1:2"),
            },
            "advertised_data: tcp://*:5000 is no address",
        ),
    ],
)
def test_what_is_wrong_is_named_by_field(changes: dict, said: str):
    assert any(each.startswith(said) for each in config_problems(msgspec.structs.replace(HEAD, **changes)))


def test_nothing_is_wrong_with_a_good_configuration():
    neighbors = (PeerBroker(name="a"), PeerBroker(name="z", data="tcp://127.0.0.1:1"))
    assert config_problems(msgspec.structs.replace(HEAD, neighbors=neighbors)) == []


def test_an_encrypted_link_needs_the_key_of_the_other_side():
    secured = LinkSecurity(secret_key_file="here", authorized_keys_file="there")  # noqa: S106  # the name of a file
    peer = PeerBroker(name="z", data="tcp://127.0.0.1:1", public_key="short")
    said = config_problems(msgspec.structs.replace(HEAD, security=secured, neighbors=(peer,)))
    assert said == ["neighbors[0].public_key: z needs its Z85 public key of 40 characters"]


def test_epochs_grow_with_time():
    epochs = [new_epoch() for _ in range(3)]
    assert all(0 < epoch < 2**63 for epoch in epochs)
    assert epochs[0] >> 10 <= epochs[1] >> 10 <= epochs[2] >> 10
    assert epochs[0] >> 10 <= time.time_ns() // 1000


# -- http --------------------------------------------------------------------------------------------------------------


def answering(process: subprocess.Popen[str]) -> str:
    """The URL at which a broker reports to answer HTTP."""
    assert process.stderr is not None
    for line in process.stderr:
        if "serving http:" in line:
            return line.strip().partition("serving http: tcp")[2].replace("://", "http://", 1)
    raise AssertionError(f"the broker ended with {process.wait(DEADLINE_SECONDS)} before it answered")


def fetch(url: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(url, timeout=DEADLINE_SECONDS) as answer:  # noqa: S310  # loopback
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def until(url: str, wanted: tuple[int, str]) -> None:
    deadline = time.monotonic() + DEADLINE_SECONDS
    while (found := fetch(url)) != wanted:
        assert time.monotonic() < deadline, found


def test_a_broker_answers_probes_and_scrapes(start):
    process = start(msgspec.structs.replace(HEAD, http="tcp://127.0.0.1:*"))
    url = answering(process)
    until(f"{url}/readyz", (200, "ok\n"))
    assert fetch(f"{url}/livez") == (200, "ok\n")
    status, text = fetch(f"{url}/metrics")
    assert status == 200
    assert 'plimsoll_broker_info{broker="h",cluster="c",fleet="default",role="head"' in text
    assert "plimsoll_broker_ready 1.0" in text
    assert fetch(f"{url}/other")[0] == 404
    process.send_signal(signal.SIGTERM)
    assert process.wait(DEADLINE_SECONDS) == 0


def test_an_edge_whose_head_does_not_answer_is_alive_and_not_ready(start):
    with socket.socket() as head_that_does_not_answer:
        head_that_does_not_answer.bind(("127.0.0.1", 0))
        head_that_does_not_answer.listen()
        endpoint = f"tcp://127.0.0.1:{head_that_does_not_answer.getsockname()[1]}"
        edge = msgspec.structs.replace(
            HEAD,
            name="e",
            role="edge",
            http="tcp://127.0.0.1:*",
            head=PeerBroker(name="h", data=endpoint, control=endpoint),
        )
        process = start(edge)
        url = answering(process)
        until(f"{url}/readyz", (503, "head h does not answer\n"))
        assert fetch(f"{url}/livez") == (200, "ok\n")
        process.send_signal(signal.SIGTERM)
        assert process.wait(DEADLINE_SECONDS) == 0


def test_a_used_http_endpoint_is_named(start):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        endpoint = f"tcp://127.0.0.1:{taken.getsockname()[1]}"
        process = start(msgspec.structs.replace(HEAD, http=endpoint))
        said = process.communicate(timeout=DEADLINE_SECONDS)[1]
    assert process.returncode == EXIT_ENDPOINT
    assert f"cannot listen on {endpoint} (http)" in said


def test_without_http_neither_the_library_nor_a_thread_is_there():
    program = "import sys, plimsoll.broker.main; sys.exit('prometheus_client' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_the_matching_loop_is_loaded_first_where_memory_allows(monkeypatch: pytest.MonkeyPatch):
    loaded: list[bool] = []
    before = signal.getsignal(signal.SIGTERM)
    monkeypatch.setattr(main, "warm_up", lambda: loaded.append(signal.getsignal(signal.SIGTERM) is not before))
    monkeypatch.setattr(main, "BrokerSockets", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    large, small = (
        BrokerHardware(memory_bytes=main.WARM_UP_MEMORY_BYTES),
        BrokerHardware(memory_bytes=main.WARM_UP_MEMORY_BYTES - 1),
    )
    for http, hardware in (("", large), ("tcp://127.0.0.1:*", small), ("tcp://127.0.0.1:*", large)):
        assert loaded == []
        with pytest.raises(KeyboardInterrupt):
            main.run(msgspec.structs.replace(HEAD, http=http, hardware=hardware), None, 1.0, Path("none.json"))
        signal.signal(signal.SIGTERM, before)
    assert loaded == [True], "and signals are heard meanwhile"
