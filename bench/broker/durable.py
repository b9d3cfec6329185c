"""A head with its log in memory, on a disk with each setting of `sync`, with a standby, and what recovery takes.

    python -m bench.broker.durable [--folder DIR] [--quick] [--json FILE]

They run one after the other, again and again, so that the machine is the same for all; medians of their runs. The
disk is that of DIR; one sync of it is measured first. Recovery reads a log of the size that --recover-mib says.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import msgspec
from bench.broker.__main__ import Load, latency
from bench.broker.processes import PLAIN_KEYS, ChainRun

from plimsoll.broker.storage.log_disk import LogDisk
from plimsoll.broker.storage.log_folder import LogFolder
from plimsoll.core.config import BrokerConfig, DiskLog, LinkSecurity
from plimsoll.core.head.durability.records import Checkpoint, DiskRecord, EpochBegan, Logged, PublisherKnown
from plimsoll.core.head.machine import Head
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol import wire

MIB = 1024 * 1024
SUBSCRIPTIONS, LINKS = 1000, 10
"""Some six deliveries each."""
SETTINGS = ("memory", "Always", "Interval", "standby", "standby and Always")
"""A standby keeps its copy in memory."""


def sync_seconds(folder: Path, times: int) -> dict[str, float]:
    """The time of one sync behind a write of 16 KiB, in milliseconds."""
    files = LogFolder(folder)
    files.create("sync.log", times * 16 * 1024)
    found = []
    for i in range(times):
        files.write("sync.log", i * 16 * 1024, b"x" * 16 * 1024)
        began = time.perf_counter()
        files.sync()
        found.append((time.perf_counter() - began) * 1000)
    files.close()
    found.sort()
    return {"p50_ms": found[len(found) // 2], "p99_ms": found[int(len(found) * 0.99)], "times": times}


def run(load: Load, setting: str, folder: Path, flat_out: int, rate: float, seconds: float) -> dict[str, Any]:
    """Capacity, then latency at a fixed rate."""
    *others, sync = setting.split(" and ")
    has_standby = "standby" in (*others, sync)
    disk = None
    if sync in ("Always", "Interval"):
        disk = DiskLog(directory=str(folder), size_bytes=1 << 30, sync=sync)  # type: ignore[arg-type]  # one of the settings
    one = ChainRun(load.texts, load.bodies, LINKS, PLAIN_KEYS, disk, has_standby=has_standby)
    first, warm = 1, flat_out // 5
    try:
        one.run(warm, 1e9, deliveries=load.deliveries(first, warm))
        first += warm
        out = one.run(flat_out, 1e9, deliveries=load.deliveries(first, flat_out))
        first += flat_out
        count = max(100, int(rate * seconds))
        slow = one.run(count, rate, deliveries=load.deliveries(first, count))
        found = {"publications_per_second": flat_out / out["seconds"], **latency(slow, rate)}
        found["publications_per_second"] = flat_out / out["seconds"]
        found["head_cpu_us_per_publication"] = out["head_cpu"] / flat_out * 1e6
        if disk is not None:
            status = one.head.ask("disk")
            found |= {"syncs": status["log_syncs"], "sync_ms": status["log_sync_seconds"] / status["log_syncs"] * 1000}
        return found
    finally:
        one.close()
        if folder.exists():
            shutil.rmtree(folder)


def recovery(folder: Path, size: int) -> dict[str, float]:
    """Write a log of this size, and recover a head from it."""
    asked = DiskLog(directory=str(folder), size_bytes=2 * size)
    disk = LogDisk(asked, "h")
    disk.recover()
    body = wire.encode(msg.Body({"class": "STOCK", "symbol": "YHOO", "open": 25.25, "high": 43.0}, b"x" * 200))
    offset = 0
    known = [PublisherKnown(f"p{i}", 1) for i in range(100)]
    while disk.store.bytes < size:
        if disk.store.is_full:
            disk.store.begin(Checkpoint([EpochBegan(1, 1, 1)], [("h", 1, offset)], known, [], []))
        records: list[DiskRecord] = []
        for _ in range(64):
            offset += 1
            pub = msg.Pub(offset, "h", 1, offset, f"p{offset % 100}", 1, offset // 100 + 1, 0, 0, msgspec.Raw(body))
            records.append(Logged(wire.encode(pub)))
        disk.store.write(records)
    disk.folder.sync()
    written = disk.store.bytes
    disk.close()
    began = time.perf_counter()
    disk = LogDisk(asked, "h")
    recovered = disk.recover()
    config = BrokerConfig(name="h", role="head", cluster="c", data="-", control="-", security=LinkSecurity(plain=True))
    head = Head(config, 2, lambda: 1, recovered)
    seconds = time.perf_counter() - began
    disk.close()
    shutil.rmtree(folder)
    per_gib = seconds * 1024 * MIB / written
    return {"mib": written / MIB, "entries": head.log.last, "seconds": seconds, "seconds_per_gib": per_gib}


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.broker.durable", description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, help="a folder on the disk to measure (default: a temporary one)")
    parser.add_argument("--quick", action="store_true", help="a fifth of the work")
    parser.add_argument("--runs", type=int, default=3, help="runs of each setting (default %(default)s)")
    parser.add_argument("--rate", type=float, default=3000.0, help="publications/s at which latency is measured")
    parser.add_argument("--recover-mib", type=int, default=1024, help="size of the log that is recovered")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures to this file")
    parser.add_argument("--settings", nargs="+", default=SETTINGS, choices=SETTINGS, help="which to run")
    options = parser.parse_args(arguments)
    settings = list(dict.fromkeys(("memory", *options.settings)))
    scale = 0.2 if options.quick else 1.0
    load = Load(SUBSCRIPTIONS)
    with tempfile.TemporaryDirectory(dir=options.folder) as place:
        folder = Path(place)
        found: dict[str, Any] = {"sync": sync_seconds(folder / "sync", int(500 * scale))}
        print("one sync:", found["sync"], flush=True)
        runs: dict[str, list[dict[str, Any]]] = {setting: [] for setting in settings}
        for _ in range(options.runs):
            for setting in settings:
                one = run(load, setting, folder / "log", int(100_000 * scale), options.rate, 10 * scale)
                runs[setting].append(one)
                print(setting, {name: round(value, 3) for name, value in one.items()}, flush=True)
        found["runs"] = runs
        found["median"] = {
            setting: {name: statistics.median(one[name] for one in those) for name in those[0]}
            for setting, those in runs.items()
        }
        base = found["median"]["memory"]
        found["ratio"] = {
            setting: found["median"][setting]["publications_per_second"] / base["publications_per_second"]
            for setting in settings
        }
        found["p99_more_ms"] = {setting: found["median"][setting]["p99_ms"] - base["p99_ms"] for setting in settings}
        found["recovery"] = recovery(folder / "recovery", options.recover_mib * MIB)
    print("ratio of publications/s to memory:", found["ratio"])
    print("p99 more than memory, ms:", found["p99_more_ms"])
    print("recovery:", found["recovery"])
    if options.json is not None:
        options.json.write_text(json.dumps(found, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
