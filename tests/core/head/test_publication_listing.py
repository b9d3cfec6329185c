"""A head lists what it has logged, to mediators, in bounded pages: no payloads, nothing that others accepted."""

from __future__ import annotations

from tests.core.fleet import Mediator, Publishing, one_cluster, resume, tree

from plimsoll.core.head.log import Log
from plimsoll.core.head.publication_listing import ENTRIES_PER_PAGE, PAGE_BYTES, publication_page
from plimsoll.core.protocol import messages as msg


def pages(mediator: Mediator, broker: str) -> list[msg.PublicationPage]:
    return [record for record in mediator.heard[broker] if isinstance(record, msg.PublicationPage)]


def test_a_mediator_gets_what_was_published_after_a_position():
    fleet = one_cluster()
    publishing = Publishing(fleet.client("c", "h"), "h")
    publishing.publish(3, payload=b"12345", high=25.5)
    mediator = fleet.mediator("h")
    fleet.run(0.5)
    mediator.say_control("h", msg.ListPublications(7, 1))
    fleet.run(0.2)
    [page] = pages(mediator, "h")
    assert (page.id, page.head_epoch, page.first, page.last, page.through) == (7, fleet.head().epoch, 1, 3, 3)
    assert [each.seq for each in page.publications] == [2, 3]
    item = page.publications[0]
    assert (item.publisher, item.incarnation, item.payload_bytes) == ("p", 1, 5)
    assert item.attributes == {"class": "STOCK", "n": 2, "high": 25.5}


def test_stamps_of_groups_are_not_listed():
    fleet = one_cluster()
    fleet.head().groups.define("g", msg.GroupDefinition("", 2, "Modulo", "n"))
    Publishing(fleet.client("c", "h"), "h").publish(1)
    fleet.run(0.5)
    head = fleet.head()
    page = publication_page(msg.ListPublications(1, 0), "h", head.epoch, head.log)
    assert page.publications[0].attributes == {"class": "STOCK", "n": 1}


def test_others_get_nothing():
    fleet = one_cluster()
    head = fleet.head()
    head.control_to_send()
    head.on_control("stranger", msg.ListPublications(7, 0))
    assert head.control_to_send() == []
    head.on_control("stranger", msg.Identify("stranger", "mediator", 0))
    head.on_control("stranger", msg.ListPublications(7, 0))
    assert [peer for peer, _ in head.control_to_send()] == ["stranger"]


def test_a_position_behind_the_log_says_where_it_ends():
    fleet = one_cluster()
    Publishing(fleet.client("c", "h"), "h").publish(2)
    fleet.run(0.5)
    head = fleet.head()
    page = publication_page(msg.ListPublications(1, 2**62), "h", head.epoch, head.log)
    assert (page.first, page.last, page.publications) == (1, 2, [])


def test_publications_of_other_heads_are_passed_over():
    fleet = tree([("a", "b")])
    subscriber = fleet.client("s", "b1")
    subscriber.tell("b1", resume(1, "s"))
    fleet.run(1.0)
    Publishing(fleet.client("c", "a"), "a").publish(2)
    fleet.run(1.0)
    here, there = fleet.head("a"), fleet.head("b")
    assert there.log.last == 2
    found = publication_page(msg.ListPublications(1, 0), "b", there.epoch, there.log)
    assert (found.through, found.publications) == (2, [])
    assert len(publication_page(msg.ListPublications(1, 0), "a", here.epoch, here.log).publications) == 2


def test_a_page_is_bounded_in_entries_and_in_bytes():
    fleet = one_cluster()
    publishing = Publishing(fleet.client("c", "h"), "h")
    publishing.publish(1)
    fleet.run(0.5)
    entry = fleet.head().log.get(1)
    assert entry is not None
    log = Log(2**30)
    for offset in range(1, ENTRIES_PER_PAGE + 10):
        log.append_publication(entry.record, entry.last[0][0], offset)
    page = publication_page(msg.ListPublications(1, 0), "h", 1, log)
    assert (page.through, len(page.publications)) == (ENTRIES_PER_PAGE, ENTRIES_PER_PAGE)
    page = publication_page(msg.ListPublications(1, page.through), "h", 1, log)
    assert (page.through, len(page.publications)) == (ENTRIES_PER_PAGE + 9, 9)

    publishing.publish(1, payload=bytes(PAGE_BYTES // 2))
    fleet.run(0.5)
    large = fleet.head().log.get(2)
    assert large is not None
    log = Log(2**30)
    for offset in range(1, 4):
        log.append_publication(large.record, large.last[0][0], offset)
    assert publication_page(msg.ListPublications(1, 0), "h", 1, log).through == 1
