"""The figures of a run as text and as an object."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from plimsoll.cli.bench.measurement import BenchResult, BenchSettings

PERCENTILES = (50.0, 90.0, 99.0, 99.9)
BUSY_SHARE, LATE_SECONDS = 0.8, 0.1
MEASURED = (
    "from the time at which a publication is due, to the time at which its subscriber has it, all in this process: "
    "the library, both ways of the network, and the brokers"
)


def percentile(ordered: Sequence[float], percent: float) -> float:
    """The value below which this share of sorted values lies, by the nearest rank."""
    rank = max(1, -int(-len(ordered) * percent // 100))
    return ordered[rank - 1]


def delays_milliseconds(found: BenchResult) -> dict[str, float]:
    """Percentiles and the greatest delay; empty without deliveries."""
    delays = found.delays_seconds
    if not delays:
        return {}
    named = {f"p{percent:g}": percentile(delays, percent) for percent in PERCENTILES}
    return {name: round(1000 * seconds, 3) for name, seconds in (*named.items(), ("max", delays[-1]))}


def rates(settings: BenchSettings, found: BenchResult) -> dict[str, float]:
    """Publications per second that were accepted, and deliveries per second of them."""
    seconds = max(found.spent_seconds, settings.seconds)
    return {
        "publications": round(found.accepted / seconds, 1),
        "deliveries": round(found.delivered / seconds, 1),
    }


def warnings(settings: BenchSettings, found: BenchResult) -> Iterator[str]:
    """Why the figures may be those of this process, and not of the fleet."""
    if found.cpu_share > BUSY_SHARE:
        yield f"this process used {found.cpu_share:.0%} of a core, which may limit it: lower --rate, or run several"
    if found.late_seconds > LATE_SECONDS:
        yield (
            f"a publication was handed over {found.late_seconds:.2f} s late, which counts as delay: "
            f"{settings.rate} publications/s were more than this process or the fleet took"
        )


def report_object(settings: BenchSettings, found: BenchResult) -> dict[str, Any]:
    """All figures, for programs."""
    return {
        "publishers": settings.publishers,
        "subscribers": settings.subscribers,
        "payloadBytes": settings.size,
        "seconds": settings.seconds,
        "requestedPublicationsPerSecond": settings.rate,
        "publicationsPerSecond": rates(settings, found)["publications"],
        "deliveriesPerSecond": rates(settings, found)["deliveries"],
        "accepted": found.accepted,
        "notAccepted": found.not_accepted,
        "expectedDeliveries": found.expected,
        "deliveries": found.delivered,
        "gaps": found.gaps,
        "deliveryDelayMilliseconds": delays_milliseconds(found),
        "latestHandOverMilliseconds": round(1000 * found.late_seconds, 3),
        "ownCpuPercent": round(100 * found.cpu_share, 1),
        "measured": MEASURED,
        "warnings": list(warnings(settings, found)),
    }


def report_lines(settings: BenchSettings, found: BenchResult) -> Iterator[str]:
    """The figures for people."""
    rate, missing = rates(settings, found), found.expected - found.delivered
    asked = f"{rate['publications']:,}/s of {settings.rate:,}/s"
    yield f"publications  {found.accepted:,} accepted, {found.not_accepted:,} not   {asked}"
    counts = f"{found.delivered:,} of {found.expected:,}, {missing:,} missing, {found.gaps:,} gaps"
    yield f"deliveries    {counts}   {rate['deliveries']:,}/s"
    delays = delays_milliseconds(found)
    if delays:
        yield "delay         " + "   ".join(f"{name} {value:,.1f} ms" for name, value in delays.items())
    yield f"measured      {MEASURED}"
    clients = f"{settings.publishers} publishers and {settings.subscribers} subscribers"
    yield f"this process  {found.cpu_share:.0%} of a core, with {clients}"
    for text in warnings(settings, found):
        yield f"note          {text}"
