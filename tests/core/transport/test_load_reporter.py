"""Load reports: what a broker reports, to which receivers, how often, and its answers to queries."""

from __future__ import annotations

from typing import Any

import msgspec
from tests.core.fleet import Publishing, one_cluster, resume

from plimsoll.core.config import BrokerHardware
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol import wire
from plimsoll.core.transport.load_reporter import MEDIATOR_SILENT_SECONDS

FIELDS = {
    "broker", "cluster", "role", "epoch", "seq", "time_us", "state", "input_utilization", "output_utilization",
    "match_delay_seconds", "index_delay_seconds", "input_rate", "output_rate", "output_bytes_per_second",
    "input_queue_delay_seconds", "output_queue_delay_seconds", "input_queue_messages", "output_queue_messages",
    "cpu_ratio", "memory_ratio", "subscribers", "subscriptions", "balanced_set", "counters", "schema", "clock_us",
    "interval_seconds",
}  # fmt: skip


def test_a_mediator_gets_reports_of_the_head_and_of_its_edges():
    fleet = one_cluster(report_seconds=0.5)
    mediator = fleet.mediator("h")
    client = fleet.client("c", "h", "e1")
    client.tell("e1", resume(1, "s"))
    publisher = Publishing(client, "h")
    fleet.run(1.0)
    publisher.publish(100)
    fleet.run(2.0)
    loads = [record.report for record in mediator.heard["h"] if isinstance(record, msg.LoadUpdate)]
    by_broker = {name: [load for load in loads if load["broker"] == name] for name in ("h", "e1", "e2")}
    for name, said in by_broker.items():
        assert len(said) >= 4, name
        assert all(load.keys() >= FIELDS for load in said)
        seqs: list[Any] = [load["seq"] for load in said]
        assert seqs == sorted(set(seqs))
        assert {load["epoch"] for load in said} == {fleet.nodes[name].info.incarnation}
    last = by_broker["e1"][-1]
    counters = last["counters"]
    assert isinstance(counters, dict)
    assert (last["subscribers"], last["subscriptions"], counters["deliveries"]) == (1, 1, 100)
    assert by_broker["h"][-1]["subscribers"] == 1


def test_rates_are_of_the_interval():
    fleet = one_cluster(report_seconds=1.0)
    client = fleet.client("c", "h", "e1")
    client.tell("e1", resume(1, "s"))
    publisher = Publishing(client, "h")
    fleet.run(0.5)
    for _ in range(300):
        publisher.publish(1)
        fleet.run(0.01)
    assert 90 <= fleet.edge("e1").reporter.last["input_rate"] <= 110
    assert 90 <= fleet.edge("e1").reporter.last["output_rate"] <= 110
    assert 90 <= fleet.head().reporter.last["input_rate"] <= 110
    fleet.run(2.5)
    assert fleet.edge("e1").reporter.last["input_rate"] == 0.0


def test_a_broker_reports_the_bandwidth_that_it_may_use():
    hardware = {"h": BrokerHardware(output_bytes_per_second=1e6), "e1": BrokerHardware(input_bytes_per_second=2e6)}
    fleet = one_cluster(report_seconds=0.5, hardware=hardware)
    fleet.run(1.0)
    names = ("bandwidth_bytes_per_second", "downlink_bandwidth_bytes_per_second")
    reports = [node.reporter.last for node in (fleet.head(), fleet.edge("e1"), fleet.edge("e2"))]
    assert [[report.get(name) for name in names] for report in reports] == [[1e6, None], [None, 2e6], [None, None]]


def test_a_mediator_that_says_nothing_any_more_is_forgotten():
    fleet = one_cluster(report_seconds=1.0)
    mediator = fleet.mediator("h", "e1")
    fleet.run(1.0)
    assert len(fleet.head().reporter.mediators) == 1
    for _ in range(4):
        mediator.say_control("h", msg.StatusQuery(1))
        fleet.run(10.0)
    assert len(fleet.head().reporter.mediators) == 1, "asking keeps it known"
    fleet.run(MEDIATOR_SILENT_SECONDS + 2.0)
    assert fleet.head().reporter.mediators == {}


def test_every_peer_on_the_control_socket_may_ask_for_status():
    fleet = one_cluster()
    mediator = fleet.mediator("h", "e1")
    mediator.say_control("h", msg.StatusQuery(4))
    mediator.say_control("e1", msg.StatusQuery(5))
    fleet.run(0.5)
    (of_head,) = [record for record in mediator.heard["h"] if isinstance(record, msg.StatusReply)]
    (of_edge,) = [record for record in mediator.heard["e1"] if isinstance(record, msg.StatusReply)]
    assert (of_head.id, of_head.status["name"], of_head.status["ready"]) == (4, "h", True)
    assert (of_edge.id, of_edge.status["role"], of_edge.status["ready"]) == (5, "edge", True)
    assert msgspec.json.encode(of_head.status)


def test_leave_sends_the_subscribers_of_an_edge_elsewhere():
    fleet = one_cluster()
    client = fleet.client("c", "e1")
    client.tell("e1", resume(1, "s"))
    mediator = fleet.mediator("e1", "h")
    fleet.run(0.3)
    mediator.say_control("e1", msg.Leave())
    fleet.run(0.3)
    assert len(client.of("e1", msg.Moved)) == 1
    mediator.say_control("h", msg.Leave())
    fleet.run(0.3)
    assert fleet.head().done()


def test_who_calls_itself_the_head_or_a_broker_is_obeyed_in_nothing():
    fleet = one_cluster(report_seconds=0.5)
    fleet.run(1.0)
    stranger = fleet.mediator()
    for broker in ("h", "e1"):
        stranger.dial_control(broker, f"ctl://{broker}")
    members, load = fleet.head().members, fleet.head().reporter.heard["e1"]
    for role, name in (("head", "h"), ("edge", "e2"), ("client", "c")):
        for broker in ("h", "e1"):
            stranger.say_control(
                broker,
                msg.Identify(name, role, 1),
                msg.Leave(),
                msg.ClusterMembers([], []),
                msg.Revoke("1.1", fleet.head().epoch, [msg.MemberItem("s", (1, 1))], "e2", "mem://e2", ""),
                msg.LoadUpdate({**load, "input_rate": 1e9}),
            )
        fleet.run(0.1)
    assert fleet.head().members == members
    assert not fleet.head().done()
    assert not fleet.edge("e1").is_leaving
    assert fleet.head().reporter.heard["e1"]["input_rate"] != 1e9
    assert fleet.head().counters["control_refused_sender"] == 3


def test_rubbish_on_a_control_socket_is_counted():
    fleet = one_cluster()
    head = fleet.head()
    for frame in (b"", b"xx", wire.who_frame(), wire.control_frame(msg.Forget("s", (1, 1)))):
        head.receive_control(b"x", frame, fleet.now)
    assert head.counters["control_refused_malformed"] == 3
    assert head.counters["control_refused_misplaced"] == 1


def collector(fleet, *brokers: str):
    found = fleet.mediator()
    for broker in brokers:
        found.dial_control(broker, f"ctl://{broker}")
        found.say_control(broker, msg.Identify("c0", "collector", 0))
    return found


def test_a_collector_gets_reports_and_cannot_command():
    fleet = one_cluster(report_seconds=0.5)
    listening = collector(fleet, "h")
    fleet.run(1.2)
    members = fleet.head().members
    said = [
        msg.Leave(),
        msg.ClusterMembers([], []),
        msg.StatusQuery(1),
        msg.Command(1, 1, "s", "ask"),
        msg.LoadUpdate({"broker": "e1"}),
    ]
    for record in said:
        listening.say_control("h", record)
    fleet.run(1.0)
    heard = listening.heard["h"]
    assert {type(record) for record in heard} == {msg.LoadUpdate}
    assert {str(record.report["broker"]) for record in heard} == {"h", "e1", "e2"}
    assert fleet.head().counters["collectors_refused"] == len(said)
    assert fleet.head().members == members
    assert not fleet.head().done()
    assert fleet.head().reporter.mediators == {}


def test_a_collector_that_says_nothing_any_more_is_forgotten():
    fleet = one_cluster(report_seconds=1.0)
    collector(fleet, "h")
    fleet.run(1.0)
    assert len(fleet.head().reporter.collectors) == 1
    fleet.run(MEDIATOR_SILENT_SECONDS + 2.0)
    assert fleet.head().reporter.collectors == {}


def test_a_head_names_its_publishers_and_the_covers_of_its_links():
    fleet = one_cluster(report_seconds=1.0)
    client = fleet.client("c", "h", "e1")
    client.tell("e1", resume(1, "s"))
    busy, idle = Publishing(client, "h", "busy", 1), Publishing(client, "h", "idle", 2)
    fleet.run(0.2)
    idle.publish(1)
    for _ in range(50):
        busy.publish(10)
        fleet.run(0.05)
    report = fleet.head().reporter.last
    assert (report["publishers"], report["publishers_open"]) == (2, 2)
    assert list(report["publisher_rates"]) == ["busy"], "who sent nothing in the interval is not named"
    assert 150 <= report["publisher_rates"]["busy"] <= 250
    assert report["publisher_bytes_per_second"]["busy"] > report["publisher_rates"]["busy"]
    assert report["covers"] == {"e1": 1, "e2": 0}
    assert fleet.edge("e1").reporter.last["cover_subscriptions"] == 1


def test_the_wall_clock_is_told_and_nothing_else_is_made_of_it():
    fleet = one_cluster(report_seconds=1.0)
    fleet.head().reporter.clock_offset_seconds = 1000.0
    fleet.run(1.5)
    report = fleet.head().reporter.last
    assert report["clock_us"] - report["time_us"] == 1_000_000_000
    assert 0.9 <= report["interval_seconds"] <= 1.1


def test_who_commands_nothing_is_told_apart_from_mediators():
    """The supervisor of a fleet identifies itself without an epoch: it gets no messages of edges to mediators."""
    fleet = one_cluster(report_seconds=0.5)
    fleet.mediator("h")
    fleet.run(0.5)
    reporter = fleet.head("h").reporter
    [mediator] = reporter.mediators
    reporter.on_control(b"s", msg.Identify("supervisor", "mediator", 0), fleet.now)
    assert set(reporter.mediators) == {mediator, b"s"}
    assert reporter.commanding == [mediator]


def test_a_broker_at_a_limit_of_its_machine_reports_it():
    fleet = one_cluster(report_seconds=0.5)
    fleet.edge("e1").reporter.open_files_limit = 200
    fleet.run(1.0)
    found = [node.reporter.last.get("open_files_limit") for node in (fleet.head(), fleet.edge("e1"))]
    assert found == [None, 200]
