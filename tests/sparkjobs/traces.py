"""Load reports of small fleets as files, with heads, copies, rows out of order, late rows and invalid ones."""

from __future__ import annotations

import random
import time
from pathlib import Path
from typing import Any

from tests.telemetry.rows import row, write_rows

from plimsoll.telemetry.schema import EXPECTED, INCOMING, LATEST, LOADS, MAJOR, METRICS
from plimsoll.telemetry.snapshot import SnapshotError, TelemetrySnapshot, decode_snapshot

Row = dict[str, Any]
FLEET = "f"
SCALES = {"match_delay_seconds": 1e-5, "input_rate": 1e4, "output_rate": 1e6, "output_bytes_per_second": 1e8}


def now_us() -> int:
    return time.time_ns() // 1000


def trace(seed: int, end_us: int, clusters: int = 2, edges: int = 3, seconds: int = 330, every: int = 5) -> list[Row]:
    """Reports up to `end_us`, in order of time."""
    generator = random.Random(seed)
    rows: list[Row] = []
    for cluster in range(clusters):
        names = [f"c{cluster}-e{edge}" for edge in range(edges)] + [f"c{cluster}-head"]
        for name in names:
            level = generator.uniform(0.1, 1.2)
            for seq, back in enumerate(range(seconds, -1, -every), 1):
                at_us = end_us - back * 1_000_000 - generator.randrange(900_000)
                rows.append(
                    row(
                        name, seq, at_us, cluster=f"c{cluster}", fleet=FLEET, epoch=end_us - 10**9,
                        role="head" if name.endswith("head") else "edge",
                        state=generator.choice(["OK", "BUSY", "N/A", "STABILIZING"]),
                        received_us=at_us + generator.randrange(400_000),
                        **{metric: level * generator.random() * SCALES.get(metric, 1.0) for metric in METRICS},
                    )
                )  # fmt: skip
    return sorted(rows, key=lambda each: each["at_us"])


def disturbed(seed: int, rows: list[Row]) -> list[Row]:
    """The rows with copies, out of order, and with invalid rows."""
    generator = random.Random(seed)
    found = list(rows)
    for one in generator.sample(
        rows, len(rows) // 8
    ):  # received by a second collector as well, a little later or earlier
        received = one["received_us"] + generator.randrange(-300_000, 300_000)
        found.append(one | {"collector": "c1", "received_us": received})
    found += generator.sample(rows, len(rows) // 10)
    for one in generator.sample(rows, 6):
        broken: Row = generator.choice(
            [{"schema": 2}, {"fleet": "another"}, {"cpu_ratio": float("nan")}, {"seq": 0}, {"input_rate": 1e12},
             {"received_us": one["at_us"] + 6_000_001}, {"role": "mediator"}]
        )  # fmt: skip
        found.append(one | broken)
    for start in range(0, len(found), 40):
        part = found[start : start + 40]
        generator.shuffle(part)
        found[start : start + 40] = part
    return found


def usable(row: Row) -> bool:
    """Whether jobs can use a row, by the schema's rules in plain Python."""
    return (
        (row["schema"], row["fleet"]) == (MAJOR, FLEET)
        and row["role"] in ("head", "edge")
        and row["seq"] > 0
        and abs(row["at_us"] - row["received_us"]) <= 5_000_000
        and all(abs(row[name]) <= 9.2e9 for name in METRICS)
    )


def write_files(root: Path, rows: list[Row], files: int, prefix: str = "c0") -> list[Path]:
    """Write the rows to `files` files in the folder that collectors write to."""
    folder = root / INCOMING
    folder.mkdir(parents=True, exist_ok=True)
    size = -(-len(rows) // files)
    paths = []
    for number in range(files):
        path = folder / f"{prefix}-{number:04}.parquet"
        write_rows(path, LOADS, rows[number * size : (number + 1) * size])
        paths.append(path)
    return paths


def expect(root: Path, clusters: dict[str, list[str]]) -> None:
    import msgspec

    path = root / EXPECTED
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(
        msgspec.json.encode({"schema": MAJOR, "fleet": FLEET, "written_us": now_us(), "clusters": clusters})
    )


def read_latest(root: Path) -> TelemetrySnapshot | None:
    """The snapshot in `latest.json`; None if there is none or it cannot be read."""
    try:
        return decode_snapshot((root / LATEST).read_bytes())
    except (FileNotFoundError, SnapshotError):
        return None
