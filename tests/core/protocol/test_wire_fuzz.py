"""Any bytes on any socket: a value or a refusal, never anything else; counters move and good frames still count."""

from __future__ import annotations

import random
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.core.fleet import Client, Fleet, Publishing, one_cluster, resume
from tests.examples import examples
from tests.vectors import make

from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol import wire
from plimsoll.core.protocol.wire import Info
from plimsoll.core.transport.link import Link, LinkLimits
from plimsoll.core.transport.overlay_node import OverlayNode

SEEDS = [*(data for _, _, data in make.FRAMES), *(data for *_, data in make.SESSION)]
SEEDS += [wire.data_frame(1, 0, 1, 0, 1024, [wire.encode(record)], 1) for _, _, record in make.RECORDS]
DECODERS = (
    msg.from_client,
    msg.to_client,
    msg.from_edge,
    msg.to_edge,
    msg.between_heads,
    msg.routed,
    msg.control,
    msg.body,
)

plain = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats() | st.text(max_size=5)
    | st.binary(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=12,
)  # fmt: skip


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    """A valid frame with some bytes changed, cut out, doubled or put in."""
    data = bytearray(draw(st.sampled_from(SEEDS)))
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, max(0, len(data) - 1)))
        match draw(st.sampled_from(["change", "cut", "double", "insert", "end"])):
            case "change" if data:
                data[at] = draw(st.integers(0, 255))
            case "cut":
                del data[at : at + draw(st.integers(1, 8))]
            case "double":
                data[at:at] = data[at : at + draw(st.integers(1, 8))]
            case "insert":
                data[at:at] = draw(st.binary(max_size=6))
            case "end":
                del data[at:]
    return bytes(data)


def check(data: bytes) -> None:
    try:
        frame = wire.decode_frame(data)
    except wire.WireError as error:
        assert error.code in ("malformed", "version")
        return
    if isinstance(frame, wire.Data | wire.Control):
        for raw in frame.records:
            for decoder in DECODERS:
                try:
                    msg.decode(decoder, raw)
                except wire.WireError as error:
                    assert error.code == "malformed"


@given(st.binary(max_size=200))
def test_any_bytes_are_a_frame_or_refused(data: bytes):
    check(data)


@given(mutated())
@settings(max_examples=examples(400))
def test_a_frame_gone_wrong_is_a_frame_or_refused(data: bytes):
    check(data)


@given(st.integers(0, 12), st.lists(plain, max_size=8))
@settings(max_examples=examples(300))
def test_any_values_in_a_frame_are_a_frame_or_refused(kind: int, values: list[Any]):
    check(msgspec.msgpack.encode([1, kind, *values]))


@given(st.integers(-1, 115), st.lists(plain, max_size=10))
@settings(max_examples=examples(300))
def test_any_values_in_a_record_are_a_record_or_refused(tag: int, values: list[Any]):
    check(wire.data_frame(1, 0, 1, 0, 9, [msgspec.msgpack.encode([tag, *values])], 1))


class World:
    """A cluster with a client that has an open link to its head and one to its edge."""

    def __init__(self) -> None:
        self.fleet = one_cluster(edges=1)
        self.client = self.fleet.client("c", "h", "e1")
        self.publisher = Publishing(self.client, "h")
        self.client.tell("e1", resume(1, "s"))
        self.fleet.run(0.5)

    def works(self) -> None:
        """The links are the ones that they were, and carry what they should."""
        before = self.publisher.accepted
        self.publisher.publish(1)
        self.fleet.run(0.5)
        assert self.publisher.accepted == before + 1 == self.publisher.seq
        assert self.client.numbers("e1", 1)[-1] == self.publisher.seq
        assert self.client.lost == []


def accepted_id(fleet: Fleet, client: str, broker: str) -> bytes:
    return next(c.id for c in fleet.connections if (c.dialler, c.acceptor, c.control) == (client, broker, False))


@given(st.lists(st.binary(max_size=60) | mutated(), min_size=1, max_size=20))
@settings(max_examples=examples(40))
def test_rubbish_from_strangers_is_counted_and_disturbs_no_link(rubbish: list[bytes]):
    world = World()
    for node in (world.fleet.nodes["h"], world.fleet.nodes["e1"]):
        for data in rubbish:
            node.receive(b"stranger", [data], world.fleet.now)
            node.receive_control(b"stranger", data, world.fleet.now)
        bad = [data for data in rubbish if not _is_frame(data)]
        counted = sum(count for key, count in node.counters.items() if key.startswith("frames_refused_"))
        assert counted >= len(bad)
    world.works()


@given(st.lists(st.binary(max_size=60), min_size=1, max_size=7))
@settings(max_examples=examples(30))
def test_rubbish_among_a_clients_own_frames_costs_only_itself(rubbish: list[bytes]):
    world = World()
    for broker in ("h", "e1"):
        node, peer = world.fleet.nodes[broker], accepted_id(world.fleet, "c", broker)
        node.receive(peer, [data for data in rubbish if not _is_frame(data)], world.fleet.now)
    world.works()


def _is_frame(data: bytes) -> bool:
    try:
        wire.decode_frame(data)
    except wire.WireError:
        return False
    return True


# -- valid records that make no sense

names = st.sampled_from(["s", "t", "p", "h", "e1", "x" * 253])
small = st.integers(0, 6)
numbers = small | st.sampled_from([2**31, 2**32 - 1])
longs = small | st.sampled_from([11, 2**32, 2**63 - 1])
texts = st.sampled_from(["", "[class,=,'STOCK']", "[n,>,3]", "[n,>", "[n,>,3],[n,<,1]", "x" * 2000]) | st.text(
    max_size=20
)
scalars = (
    st.text(max_size=5) | st.integers(-(2**63), 2**64 - 1) | st.booleans() | st.floats(allow_nan=True)
)  # fmt: skip
tokens = st.tuples(names, longs, longs)
bodies = st.builds(
    lambda attributes, payload: msgspec.Raw(wire.encode(msg.Body(attributes, payload))),
    st.dictionaries(st.sampled_from(["class", "n", "", "x" * 300]) | st.text(max_size=4), scalars, max_size=4),
    st.binary(max_size=20),
) | plain.map(lambda value: msgspec.Raw(msgspec.msgpack.encode(value)))
items = st.builds(
    msg.SubscriptionItem, numbers, texts, st.dictionaries(st.sampled_from(["group", "x"]), scalars, max_size=2)
)
policies = st.builds(
    msg.Policy, st.sampled_from(["", "block", "drop-oldest", "disconnect", "never"]), longs,
    st.floats(allow_nan=True),
)  # fmt: skip
sessions = st.sampled_from(["3.17", "3.18", "0.0", "x", "9" * 40 + ".1"])
attach_items = st.builds(
    msg.AttachItem, numbers, names, st.tuples(longs, longs), longs, st.lists(items, max_size=3), policies
)
client_records: st.SearchStrategy[Any] = st.one_of(
    st.builds(msg.Open, numbers, names, longs),
    st.builds(msg.Publish, numbers, longs, st.integers(-5, 2**64 - 1), longs, bodies),
    st.builds(msg.Close, numbers),
    st.builds(msg.Join, names, st.lists(names, max_size=2), texts, texts | names),
    st.builds(
        msg.Resume, numbers, names, st.tuples(longs, longs), longs, st.lists(items, max_size=3), policies,
        st.none() | tokens, st.lists(tokens, max_size=2), st.none() | names,
    ),
    st.builds(msg.Subs, numbers, longs, st.lists(items, max_size=3), st.lists(numbers, max_size=3)),
    st.builds(msg.Detach, st.lists(numbers, max_size=3), st.booleans()),
    st.builds(msg.Pause, numbers),
    st.builds(msg.Continue, numbers),
    st.builds(msg.Attach, sessions, st.lists(attach_items, max_size=3)),
    st.builds(msg.Go, sessions, st.lists(st.builds(msg.GoItem, numbers), max_size=3)),
)  # fmt: skip


@given(st.lists(st.tuples(st.sampled_from(["h", "e1"]), client_records), max_size=40), st.integers(0, 2**32))
@settings(max_examples=examples(120))
def test_a_client_may_say_anything_that_is_well_formed(said: list[tuple[str, Any]], seed: int):
    fleet = one_cluster(edges=1, queue_bytes=2000, log_bytes=3000, max_publication_bytes=500, lease_seconds=1.0)
    good = World.__new__(World)
    good.fleet, good.client = fleet, fleet.client("good", "h", "e1")
    good.publisher = Publishing(good.client, "h", "good")
    good.client.tell("e1", resume(1, "good", "[mine,=,1]"))
    bad = fleet.client("bad", "h", "e1")
    draw = random.Random(seed)
    for broker, record in said:
        bad.tell(broker, record)
        if draw.random() < 0.3:
            fleet.settle()
        if draw.random() < 0.05:
            fleet.run(1.5)
    fleet.run(0.5)
    good.publisher.publish(3, mine=1)
    fleet.run(1.0)
    assert good.publisher.accepted == 3
    assert good.client.numbers("e1", 1)[-3:] == [1, 2, 3]
    assert bad.lost == []
    for node in fleet.nodes.values():
        assert isinstance(node, OverlayNode)
        if not isinstance(node, Client):
            assert node.counters["frames_refused_malformed"] == 0
            assert msgspec.msgpack.encode(node.status())


# -- mediators that make no sense

plans = st.builds(
    msg.HandoverPlan, names, names, names, st.lists(names, max_size=3), st.booleans(), st.floats(allow_nan=True),
    st.floats(allow_nan=True),
)  # fmt: skip
control_records: st.SearchStrategy[Any] = st.one_of(
    st.builds(
        msg.Command,
        longs,
        st.sampled_from([0, 1]) | longs,
        sessions,
        st.sampled_from(["prepare", "cut", "abort", "ask"]),
        st.none() | plans,
    ),
    st.builds(msg.ListSubscribers, longs, names, texts),
    st.builds(msg.SubscriberPage, longs, names, longs, st.lists(names, max_size=3), st.booleans()),
    st.builds(msg.ListPublications, longs, longs),
    st.builds(msg.PublicationPage, longs, longs, longs, longs, longs, st.just([])),
    st.builds(msg.ListSubscriptions, longs, texts, st.integers(0, 2**32 - 1)),
    st.builds(msg.SubscriptionPage, longs, longs, st.just([]), texts),
    st.builds(msg.ListParameters, longs, longs, longs),
    st.builds(msg.ParameterPage, longs, longs, longs, st.just([]), st.booleans(), st.booleans()),
    st.builds(
        msg.Outcome,
        sessions,
        longs,
        longs,
        st.sampled_from(["ready", "failed"]),
        st.lists(st.tuples(names, names), max_size=3),
    ),
    st.builds(
        msg.Revoke,
        sessions,
        longs,
        st.lists(st.builds(msg.MemberItem, names, st.tuples(longs, longs)), max_size=3),
        names,
        texts,
        texts,
    ),
    st.builds(msg.StatusQuery, longs),
    st.builds(
        msg.Reservation,
        longs,
        longs,
        names,
        sessions,
        st.sampled_from(["ASK", "BUSY", "STABILIZING", "OK"]),
        st.floats(allow_nan=True),
    ),
    st.builds(msg.ProfileQuery, longs, names, names, numbers, numbers, st.lists(texts, max_size=3)),
)


@given(st.lists(st.tuples(st.booleans(), control_records), max_size=25), st.integers(0, 2**32))
@settings(max_examples=examples(60))
def test_a_mediator_may_say_anything_that_is_well_formed(said: list[tuple[bool, Any]], seed: int):
    world = World()
    fleet, draw = world.fleet, random.Random(seed)
    for node in (fleet.nodes["h"], fleet.nodes["e1"]):
        node.receive_control(b"m", wire.control_frame(msg.Identify("m", "mediator", 3)), fleet.now)
    for to_head, record in said:
        if isinstance(record, msg.Command) and record.head_epoch == 1:
            record = msgspec.structs.replace(record, head_epoch=fleet.head().epoch)
        node = fleet.nodes["h" if to_head else "e1"]
        node.receive_control(b"m", wire.control_frame(record), fleet.now)
        if draw.random() < 0.3:
            fleet.run(0.2)
    world.works()
    assert msgspec.msgpack.encode(fleet.nodes["h"].status())


# -- brokers that make no sense

covers = st.builds(
    msg.Cover,
    longs,
    st.lists(st.builds(msg.CoverItem, small, texts), max_size=3),
    st.lists(small, max_size=2),
    st.booleans(),
)
owned = st.builds(msg.OwnedItem, names, st.tuples(small, small), st.tuples(small, small))
place_items = st.builds(msg.PlaceItem, names, st.tuples(small, small), texts, st.booleans())
members = st.lists(st.builds(msg.MemberItem, names, st.tuples(small, small)), max_size=3)
sides: dict[str, st.SearchStrategy[Any]] = {
    "edge": st.one_of(
        st.builds(msg.Slot, sessions, st.lists(names, max_size=3), texts, texts),
        st.builds(msg.TargetAttached, sessions, st.lists(names, max_size=3)),
        st.builds(msg.Done, sessions, st.lists(names, max_size=3)),
        st.builds(msg.HandoverRejected, sessions, st.lists(names, max_size=3), texts),
    ),
    "head": st.one_of(
        st.builds(msg.Prepare, sessions, st.lists(names, max_size=3), st.floats(allow_nan=True), st.booleans()),
        st.builds(msg.Install, sessions, st.lists(names, max_size=3)),
        st.builds(msg.Abort, sessions, members),
        st.builds(msg.ForceDetach, sessions, members),
        st.builds(msg.Marker, sessions, st.lists(names, max_size=3), tokens),
        st.builds(msg.JoinFor, st.builds(msg.Join, names, st.lists(names, max_size=2), texts, texts | names)),
        st.builds(msg.PlacedFor, names, texts, texts, texts),
        st.builds(msg.PlaceQuery, st.lists(place_items, max_size=3)),
        st.builds(msg.PlaceReply, st.lists(place_items, max_size=3)),
    ),
}
routes = st.builds(
    msg.Route, names, names, texts | names,
    (sides["edge"] | sides["head"]).map(lambda record: msgspec.Raw(wire.encode(record)))
    | plain.map(lambda value: msgspec.Raw(msgspec.msgpack.encode(value))),
)  # fmt: skip
edge_records: st.SearchStrategy[Any] = st.one_of(
    covers,
    st.builds(msg.ResumeUp, names, st.tuples(small, small), covers, st.none() | tokens, st.none() | sessions),
    st.builds(msg.Fetch, numbers, longs, st.lists(texts, max_size=2)),
    st.builds(msg.Expire, names, st.tuples(small, small)),
    st.builds(msg.EdgeReport, texts, texts, covers, st.lists(owned, max_size=2), st.booleans(), longs),
    st.builds(msg.Forget, names, st.tuples(small, small)),
    st.just(msg.Leaving()),
    st.builds(msg.CutRequest, sessions, covers, members),
    sides["edge"],
)
head_records: st.SearchStrategy[Any] = st.one_of(
    st.builds(msg.Pub, longs, names, longs, longs, names, longs, longs, st.integers(0, 3), longs, bodies),
    st.builds(msg.Gap, names, longs, longs, longs, longs, st.lists(tokens, max_size=2), names),
    covers,
    st.builds(msg.CoverAck, longs, st.lists(names, max_size=2)),
    st.builds(msg.NeighborReport, covers, longs),
    st.builds(msg.MediatorEpoch, longs),
    routes,
    st.builds(msg.Confirmed, st.lists(longs, max_size=2), st.lists(names, max_size=2)),
)


class Impostor(Client):
    """Sends what a test sets, as an edge or a head, and accepts everything."""

    def __init__(self, fleet: Fleet, name: str, role: Any) -> None:
        super().__init__(name, fleet.ids(), LinkLimits(heartbeat_seconds=0.5))
        self.info = self.handshakes.info = Info(name, role, 1)
        self.now = fleet.now
        fleet.nodes[name] = self
        self.dial("h", "mem://h")

    def on_data(self, link: Link, frame: wire.Data, size: int) -> None:
        self.took(link)


@given(st.lists(st.tuples(st.booleans(), edge_records, head_records), max_size=25), st.integers(0, 2**32))
@settings(max_examples=examples(60))
def test_a_head_survives_edges_and_neighbours_that_make_no_sense(said: list[tuple[bool, Any, Any]], seed: int):
    fleet = Fleet(limits={"log_bytes": 3000, "lease_seconds": 1.0})
    fleet.cluster("h", ["e1", "bad"], ("z",))
    fleet.start("h", "e1")
    edge, head = Impostor(fleet, "bad", "edge"), Impostor(fleet, "z", "head")
    fleet.run(1.5)
    client = fleet.client("c", "h", "e1")
    client.tell("e1", resume(1, "mine", "[mine,=,1]"))
    draw = random.Random(seed)
    for of_edge, from_edge, from_head in said:
        (edge if of_edge else head).tell("h", from_edge if of_edge else from_head)
        if draw.random() < 0.3:
            fleet.settle()
    fleet.run(2.0)
    heard = sum(link.stats.records_in for link in fleet.head().handshakes.accepted_links() if link.name in ("bad", "z"))
    assert heard == len(said)
    publisher = Publishing(client, "h", "mine")
    fleet.run(0.3)
    publisher.publish(2, mine=1)
    fleet.run(0.5)
    assert publisher.accepted == 2
    assert client.numbers("e1", 1)[-2:] == [1, 2]
