"""Any well-formed balancing record of any permitted sender: no machine raises, and deliveries go on."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.core.fleet import Fleet, Publishing, resume
from tests.examples import examples

from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol import wire

names = st.sampled_from(["e1", "e2", "s", "x" * 253])
longs = st.integers(0, 5) | st.sampled_from([2**32, 2**63 - 1])
counts = st.integers(0, 3) | st.sampled_from([2**32 - 1])
floats = st.floats(allow_nan=True)
texts = st.sampled_from(["", "[n,>,3]", "[n,>", "x" * 2000]) | st.text(max_size=10)
values = (
    st.none() | st.booleans() | st.integers(-5, 2**63) | floats | st.text(max_size=5) | st.lists(st.text(max_size=3))
)
FIELDS = (
    "broker", "state", "epoch", "seq", "input_utilization", "output_utilization", "match_delay_seconds", "time_us",
    "subscribers", "balanced_set", "bandwidth_bytes_per_second", "input_rate",
)  # fmt: skip
reports = st.dictionaries(st.sampled_from(FIELDS), values | st.sampled_from(["e1", "e2", "OK", "BUSY"]), max_size=8)
actions = st.lists(
    st.builds(
        msg.ActionItem, names, st.sampled_from(["input", "output", "match"]), floats,
        st.lists(st.sampled_from(["input", "cpu"]), max_size=2),
    ),
    max_size=3,
)  # fmt: skip
states = st.builds(
    msg.Reservation, longs, longs, names, names, st.sampled_from(["ASK", "BUSY", "STABILIZING", "OK"]), floats, actions
)
queries = st.builds(msg.ProfileQuery, longs, names, names, counts, counts, st.lists(texts, max_size=3))
pies = st.builds(msg.PeerLoads, st.lists(reports, max_size=3))
of_edges: st.SearchStrategy[Any] = st.one_of(
    st.builds(
        msg.ReservationReply,
        longs,
        longs,
        names,
        longs,
        names,
        st.sampled_from(["OK", "BUSY", "N/A", "STABILIZING"]),
        reports,
    ),
    st.builds(msg.Trigger, names, longs, longs, actions, texts),
    st.builds(msg.ProfileReply, longs, names, longs, counts, counts, st.binary(max_size=20)),
)


@given(st.lists(st.tuples(st.integers(0, 2), states | queries | pies | of_edges), max_size=30))
@settings(max_examples=examples(60), suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_anything_well_formed_may_be_said(balanced: Any, said: list[tuple[int, Any]]):
    fleet: Fleet = balanced(2, report_seconds=1.0)
    client = fleet.client("c", "h", "e1")
    client.tell("e1", resume(1, "mine", "[mine,=,1]"))
    fleet.mediator("h")
    fleet.run(0.3)
    head, edge = fleet.head(), fleet.edge("e1")
    of_edge = head.reporter.brokers["e1"]
    [of_mediator] = head.reporter.mediators
    for who, record in said:
        frame = wire.control_frame(record)
        if who == 0:
            head.receive_control(of_mediator, frame, fleet.now)
        elif who == 1:
            head.receive_control(of_edge, frame, fleet.now)
        else:
            edge.receive_control("h", frame, fleet.now)
        fleet.run(0.05)
    fleet.run(1.0)
    publisher = Publishing(client, "h", "mine")
    fleet.run(0.2)
    publisher.publish(2, mine=1)
    fleet.run(0.5)
    assert publisher.accepted == 2
    assert client.numbers("e1", 1)[-2:] == [1, 2]
