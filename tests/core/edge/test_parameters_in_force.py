"""What an edge says of the parameters of channels: equal subscriptions are one, and a reader of changes misses none."""

from __future__ import annotations

import random

from tests.core.fleet import one_cluster, resume

from plimsoll.core.edge import parameters_in_force
from plimsoll.core.edge.parameters_in_force import PAGE_BYTES, ParametersInForce, parameters_of
from plimsoll.core.predicates import Subscription, parse
from plimsoll.core.protocol import messages as msg

FIRE = "[channel,=,'near'],[kind,=,'fire']"
FLOOD = "[channel,=,'near'],[kind,=,'flood']"


class Reader:
    """Follows an edge's pages, as a driver does."""

    def __init__(self) -> None:
        self.known: dict[str, int] = {}
        self.epoch = self.revision = 0

    def read(self, table: ParametersInForce, epoch: int = 5) -> int:
        pages = 0
        while True:
            page = table.page(msg.ListParameters(1, self.epoch, self.revision), epoch)
            pages += 1
            if page.whole:
                self.known = {}
            for item in page.parameters:
                self.known[item.text] = item.subscriptions
            self.known = {text: count for text, count in self.known.items() if count}
            self.epoch, self.revision = page.epoch, page.revision
            if not page.more:
                return pages


def test_only_equalities_of_subscriptions_to_a_channel_count():
    assert parameters_of(parse(f"{FIRE},[severity,>,3]")) == FIRE
    assert parameters_of(parse("[channel,=,'near'],[kind,in,('a','b')]")) == "[channel,=,'near'],[kind,in,('a','b')]"
    assert parameters_of(parse("[kind,=,'fire']")) == ""
    assert parameters_of(parse("[channel,prefix,'n'],[kind,=,'fire']")) == ""


def test_equal_ones_are_one_and_stay_until_the_last_is_gone():
    table, reader = ParametersInForce(), Reader()
    table.change([parse(FIRE), parse(f"{FIRE},[severity,>,3]"), parse(FLOOD), parse("[a,=,1]")], [])
    reader.read(table)
    assert reader.known == {FIRE: 2, FLOOD: 1}
    table.change([], [parse(FIRE), parse(FLOOD)])
    reader.read(table)
    assert reader.known == {FIRE: 1}
    assert len(table) == 1


def test_a_reader_asks_for_changes_only():
    table, reader = ParametersInForce(), Reader()
    table.change([parse(f"[channel,=,'c'],[user,=,{number}]") for number in range(2500)], [])
    assert reader.read(table) == 3
    table.change([parse(FIRE)], [])
    page = table.page(msg.ListParameters(1, reader.epoch, reader.revision), 5)
    assert [item.text for item in page.parameters] == [FIRE]
    assert not page.whole


def test_another_epoch_and_a_forgotten_revision_begin_with_everything(monkeypatch):
    monkeypatch.setattr(parameters_in_force, "GONE_AT_MOST", 2)
    table, reader = ParametersInForce(), Reader()
    some = [parse(f"[channel,=,'c'],[user,=,{number}]") for number in range(4)]
    table.change(some, [])
    reader.read(table)
    table.change([parse(FIRE)], some)
    page = table.page(msg.ListParameters(1, reader.epoch, reader.revision), 5)
    assert page.whole
    assert [(item.text, item.subscriptions) for item in page.parameters] == [(FIRE, 1)]
    reader.read(table)
    assert reader.known == {FIRE: 1}
    assert table.page(msg.ListParameters(1, 5, reader.revision), 6).whole


def test_pages_are_bounded_in_bytes():
    table, reader = ParametersInForce(), Reader()
    table.change([parse(f"[channel,=,'c'],[user,=,'{number}{'x' * 100_000}']") for number in range(5)], [])
    page = table.page(msg.ListParameters(1), 5)
    assert sum(len(item.text) for item in page.parameters) <= PAGE_BYTES
    assert page.more
    assert reader.read(table) == 3
    assert len(reader.known) == 5


def test_readers_of_any_pace_agree_with_the_table(monkeypatch):
    monkeypatch.setattr(parameters_in_force, "GONE_AT_MOST", 3)
    monkeypatch.setattr(parameters_in_force, "PARAMETERS_PER_PAGE", 2)
    drawn = random.Random(4)
    for _ in range(30):
        table, readers = ParametersInForce(), [Reader(), Reader()]
        held: list[Subscription] = []
        for _ in range(80):
            if held and drawn.random() < 0.5:
                table.change([], [held.pop(drawn.randrange(len(held)))])
            else:
                held.append(parse(f"[channel,=,'c'],[user,=,{drawn.randrange(6)}]"))
                table.change([held[-1]], [])
            for reader, share in zip(readers, (0.5, 0.05), strict=True):
                if drawn.random() < share:
                    reader.read(table)
        for reader in readers:
            reader.read(table)
            assert reader.known == {str(each): held.count(each) for each in held}
        assert len(table._changes) <= 2 * len(table._latest) + 4


def test_a_collector_may_ask_and_a_place_that_is_kept_stays_in_force():
    fleet = one_cluster(1)
    fleet.client("c", "e1").tell("e1", resume(1, "s", FIRE, FLOOD))
    fleet.run(1.0)
    edge, asker = fleet.edge("e1"), fleet.mediator("e1")
    asker.say_control("e1", msg.Identify("c", "collector", 0), msg.ListParameters(3))
    fleet.run(0.2)
    [page] = [each for each in asker.heard["e1"] if isinstance(each, msg.ParameterPage)]
    assert {item.text for item in page.parameters} == {FIRE, FLOOD}
    attachment = edge.attachments.by_subscriber["s"]
    edge.attachments.close(attachment)
    fleet.run(1.0)
    assert len(edge.subscription_table.parameters) == 2
    edge.attachments.evict([attachment], "expired", "")
    fleet.run(1.0)
    assert len(edge.subscription_table.parameters) == 0


def test_strangers_get_nothing():
    edge = one_cluster(1).edge("e1")
    edge.control_to_send()
    edge.on_control("stranger", msg.ListParameters(3))
    assert edge.control_to_send() == []
