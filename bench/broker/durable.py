"""A head with its log in memory, on a disk with each setting of `sync`, with a standby, and what recovery takes.

    python -m bench.broker.durable [--folder DIR] [--quick] [--json FILE]

They run one after the other, again and again, so that the machine is the same for all; medians of their runs. The
disk is that of DIR; one sync of it is measured first. Recovery reads a log of the size that --recover-mib says, by its
seals and, beside that, as if it had none. A log of small segments whose index is that of 100 GiB is recovered, read
back from its beginning, and written on until all of it has been replaced, with the memory that each takes at most.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import msgspec
from bench.broker.__main__ import Load, latency
from bench.broker.processes import PLAIN_KEYS
from bench.broker.runs import ChainRun

from plimsoll.broker.storage.log_disk import LogDisk
from plimsoll.broker.storage.log_folder import LogFolder
from plimsoll.core.config import BrokerConfig, DiskLog, LinkSecurity
from plimsoll.core.head.durability import segments as log_segments
from plimsoll.core.head.durability.records import Checkpoint, DiskRecord, EpochBegan, Logged, PublisherKnown
from plimsoll.core.head.durability.segments import INDEX_BYTES
from plimsoll.core.head.durability.store import SEGMENT_BYTES, LogStore
from plimsoll.core.head.machine import Head
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol import wire

MIB = 1024 * 1024
SMALL_SEGMENT_BYTES = 256 * 1024
BATCH, SMALL_BATCH = 64, 3
"""Publications of a batch. Small segments have as many places in their index as whole ones only with small batches."""
LARGE_LOG_BYTES = 100 * 1024 * MIB
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


def open_chain(
    texts: list[str], bodies: list[bytes], links: int, setting: str, folder: Path, window: int | None = None
) -> ChainRun:
    """Start publisher, head, edge and sinks with one of the settings. `window`: as of `ChainRun`."""
    *others, sync = setting.split(" and ")
    disk = None
    if sync in ("Always", "Interval"):
        disk = DiskLog(directory=str(folder), size_bytes=1 << 30, sync=sync)  # type: ignore[arg-type]  # one of the settings
    has_standby = "standby" in (*others, sync)
    return ChainRun(texts, bodies, links, PLAIN_KEYS, disk, has_standby=has_standby, window=window)


def run(load: Load, setting: str, folder: Path, flat_out: int, rate: float, seconds: float) -> dict[str, Any]:
    """Capacity, then latency at a fixed rate."""
    one = open_chain(load.texts, load.bodies, LINKS, setting, folder)
    first, warm = 1, flat_out // 5
    try:
        one.run(warm, 1e9, deliveries=load.deliveries(first, warm))
        first += warm
        out = one.run(flat_out, 1e9, deliveries=load.deliveries(first, flat_out))
        first += flat_out
        one.held()
        count = max(100, int(rate * seconds))
        slow = one.run(count, rate, deliveries=load.deliveries(first, count))
        found = {**latency(slow, rate), **one.held()}
        found["publications_per_second"] = flat_out / out["seconds"]
        found["head_cpu_us_per_publication"] = out["head_cpu"] / flat_out * 1e6
        if folder.exists():
            status = one.head.ask("disk")
            found |= {"syncs": status["log_syncs"], "sync_ms": status["log_sync_seconds"] / status["log_syncs"] * 1000}
        return found
    finally:
        one.close()
        if folder.exists():
            shutil.rmtree(folder)


def medians(runs: Sequence[dict[str, float]]) -> dict[str, float]:
    """Of each figure that all runs have."""
    common = [name for name in runs[0] if all(name in one for one in runs)]
    return {name: statistics.median(one[name] for one in runs) for name in common}


def write_log(
    folder: Path, is_enough: Callable[[LogStore], bool], segment_bytes: int = SEGMENT_BYTES, batch: int = BATCH
) -> None:
    """Write a log. `batch`: publications of a batch."""
    disk = LogDisk(DiskLog(directory=str(folder), size_bytes=1 << 40), "h")
    disk.store.segment_bytes = segment_bytes
    disk.recover()
    for _ in written(disk.store, batch):
        if is_enough(disk.store):
            break
    disk.folder.sync()
    disk.close()


def written(store: LogStore, batch: int) -> Iterator[int]:
    """Write batches, as long as this is asked for; yields the position of the last publication."""
    body = wire.encode(msg.Body({"class": "STOCK", "symbol": "YHOO", "open": 25.25, "high": 43.0}, b"x" * 200))
    offset = store.position
    known = [PublisherKnown(f"p{i}", 1) for i in range(100)]
    while True:
        if store.is_full:
            store.settle()
            store.remove_old()
            store.begin(Checkpoint([EpochBegan(1, 1, 1)], [("h", 1, offset)], known, [], []))
        records: list[DiskRecord] = []
        for _ in range(batch):
            offset += 1
            pub = msg.Pub(offset, "h", 1, offset, f"p{offset % 100}", 1, offset // 100 + 1, 0, 0, msgspec.Raw(body))
            records.append(Logged(wire.encode(pub)))
        store.write(records)
        yield store.position


def memory_mib(which: str) -> float:
    """Of this process, as its system tells: `VmRSS` now, `VmHWM` at most; `ru_maxrss` begins with its parent."""
    lines = Path("/proc/self/status").read_text().splitlines()
    (line,) = [line for line in lines if line.startswith(which)]
    return int(line.split()[1]) / 1024


def recover(folder: Path) -> dict[str, float]:
    """Recover a head from its log, in this process: the time, and the memory that this took at most."""
    Path("/proc/self/clear_refs").write_text("5")  # the highest is what it is now
    before = memory_mib("VmRSS")
    began = time.perf_counter()
    disk = LogDisk(DiskLog(directory=str(folder), size_bytes=1 << 40), "h")
    recovered = disk.recover()
    config = BrokerConfig(name="h", role="head", cluster="c", data="-", control="-", security=LinkSecurity(plain=True))
    head = Head(config, 2, lambda: 1, recovered)
    seconds = time.perf_counter() - began
    peak = memory_mib("VmHWM") - before
    disk.close()
    return {
        "mib": disk.store.bytes / MIB, "segments": len(disk.store.segments), "entries": head.log.last,
        "seconds": seconds, "peak_mib": peak,
    }  # fmt: skip


def retain(folder: Path) -> dict[str, float]:
    """Recover a large log, read all of it back, and write until nothing of it is left; each with its memory at most."""
    Path("/proc/self/clear_refs").write_text("5")  # the highest is what it is now
    before = memory_mib("VmRSS")
    disk = LogDisk(DiskLog(directory=str(folder), size_bytes=1 << 40), "h")
    began = time.perf_counter()
    recovered = disk.recover()
    config = BrokerConfig(name="h", role="head", cluster="c", data="-", control="-", security=LinkSecurity(plain=True))
    head, store = Head(config, 2, lambda: 1, recovered), disk.store
    found = {
        "segments": float(len(store.segments)), "mib": store.bytes / MIB,
        "stands_for_gib": sum(len(one.starts) for one in store.segments) * INDEX_BYTES / (1 << 30),
    }  # fmt: skip

    def done(what: str) -> None:
        found[f"{what}_seconds"] = time.perf_counter() - began
        found[f"{what}_peak_mib"] = memory_mib("VmHWM") - before

    done("recovered")
    last, began = head.log.last, time.perf_counter()
    found["entries_read"] = float(sum(1 for _ in head.log.after(0)))
    done("read")
    began = time.perf_counter()
    store.size, store.segment_bytes = store.bytes, SMALL_SEGMENT_BYTES
    with small_index():
        for _ in written(store, SMALL_BATCH):
            if store.first > last:
                break
    done("replaced")
    disk.close()
    return found


def in_a_process(what: str, folder: Path) -> dict[str, float]:
    """`recover` or `retain` in a process of its own, so that its memory is its own."""
    command = [sys.executable, "-m", "bench.broker.durable", f"--{what}", str(folder)]
    found: dict[str, float] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return found


def break_seals(folder: Path) -> None:
    """Change the last byte of each segment, or change it back: without a good seal a segment is read whole."""
    for file in sorted(folder.glob("*.log"))[:-1]:
        with file.open("r+b") as opened:
            opened.seek(-1, 2)
            last = opened.read(1)
            opened.seek(-1, 2)
            opened.write(bytes([last[0] ^ 1]))


def recovery(folder: Path, size: int, runs: int) -> dict[str, Any]:
    """Recover a log by its seals, and by reading every segment, in turn; medians."""
    write_log(folder, lambda store: store.bytes >= size)
    found: dict[str, list[dict[str, float]]] = {"by seals": [], "every segment read": []}
    for _ in range(runs):
        found["by seals"].append(in_a_process("recover", folder))
        break_seals(folder)
        found["every segment read"].append(in_a_process("recover", folder))
        break_seals(folder)
    shutil.rmtree(folder)
    return {way: medians(those) for way, those in found.items()}


def small_index() -> Any:
    """Small segments have as many places in their index as whole ones."""
    return mock.patch.object(log_segments, "INDEX_BYTES", INDEX_BYTES * SMALL_SEGMENT_BYTES // SEGMENT_BYTES)


def large_log(folder: Path) -> dict[str, float]:
    """`retain` a log of small segments, each with the index of a whole one, which stand for 100 GiB."""

    def is_enough(store: LogStore) -> bool:
        places = sum(len(one.starts) for one in store.segments) if len(store.segments) % 50 == 0 else 0
        return places * INDEX_BYTES > LARGE_LOG_BYTES

    with small_index():
        write_log(folder, is_enough, SMALL_SEGMENT_BYTES, SMALL_BATCH)
    found = in_a_process("retain", folder)
    shutil.rmtree(folder)
    return found


def compared(median: dict[str, Any]) -> dict[str, Any]:
    """Each setting beside the memory of the same run."""
    base = median["memory"]
    return {
        "ratio": {
            setting: one["publications_per_second"] / base["publications_per_second"] for setting, one in median.items()
        },
        "p99_more_ms": {setting: one["p99_ms"] - base["p99_ms"] for setting, one in median.items()},
    }


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.broker.durable", description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, help="a folder on the disk to measure (default: a temporary one)")
    parser.add_argument("--quick", action="store_true", help="a fifth of the work")
    parser.add_argument("--runs", type=int, default=3, help="runs of each setting (default %(default)s)")
    parser.add_argument("--rate", type=float, default=3000.0, help="publications/s at which latency is measured")
    parser.add_argument("--recover-mib", type=int, default=1024, help="size of the log that is recovered")
    parser.add_argument("--recovery-alone", action="store_true", help="measure nothing but recovery")
    parser.add_argument("--recover", type=Path, metavar="FOLDER", help=argparse.SUPPRESS)
    parser.add_argument("--retain", type=Path, metavar="FOLDER", help=argparse.SUPPRESS)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures to this file")
    parser.add_argument("--settings", nargs="+", default=SETTINGS, choices=SETTINGS, help="which to run")
    options = parser.parse_args(arguments)
    if options.recover is not None:
        print(json.dumps(recover(options.recover)))
        return 0
    if options.retain is not None:
        print(json.dumps(retain(options.retain)))
        return 0
    settings = [] if options.recovery_alone else list(dict.fromkeys(("memory", *options.settings)))
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
        found["median"] = {setting: medians(those) for setting, those in runs.items()}
        if settings:
            found |= compared(found["median"])
        found["recovery"] = recovery(folder / "recovery", options.recover_mib * MIB, options.runs)
        found["large log"] = large_log(folder / "large")
    for name in ("ratio", "p99_more_ms", "recovery", "large log"):
        if name in found:
            print(f"{name}: {found[name]}")
    if options.json is not None:
        options.json.write_text(json.dumps(found, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
