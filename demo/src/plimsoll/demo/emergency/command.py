"""`make demo-channels`: run the scenario, judge it, write the report; exit code 1 if the verdict is not passed."""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from plimsoll.core.printable import printable_lines
from plimsoll.demo.emergency.fleet import ARMS
from plimsoll.demo.emergency.page import COUNTS, write_report
from plimsoll.demo.emergency.plan import EmergencyScenario, emergency_plan
from plimsoll.demo.emergency.run import play
from plimsoll.demo.fleet import DemoFleetError
from plimsoll.local.storage.fleet_folder import FleetFolder
from plimsoll.sparkjobs.launch.local_process import missing_requirement

FAILED, NO_SPARK, NO_FLEET = 1, 3, 2


def main(argv: Sequence[str] | None = None) -> int:
    """Run it; returns the exit code."""
    given = _parser().parse_args(argv)
    if lack := missing_requirement():
        _say(f"the demo of channels needs Spark, and {lack}: run `make setup-spark`")
        return NO_SPARK
    scenario = EmergencyScenario(given.seconds, given.people, given.reports, seed=given.seed)
    home = Path(tempfile.mkdtemp(prefix="plimsoll-channels-"))
    folder = FleetFolder(home / "emergencies")
    began = time.monotonic()
    try:
        run = play(
            emergency_plan(scenario), given.arm, given.placement, folder,
            lambda line: _say(f"{time.monotonic() - began:6.1f} s  {line}"),
        )  # fmt: skip
    except DemoFleetError as error:
        _say(str(error))
        return NO_FLEET
    finally:
        given.report.mkdir(parents=True, exist_ok=True)
        if (logs := folder.path / "logs").is_dir():
            shutil.copytree(logs, given.report / "logs", dirs_exist_ok=True)
        shutil.rmtree(home, ignore_errors=True)  # keys and data of the run
    report = write_report(run, given.report)
    _say(f"{report['verdict']}: " + ", ".join(f"{name} {report[name]:,}" for name in COUNTS))
    for line in (*report["problems"], *report["examples"]):
        _say(f"  {line}")
    _say(f"{report['results']:,} results, {report['migrations']} moved; p95 {report['delaySeconds']['p95']} s;"
         f" {given.report}/channels.html")  # fmt: skip
    return 0 if report["verdict"] == "passed" else FAILED


def _say(line: str) -> None:
    sys.stdout.write(printable_lines(f"{line}\n"))
    sys.stdout.flush()


def _parser() -> argparse.ArgumentParser:
    plan = EmergencyScenario()
    parser = argparse.ArgumentParser(prog="python -m plimsoll.demo.emergency.command", description=__doc__)
    parser.add_argument("--arm", choices=sorted(ARMS), default="ldm", help="how loads are evened out (default: ldm)")
    parser.add_argument("--placement", choices=("nearest", "round-robin"), default="nearest", help="of newcomers")
    parser.add_argument("--seconds", type=float, default=plan.seconds, help="of traffic (default: %(default)s)")
    parser.add_argument("--people", type=int, default=plan.people, help="subscribers (default: %(default)s)")
    parser.add_argument("--reports", type=int, default=plan.reports, help="of emergencies (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=plan.seed, help="of the plan (default: %(default)s)")
    parser.add_argument("--report", type=Path, default=Path("demo-report"), metavar="DIR", help="of JSON and page")
    return parser


if __name__ == "__main__":
    sys.exit(main())
