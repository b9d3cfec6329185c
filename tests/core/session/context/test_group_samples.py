"""Samples of groups, page by page: what is asked again, and which pages do not belong together."""

from __future__ import annotations

from typing import Any

from plimsoll.core.protocol import messages as msg
from plimsoll.core.session import SendMessage, Timings
from plimsoll.core.session.context.command_outbox import CommandOutbox
from plimsoll.core.session.context.group_samples import GroupSample, GroupSamples

CONSUMERS = [msg.ConsumerItem("a", 0.5), msg.ConsumerItem("b", 0.1, takes_part=False)]
SLICES = [
    msg.HeldSliceItem("a", msg.SliceReport(0, 10.0, 0.01, 2)),
    msg.HeldSliceItem("b", msg.SliceReport(1, 5.0, 0.02, 0), True),
    msg.HeldSliceItem("", msg.SliceReport(2, 0.0, 0.0, 0)),
]  # fmt: skip


class Asking:
    """A mediator that wants the sample of a group, and the pages that it is sent."""

    def __init__(self) -> None:
        self.outbox = CommandOutbox(1, Timings())
        self.samples = GroupSamples(self.outbox)
        self.now = 0.0

    def ask(self) -> tuple[GroupSample | None, list[msg.SliceQuery]]:
        self.now += 1.0
        self.outbox.begin(self.now)
        found = self.samples.of("u", "h", "readings")
        sent = [each.message for each in self.outbox.effects if isinstance(each, SendMessage)]
        return found, [each for each in sent if isinstance(each, msg.SliceQuery)]

    def page(self, query: msg.SliceQuery, version: int = 1, **fields: Any) -> None:
        items = [*CONSUMERS, *SLICES][query.begin : query.begin + 2]
        consumers = [each for each in items if isinstance(each, msg.ConsumerItem)]
        slices = [each for each in items if isinstance(each, msg.HeldSliceItem)]
        more = query.begin + 2 < len(CONSUMERS) + len(SLICES)
        self.samples.receive(
            fields.get("head", "h"),
            msg.SlicePage(query.id, 7, "readings", query.begin, version, "Rates", True, consumers, slices, more),
        )


def whole(asking: Asking) -> GroupSample:
    for _ in range(9):
        found, [*queries] = asking.ask()
        if found is not None:
            return found
        for query in queries:
            asking.page(query)
    raise AssertionError("the sample is not complete")


def test_pages_make_a_sample():
    sample = whole(Asking())
    assert (sample.head_epoch, sample.balancing, sample.is_settled) == (7, "Rates", True)
    assert [(c.name, c.cpu, c.stays, [each.number for each in c.slices]) for c in sample.consumers] == [
        ("a", 0.5, True, [0]), ("b", 0.1, False, [1]),
    ]  # fmt: skip
    assert (sample.holders, sample.unowned, sample.moving) == ({0: "a", 1: "b"}, (2,), frozenset({1}))


def test_a_question_is_asked_again_until_its_answer_comes():
    asking = Asking()
    first = asking.ask()[1]
    assert asking.ask()[1] == first
    asking.page(first[0])
    assert [query.begin for query in asking.ask()[1]] == [2]


def test_pages_of_two_versions_do_not_belong_together():
    asking = Asking()
    [query] = asking.ask()[1]
    asking.page(query, version=1)
    [query] = asking.ask()[1]
    asking.page(query, version=2)
    assert [query.begin for query in asking.ask()[1]] == [0]
    assert whole(asking).holders == {0: "a", 1: "b"}


def test_answers_to_others_and_of_others_change_nothing():
    asking = Asking()
    [query] = asking.ask()[1]
    asking.page(query, head="other")
    asking.page(msg.SliceQuery(query.id + 1, "readings"))
    assert asking.ask()[1] == [query]
    asking.samples.forget("u")
    assert asking.ask()[1] != [query]
