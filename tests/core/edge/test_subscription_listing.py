"""An edge lists what its subscribers ask for: to mediators, in bounded pages, and every list whole in the end."""

from __future__ import annotations

from tests.core.fleet import Fleet, one_cluster, resume

from plimsoll.core.edge.subscription_listing import PAGE_BYTES, SUBSCRIBERS_PER_PAGE, subscription_page
from plimsoll.core.protocol import messages as msg

HIGH, LOW = "[class,=,'STOCK'],[high,>,20]", "[class,=,'STOCK'],[low,<,5]"


def served(**lists: list[str]) -> Fleet:
    """An edge e1 that serves these subscribers."""
    fleet = one_cluster(1)
    client = fleet.client("c", "e1")
    for number, (name, texts) in enumerate(lists.items(), 1):
        client.tell("e1", resume(number, name, *texts))
    fleet.run(1.0)
    return fleet


def page_of(fleet: Fleet, start: str = "", skip: int = 0) -> msg.SubscriptionPage:
    edge = fleet.edge("e1")
    return subscription_page(msg.ListSubscriptions(3, start, skip), edge.epoch, edge.attachments.by_subscriber)


def test_a_mediator_gets_the_lists_by_name():
    fleet = served(t=[HIGH], s=[LOW, HIGH])
    mediator = fleet.mediator("e1")
    mediator.say_control("e1", msg.ListSubscriptions(3))
    fleet.run(0.2)
    [page] = [each for each in mediator.heard["e1"] if isinstance(each, msg.SubscriptionPage)]
    link = fleet.edge("e1").attachments.by_subscriber["s"].link.id
    assert page == msg.SubscriptionPage(
        3, fleet.edge("e1").epoch,
        [msg.SubscriptionListItem("s", sorted([HIGH, LOW]), link), msg.SubscriptionListItem("t", [HIGH], link)],
    )  # fmt: skip


def test_others_get_nothing():
    edge = served(s=[HIGH]).edge("e1")
    edge.control_to_send()
    edge.on_control("stranger", msg.ListSubscriptions(3))
    assert edge.control_to_send() == []


def test_one_that_is_no_longer_served_is_not_listed():
    fleet = served(s=[HIGH], t=[LOW])
    edge = fleet.edge("e1")
    edge.attachments.close(edge.attachments.by_subscriber["s"])
    assert [each.subscriber for each in page_of(fleet).subscribers] == ["t"]


def test_pages_have_every_subscriber_once():
    names = [f"s{number:03}" for number in range(SUBSCRIBERS_PER_PAGE + 3)]
    fleet = served(**{name: [HIGH] for name in names})
    first = page_of(fleet)
    assert (len(first.subscribers), first.next, first.skip) == (SUBSCRIBERS_PER_PAGE, names[SUBSCRIBERS_PER_PAGE], 0)
    last = page_of(fleet, first.next, first.skip)
    assert last.next == ""
    assert [each.subscriber for each in (*first.subscribers, *last.subscribers)] == names


def test_a_long_list_goes_over_several_pages():
    texts = [f"[name,=,'{number}{'x' * 40_000}']" for number in range(9)]
    fleet = served(s=texts, t=[HIGH])
    found: dict[str, list[str]] = {}
    page, asked = page_of(fleet), 1
    while True:
        assert sum(len(text) for each in page.subscribers for text in each.subscriptions) <= PAGE_BYTES
        for each in page.subscribers:
            found.setdefault(each.subscriber, []).extend(each.subscriptions)
        if not page.next:
            break
        page, asked = page_of(fleet, page.next, page.skip), asked + 1
    assert asked == 2
    assert found == {"s": texts, "t": [HIGH]}
