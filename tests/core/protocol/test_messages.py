"""Records: the vectors, numbers that are never used twice, bounds of every field, and room to grow."""

from __future__ import annotations

import inspect
from typing import Any, get_args

import msgspec
import pytest
from tests.vectors import make

from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol import wire

VECTORS = make.record_vectors()
NOW = {first: kind.__name__ for kind, first in make.FIRST_NAMES.items()}
"""Of records that the vectors know by an earlier name: that of their class."""

STRUCTS: dict[str, Any] = {
    name: struct
    for name, struct in inspect.getmembers(msg, inspect.isclass)
    if issubclass(struct, msgspec.Struct) and struct.__struct_config__.tag is not None
}
DECODERS = (
    msg.from_client,
    msg.to_client,
    msg.from_edge,
    msg.to_edge,
    msg.between_heads,
    msg.routed,
    msg.control,
    msg.from_standby,
    msg.to_standby,
    msg.feed_request,
    msg.feed_answer,
)


def number(struct: Any) -> int:
    tag = struct.__struct_config__.tag
    assert isinstance(tag, int)
    return tag


@pytest.mark.parametrize("vector", VECTORS, ids=[v["name"] for v in VECTORS])
def test_every_record_decodes_to_its_values_and_back(vector: dict[str, Any]):
    data = bytes.fromhex(vector["hex"])
    record = msgspec.msgpack.decode(data, type=STRUCTS[NOW.get(vector["record"], vector["record"])])
    assert make.plain(wire.encode(record)) == vector["value"]
    assert number(type(record)) == vector["value"][0]


def test_there_is_a_vector_of_every_record():
    assert {NOW.get(vector["record"], vector["record"]) for vector in VECTORS} == STRUCTS.keys() - {"PubOpen"}


def test_numbers_are_unique_and_those_of_control_sockets_are_apart():
    numbers = [number(struct) for name, struct in STRUCTS.items() if name != "PubOpen"]
    assert len(numbers) == len(set(numbers))
    of_standbys = {*msg.FromStandby.__args__, *msg.ToStandby.__args__}
    of_groups = {msg.SliceCaching, msg.SliceCache, msg.GroupFunctions}
    of_audits = {msg.PublisherAuditStart, msg.CountPublishers, msg.CountsFrom, msg.PublisherAuditRequest}
    assert set(map(number, of_audits)) == set(range(140, 144))
    of_places = {msg.PlaceQuery, msg.PlaceReply}
    assert set(map(number, of_places)) == {183, 184}
    assert number(msg.NameClaims) == 185
    of_feeds = {*msg.FeedRequest.__args__, *msg.FeedAnswer.__args__}
    assert set(map(number, of_feeds)) == set(range(162, 167))
    apart = of_standbys | of_groups | of_audits | of_places | of_feeds | {msg.NameClaims}
    above = {number(struct) for name, struct in STRUCTS.items() if name != "PubOpen" and struct not in apart}
    assert {n for n in above if n >= 100} == set(map(number, msg.ControlRecord.__args__))
    assert set(map(number, of_standbys)) == set(range(170, 176))
    assert set(map(number, of_groups)) == {155, 156, 157}
    assert number(msg.Pub) == number(msg.PubOpen)


def test_every_record_has_a_direction():
    unions: Any = (
        msg.FromClient,
        msg.ToClient,
        msg.FromEdge,
        msg.ToEdge,
        msg.BetweenHeads,
        msg.Routed,
        msg.FromStandby,
        msg.ToStandby,
        msg.ControlRecord,
        msg.FeedRequest,
        msg.FeedAnswer,
    )
    assert {struct for union in unions for struct in union.__args__} == set(STRUCTS.values())


def test_what_is_routed_is_read_as_it_was_written():
    for vector in VECTORS:
        struct = STRUCTS[NOW.get(vector["record"], vector["record"])]
        if struct in msg.Routed.__args__:
            item = bytes.fromhex(vector["hex"])
            route = msg.decode(msg.between_heads, wire.encode(msg.Route("k", "h", "e3", msgspec.Raw(item))))
            assert isinstance(route, msg.Route)
            assert msg.decode(msg.routed, route.item) == msgspec.msgpack.decode(item, type=struct)


@pytest.mark.parametrize("vector", VECTORS, ids=[v["name"] for v in VECTORS])
def test_a_record_of_a_later_version_is_read_without_what_it_adds(vector: dict[str, Any]):
    values = msgspec.msgpack.decode(bytes.fromhex(vector["hex"]))
    struct = STRUCTS[NOW.get(vector["record"], vector["record"])]
    full = len(struct.__struct_fields__) + 1
    values += [None] * (full - len(values)) if vector["record"] in ("ResumeUp", "Moved", "Resume") else []
    if len(values) == full:
        longer = msgspec.msgpack.encode([*values, "new", {"a": [1]}])
        assert msgspec.msgpack.decode(longer, type=struct) == msgspec.msgpack.decode(
            bytes.fromhex(vector["hex"]), type=struct
        )


@pytest.mark.parametrize("vector", VECTORS, ids=[v["name"] for v in VECTORS])
def test_a_record_of_an_earlier_version_is_read_with_defaults(vector: dict[str, Any]):
    struct = STRUCTS[NOW.get(vector["record"], vector["record"])]
    values = msgspec.msgpack.decode(bytes.fromhex(vector["hex"]))
    needed = len(struct.__struct_fields__) - len(struct.__struct_defaults__)
    record = msgspec.msgpack.decode(msgspec.msgpack.encode(values[: needed + 1]), type=struct)
    left_out = [getattr(record, name) for name in struct.__struct_fields__[needed:]]
    assert [value or None for value in left_out] == [None] * len(left_out)
    with pytest.raises(wire.WireError):
        msg.decode(msgspec.msgpack.Decoder(struct), msgspec.msgpack.encode(values[:needed] if needed else [0]))


@pytest.mark.parametrize("vector", VECTORS, ids=[v["name"] for v in VECTORS])
def test_numbers_out_of_range_and_wrong_types_are_refused(vector: dict[str, Any]):
    struct = STRUCTS[NOW.get(vector["record"], vector["record"])]
    values = msgspec.msgpack.decode(bytes.fromhex(vector["hex"]))
    for i, name in enumerate(struct.__struct_fields__, 1):
        if i >= len(values):
            continue
        for wrong in _wrong(str(inspect.get_annotations(struct)[name])):
            bad = [*values[:i], wrong, *values[i + 1 :]]
            with pytest.raises(wire.WireError) as caught:
                msg.decode(msgspec.msgpack.Decoder(struct), msgspec.msgpack.encode(bad))
            assert caught.value.code == "malformed"


def _wrong(annotation: str) -> list[Any]:
    """Values that a field of this type must not have."""
    if annotation == "U32":
        return [-1, 2**32, "1", None, 1.5]
    if annotation == "U63":
        return [-1, 2**63, "1", None]
    if annotation == "Name":
        return ["", "x" * 254, 5, None, b"x"]
    if annotation == "Text":
        return ["x" * 65537, 5, None]
    if annotation.startswith("list["):
        return [None, 5, {"a": 1}, [[[[]]]]]
    return []


def test_a_body_has_attributes_of_scalars_and_nothing_else():
    good = msg.decode(msg.body, msgspec.msgpack.encode([{"a": 1, "b": "x", "c": 1.5, "d": True}]))
    assert good.payload == b""
    for bad in ([], [{"a": None}], [{"a": [1]}], [{"a": b"x"}], [{1: 2}], [{}, "text"], [{}, b"", 1], {"a": 1}):
        with pytest.raises(wire.WireError):
            msg.decode(msg.body, msgspec.msgpack.encode(bad))


@pytest.mark.parametrize("decoder", DECODERS)
def test_undefined_numbers_are_refused(decoder: Any):
    for tag in (0, 5, 66, 94, 99, 117, 127, 200, -1, "x"):
        with pytest.raises(wire.WireError):
            msg.decode(decoder, msgspec.msgpack.encode([tag, 1, 2, 3]))


@pytest.mark.parametrize("cursor", [2**16, 2**31 + 5, 2**32 - 1])
def test_a_replay_begins_with_its_prefix_and_goes_on_with_its_item(cursor: int):
    gap = msg.Gap("h", 1, 2, 3, 4, [], "log")
    assert msg.replay_prefix(cursor) + wire.encode(gap) == wire.encode(msg.Replay(cursor, gap))


@pytest.mark.parametrize("cursor", [0, 1, 127, 128, 2**16 - 1])
def test_a_small_cursor_is_read_from_its_prefix_as_well(cursor: int):
    gap = msg.Gap("h", 1, 2, 3, 4, [], "log")
    assert msg.to_edge.decode(msg.replay_prefix(cursor) + wire.encode(gap)) == msg.Replay(cursor, gap)


def unbounded(kind: Any, path: str) -> list[str]:
    """The lists and maps in a type of msgspec that have no limit."""
    inspected = msgspec.inspect
    if isinstance(kind, inspected.Metadata):
        return unbounded(kind.type, path)
    if isinstance(kind, inspected.UnionType):
        return [each for part in kind.types for each in unbounded(part, path)]
    if isinstance(kind, inspected.TupleType):
        return [each for part in kind.item_types for each in unbounded(part, path)]
    if isinstance(kind, inspected.StructType):
        return [each for field in kind.fields for each in unbounded(field.type, f"{path}.{field.name}")]
    if isinstance(kind, inspected.ListType):
        return [path] * (kind.max_length is None) + unbounded(kind.item_type, path + "[]")
    if isinstance(kind, inspected.DictType):
        return [path] * (kind.max_length is None)
    assert not isinstance(kind, inspected.VarTupleType | inspected.SetType | inspected.CollectionType)
    return []


def test_every_list_that_a_client_may_send_is_bounded():
    """A frame has room for a million elements, which take tens of milliseconds to read, before anything is decided."""
    for kind in get_args(msg.FromClient):
        assert unbounded(msgspec.inspect.type_info(kind), kind.__name__) == []


def test_a_list_above_its_limit_is_refused_unread():
    fits = msg.Detach([7] * wire.LISTED_AT_MOST, withdraw=False)
    assert msg.decode(msg.from_client, wire.encode(fits)) == fits
    with pytest.raises(wire.WireError, match="length <= 16384"):
        msg.decode(msg.from_client, wire.encode(msg.Detach([7] * (wire.LISTED_AT_MOST + 1), withdraw=False)))
