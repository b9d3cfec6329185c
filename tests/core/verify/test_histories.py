"""When a subscription counts, and which heads lie behind one that was not reached."""

from __future__ import annotations

from plimsoll.core.verify.histories import FOREVER, ObservedHeadTree, PublicationHistories, SubscriptionHistory
from plimsoll.core.verify.observations import HeadTreeObserved, LogEntryObserved, PublicationObserved


def test_a_life_holds_from_its_acknowledgement_to_its_end():
    life = SubscriptionHistory(0, 1.0)
    assert life.acknowledgement_at(5.0) is None
    life.acknowledged.append((2.0, "h", ()))
    assert life.acknowledgement_at(1.9) is None
    assert life.acknowledgement_at(2.0) == ("h", (), FOREVER)
    life.withdrawn_at = 4.0
    assert life.acknowledgement_at(3.0) == ("h", (), 4.0)
    assert life.acknowledgement_at(4.0) is None


def test_a_lapse_voids_until_the_next_acknowledgement():
    life = SubscriptionHistory(0, 1.0, acknowledged=[(2.0, "h", ()), (6.0, "h", ())], void_at=[5.0])
    assert life.acknowledgement_at(3.0) == ("h", (), 5.0)
    assert life.acknowledgement_at(5.5) is None
    assert life.acknowledgement_at(6.0) == ("h", (), FOREVER)


def test_the_last_acknowledgement_says_what_is_unreached():
    life = SubscriptionHistory(0, 1.0, acknowledged=[(2.0, "h", ("h2",)), (3.0, "h", ())])
    assert life.acknowledgement_at(2.5) == ("h", ("h2",), FOREVER)
    assert life.acknowledgement_at(3.5) == ("h", (), FOREVER)


def test_a_life_may_match_from_request_to_forgetting():
    life = SubscriptionHistory(0, 1.0, forgotten_at=3.0)
    assert [life.could_match(at, at) for at in (0.9, 1.0, 3.0, 3.1)] == [False, True, True, False]
    assert life.could_match(9.0, 3.0), "it waited in a queue"


def test_what_lies_behind_an_unreached_head_is_unreached():
    tree = ObservedHeadTree()
    tree.add_links(HeadTreeObserved([("h1", "h2"), ("h2", "h3"), ("h2", "h4")]))
    assert tree.reaches("h1", "h3", ())
    assert not tree.reaches("h1", "h3", ("h2",))
    assert not tree.reaches("h1", "h2", ("h2",))
    assert tree.reaches("h1", "h4", ("h3",))
    assert tree.reaches("h1", "h1", ("h2",))
    assert tree.path("h1", "h3") == ["h1", "h2", "h3"]
    assert tree.path("h1", "h9") == []
    assert not ObservedHeadTree().reaches("h1", "h4", ("h3",)), "an unknown tree promises nothing"


def test_a_publication_counts_from_its_log_or_from_its_request():
    publications = PublicationHistories()
    one = publications.published(PublicationObserved("p", 1, 1, {}, 3.0))
    assert one.counts_from == 3.0
    publications.logged(LogEntryObserved("h2", 1, 9, ("p", 1, 1), ("h1", 1, 1), 3.2))
    assert one.counts_from == 3.0, "another head's log does not say when it was accepted"
    publications.logged(LogEntryObserved("h1", 1, 1, ("p", 1, 1), ("h1", 1, 1), 3.1))
    assert one.counts_from == 3.1
    assert one.positions == {("h2", 1): 9, ("h1", 1): 1}
    assert publications.number(("p", 1, 1)) == 0
    assert publications.number(("p", 1, 2)) == 1
