"""Heads with each kind of log beside NATS JetStream with file storage, one replica and three, in the same run.

    scripts/build_nats.sh
    python -m bench.broker.jetstream [--folder DIR] [--quick] [--json FILE]

Each setting in turn, again and again; medians. All get the same publications, each of which every consumer has, so
that nothing but the way through is compared: a head matches contents, JetStream subjects. First flat out, with at most
`--window` publications without an answer, then at a fixed rate, which gives latencies from when a publication was
due to when a consumer has read it. The consumers of JetStream are what its clients call ordered: the client keeps its
place, as a subscriber keeps its token. Publications of JetStream have no identity; with one (`Nats-Msg-Id`), which
publications here always have, a publication that is sent again is stored once.

The ends of both are written for this bench and do as little as they can; their processor time is shown beside the
servers'. The client of NATS for Python takes 16 us for a publication and 4.5 us for a delivery, so that with five
consumers it would take three times what one server does. A head and its edge are two processes in line, or three with a
standby; JetStream is one, or three.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.broker.__main__ import latency
from bench.broker.durable import medians, open_chain, sync_seconds
from bench.broker.nats_servers import MISSING, JetStreamRun, find_program
from bench.broker.runs import DeliveryRun
from bench.matching.workloads import workload

from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol import wire

MATCHES_ALL = '[class,=,"STOCK"]'
WARM_PUBLICATIONS = 2_000


@dataclass(frozen=True)
class Setting:
    """`promise`: what a publisher knows once it has been answered. `replicas`: of JetStream; 0: a head of ours."""

    name: str
    promise: str
    replicas: int = 0
    is_synced: bool = False


SETTINGS = {
    each.name: each
    for each in (
        Setting("memory", "the head has it in memory"),
        Setting("Interval", "the operating system has it; synced within 100 ms"),
        Setting("Always", "it is synced"),
        Setting("standby", "two processes have it in memory"),
        Setting("standby and Always", "it is synced, and two processes have it"),
        Setting("R1", "the operating system has it; synced within 2 min", 1),
        Setting("R1 always", "it is synced", 1, is_synced=True),
        Setting("R3", "the operating systems of two of three have it; synced within 2 min", 3),
        Setting("R3 always", "two of three have synced it", 3, is_synced=True),
    )
}
BASELINE = "memory"
BELOW = "below the rate"


@dataclass(frozen=True)
class Work:
    """What is sent through each setting. `flat_out`: publications at most; a slow setting gets fewer."""

    bodies: list[bytes]
    consumers: int
    window: int
    flat_out: int
    flat_out_seconds: float
    rate: float
    seconds: float


def bodies_of(payload_bytes: int) -> list[bytes]:
    """The contents of a thousand quotes, each with a payload."""
    return [wire.encode(msg.Body(each, b"x" * payload_bytes)) for each in workload("paper", 1).publications]


def open_run(work: Work, setting: Setting, program: str, folder: Path) -> DeliveryRun:
    """Start the processes of one setting."""
    if setting.replicas:
        return JetStreamRun(
            program, folder, work.bodies, replicas=setting.replicas, is_synced=setting.is_synced,
            consumers=work.consumers, window=work.window,
        )  # fmt: skip
    texts = [MATCHES_ALL] * work.consumers
    return open_chain(texts, work.bodies, work.consumers, setting.name, folder, work.window)


def measure(one: DeliveryRun, work: Work) -> dict[str, float]:
    """The rate flat out, and latencies at the fixed rate. A setting that does not reach that rate has no latencies."""
    warm = one.deliver(WARM_PUBLICATIONS, 1e9, WARM_PUBLICATIONS * work.consumers)
    likely = WARM_PUBLICATIONS / warm["seconds"]
    count = max(WARM_PUBLICATIONS, min(work.flat_out, int(likely * work.flat_out_seconds)))
    out = one.deliver(count, 1e9, count * work.consumers)
    found = {
        "publications_per_second": count / out["seconds"],
        "server_cpu_us": out["server_cpu"] / count * 1e6,
        "end_cpu_us": out["end_cpu"] / count * 1e6,
        "load": os.getloadavg()[0],
    }
    if found["publications_per_second"] < work.rate:
        return found
    count = max(100, int(work.rate * work.seconds))
    one.held()
    slow = one.deliver(count, work.rate, count * work.consumers)
    at_rate = latency(slow, work.rate)
    wanted = ("p50_ms", "p99_ms", "publisher_late_ms")
    return {
        **found,
        **one.held(),
        **{name: at_rate[name] for name in wanted},
        "server_cpu_us_at_rate": slow["server_cpu"] / count * 1e6,
    }


COLUMNS = (
    "", "an answer means", "publications/s", "beside memory", "servers' CPU", "at the rate", "ends' CPU", "p50", "p99",
)  # fmt: skip


def table(runs: dict[str, list[dict[str, float]]]) -> str:
    """The medians as a table of Markdown. CPU is that of a publication: flat out, and of servers at the rate."""
    found = {name: medians(those) for name, those in runs.items()}
    lines = ["| " + " | ".join(COLUMNS) + " |", "|" + "---|" * len(COLUMNS)]
    for name, one in found.items():
        rates = [each["publications_per_second"] for each in runs[name]]
        base = found.get(BASELINE)
        cells = [
            name,
            SETTINGS[name].promise,
            f"{one['publications_per_second']:,.0f} ({min(rates):,.0f} to {max(rates):,.0f})",
            "" if base is None else f"{one['publications_per_second'] / base['publications_per_second']:.2f}",
            f"{one['server_cpu_us']:.0f} us",
            f"{one['server_cpu_us_at_rate']:.0f} us" if "server_cpu_us_at_rate" in one else BELOW,
            f"{one['end_cpu_us']:.0f} us",
            *(f"{one[each]:.1f} ms" if each in one else BELOW for each in ("p50_ms", "p99_ms")),
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def held(runs: dict[str, list[dict[str, float]]]) -> str:
    """How long heads held their output, at the rate, beside their syncs."""
    lines = []
    for name, one in ((name, medians(those)) for name, those in runs.items()):
        if "held_p50_ms" in one:
            said = [f"held {one['held_p50_ms']:.2f} ms, p99 {one['held_p99_ms']:.2f} ms"]
            if "sync_p50_ms" in one:
                said.append(f"one sync {one['sync_p50_ms']:.2f} ms, p99 {one['sync_p99_ms']:.2f} ms")
            lines.append(f"{name}: {'; '.join(said)}")
    return "\n".join(lines)


def compare(settings: Sequence[Setting], work: Work, program: str, place: Path, times: int) -> dict[str, Any]:
    """Run all settings in turn, a number of times."""
    runs: dict[str, list[dict[str, float]]] = {each.name: [] for each in settings}
    for _ in range(times):
        for setting in settings:
            folder = place / "log"
            one = open_run(work, setting, program, folder)
            try:
                found = measure(one, work)
            finally:
                one.close()
                if folder.exists():
                    shutil.rmtree(folder)
            runs[setting.name].append(found)
            print(setting.name, {name: round(value, 2) for name, value in found.items()}, file=sys.stderr, flush=True)
    return {"runs": runs, "median": {name: medians(those) for name, those in runs.items()}}


def chosen(names: Sequence[str], program: str) -> list[Setting]:
    """The settings to run; without a server those of JetStream are left out."""
    return [SETTINGS[name] for name in names if program or not SETTINGS[name].replicas]


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.broker.jetstream", description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, help="a folder on the disk to measure (default: a temporary one)")
    parser.add_argument("--quick", action="store_true", help="a fifth of the work")
    parser.add_argument("--runs", type=int, default=3, help="runs of each setting (default %(default)s)")
    parser.add_argument("--consumers", type=int, default=5, help="how many have each publication (default %(default)s)")
    parser.add_argument("--payload", type=int, default=200, help="bytes beside the attributes (default %(default)s)")
    parser.add_argument("--window", type=int, default=4096, help="publications without an answer (default %(default)s)")
    parser.add_argument("--rate", type=float, default=3000.0, help="publications/s at which latency is measured")
    parser.add_argument("--seconds", type=float, default=5.0, help="for how long, at that rate (default %(default)s)")
    parser.add_argument("--settings", nargs="+", default=list(SETTINGS), choices=SETTINGS, help="which to run")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures to this file")
    options = parser.parse_args(arguments)
    program = find_program()
    settings = chosen(options.settings, program)
    if len(settings) < len(options.settings):
        print(MISSING, file=sys.stderr)
    if not settings:
        return 1
    scale = 0.2 if options.quick else 1.0
    work = Work(
        bodies_of(options.payload), options.consumers, options.window, int(60_000 * scale), 4 * scale,
        options.rate, options.seconds * scale,
    )  # fmt: skip
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        place = Path(folder)
        found: dict[str, Any] = {"sync": sync_seconds(place / "sync", 200)}
        found |= compare(settings, work, program, place, options.runs)
    size = statistics.fmean(map(len, work.bodies))
    print(f"{size:.0f} bytes a publication, {work.consumers} consumers, latency at {work.rate:g} publications/s")
    print(f"one sync: {found['sync']['p50_ms']:.2f} ms, p99 {found['sync']['p99_ms']:.2f} ms; load {os.getloadavg()}")
    print(table(found["runs"]))
    print(held(found["runs"]))
    if options.json is not None:
        options.json.write_text(json.dumps(found, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
