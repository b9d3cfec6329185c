"""`python -m bench.matching`: publications per second of the index and of the baselines, then the cost of changes.

The answers of all engines are compared before anything is measured. Each repeat runs every engine once, so that all
of them meet the same machine; a row is the median of the repeats, with the ratio to the naive scan of the same repeat.
Beyond 100,000 subscriptions only the index is run. The table goes to standard output, all figures to a JSON file.

Times are processor time. Everything here is one thread that never waits, so other load on the machine has little
influence.
"""

import argparse
import gc
import json
import platform
import statistics
import sys
import tracemalloc
from collections.abc import Callable, Iterable
from dataclasses import asdict
from pathlib import Path
from time import process_time as clock
from typing import Any

from bench.matching.baselines import BASELINES
from bench.matching.published import FIGURES
from bench.matching.workloads import MIXES, Workload, workload

from plimsoll.core.covering.cover_set import CoveringSet
from plimsoll.core.matching import Index, warm_up
from plimsoll.core.predicates import Subscription

LARGEST_FOR_BASELINES = 100_000
LARGEST_FOR_COVERING = {"paper": 10**7, "selective": 10**7, "general": 10**6, "hostile": 10**6}
CHANGES = 2000
Row = dict[str, Any]


def rate(match: Callable[[Any], Any], publications: list[Any], seconds: float) -> float:
    """Publications per second of processor time, over at least `seconds`.

    Time is read once per pass over a batch: reading it for each publication would be part of the figure.
    """
    begin = clock()
    match(publications[0])
    per_call = max(clock() - begin, 1e-7)
    batch = publications[: max(1, min(len(publications), int(seconds / per_call / 4)))]
    done, begin = 0, clock()
    while True:
        for publication in batch:
            match(publication)
        done += len(batch)
        spent = clock() - begin
        if spent >= seconds:
            return done / spent


def engines(work: Workload, subscriptions: list[Subscription], compiled: bool) -> dict[str, Callable[[Any], Any]]:
    """The engines by name. Each answers with the positions of subscriptions, so that answers can be compared."""
    found: dict[str, Callable[[Any], Any]] = {}
    if len(subscriptions) <= LARGEST_FOR_BASELINES:
        found |= {baseline.name: baseline(work.triples).match for baseline in BASELINES}
    python = Index(compiled=False)
    python.load(enumerate(subscriptions))
    found["index, Python, ids"] = python.match
    found["index, Python, groups"] = python.match_groups
    if compiled:
        both = Index()
        both.load(enumerate(subscriptions))
        if both.stats()["compiled"]:
            found["index, kernel, ids"] = both.match
            found["index, kernel, groups"] = both.match_groups
    return found


def matching(work: Workload, subscriptions: list[Subscription], options: argparse.Namespace) -> list[Row]:
    contenders = engines(work, subscriptions, options.compiled)
    sample = work.publications[:5]
    answers = {
        name: [sorted(found.ids() if hasattr(found := match(p), "ids") else found) for p in sample]
        for name, match in contenders.items()
    }
    reference = next(iter(answers.values()))
    wrong = [name for name, answer in answers.items() if answer != reference]
    if wrong:
        raise SystemExit(f"these engines answer differently from the others: {', '.join(wrong)}")
    index_match = contenders["index, Python, ids"]
    counted = work.publications[: 200 if len(subscriptions) <= LARGEST_FOR_BASELINES else 20]
    matches = statistics.mean(len(index_match(p)) for p in counted)
    runs: dict[str, list[float]] = {name: [] for name in contenders}
    gc.collect()
    for _ in range(options.repeats):
        for name, match in contenders.items():
            runs[name].append(rate(match, work.publications, options.seconds))
    naive = runs.get("naive scan")
    return [
        {
            "engine": name,
            "publications_per_second": statistics.median(rates),
            "times_naive": statistics.median(a / b for a, b in zip(rates, naive, strict=True)) if naive else None,
            "matches_per_publication": matches,
            "runs": rates,
        }
        for name, rates in runs.items()
    ]


def timed(calls: Iterable[Callable[[], Any]]) -> Row:
    """p50, p99 and maximum, in microseconds."""
    spent = []
    for call in calls:
        begin = clock()
        call()
        spent.append((clock() - begin) * 1e6)
    spent.sort()
    return {"p50": spent[len(spent) // 2], "p99": spent[len(spent) * 99 // 100], "max": spent[-1]}


def changes(mix: str, subscriptions: list[Subscription], options: argparse.Namespace) -> Row:
    """Times of a bulk load and of single adds and removes."""
    size = len(subscriptions)
    fresh = workload(mix, CHANGES, seed=2, publications=1).subscriptions()
    loads = []
    for _ in range(options.repeats if size <= LARGEST_FOR_BASELINES else 1):
        index = Index(compiled=options.compiled)
        gc.collect()
        begin = clock()
        index.load(enumerate(subscriptions))
        loads.append(size / (clock() - begin))
    row: Row = {"load_per_second": statistics.median(loads)}
    row["add_us"] = timed(lambda n=n, s=s: index.add(size + n, s) for n, s in enumerate(fresh))
    step = max(1, size // CHANGES)
    row["remove_us"] = timed(lambda n=n: index.remove(n) for n in range(0, step * CHANGES, step))
    return row


def memory(mix: str, size: int, options: argparse.Namespace) -> Row:
    """Bytes per subscription by tracemalloc: of the subscription itself, and of its share of the index."""
    work = workload(mix, min(size, LARGEST_FOR_BASELINES), publications=1)
    tracemalloc.start()
    subscriptions = work.subscriptions()
    own = tracemalloc.get_traced_memory()[0]
    index = Index(compiled=options.compiled)
    index.load(enumerate(subscriptions))
    gc.collect()
    both = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    count = len(index)
    return {"subscription_bytes": own / count, "index_bytes": (both - own) / count}


def covering(mix: str, subscriptions: list[Subscription]) -> Row | None:
    """Times of building, querying, listing and changing a covering set."""
    size = len(subscriptions)
    if size > LARGEST_FOR_COVERING[mix]:
        return None
    fresh = workload(mix, CHANGES, seed=2, publications=1).subscriptions()
    whole: CoveringSet[int] = CoveringSet()
    gc.collect()
    begin = clock()
    whole.apply(enumerate(subscriptions), ())
    built = clock() - begin
    row: Row = {"build_per_second": size / built, "size": len(whole)}
    row["is_covered_us"] = timed(lambda s=s: whole.is_covered(s) for s in fresh)
    row["list_ms"] = {name: spent / 1e3 for name, spent in timed(whole.items for _ in range(5)).items()}
    row["add_us"] = timed(lambda n=n, s=s: whole.add(size + n, s) for n, s in enumerate(fresh))
    step = max(1, size // 500)
    row["remove_us"] = timed(lambda n=n: whole.remove(n) for n in range(0, min(size, step * 500), step))
    return row


def spread(row: Row) -> str:
    return f"p50 {row['p50']:.1f} p99 {row['p99']:.1f} us"


def show(mix: str, size: int, report: Row) -> None:
    matches = report["matching"][0]["matches_per_publication"]
    print(f"\n{mix}, {size:,} subscriptions, quotes: {report['quotes']}, {matches:,.1f} matches per publication")
    for row in report["matching"]:
        ratio = f"{row['times_naive']:>9,.1f} x naive" if row["times_naive"] else ""
        print(f"  {row['engine']:<24}{row['publications_per_second']:>12,.0f}/s{ratio}")
    made, weight, found = report["changes"], report["memory"], report["covering"]
    print(f"  load {made['load_per_second']:,.0f}/s; add {spread(made['add_us'])}; remove {spread(made['remove_us'])}")
    print(
        f"  bytes: subscription {weight['subscription_bytes']:.0f}, its share of the index {weight['index_bytes']:.0f}"
    )
    if found is None:
        print(f"  covering: skipped beyond {LARGEST_FOR_COVERING[mix]:,} subscriptions of this mix (takes minutes)")
        return
    print(
        f"  covering set of {found['size']:,}: built {found['build_per_second']:,.0f}/s, listed in "
        f"{found['list_ms']['p50']:.2f} ms; is_covered {spread(found['is_covered_us'])}"
    )
    print(f"  covering changes: add {spread(found['add_us'])}; remove {spread(found['remove_us'])}")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.matching", description=__doc__)
    parser.add_argument("--mixes", default=",".join(MIXES), help="comma-separated (default %(default)s)")
    parser.add_argument("--sizes", default="2000,10000,100000", help="numbers of subscriptions; 1000000 takes minutes")
    parser.add_argument("--repeats", type=int, default=5, help="runs of each engine (default %(default)s)")
    parser.add_argument("--seconds", type=float, default=0.2, help="length of one run (default %(default)s)")
    parser.add_argument(
        "--json",
        type=Path,
        default=Path("bench-report/matching.json"),
        help="file for all figures (default %(default)s)",
    )
    options = parser.parse_args()
    options.compiled = warm_up()
    machine = {"processor": platform.processor() or platform.machine(), "python": sys.version.split()[0]}
    if options.compiled:
        import numba

        machine["numba"] = numba.__version__
    print(", ".join(f"{name} {value}" for name, value in machine.items()))
    reports: dict[str, Row] = {}
    for mix in options.mixes.split(","):
        for size in map(int, options.sizes.split(",")):
            work = workload(mix, size)
            subscriptions = work.subscriptions()
            report = {
                "quotes": work.quotes,
                "matching": matching(work, subscriptions, options),
                "changes": changes(mix, subscriptions, options),
                "covering": covering(mix, subscriptions),
            }
            del work, subscriptions
            report["memory"] = memory(mix, size, options)
            reports[f"{mix} {size}"] = report
            show(mix, size, report)
    print("\nPublished, or measured by hand on another machine (publications per second):")
    for figure in FIGURES:
        print(f"  {figure.system:<34}{figure.subscriptions:<22}{figure.publications_per_second}")
        print(f"      {figure.workload}; {figure.hardware}; {figure.source}")
    options.json.parent.mkdir(parents=True, exist_ok=True)
    published = [asdict(figure) for figure in FIGURES]
    options.json.write_text(json.dumps({"machine": machine, "measured": reports, "published": published}, indent=1))
    print(f"\nAll figures: {options.json}")


if __name__ == "__main__":
    main()
