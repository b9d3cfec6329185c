"""The bundles of a run over time: who owned and served each, its messages per second, and what was split.

All of it is from load reports: owners by the head, sessions and rates by the edges that serve them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from plimsoll.core.policies.model.bundle_load import reported_bundles
from plimsoll.core.policies.model.hash_ranges import HashRange


@dataclass(frozen=True, slots=True)
class BundleLook:
    """The bundles at one time. `owners`: by bundle, as the head says; `epochs`: of the edges that report.

    `serving`: by bundle the edges that have sessions of it; `rates`: messages in and out per second, of all edges.
    """

    at: float
    owners: Mapping[str, str]
    serving: Mapping[str, tuple[str, ...]]
    rates: Mapping[str, float]
    epochs: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class SeenSplit:
    """A bundle that gave way to two halves. `rate`: the highest that was seen of it, messages per second."""

    at: float
    bundle: str
    halves: tuple[str, str]
    rate: float


def look_of(at: float, head: Mapping[str, Any], edges: Iterable[Mapping[str, Any]]) -> BundleLook:
    """What the latest reports say."""
    serving: dict[str, list[str]] = {}
    rates: dict[str, float] = {}
    epochs: dict[str, int] = {}
    for report in edges:
        epochs[str(report["broker"])] = int(report["epoch"])
        for load in reported_bundles(report):
            rates[load.bundle.name] = rates.get(load.bundle.name, 0.0) + load.input_rate + load.output_rate
            if load.sessions:
                serving.setdefault(load.bundle.name, []).append(str(report["broker"]))
    owners = {str(name): str(edge) for name, edge in (head.get("bundle_owners") or {}).items()}
    return BundleLook(at, owners, {name: tuple(sorted(some)) for name, some in serving.items()}, rates, epochs)


@dataclass(frozen=True, slots=True)
class BundleOwnerChange:
    """A bundle that has another owner than at the look before; `edge`: empty if it has none now."""

    at: float
    bundle: str
    edge: str


def owner_changes(looks: Sequence[BundleLook]) -> list[BundleOwnerChange]:
    """Who owned what from when on. A half begins with the owner of the whole, which is no change."""
    found: list[BundleOwnerChange] = []
    before: Mapping[str, str] = {}
    for look in looks:
        for name in sorted({*before, *look.owners}):
            edge = look.owners.get(name, "")
            if name in before:
                is_changed = edge != before[name] and not _is_divided(name, look.owners)
            else:
                is_changed = edge not in {before[each] for each in before if _is_inside(name, each)}
            if is_changed:
                found.append(BundleOwnerChange(look.at, name, edge))
        before = look.owners
    return found


def _is_divided(name: str, names: Iterable[str]) -> bool:
    return name not in names and any(_is_inside(each, name) for each in names)


def _is_inside(part: str, whole: str) -> bool:
    return is_part(HashRange.of_name(part), HashRange.of_name(whole))


def splits_seen(looks: Sequence[BundleLook]) -> list[SeenSplit]:
    """Each split, at the first look whose head knows both halves and no longer the whole."""
    found: list[SeenSplit] = []
    highest: dict[str, float] = {}
    known: set[str] = set()
    for look in looks:
        for name in sorted(known - set(look.owners)):
            halves = _halves(HashRange.of_name(name), look.owners)
            if halves is not None:
                found.append(SeenSplit(look.at, name, halves, highest.get(name, 0.0)))
                known.discard(name)
        known |= set(look.owners)
        for name, rate in look.rates.items():
            highest[name] = max(rate, highest.get(name, 0.0))
    return found


def _halves(whole: HashRange, names: Iterable[str]) -> tuple[str, str] | None:
    """The two bundles that share the whole, or None; the halves of a half are not looked for."""
    ranges = [HashRange.of_name(name) for name in names]
    for low in (each for each in ranges if each.low == whole.low and each.high < whole.high):
        high = HashRange(low.high, whole.high)
        if high in ranges:
            return low.name, high.name
    return None


def owned_again_seconds(looks: Sequence[BundleLook], edge: str, killed_at: float) -> float | None:
    """Until each bundle of a killed edge was owned again, by another edge or its next life; None: not all were.

    A bundle that was divided meanwhile is owned again once every part of it is.
    """
    before = next((look for look in reversed(looks) if look.at < killed_at), None)
    if before is None:
        return None
    waiting = {name for name, owner in before.owners.items() if owner == edge}
    for look in (each for each in looks if each.at >= killed_at):
        is_back = look.epochs.get(edge, 0) > before.epochs.get(edge, 0)
        waiting -= {name for name in waiting if _is_owned(name, look, edge, is_back)}
        if not waiting:
            return look.at - killed_at
    return None


def _is_owned(name: str, look: BundleLook, edge: str, is_back: bool) -> bool:
    whole = HashRange.of_name(name)
    parts = [owner for each, owner in look.owners.items() if is_part(HashRange.of_name(each), whole)]
    return bool(parts) and all(owner and (owner != edge or is_back) for owner in parts)


def is_part(one: HashRange, whole: HashRange) -> bool:
    """Whether all hashes of a range are in another one."""
    return whole.low <= one.low and one.high <= whole.high


def wrongly_owned(look: BundleLook) -> list[str]:
    """Bundles that have no owner, or are served by another edge than theirs or by several; a sentence each."""
    found = []
    for name in sorted({*look.owners, *look.serving}):
        owner, serving = look.owners.get(name, ""), look.serving.get(name, ())
        if not owner or any(edge != owner for edge in serving):
            found.append(f"{name} is owned by {owner or 'no edge'} and served by {', '.join(serving) or 'no edge'}")
    return found
