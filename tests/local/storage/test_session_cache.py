"""Summaries of sessions follow the store."""

from pathlib import Path

from plimsoll.local.storage import object_store as stores
from plimsoll.local.storage.object_store import ObjectStore
from plimsoll.local.storage.session_cache import SessionBriefCache

KIND = "LoadBalancingSession"


def new(name: str) -> dict:
    return {
        "apiVersion": "plimsoll.dev/v1alpha1", "kind": KIND, "metadata": {"name": name},
        "spec": {"scope": "Local", "source": {"name": "e"}},
    }  # fmt: skip


def seen(briefs: SessionBriefCache) -> list[tuple[str, str]]:
    return [(each.name, each.phase) for each in briefs.refresh()]


def test_what_is_made_changes_and_goes(tmp_path: Path):
    with ObjectStore(tmp_path / "store") as store:
        store.create(new("b"), "now")
        briefs = SessionBriefCache(store)
        assert seen(briefs) == [("b", "")]
        store.create(new("a"), "now")
        store.set_status(KIND, "b", lambda item: {"phase": "Planned"})
        assert seen(briefs) == [("a", ""), ("b", "Planned")]
        assert seen(briefs) == [("a", ""), ("b", "Planned")]
        store.delete(KIND, "b")
        assert seen(briefs) == [("a", "")]


def test_after_more_changes_than_are_kept_it_reads_all_again(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(stores, "CHANGES_KEPT", 3)
    with ObjectStore(tmp_path / "store") as store:
        store.create(new("a"), "now")
        briefs = SessionBriefCache(store)
        assert seen(briefs) == [("a", "")]
        store.delete(KIND, "a")
        for number in range(5):
            store.create(new(f"b{number}"), "now")
        assert seen(briefs) == [(f"b{number}", "") for number in range(5)]
