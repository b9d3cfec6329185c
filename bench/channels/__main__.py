"""Channels measured beside the same query in plain Spark from files: delays of a continuous one, lateness of periods.

    python -m bench.channels [continuous|repetitive|all] [--rate 1000] [--subscriptions 1000] [--seconds 50]
        [--periods 2 5 10] [--json FILE]

Both together take less than five minutes. `continuous` and `repetitive` beside this file say what is measured.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

from bench.channels import continuous, repetitive

LEAST_PERIODS: Final = 4
"""Of the longest period; with fewer batches nothing can be said of their spread."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.channels", description=__doc__)
    parser.add_argument("what", nargs="?", choices=("continuous", "repetitive", "all"), default="all")
    parser.add_argument("--rate", type=float, default=1000.0, help="publications a second")
    parser.add_argument("--subscriptions", type=int, default=1000, help="back-end subscriptions of each channel")
    parser.add_argument("--seconds", type=float, default=50.0, help="time that is judged, after the warm-up")
    parser.add_argument("--periods", type=float, nargs="+", default=[2.0, 5.0, 10.0], help="whole seconds")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    if options.what != "continuous" and options.seconds < (least := LEAST_PERIODS * max(options.periods)):
        parser.error(f"--seconds {options.seconds:g} has too few periods to judge: use at least {least:g}")
    found: dict[str, Any] = {}
    size = (options.rate, options.subscriptions, options.seconds)
    if options.what != "repetitive":
        with tempfile.TemporaryDirectory() as home:
            os.environ["PLIMSOLL_HOME"] = home
            found["continuous"] = continuous.measured(*size, Path(home))
        print(continuous.summary(found["continuous"]), flush=True)
    if options.what != "continuous":
        with tempfile.TemporaryDirectory() as home:
            os.environ["PLIMSOLL_HOME"] = home
            found["repetitive"] = repetitive.measured(*size, options.periods, Path(home))
        print(repetitive.summary(found["repetitive"]), flush=True)
    if options.json is not None:
        options.json.write_text(json.dumps(found, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
