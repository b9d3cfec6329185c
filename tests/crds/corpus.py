"""Good and bad objects: for every field values within its bounds and beyond, of other types, and twice in a list.

They are made from the described fields, so that a field that is added is tried, too. Each is one valid object with one
field changed; `FLEET` has the other objects of its fleet.
"""

from __future__ import annotations

import copy
import dataclasses
import types
import typing
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from plimsoll.core.spec import KINDS
from plimsoll.core.spec.field_info import DescribedField, FieldInfo, described_fields
from plimsoll.core.spec.quantities import Duration, Quantity

Object = dict[str, Any]
Way = tuple[str | int, ...]


def make(kind: str, name: str, **spec: Any) -> Object:
    return {"apiVersion": "plimsoll.dev/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec}


POLICY = {"type": "Padres", "estimation": {"type": "Ring", "ring": {}}, "padres": {}}
FLEET: dict[str, Object] = {
    "BrokerFleet": make("BrokerFleet", "quotes"),
    "HardwareProfile": make("HardwareProfile", "p", cpu="1", memory="512Mi"),
    "BrokerCluster": make("BrokerCluster", "east", head={"profile": "p"}, edges=[{"name": "e", "profile": "p"}]),
    "other": make(
        "BrokerCluster", "west", head={"profile": "p"},
        edges=[{"name": "w", "profile": "p", "replicas": 2}, {"name": "v", "profile": "p"}],
    ),
    "EdgeBroker": make("EdgeBroker", "extra", clusterRef={"name": "east"}, profile="p"),
    "LoadBalancingSession": make("LoadBalancingSession", "s", scope="Local"),
    "Feed": make("Feed", "stocks", subscription="[class,=,'STOCK']"),
    "Channel": make(
        "Channel", "near", parameters=[{"name": "symbol", "type": "String"}],
        feeds=[{"name": "quotes", "feed": "stocks"}], query="SELECT symbol FROM parameters",
    ),
}  # fmt: skip

ZONE = {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["a", "b"]}
PODS = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "cache"}}}
AFFINITY: Object = {
    "nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": [ZONE]}]},
        "preferredDuringSchedulingIgnoredDuringExecution": [
            {"weight": 5, "preference": {"matchExpressions": [{"key": "disk", "operator": "Exists"}]}}
        ],
    },
    "podAntiAffinity": {
        "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "podAffinityTerm": PODS}],
    },
}

FULL: dict[str, Object] = {
    "BrokerFleet": make(
        "BrokerFleet", "quotes",
        security={"clients": [{"name": "quotes", "roles": ["Publish"], "maxSubscriptions": 5}]},
        defaults={"policy": POLICY, "logSize": "64Mi"},
        telemetry={"collectors": {}, "spark": {}},
    ),
    "HardwareProfile": make(
        "HardwareProfile", "p", cpu="1", memory="512Mi", bandwidth={"outputBytesPerSecond": "600k"}, emulation={},
        nodeSelector=[{"name": "disk", "value": "ssd"}], affinity=AFFINITY,
    ),
    "BrokerCluster": make(
        "BrokerCluster", "east", head={"profile": "p", "logSize": "64Mi"},
        edges=[{"name": "e", "profile": "p", "replicas": 3}, {"name": "f", "profile": "p"}],
        scale={"group": "e", "replicas": 3}, neighbors=[{"name": "west"}],
        listeners={"brokers": [{"name": "e-0", "advertisedHost": "edge.example.org"}]}, policy=POLICY,
        maintenanceWindows=[{"name": "night", "schedule": "0 2 * * sat", "duration": "2h"}],
    ),
    "EdgeBroker": make("EdgeBroker", "extra", clusterRef={"name": "east"}, profile="p", cordoned=False),
    "LoadBalancingSession": make(
        "LoadBalancingSession", "s", scope="Local", source={"name": "w-0"}, target={"name": "w-1"},
        select={"count": 3}, candidates=[{"name": "w-1", "metric": "Input", "overloaded": ["Cpu"]}],
        trigger={"broker": "w-0"}, limits={"maxMoves": 5}, exclusions={"subscribers": ["a/1"], "brokers": ["v"]},
    ),
    "Feed": make(
        "Feed", "stocks", subscription="[class,=,'STOCK']", retain={"age": "168h", "size": "10Gi"},
        schema={"columns": [{"name": "class", "type": "String", "required": True}, {"name": "p", "type": "Number"}]},
    ),
    "Channel": make(
        "Channel", "near", parameters=[{"name": "symbol", "type": "String"}], query="SELECT symbol FROM parameters",
        feeds=[
            {"name": "quotes", "feed": "stocks", "rows": "New"},
            {"name": "past", "feed": "stocks", "rows": "All", "within": "1h"},
        ],
        tables=[{"name": "names", "path": "names.csv", "format": "Csv"}], mode="Repetitive", every="10s",
        unkeyedJoins="Allow",
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Case:
    """An object with one field changed; `path` is the field's, as users write it."""

    kind: str
    path: str
    value: Any
    content: Object

    def __str__(self) -> str:
        shown = repr(self.value)
        return f"{self.kind} {self.path} = {shown if len(shown) < 60 else shown[:57] + '...'}"


def documents(content: Object) -> list[Object]:
    """A fleet with this object in the place of the one of its kind."""
    return [*({**FLEET, content["kind"]: content}).values()]


def changed(content: Object, way: Way, value: Any) -> Object:
    """The object with a field set; None takes it away."""
    new = copy.deepcopy(content)
    place: Any = new
    for part in way[:-1]:
        if isinstance(place, dict):
            place = place.setdefault(part, {})
        else:
            place = place[part]
    if value is None:
        place.pop(way[-1], None)
    else:
        place[way[-1]] = value
    return new


def cases() -> Iterator[Case]:
    """Every field of every kind, with each of its values."""
    for kind in KINDS.values():
        for way, item in _described(kind.spec, FULL[kind.name]["spec"], ("spec",)):
            for value in _values(item):
                yield _case(kind.name, way, value)
        yield _case(kind.name, ("spec", "unheardOf"), 1)


def _case(kind: str, way: Way, value: Any) -> Case:
    path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in way).lstrip(".")
    return Case(kind, path, value, changed(FULL[kind], way, value))


def _described(block: type, content: Any, way: Way) -> Iterator[tuple[Way, DescribedField]]:
    for item in described_fields(block):
        here = (*way, item.key)
        yield here, item
        inner, is_list = _inner(item.hint)
        inside = content.get(item.key) if isinstance(content, dict) else None
        if not _is_block(inner) or (is_list and not inside):
            continue
        if is_list:
            yield from _described(inner, (inside or [{}])[0], (*here, 0))
        elif inside is not None or item.default is not None:
            yield from _described(inner, inside or {}, here)


def _inner(hint: Any) -> tuple[Any, bool]:
    if typing.get_origin(hint) in (types.UnionType, typing.Union):
        hint = typing.get_args(hint)[0]
    return (typing.get_args(hint)[0], True) if typing.get_origin(hint) is tuple else (hint, False)


def _is_block(hint: Any) -> bool:
    return dataclasses.is_dataclass(hint) and hint not in (Quantity, Duration)


def _values(item: DescribedField) -> Iterator[Any]:
    hint, is_list = _inner(item.hint)
    if item.required:
        yield None
    if is_list:
        yield from ("text", {})
        if not _is_block(hint):
            for one in _scalars(hint, item.about):
                yield [one]
            good = typing.get_args(hint)[0] if typing.get_args(hint) else "good"
            yield [good, good]
    elif _is_block(hint):
        yield from ("text", [], 3)
    else:
        yield from _scalars(hint, item.about)


def _scalars(hint: Any, about: FieldInfo) -> Iterator[Any]:
    if typing.get_origin(hint) is typing.Literal:
        yield from (*typing.get_args(hint), "Unheard", "", 1)
    elif hint is bool:
        yield from (True, False, "true", 1)
    elif hint is int:
        yield from (about.low, about.high, 7, "7", True, 1.5, 10**19)
        yield from (limit for limit in (_next(about.low, -1), _next(about.high, 1)) if limit is not None)
    elif hint is str:
        yield from ("a", "", "A b", "-", "x" * 300, "x" * 1100, 7, True, "ä", "a\n")
    elif hint is Quantity:
        yield from (
            "1",
            "500m",
            "0",
            1,
            0,
            -1,
            "-1",
            "",
            "x",
            "1Mi",
            "2Gi",
            "1e3",
            "1e19",
            ".5",
            "5.",
            "+1",
            "1 ",
            "1Q",
        )
        yield from ("0m", "0.0", "1n", "9" * 32, "9" * 33, 0.5, True, "1001", "1.001")
    elif hint is Duration:
        yield from ("1s", "500ms", "0s", "1", 1, "", "s", "-1s", "1m30s", "1.5h", "10us", "10µs", "1d", "1 s", "2h5s")
        yield from ("1e3s", "0h0m", "1ns", "9999h", "300s", "301s", "3600s", "3601s", "3000000h")


def _next(limit: Any, step: int) -> int | None:
    return None if limit is None else int(limit) + step
