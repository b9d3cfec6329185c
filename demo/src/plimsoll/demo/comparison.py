"""The experiment once for each policy, side by side: `python -m plimsoll.demo.comparison [--seconds S] ...`.

Each run is the demo with `--balance POLICY`, in a process of its own with a report of its own; the table is read from
those reports. A run without balancing leaves an edge overloaded: publications that had not arrived when the run was
given up are reported as such, and are not loss. PADRES is held to its claims.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from plimsoll.core.printable import printable_lines
from plimsoll.demo.analysis.balancing_result import POLICIES
from plimsoll.demo.analysis.convergence import ConvergenceLimits, DetectionSample, EdgeLevels, overloaded_edges

HEADINGS: Final = (
    "policy", "converged", "again", "in rest", "overloaded", "delay p50", "delay p99", "moved", "overhead", "delivered",
    "lost", "dup.", "reord.",
)  # fmt: skip
TABLE_NAME: Final = "comparison"
FINAL_SECONDS: Final = 5.0


def main(argv: Sequence[str] | None = None) -> int:
    """Run all, print and write the table. The exit code is that of the worst run."""
    given, rest = _parser().parse_known_args(argv)
    rows, worst = [], 0
    for policy in given.policies:
        folder = given.report / policy
        sys.stdout.write(printable_lines(f"--- {policy}\n"))
        sys.stdout.flush()
        options = ["--balance", policy, "--report", str(folder), "--plain", "--strict", *rest]
        program = "import sys; from plimsoll.demo import main; sys.exit(main())"
        code = subprocess.run([sys.executable, "-c", program, *options], check=False).returncode
        worst = max(worst, code)
        if (folder / "report.json").exists():
            rows.append(comparison_row(msgspec.json.decode((folder / "report.json").read_bytes())))
    text = comparison_table(rows)
    (given.report / f"{TABLE_NAME}.txt").write_text(text, encoding="utf-8")
    (given.report / f"{TABLE_NAME}.json").write_bytes(msgspec.json.format(msgspec.json.encode(rows), indent=1))
    sys.stdout.write(printable_lines(f"\n{text}\n{given.report / TABLE_NAME}.txt and .json have it\n"))
    return worst


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="compare", description="Run the experiment with each policy and print them side by side.",
        epilog="All other options are the demo's.",
    )  # fmt: skip
    parser.add_argument("--policies", nargs="+", choices=list(POLICIES), default=list(POLICIES), metavar="POLICY")
    parser.add_argument("--report", type=Path, default=Path("demo-report/compare"), metavar="DIR")
    return parser


def comparison_row(report: Mapping[str, Any]) -> dict[str, Any]:
    """The row of one report in the table."""
    delay = report["delivery_delay_seconds"]
    return {
        "policy": report["policy"],
        "converged_at_seconds": report["converged_at_seconds"],
        "converged_again_at_seconds": report["converged_again_at_seconds"],
        "share_of_detections_balanced_after": report["share_of_detections_balanced_after"],
        "overloaded_at_the_end": _overloaded(report),
        "delay_p50_seconds": delay["p50"],
        "delay_p99_seconds": delay["p99"],
        "subscribers_moved": sum(one["subscribers"] for one in report["sessions"]),
        "overhead_converging": report["overhead_ratio"]["converging"],
        "delivered": report["delivered"],
        **{name: report[name] for name in ("lost", "duplicated", "reordered")},
    }


def _overloaded(report: Mapping[str, Any]) -> list[str]:
    """Edges overloaded in the last seconds of the traffic."""
    until = report["durations"]["traffic_seconds"]
    found = []
    for name, broker in report["brokers"].items():
        series = broker["series"]
        rows = [i for i, at in enumerate(series["seconds"]) if until - FINAL_SECONDS < at <= until]
        if broker["role"] == "edge" and rows:
            levels = EdgeLevels(*(
                sum(series[metric][i] for i in rows) / len(rows)
                for metric in ("input_utilization", "output_utilization", "match_delay_seconds")
            ))  # fmt: skip
            if overloaded_edges(DetectionSample(until, {name: levels}), ConvergenceLimits()):
                found.append(name)
    return found


def comparison_table(rows: Sequence[Mapping[str, Any]]) -> str:
    """The rows as lines of text, aligned."""
    cells = [list(HEADINGS), *(_cells(one) for one in rows)]
    widths = [max(len(line[i]) for line in cells) for i in range(len(HEADINGS))]
    lines = ["  ".join([line[0].ljust(widths[0]), *map(str.rjust, line[1:], widths[1:])]).rstrip() for line in cells]
    return "\n".join(lines) + "\n"


def _cells(one: Mapping[str, Any]) -> list[str]:
    def seconds(name: str) -> str:
        value = one[name]
        return "never" if value is None else f"{value:.0f} s"

    def share(name: str) -> str:
        return "-" if one[name] is None else f"{one[name]:.1%}"

    def delay(name: str) -> str:
        return "-" if one[name] is None else f"{one[name] * 1000:,.0f} ms"

    return [
        one["policy"], seconds("converged_at_seconds"), seconds("converged_again_at_seconds"),
        share("share_of_detections_balanced_after"), ", ".join(one["overloaded_at_the_end"]) or "none",
        delay("delay_p50_seconds"), delay("delay_p99_seconds"), f"{one['subscribers_moved']:,}",
        share("overhead_converging"), f"{one['delivered']:,}",
        *(f"{one[name]:,}" for name in ("lost", "duplicated", "reordered")),
    ]  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
