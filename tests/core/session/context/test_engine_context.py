"""What a mediator repeats, and what it learns page by page."""

from __future__ import annotations

from plimsoll.core.protocol import messages as msg
from plimsoll.core.session import EngineSettings, SendMessage
from plimsoll.core.session.context.engine_context import EngineContext


def context_at(now: float) -> EngineContext:
    context = EngineContext(3, EngineSettings())
    context.outbox.now = now
    return context


def asked(context: EngineContext) -> list[msg.ListSubscribers]:
    found = [effect.message for effect in context.outbox.effects if isinstance(effect, SendMessage)]
    context.outbox.effects = []
    return [record for record in found if isinstance(record, msg.ListSubscribers)]


def answer(
    context: EngineContext, query: msg.ListSubscribers, names: list[str], more: bool = False, head_epoch: int = 1
) -> None:
    context.listings.receive("h", msg.SubscriberPage(query.id, query.edge, head_epoch, names, more))


def test_pages_make_a_listing():
    context = context_at(1.0)
    assert context.listings.of("u", "a", "h") is None
    [first] = asked(context)
    assert (first.edge, first.after) == ("a", "")
    answer(context, first, ["a1", "a2"], more=True)
    assert context.listings.of("u", "a", "h") is None
    [second] = asked(context)
    assert (second.after, second.id != first.id) == ("a2", True)
    answer(context, second, ["a3"])
    assert context.listings.of("u", "a", "h") == ["a1", "a2", "a3"]
    assert not asked(context)


def test_a_page_is_asked_for_until_it_comes():
    context = context_at(1.0)
    counts = []
    for now in (1.0, 1.1, 1.5, 1.6, 2.0):
        context.outbox.now = now
        context.listings.of("u", "a", "h")
        counts.append(len(asked(context)))
    assert counts == [1, 0, 1, 0, 1]


def test_answers_to_other_questions_are_no_pages():
    context = context_at(1.0)
    context.listings.of("u", "a", "h")
    [query] = asked(context)
    context.listings.receive("h", msg.SubscriberPage(query.id + 1, "a", 1, ["x"], False))
    context.listings.receive("h", msg.SubscriberPage(query.id, "b", 1, ["x"], False))
    context.listings.receive("other", msg.SubscriberPage(query.id, "a", 1, ["x"], False))
    assert context.listings.of("u", "a", "h") is None
    answer(context, query, ["a1"], more=True)
    answer(context, query, ["a1", "a2"], more=False)
    assert context.listings.of("u", "a", "h") is None, "a page that comes twice is one page"


def test_a_page_that_begins_with_the_last_name_of_the_one_before_adds_it_once():
    context = context_at(1.0)
    context.listings.of("u", "a", "h")
    answer(context, asked(context)[0], ["a1", "a2"], more=True)
    context.listings.of("u", "a", "h")
    answer(context, asked(context)[0], ["a3", "a2"])
    assert context.listings.of("u", "a", "h") == ["a1", "a2", "a3"]


def test_a_head_that_restarts_between_two_pages_is_asked_from_the_start():
    context = context_at(1.0)
    context.listings.of("u", "a", "h")
    answer(context, asked(context)[0], ["a1"], more=True)
    context.listings.of("u", "a", "h")
    answer(context, asked(context)[0], ["a2"], head_epoch=2)
    assert context.listings.of("u", "a", "h") is None
    [again] = asked(context)
    assert again.after == ""
    answer(context, again, ["a0", "a2"], head_epoch=2)
    assert context.listings.of("u", "a", "h") == ["a0", "a2"]


def test_a_head_that_promises_more_and_has_nothing_does_not_keep_it_going():
    context = context_at(1.0)
    context.listings.of("u", "a", "h")
    answer(context, asked(context)[0], [], more=True)
    assert context.listings.of("u", "a", "h") == []


def test_questions_of_two_lives_differ():
    ids = set()
    for epoch in (3, 4):
        context = EngineContext(epoch, EngineSettings())
        context.listings.of("u", "a", "h")
        ids.add(asked(context)[0].id)
    assert len(ids) == 2
    assert all(0 < one < 2**63 for one in ids)


def test_several_edges_are_known_when_all_are():
    context = context_at(1.0)
    edges = [("a", "h"), ("b", "h")]
    assert context.listings.of_all("u", edges) is None
    first, second = asked(context)
    answer(context, first, ["x"])
    assert context.listings.of_all("u", edges) is None
    answer(context, second, [])
    assert context.listings.of_all("u", edges) == {"a": ["x"], "b": []}
    context.forget_answers("u")
    assert context.listings.of_all("u", edges) is None


def test_nothing_is_due_twice_within_its_interval():
    context = context_at(1.0)
    assert context.outbox.is_due("x/1", 1.0)
    context.outbox.now = 1.9
    assert not context.outbox.is_due("x/1", 1.0)
    assert context.outbox.is_due("x/2", 1.0)
    context.outbox.forget("x/")
    assert context.outbox.is_due("x/1", 1.0)


def test_ids_are_named_after_the_epoch():
    context = context_at(1.0)
    assert [context.outbox.next_batch_id(), context.outbox.next_batch_id()] == ["3.1", "3.2"]
