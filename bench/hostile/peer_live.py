"""`python -m bench.hostile.peer_live`: what others notice of a peer that is admitted and attacks real brokers.

One head and one edge as processes of this machine. A publisher sends at a steady rate to some subscribers, alone at
first and then beside each attack: one process that sends its frames as fast as the broker takes them, or at most
`--frames` of them in all. Per attack: the 50th and 99th percentile of deliveries in milliseconds, the ratio of the 99th
to that beside a process that is as busy and sends nothing, processor seconds per second of head and edge, what their
resident memory grew to, in MiB, and frames sent. Three attacks need no link: connections without a handshake,
handshakes that stop, and connections that speak something else.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import zmq
from bench.hostile.live import TwoBrokers, latencies, summary
from bench.hostile.peer_attacks import ATTACKS, HostilePeer, PeerAttack

from plimsoll.core.protocol import wire

CONNECTIONS_AT_MOST = 200
TICKS = os.sysconf("SC_CLK_TCK")
BUSY = "a busy process, and no attack"
"""An attacker shares the cores with the brokers: the 99th percentile is compared with that beside a busy process."""


def attack_with_frames(attack: PeerAttack, endpoint: str, seconds: float, frames: int) -> int:
    """Send bursts in turn on each link of the attack; returns how many frames were sent."""
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    peers = []
    for number in range(attack.links):
        dealer = context.socket(zmq.DEALER)
        dealer.linger, dealer.sndhwm, dealer.rcvhwm = 0, 64, 1000 if attack.reads else 1
        dealer.connect(endpoint)
        peer = HostilePeer(f"hostile{number}", 9_000 + number)
        dealer.send(peer.hello())
        peers.append((dealer, peer, attack.bursts(peer)))
    until, sent = time.monotonic() + seconds, 0
    for dealer, peer, bursts in itertools.cycle(peers):
        for frame in next(bursts):
            while time.monotonic() < until and sent < frames:
                if attack.reads:
                    _read(dealer, peer)
                try:
                    dealer.send(frame, zmq.NOBLOCK)
                    sent += 1
                    break
                except zmq.Again:  # the broker takes no more for now
                    dealer.poll(1, zmq.POLLIN | zmq.POLLOUT)
                    if not attack.reads:
                        break  # it goes on with its other links
        if time.monotonic() >= until:
            break
        if sent >= frames:
            time.sleep(0.05)
    context.destroy(linger=0)
    return sent


def _read(dealer: zmq.Socket[bytes], peer: HostilePeer) -> None:
    for _ in range(64):
        try:
            data = dealer.recv(zmq.NOBLOCK)
        except zmq.Again:
            return  # all that has come is read
        if data[2] == wire.DATA:
            frame = wire.decode_frame(data)
            if isinstance(frame, wire.Data):
                peer.received = frame.seq
                dealer.send(wire.ack_frame(peer.link, frame.seq, 1 << 40))


def attack_with_connections(endpoint: str, seconds: float, frames: int, greeting: bytes) -> int:
    """Connections that send a part of a handshake, at most some at once, each replaced as soon as it has been made."""
    host, port = endpoint.removeprefix("tcp://").rsplit(":", 1)
    until, made = time.monotonic() + seconds, 0
    held: list[socket.socket] = []
    while time.monotonic() < until:
        if made < frames:
            try:
                held.append(socket.create_connection((host, int(port)), timeout=5.0))
                held[-1].sendall(greeting)
                made += 1
            except OSError:  # the broker does not listen yet, or takes no more for now
                time.sleep(0.05)
        else:
            time.sleep(0.05)
        if len(held) > CONNECTIONS_AT_MOST:
            held.pop(0).close()
    for each in held:
        each.close()
    return made


def processor_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def peak_mib(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


def run(options: argparse.Namespace, name: str) -> dict[str, float]:
    """The figures beside this attack; beside none if the name is empty."""
    attacker = None
    with tempfile.TemporaryDirectory() as folder:
        brokers = TwoBrokers(Path(folder))
        try:
            if name:
                command = [
                    sys.executable, "-m", "bench.hostile.peer_live", "--attack", name, brokers.head, brokers.edge,
                    "--seconds", str(options.seconds + 1), "--frames", str(options.frames),
                ]  # fmt: skip
                attacker = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
            pids = [process.pid for process in brokers.processes]
            before, began = [processor_seconds(pid) for pid in pids], time.monotonic()
            found = summary(latencies(brokers.head, options.seconds, options.rate))
            took = time.monotonic() - began
            if any(process.poll() is not None for process in brokers.processes):
                raise RuntimeError(f"a broker has ended under {name!r}")
            for role, pid, spent in zip(("head", "edge"), pids, before, strict=True):
                found[f"{role}_cores"] = (processor_seconds(pid) - spent) / took
                found[f"{role}_mib"] = peak_mib(pid)
            if attacker is not None:
                found["frames"] = int(attacker.communicate(timeout=60)[0] or 0)
        finally:
            if attacker is not None:
                attacker.kill()
                attacker.wait()
            brokers.close()
    return found


CONNECTION_ATTACKS: dict[str, bytes] = {
    "connections without a handshake": b"",
    "handshakes that stop": b"\xff" + bytes(8) + b"\x7f\x03\x01NULL" + bytes(48),
    "connections that are no ZMTP": b"GET / HTTP/1.1\r\n\r\n" * 10,
}


def act(options: argparse.Namespace) -> int:
    """Be the attacker."""
    name, head, edge = options.attack
    os.nice(5)
    if name == BUSY:
        until, sent = time.monotonic() + options.seconds, 0
        while time.monotonic() < until:
            pass
    elif name in CONNECTION_ATTACKS:
        sent = attack_with_connections(edge, options.seconds, options.frames, CONNECTION_ATTACKS[name])
    else:
        attack = next(each for each in ATTACKS if each.name == name)
        endpoint = edge if attack.at == "edge" else head
        sent = attack_with_frames(attack, endpoint, options.seconds, options.frames)
    print(sent, flush=True)
    return 0


def main(attack: Callable[[argparse.Namespace], int] = act) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=5.0, help="of each run")
    parser.add_argument("--rate", type=float, default=100.0, help="publications per second")
    parser.add_argument("--frames", type=int, default=1_000_000, help="of an attack, at most")
    parser.add_argument("--only", action="append", default=[], help="attacks whose name has this in it; repeatable")
    parser.add_argument("--attack", nargs=3, metavar=("NAME", "HEAD", "EDGE"), help="be the attacker")
    parser.add_argument("--json", type=Path, default=Path("bench-report/hostile-peer-live.json"))
    options = parser.parse_args()
    if options.attack:
        return attack(options)
    rows: dict[str, Any] = {}
    known = (*(each.name for each in ATTACKS), *CONNECTION_ATTACKS)
    names = [name for name in known if not options.only or any(each in name for each in options.only)]
    for name in ("", BUSY, *names):
        row = rows[name or "alone"] = run(options, name)
        ratio = row["p99"] / rows.get(BUSY, row)["p99"]
        shown = "  ".join(f"{key} {value:.1f}" for key, value in row.items())
        print(f"{name or 'alone':42} p99 x{ratio:.1f}  {shown}", flush=True)
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(json.dumps(rows, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
