"""`python -m bench.estimation`: how accurate a broker's estimates are, compared with true rates in virtual time.

Four tables: the accuracy of Ring and Press for sets of subscribers at constant rates; how soon they are accurate again
after half of the publishers have doubled their rates; the forecasts of two models of the match delay beside the
measured time of real engines; and the time of a publication at an edge with an estimator and without. Everything but
measured time follows from seeds. All figures are also written to a JSON file.
"""

import argparse
import json
from pathlib import Path
from typing import Any

from bench.estimation import hot_path
from bench.estimation.delays import measured
from bench.estimation.estimates import AFTER_SECONDS, SIZES, recovered, stationary, stepped
from bench.estimation.worlds import World

PAPER = "PADRES 2006, 6.2: 91 % on average with Press N=50, for input utilisation, by its authors' measure"


def percent(row: dict[str, Any]) -> str:
    return f"{100 * row['output']:6.1f} /{100 * row['input']:5.1f} %"


def show_stationary(tables: dict[str, Any]) -> None:
    print("\nAccuracy of estimated rates, output / input, at constant rates: against the true means, by size of set")
    against = "against the next minute"
    print(f"  {'':<32}{'samples':>8}" + "".join(f"{size:>17}" for size in SIZES) + f"{against:>26}: 20{200:>15}")
    for name, row in tables.items():
        cells = "".join(f"{percent(row['truth'][str(size)]):>17}" for size in SIZES)
        beside = "".join(f"{percent(row['next'][str(size)]):>17}" for size in (20, 200))
        print(f"  {name:<32}{row['wait_seconds']:>6.1f} s{cells}{'':>12}{beside}")
    print(f"  {PAPER}")


def show_stepped(tables: dict[str, Any]) -> None:
    print("\nThe same by seconds after half of the publishers have doubled their rates: sets of 20, then of 200")
    print(f"  {'':>6}" + "".join(f"{name:>36}" for name in tables))
    for after in AFTER_SECONDS:
        rows = [table[str(after)] for table in tables.values()]
        print(f"  {after:>4.0f} s" + "".join(f"{percent(row['20']):>19}{percent(row['200']):>17}" for row in rows))
    for name, table in tables.items():
        for size in (20, 200):
            times = {least: recovered(table, size, least) for least in (0.90, 0.95, 0.97)}
            shown = [
                f"{100 * least:.0f} % {'never' if at is None else f'after {at:.0f} s'}" for least, at in times.items()
            ]
            print(f"  {name}, sets of {size}: stays at or above {', '.join(shown)}")


def show_delays(rows: list[dict[str, Any]]) -> None:
    print("\nMatch delay before and after a change, microseconds of processor time: measured, and forecast")
    titles = f"{'engine':<24}{'change':<31}{'subscriptions':>15}{'matches':>15}{'measured':>19}"
    print(f"  {titles}{'linear':>17}{'fitted':>17}")
    for row in rows:
        counts = f"{row['subscriptions'][0]} > {row['subscriptions'][1]}"
        matches = f"{row['matches'][0]:.1f} > {row['matches'][1]:.1f}"
        seconds = f"{row['before_seconds'] * 1e6:.1f} > {row['after_seconds'] * 1e6:.1f}"
        models = "".join(
            f"{row[name] * 1e6:>9.1f} ({100 * row[name + '_error']:+4.0f}%)" for name in ("linear", "fitted")
        )
        print(f"  {row['engine']:<24}{row['change']:<31}{counts:>15}{matches:>15}{seconds:>19}{models}")


def show_hot_path(rows: list[dict[str, Any]]) -> None:
    print("\nTime of one publication at an edge, microseconds: without estimation, with Ring, with Press not sampling")
    for row in rows:
        what = f"{row['subscriptions']:,} subscriptions, {row['links']} links, {row['per_round']} a round"
        times = "".join(f"{row[f'{name}_seconds'] * 1e6:>9.1f}" for name in ("none", "ring", "press"))
        ratios = "".join(f"{row[f'{name}_ratio']:>9.3f}" for name in ("ring", "press"))
        print(f"  {what:<46}{row['deliveries_each']:>7.1f} deliveries per publication{times}   x{ratios}")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.estimation", description=__doc__)
    parser.add_argument("--worlds", type=int, default=10, help="random settings: publishers, quotes and subscribers")
    parser.add_argument("--runs", type=int, default=2, help="runs of each setting (default %(default)s)")
    parser.add_argument(
        "--json",
        type=Path,
        default=Path("bench-report/estimation.json"),
        help="file for all figures (default %(default)s)",
    )
    parser.add_argument("--hot-path", action="store_true", help="only the time of a publication at an edge")
    options = parser.parse_args()
    if options.hot_path:
        show_hot_path(hot_path.measured())
        return
    print(f"quotes: {World(0).quotes}; {options.worlds} worlds, {options.runs} runs of each")
    report: dict[str, Any] = {"stationary": stationary(options.worlds, options.runs)}
    show_stationary(report["stationary"])
    report["stepped"] = stepped(options.worlds, options.runs)
    show_stepped(report["stepped"])
    report["match_delay"] = measured()
    show_delays(report["match_delay"])
    report["hot_path"] = hot_path.measured()
    show_hot_path(report["hot_path"])
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(json.dumps(report, indent=1))
    print(f"\nAll figures: {options.json}")


if __name__ == "__main__":
    main()
