"""The load of a bundle: what the edge that owns it measures of its topics, and how that travels in a load report.

Pulsar 2023, "Load data model": bundle load data beside broker load data.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Final

from plimsoll.core.policies.model.hash_ranges import BUNDLES_AT_MOST, HashRange


@dataclass(frozen=True, slots=True)
class BundleLoad:
    """One bundle at one edge. `topics` with a subscriber, `sessions`: its subscribers, by topic; rates are per second.

    `middle`: the hash at which it would be split into parts with the same number of topics; 0 with fewer than two.
    """

    bundle: HashRange
    topics: int = 0
    sessions: int = 0
    middle: int = 0
    input_rate: float = 0.0
    output_rate: float = 0.0
    input_bytes: float = 0.0
    output_bytes: float = 0.0

    @property
    def message_rate(self) -> float:
        """Publications in and out, per second."""
        return self.input_rate + self.output_rate

    @property
    def throughput(self) -> float:
        """Bytes in and out, per second."""
        return self.input_bytes + self.output_bytes


_MEASURES: Final = tuple(item.name for item in fields(BundleLoad) if item.name != "bundle")
_COUNTS: Final = ("topics", "sessions", "middle")
_PREFIX: Final = "bundle_"


def report_fields(bundles: Iterable[BundleLoad]) -> dict[str, dict[str, float]]:
    """The fields of a load report: for each measure, its value by the name of the bundle."""
    some = list(bundles)
    return {f"{_PREFIX}{name}": {each.bundle.name: getattr(each, name) for each in some} for name in _MEASURES}


def reported_bundles(report: Mapping[str, Any]) -> tuple[BundleLoad, ...]:
    """The bundles of a load report, by range; what cannot be read is left out."""
    found: dict[str, dict[str, float]] = {}
    for name in _MEASURES:
        values = report.get(f"{_PREFIX}{name}")
        for bundle, value in values.items() if isinstance(values, Mapping) else ():
            if _is_measure(value):
                found.setdefault(bundle, {})[name] = value
    return tuple(sorted(_known(found), key=lambda load: load.bundle))[:BUNDLES_AT_MOST]


def _known(found: Mapping[str, Mapping[str, float]]) -> Iterable[BundleLoad]:
    for name, values in found.items():
        try:
            bundle = HashRange.of_name(name)
        except ValueError:
            continue  # of a later version, which writes it in another way
        yield _bundle_load(bundle, values)


def _bundle_load(bundle: HashRange, values: Mapping[str, float]) -> BundleLoad:
    topics, sessions, middle = (int(values.get(name, 0)) for name in _COUNTS)
    rates = (float(values.get(name, 0.0)) for name in _MEASURES if name not in _COUNTS)
    return BundleLoad(bundle, topics, sessions, middle, *rates)


def _is_measure(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0.0 <= value < math.inf
