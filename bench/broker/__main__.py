"""The broker's benchmark: throughput, latency over both hops, and the cost of metering, CURVE and HTTP.

    python -m bench.broker [--quick] [--json FILE]

Everything runs on the loopback of one machine, and load generators share its cores with the brokers. So each rate is
given by the wall clock and per CPU second of the broker's own thread (the rate of a broker with a core to itself). The
baseline is a bare pyzmq ROUTER with the same fan-out and the same processes in one run: absolute figures depend on the
machine, ratios to the baseline less so.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import zmq
from bench.broker.actors import bodies_of
from bench.broker.machines import costs
from bench.broker.processes import PLAIN_KEYS, RunKeys, bare
from bench.broker.runs import ChainRun, EdgeRun
from bench.matching.workloads import workload

from plimsoll.core.matching import Index

SUBSCRIPTIONS = 2_000
PAYLOAD_BYTES = 200
COALESCED = 16
FEW = 50


class Load:
    """A workload with its matches, from which a run knows how many deliveries to wait for."""

    def __init__(self, subscriptions: int) -> None:
        load = workload("paper", subscriptions)
        made = load.subscriptions()
        self.quotes = load.quotes
        self.texts = [str(each) for each in made]
        self.bodies = bodies_of(load.publications)
        index = Index()
        index.load(enumerate(made))
        self.matches = [list(index.match(each)) for each in load.publications]

    def deliveries(self, first: int, count: int) -> int:
        """The number of deliveries of publications `first` to `first + count - 1`; numbers begin at 1."""
        return sum(len(self.matches[at % len(self.matches)]) for at in range(first, first + count))

    def targets(self, links: int) -> list[list[int]]:
        return [[i % links for i in ids] for ids in self.matches]


def edge_case(
    load: Load, links: int, count: int, per_frame: int, keys: RunKeys = PLAIN_KEYS, **options: Any
) -> dict[str, Any]:
    """One edge at full rate: a warm-up of a fifth, then `count` publications."""
    run = EdgeRun(
        load.texts,
        load.bodies,
        links,
        keys,
        options={k: v for k, v in options.items() if k != "decode"},
        decode=bool(options.get("decode")),
    )
    try:
        warm = max(1, count // 5)
        run.run(warm, per_frame, deliveries=load.deliveries(1, warm))
        out = run.run(count, per_frame, deliveries=(deliveries := load.deliveries(1 + warm, count)))
    finally:
        run.close()
    return {
        "links": links,
        "publications": count,
        "deliveries_each": deliveries / count,
        "deliveries_per_second": deliveries / out["seconds"],
        "deliveries_per_cpu_second": deliveries / out["loop_cpu"],
        "publications_per_second": count / out["seconds"],
        "publications_per_cpu_second": count / out["loop_cpu"],
        "process_cpu_us_per_delivery": out["process_cpu"] / deliveries * 1e6,
        "records_per_frame": deliveries / out["frames"],
    }


def with_bare(case: dict[str, Any], load: Load, count: int) -> dict[str, Any]:
    seconds, cpu, total = bare(case["links"], load.targets(case["links"]), b"x" * PAYLOAD_BYTES, count)
    case["bare_deliveries_per_second"] = total / seconds
    case["bare_deliveries_per_cpu_second"] = total / cpu.loop
    case["ratio_to_bare"] = case["deliveries_per_second"] / case["bare_deliveries_per_second"]
    case["ratio_to_bare_by_cpu"] = case["deliveries_per_cpu_second"] / case["bare_deliveries_per_cpu_second"]
    return case


def chain_case(load: Load, links: int, flat_out: int, seconds: float) -> dict[str, Any]:
    """Both hops: capacity first, then latency at shares of it with open-loop arrivals."""
    run = ChainRun(load.texts, load.bodies, links)
    first = 1
    try:
        run.run(flat_out // 5, 1e9, deliveries=load.deliveries(first, flat_out // 5))
        first += flat_out // 5
        out = run.run(flat_out, 1e9, deliveries=load.deliveries(first, flat_out))
        first += flat_out
        capacity = flat_out / out["seconds"]
        case: dict[str, Any] = {
            "links": links,
            "deliveries_each": out["deliveries"] / flat_out,
            "publications_per_second": capacity,
            "deliveries_per_second": out["deliveries"] / out["seconds"],
            "head_publications_per_cpu_second": flat_out / out["head_cpu"],
            "edge_publications_per_cpu_second": flat_out / out["edge_cpu"],
        }
        for share in (0.5, 0.8):
            rate = share * capacity
            count = max(100, int(rate * seconds))
            out = run.run(count, rate, deliveries=load.deliveries(first, count))
            first += count
            case[f"at_{share:.0%}"] = latency(out, rate)
        return case
    finally:
        run.close()


def latency(out: dict[str, Any], rate: float) -> dict[str, float]:
    found = out["latencies_us"]
    at = {f"p{100 * q:g}_ms": found[min(len(found) - 1, int(q * len(found)))] / 1000 for q in (0.5, 0.99, 0.999)}
    late = {"publisher_late_ms": out["publisher_late_seconds"] * 1000}
    return {"publications_per_second": rate, "samples": len(found), **at, **late}


def measure(scale: float, say: Callable[[str], None]) -> dict[str, Any]:
    """Run all cases; `scale` multiplies the work."""

    def size(count: int) -> int:
        return max(200, int(count * scale))

    load, few = Load(SUBSCRIPTIONS), Load(FEW)
    report: dict[str, Any] = {
        "machine": {
            "cores": os.cpu_count(),
            "python": platform.python_version(),
            "zmq": zmq.zmq_version(),
            "load": os.getloadavg()[0],
        },
        "quotes": load.quotes,
    }
    report["coalesced"], report["one_by_one"] = [], []
    for links in (10, 100, 500):
        case = with_bare(edge_case(load, links, size(12_000), COALESCED), load, size(3_000))
        report["coalesced"].append(case)
        say(line(f"coalesced, {links} links", case))
    for links in (10, 100, 500):
        case = with_bare(edge_case(load, links, size(3_000), 1, single=True), load, size(3_000))
        report["one_by_one"].append(case)
        say(line(f"one publication a round, {links} links", case))
    report["few_deliveries"] = edge_case(few, FEW, size(100_000), COALESCED)
    say(line(f"few deliveries each, {FEW} links", report["few_deliveries"]))
    with tempfile.TemporaryDirectory() as folder:
        keys = RunKeys.make(Path(folder))
        plain = edge_case(load, 100, size(12_000), COALESCED)
        curve = edge_case(load, 100, size(12_000), COALESCED, keys)
    report["curve"] = {"plain": plain, "curve": curve, **kept(curve, plain)}
    say(line("plain, 100 links", plain))
    say(line("CURVE, 100 links", curve))
    say("CURVE keeps " + shares(kept(curve, plain)))
    report["observed"] = observed(load, max(size(60_000), 30_000))
    say("HTTP and a scrape every second keep " + shares(report["observed"]))
    report["two_hops"] = []
    for what, links in ((load, 100), (few, FEW)):
        case = chain_case(what, links, size(6_000 if what is load else 60_000), 8 * max(scale, 0.25))
        report["two_hops"].append(case)
        say(hops(case))
    report["costs"] = costs()
    single = report["one_by_one"][1]
    report["costs"]["metering, share of the process at one publication a round"] = (
        report["costs"].pop("metering of one delivery, one publication a round (us)")
        / single["process_cpu_us_per_delivery"]
    )
    for name, value in report["costs"].items():
        say(f"  {name:58s} {value:8.3f}")
    return report


def kept(curve: dict[str, Any], plain: dict[str, Any]) -> dict[str, float]:
    return {
        "by the wall clock": curve["deliveries_per_second"] / plain["deliveries_per_second"],
        "by CPU of the process": plain["process_cpu_us_per_delivery"] / curve["process_cpu_us_per_delivery"],
    }


def shares(found: dict[str, float]) -> str:
    return ", ".join(f"{value:.1%} {name}" for name, value in found.items())


def observed(load: Load, count: int) -> dict[str, float]:
    """The share of the rate that is kept with the HTTP endpoint and a scrape a second: mean of runs in turns."""
    runs = [
        (edge_case(load, 100, count, COALESCED), edge_case(load, 100, count, COALESCED, observed=True))
        for _ in range(3)
    ]
    found = [kept(with_it, without) for without, with_it in runs]
    return {name: sum(each[name] for each in found) / len(found) for name in found[0]}


def line(name: str, case: dict[str, Any]) -> str:
    text = (
        f"{name:38s} {case['deliveries_each']:5.1f} each {case['deliveries_per_second']:11,.0f} deliveries/s "
        f"{case['deliveries_per_cpu_second']:11,.0f} /CPU s "
        f"{case['publications_per_cpu_second']:9,.0f} publications/CPU s "
        f"{case['process_cpu_us_per_delivery']:6.2f} us CPU/delivery"
    )
    if "ratio_to_bare" in case:
        bare_rate, wall, cpu = (
            case[k] for k in ("bare_deliveries_per_second", "ratio_to_bare", "ratio_to_bare_by_cpu")
        )
        text += f"; bare {bare_rate:9,.0f}/s: {wall:.2f} ({cpu:.2f} by CPU)"
    return text


def hops(case: dict[str, Any]) -> str:
    lines = [
        f"two hops, {case['links']} links: {case['deliveries_each']:.1f} each, "
        f"{case['publications_per_second']:,.0f} publications/s, {case['deliveries_per_second']:,.0f} deliveries/s; "
        f"per CPU s: head {case['head_publications_per_cpu_second']:,.0f}, "
        f"edge {case['edge_publications_per_cpu_second']:,.0f} publications"
    ]
    for share in ("at_50%", "at_80%"):
        at = case[share]
        lines.append(
            f"  {share[3:]:>4s} ({at['publications_per_second']:,.0f}/s): p50 {at['p50_ms']:.2f} ms, "
            f"p99 {at['p99_ms']:.2f} ms, p99.9 {at['p99.9_ms']:.2f} ms over {at['samples']:,} samples; "
            f"publisher at most {at['publisher_late_ms']:.1f} ms late"
        )
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.broker", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="an eighth of the work: under a minute")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures to this file")
    options = parser.parse_args()
    report = measure(0.125 if options.quick else 1.0, lambda text: print(text, flush=True))
    if options.json is not None:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(report, indent=2))
        print(f"figures: {options.json}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
