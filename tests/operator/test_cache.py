"""A write counts until the watch has delivered it."""

from plimsoll.operator.cache import PENDING_WRITE_SECONDS, Cache


def item(version: int, uid: str = "u", **metadata: str) -> dict[str, object]:
    return {
        "kind": "Service",
        "metadata": {"name": "s", "namespace": "ns", "uid": uid, "resourceVersion": str(version), **metadata},
    }


class Watch:
    def __init__(self) -> None:
        self.items: list[dict[str, object]] = []
        self.cache = Cache(lambda namespace: self.items)

    def seen(self, now: float = 0.0):
        return self.cache.objects("ns", now).get(("Service", "s"))


def test_a_write_counts_before_the_watch_has_it():
    watch = Watch()
    watch.cache.note_write(item(5), 0.0)
    assert watch.seen() == item(5)
    watch.items = [item(4)]
    assert watch.seen() == item(5)
    watch.items = [item(9)]
    assert watch.seen() == item(9)
    watch.items = []
    assert watch.seen() is None  # it has been seen, and has gone


def test_it_is_not_believed_for_ever():
    watch = Watch()
    watch.cache.note_write(item(5), 0.0)
    assert watch.seen(PENDING_WRITE_SECONDS) == item(5)
    assert watch.seen(PENDING_WRITE_SECONDS + 1) is None
    assert watch.cache.oldest_pending(100.0) == ("Service", 100.0)  # the watch has never delivered it
    watch.items = [item(6)]
    assert watch.seen(100.0) == item(6)
    assert watch.cache.oldest_pending(100.0) == ("", 0.0)
    watch.cache.note_write(item(9), 0.0)
    watch.cache.drop_namespace("ns")
    assert watch.cache.oldest_pending(100.0) == ("", 0.0)


def test_a_deletion_counts_for_one_life():
    watch = Watch()
    watch.items = [item(5)]
    watch.cache.note_deletion(item(5), 0.0)
    seen = watch.seen()
    assert seen is not None
    assert "deletionTimestamp" in seen["metadata"]
    watch.items = [item(7, uid="another")]
    assert watch.seen() == item(7, uid="another")


def test_a_write_that_went_wrong_is_forgotten():
    watch = Watch()
    watch.items = [item(4)]
    watch.cache.note_write(item(5), 0.0)
    watch.cache.forget("ns", ("Service", "s"))
    assert watch.seen() == item(4)


def test_what_went_before_a_watch_told_of_its_writing_makes_no_watch_deaf():
    watch = Watch()
    watch.items = [item(4)]
    watch.cache.note_write(item(5), 0.0)
    watch.items = []  # changed and deleted at once: a watch delivers the last
    watch.cache.drop_life(item(6))
    assert watch.seen() is None
    assert watch.cache.oldest_pending(100.0) == ("", 0.0)


def test_a_later_life_stays_when_an_earlier_one_has_gone():
    watch = Watch()
    watch.cache.note_write(item(9, uid="another"), 0.0)
    watch.cache.drop_life(item(6))
    assert watch.seen() == item(9, uid="another")


def test_an_object_unknown_to_the_api_server_is_absent_even_if_a_watch_shows_it():
    watch = Watch()
    watch.items = [item(4)]
    watch.cache.drop_life(item(4))
    assert watch.seen() is None
    watch.items = [item(4), item(8, uid="another")]
    assert watch.seen() == item(8, uid="another")
    watch.items = []
    assert watch.seen() is None
    watch.items = [item(8, uid="another")]
    assert watch.seen() == item(8, uid="another")
