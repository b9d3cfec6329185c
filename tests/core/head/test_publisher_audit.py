"""The audit of publishers that move, with real heads, edges and clients: who is asked, who answers, what is unknown."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec
import pytest
from tests.core.client.test_publisher_moves import CHAIN, LIMITS, Moves
from tests.core.fleet import tree

from plimsoll.core.client import Address, Client
from plimsoll.core.client.handover import ClientHandovers, begin_publisher_tally, begin_tally
from plimsoll.core.edge.handover.publisher_audit import PublisherAuditRelay
from plimsoll.core.head import publisher_audit, publisher_audit_cases
from plimsoll.core.head.handover import log_pass
from plimsoll.core.protocol import messages as msg


class FarReaders(NamedTuple):
    """Clients at several heads, whose events are taken together."""

    clients: list[Client]

    def take_events(self) -> list[Any]:
        return [each for client in self.clients for each in client.take_events()]


@pytest.fixture
def moves() -> Moves:
    """Besides the subscribers at edges of `b` there is one at each of the other heads."""
    found = Moves(tree(CHAIN))
    home = found.reader
    far = {head: Client(f"reader-{head}", 7, found.fleet.ids(), [Address(f"mem://{head}")], LIMITS) for head in "ac"}
    for head, client in far.items():
        client.now = found.fleet.now
        found.fleet.nodes[client.info.name] = client
        found.subscribers[f"t-{head}"] = subscriber = client.subscriber(f"t-{head}")
        subscriber.subscribe("[n,>,0]")
        found.got[subscriber.name] = []
    found.reader = FarReaders([home, *far.values()])  # type: ignore[assignment]  # their events are all that is asked for
    found.run(1.0, publish=False)
    return found


def audit(moves: Moves, session: str) -> msg.AuditItem | None:
    """What the mediator was told last."""
    heard = [each for said in moves.mediator.heard.values() for each in said]
    told = [each for each in heard if isinstance(each, msg.PublisherOutcome) and each.session == session]
    return told[-1].audit


def moved(moves: Moves, target: str = "c", source: str = "a", seconds: float = 2.0) -> msg.AuditItem | None:
    """The audit of a move of all publishers while they publish."""
    moves.run(0.2)
    session = moves.command(source, target)
    moves.run(seconds)
    assert set(moves.outcome(session).values()) == {"moved"}
    return audit(moves, session)


@pytest.mark.parametrize("target", ["b", "c"])
def test_subscribers_of_every_head_count_before_and_behind_the_move(moves: Moves, target: str):
    found = moved(moves, target)
    assert found is not None
    assert (found.asked, found.members) == (5, 5)
    assert (found.lost, found.duplicated, found.reordered) == (0, 0, 0)
    assert found.before
    assert found.after > found.before
    moves.check()
    assert all(not each.stream.publisher_tallies for each in moves.subscribers.values())


def test_two_moves_one_after_the_other_have_an_audit_each(moves: Moves):
    moves.run(0.2)
    first, second = moves.command("a", "c", "p"), moves.command("a", "b", "q")
    moves.run(2.0)
    for session in (first, second):
        found = audit(moves, session)
        assert found is not None
        assert (found.asked, found.members, found.lost) == (5, 5, 0)


def test_without_a_subscriber_of_theirs_none_is_asked(moves: Moves):
    for subscriber in moves.subscribers.values():
        subscriber.unsubscribe(1)
        subscriber.subscribe("[n,<,0]")
    moves.run(1.0)
    assert moved(moves) == msg.AuditItem(0, 0, 0, 0, 0)


def test_publishers_that_have_published_nothing_have_no_known_subscriber(moves: Moves):
    session = moves.command("a", "c")
    moves.run(3.0, publish=False)
    assert audit(moves, session) == msg.AuditItem(0, 0, 0, 0, 0)


def test_a_client_of_an_earlier_version_is_asked_and_missing(moves: Moves, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(ClientHandovers, "on_count_publishers", lambda *_: None)
    assert moved(moves) == msg.AuditItem(0, 0, 0, 0, 0, asked=5)


def test_one_whose_list_has_changed_meanwhile_is_missing(moves: Moves):
    moves.run(0.2)
    session = moves.command("a", "c")
    moves.run(0.3)
    moves.subscribers["s-b"].subscribe("[n,>,1]")
    moves.run(2.0)
    found = audit(moves, session)
    assert found is not None
    assert (found.asked, found.members, found.lost) == (5, 4, 0)


def test_an_edge_asks_a_few(moves: Moves, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("plimsoll.core.edge.handover.publisher_audit.ASKED_AT_MOST", 2)
    assert len(moves.fleet.edge("b1").attachments.by_subscriber) == 3
    found = moved(moves)
    assert found is not None
    assert (found.asked, found.members) == (4, 4)


def test_those_who_stay_are_judged_by_their_own_head(moves: Moves):
    moves.run(0.2)
    moves.fleet.cut("app", "c")
    session = moves.command("a", "c", seconds=0.3)
    moves.fleet.crash("c")
    moves.run(2.0)
    assert set(moves.outcome(session).values()) == {"stayed"}
    found = audit(moves, session)
    assert found is not None
    assert (found.members, found.asked) == (4, 4), "that of the dead head was not reached"
    assert (found.lost, found.after) == (0, 0)


def test_if_the_other_head_dies_no_subscriber_answers(moves: Moves):
    moves.run(0.2)
    session = moves.command("a", "b")
    moves.run(0.4)
    assert moves.heads() == {"b"}
    moves.fleet.crash("b")
    moves.run(2.0)
    found = audit(moves, session)
    assert found is not None
    assert (found.members, found.asked) == (0, 5)


def test_what_the_log_has_lost_is_not_judged(moves: Moves, monkeypatch: pytest.MonkeyPatch):
    moves.run(0.2)
    session = moves.command("a", "c")
    moves.run(0.3)
    log = moves.fleet.head("a").log
    while log.first <= log.last:
        log._evict()
    moves.run(2.0)
    assert audit(moves, session) == msg.AuditItem(0, 0, 0, 0, 0, asked=5)


def test_a_reading_that_takes_too_long_is_given_up(moves: Moves, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(log_pass, "READ_SECONDS", 0.0)
    found = moved(moves)
    assert found is not None
    assert (found.members, found.asked) == (0, 5)


def test_moves_are_remembered_up_to_a_bound(moves: Moves, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(publisher_audit_cases, "REMEMBERED_MOVES", 2)
    moves.run(0.1)
    for number in range(3):
        source, target = "ab" if number % 2 == 0 else "ba"
        moves.command(source, target)
        moves.run(1.2)
    for name in "abc":
        part = moves.fleet.head(name).publisher_audit
        assert max(len(part.moves), len(part.arrivals), len(part._starts.passed_on)) <= 2
        assert not part._passes
    moves.check()


@pytest.mark.parametrize("record", [msg.PublisherAuditStart, msg.PublisherAuditRequest, msg.AuditSummary])
def test_a_record_that_comes_twice_changes_nothing(moves: Moves, record: type[Any], monkeypatch: pytest.MonkeyPatch):
    """Streams repeat nothing; a broker that did would not be believed twice, except in how many it says it asked."""
    if record is msg.PublisherAuditStart:
        on_start = PublisherAuditRelay.on_start
        monkeypatch.setattr(
            PublisherAuditRelay, "on_start", lambda relay, start: (on_start(relay, start), on_start(relay, start))[0]
        )
    elif record is msg.AuditSummary:
        counted = publisher_audit.PublisherAudit.counted
        monkeypatch.setattr(
            publisher_audit.PublisherAudit, "counted", lambda part, said: counted(part, said) and counted(part, said)
        )
    else:
        receive = publisher_audit.PublisherAudit.receive

        def twice(part: Any, request: msg.PublisherAuditRequest) -> None:
            receive(part, request)
            if request.checks and request.judge == part.host.name:
                receive(part, request)

        monkeypatch.setattr(publisher_audit.PublisherAudit, "receive", twice)
    found = moved(moves)
    assert found is not None
    assert (found.asked, found.members, found.lost, found.duplicated) == (5, 5, 0, 0)


def test_whose_stream_goes_on_in_another_log_does_not_answer(moves: Moves):
    """Held publications of a restarted head may come behind the question."""
    moves.run(0.2)
    session = moves.command("a", "c")
    moves.run(0.3)
    assert moves.subscribers["t-a"].stream.publisher_tallies
    moves.subscribers["t-a"].stream.set_token(("other", 1, 5))
    assert not moves.subscribers["t-a"].stream.publisher_tallies
    moves.run(2.0)
    found = audit(moves, session)
    assert found is not None
    assert (found.asked, found.members, found.lost) == (5, 4, 0)


def test_what_a_head_on_the_way_holds_is_not_overtaken_by_the_marker_behind_it(moves: Moves):
    """It holds what neighbours relay while its disk is full, or an edge has not reported."""
    moves.run(0.2)
    middle = moves.fleet.head("b")
    middle.startup.missing.add("b9")
    middle.startup.lease_seconds = 99.0
    moves.run(0.1)
    moves.command("a", "c", seconds=5.0)
    moves.run(0.5)
    assert moves.heads() == {"a"}, "MARKER waits with the publications"
    middle.startup.reported("b9")
    moves.run(0.5)
    assert moves.heads() == {"c"}
    moves.check()


def test_a_number_that_a_log_has_twice_is_due_once_and_only_of_the_heads_own():
    case = publisher_audit_cases.PublisherCase(
        "1.1", "s", (1, 2), "a", "a1", 0, 9, {}, [], publishers={("p", 1): 3}, own=("a", 11)
    )
    body = msg.Body({"n": 1})
    for head, offset, number in (("a", 1, 3), ("a", 2, 4), ("a", 3, 4), ("b", 4, 5), ("a", 4, 5)):
        case.expect(msg.PubOpen(offset, head, 11, offset, "p", 1, number, 0, 0, body))
    assert case.item().due == [("a", 11, 4, 2)]


def test_only_those_that_were_judged_are_believed(moves: Moves):
    moves.run(0.2)
    session = moves.command("a", "c")
    moves.run(0.1)
    part = moves.fleet.head("a").publisher_audit
    stranger = msg.AuditSummary(session, "a", [msg.AuditSummaryItem("stranger", 7, 0, 0, 0)])
    assert part.counted(stranger), "the session is one of publishers"
    moves.run(2.0)
    assert part.counted(stranger)
    assert set(part.moves[session].counts) == set(moves.subscribers)


def test_the_highest_counts_that_clients_may_claim_have_sums_that_can_be_told():
    most = 2**32 - 1
    counts = {f"s{n}": msg.AuditSummaryItem(f"s{n}", most, most, most, most, most, most) for n in range(1000)}
    item = publisher_audit_cases.AuditedMove("1.1", "c", [], 0, counts=counts).item()
    told = msg.PublisherOutcome("1.1", 1, 1, "done", [], audit=item)
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(told), type=msg.PublisherOutcome) == told
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert([1, most + 1, 0, 0, 0], msg.AuditReplyItem)


def test_a_head_that_has_forgotten_a_move_reads_nothing_for_it(moves: Moves):
    part = moves.fleet.head("c").publisher_audit
    check = msg.AuditRequestItem("s", (1, 2), ("a", 11, 3), [], ["[n,>,0]"])
    part.receive(msg.PublisherAuditRequest("1.99", "a", "a", "a1", 0, [check], [[]]))
    assert not part._passes


# -- in the client


def asked(session: str, *heads: str) -> msg.CountPublishers:
    return msg.CountPublishers(session, [], list(heads), [msg.AuditedPublisher("p", 1, 0)])


def test_a_subscriber_counts_a_few_moves_at_a_time_with_the_marks_of_two_heads(moves: Moves):
    moves.run(0.2)
    subscriber = moves.subscribers["t-c"]
    tallies = [begin_publisher_tally(subscriber, asked(f"1.{number}", "a", "b")) for number in range(6)]
    assert [[mark[0] for mark in tally.marks] for tally in tallies if tally is not None] == [["a"]] * 6
    assert list(subscriber.stream.publisher_tallies) == ["1.2", "1.3", "1.4", "1.5"]
    none = begin_publisher_tally(subscriber, asked("1.9", "c"))
    assert none is not None
    assert none.marks == []


def test_one_whose_list_has_not_reached_every_head_does_not_count(moves: Moves):
    subscriber = moves.subscribers["t-c"]
    assert subscriber.current is not None
    subscriber.current.unreached = ("a",)
    assert begin_publisher_tally(subscriber, asked("1.1", "a")) is None
    subscriber.current.unreached = ()
    assert begin_publisher_tally(subscriber, asked("1.1", "a")) is not None


def test_a_question_about_publishers_that_comes_too_late_ends_no_count_of_a_move(moves: Moves):
    subscriber, reader = moves.subscribers["t-c"], moves.fleet.nodes["reader-c"]
    assert subscriber.current is not None
    assert isinstance(reader, Client)
    begin_tally(subscriber, "1.2")
    port, number = subscriber.current.port, subscriber.current.id
    for session, is_counting in (("1.1", True), ("1.2", False)):
        reader.handovers.on_count(port, msg.AuditQuery(session, [msg.AuditQueryItem(number, [])]))
        assert (subscriber.stream.tally is not None) is is_counting
