"""Each number of each record is bounded where it is decoded: what brokers, mediators and collectors reckon with is
finite, whoever has sent it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest
from msgspec import inspect as types
from tests.core.protocol.test_messages import STRUCTS

from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol import wire

TOO_MUCH_FLOAT = (math.nan, math.inf, -math.inf, 1e308, -1e308)
TOO_MUCH_INT = (2**64 - 1, -(2**63))
OF_APPLICATIONS = types.DictType(types.StrType(), types.type_info(wire.Scalar))
"""Attributes and options: values that are compared and passed on."""
KINDS: dict[str, Any] = {
    **STRUCTS,
    "ProfileBody": msg.ProfileBody,
    "CachedItem": msg.CachedItem,
    **{kind.__name__: kind for kind in (wire.Data, wire.Ack, wire.Hello, wire.HelloOk, wire.Beat, wire.Bye)},
    **{kind.__name__: kind for kind in (wire.Control, wire.Refuse)},
}

Place = tuple[str, type, Callable[[Any], Any]]
"""A number: where it is, whether it is an int or a float, and the whole value with another number there."""


def sample(kind: types.Type) -> Any:
    """A valid value of this type, as it travels."""
    match kind:
        case types.Metadata():
            return sample(kind.type)
        case types.NoneType():
            return None
        case types.BoolType():
            return False
        case types.IntType() | types.FloatType():
            return 1
        case types.StrType():
            return "x"
        case types.BytesType():
            return b""
        case types.RawType():
            return msgspec.Raw(msgspec.msgpack.encode([]))
        case types.LiteralType():
            return kind.values[0]
        case types.ListType():
            return []
        case types.DictType():
            return {}
        case types.TupleType():
            return [sample(each) for each in kind.item_types]
        case types.UnionType():
            return sample(kind.types[0])
        case types.StructType():
            return of_struct(kind, {each.name: sample(each.type) for each in kind.fields})
    raise TypeError(kind)


def of_struct(kind: types.StructType, values: dict[str, Any]) -> Any:
    if not kind.array_like:
        return values
    return [*([] if kind.tag is None else [kind.tag]), *values.values()]


def numbers(kind: types.Type, path: str) -> Iterator[Place]:
    """Each number that a value of this type can hold, at any depth."""
    if kind == OF_APPLICATIONS or (isinstance(kind, types.DictType) and kind.value_type == OF_APPLICATIONS.value_type):
        return
    match kind:
        case types.Metadata():
            yield from numbers(kind.type, path)
        case types.IntType():
            yield path, int, lambda bad: bad
        case types.FloatType():
            yield path, float, lambda bad: bad
        case types.ListType():
            for name, of, make in numbers(kind.item_type, f"{path}[]"):
                yield name, of, lambda bad, make=make: [make(bad)]
        case types.DictType():
            for name, of, make in numbers(kind.value_type, f"{path}{{}}"):
                yield name, of, lambda bad, make=make: {"x": make(bad)}
        case types.TupleType():
            whole = sample(kind)
            for i, each in enumerate(kind.item_types):
                for name, of, make in numbers(each, f"{path}[{i}]"):
                    yield name, of, lambda bad, i=i, make=make: [*whole[:i], make(bad), *whole[i + 1 :]]
        case types.UnionType():
            for each in kind.types:
                yield from numbers(each, path)
        case types.StructType():
            values = {field.name: sample(field.type) for field in kind.fields}
            for field in kind.fields:
                for name, of, make in numbers(field.type, f"{path}.{field.name}"):
                    yield name, of, lambda bad, n=field.name, make=make: of_struct(kind, {**values, n: make(bad)})


PLACES = [place for name, kind in KINDS.items() for place in numbers(types.type_info(kind), name)]


def test_the_walk_finds_what_is_nested():
    found = {name for name, *_ in PLACES}
    assert {
        "GroupBeat.load.slices[].seconds_per_item", "GroupBeat.load.slices[].backlog", "GroupJoin.definition.low",
        "PublisherPaths.origins[].topics[][1]", "LoadUpdate.report{}", "LoadUpdate.report{}[]{}",
        "StatusReply.status{}{}", "LeadershipReply.status{}", "Join.location[0]", "Resume.since",
        "GroupFor.record.load.cpu", "ProfileBody.blocks[].rate", "PeerLoads.reports[]{}",
    } <= found  # fmt: skip
    assert len(PLACES) > 700


@pytest.mark.parametrize("name", KINDS)
def test_no_number_beyond_its_bounds_is_decoded(name: str):
    decoder = msgspec.msgpack.Decoder(KINDS[name])
    msg.decode(decoder, msgspec.msgpack.encode(sample(types.type_info(KINDS[name]))))
    frame_start = (f"{name}.version", f"{name}.kind")  # `frame_kind` has read them before
    for path, of, make in numbers(types.type_info(KINDS[name]), name):
        if path in frame_start:
            continue
        msg.decode(decoder, msgspec.msgpack.encode(make(1)))
        for bad in TOO_MUCH_FLOAT + (TOO_MUCH_INT if of is int or "{}" in path else (2**64 - 1,)):
            with pytest.raises(wire.WireError):
                pytest.fail(f"{path}: {msg.decode(decoder, msgspec.msgpack.encode(make(bad)))}")


def test_sums_of_all_that_can_be_listed_are_finite_and_fit_64_bits():
    assert wire.LISTED_AT_MOST * wire.COUNT_AT_MOST < 2**63
    assert math.isfinite(wire.NUMBER_AT_MOST**4 * wire.LISTED_AT_MOST)
