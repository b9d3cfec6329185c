"""What `plimsoll apply` refuses on Kubernetes before the operator has to, and what it leaves to it."""

from __future__ import annotations

from typing import Any

import pytest

from plimsoll.cli.kubernetes_backend import KubernetesBackend
from plimsoll.cli.kubernetes_datasets import refused_moves
from plimsoll.core.spec import InvalidResourcesError, SourceDocument
from plimsoll.local.storage.object_store import ObjectMissingError


def made(kind: str, name: str, accepted: str = "True", **spec: Any) -> dict[str, Any]:
    conditions = [{"type": "Accepted", "status": accepted, "reason": "r", "message": ""}]
    return {
        "apiVersion": "plimsoll.dev/v1alpha1", "kind": kind, "metadata": {"name": name, "resourceVersion": "7"},
        "spec": spec, "status": {"conditions": conditions},
    }  # fmt: skip


FEED = made("Feed", "stocks", subscription="[class,=,'STOCK']")


def fleet(claim: str, accepted: str = "True") -> dict[str, Any]:
    return made("BrokerFleet", "f", accepted, datasets={"volumeClaim": claim})


class Namespace:
    """One with these objects; `asked`: the kinds that were listed."""

    def __init__(self, *there: dict[str, Any]) -> None:
        self._there = there
        self.asked: list[str] = []

    def get(self, kind: str, name: str) -> dict[str, Any]:
        found = next((each for each in self._there if (each["kind"], each["metadata"]["name"]) == (kind, name)), None)
        if found is None:
            raise ObjectMissingError(kind)
        return found

    def objects(self, kind: str) -> list[dict[str, Any]]:
        self.asked.append(kind)
        return [each for each in self._there if each["kind"] == kind]

    def patched(self, item: dict[str, Any], **options: str) -> dict[str, Any]:
        assert options == {"dry_run": "All"}
        return {**self.get(item["kind"], item["metadata"]["name"]), **item}


def refusals(after: dict[str, Any], *there: dict[str, Any]) -> list[str]:
    return [each.sentence for each in refused_moves(Namespace(*there), after)]


def test_another_volume_is_refused_while_a_feed_is_there() -> None:
    (found,) = refusals(fleet("b"), fleet("a"), FEED)
    assert "spec.datasets.volumeClaim: feeds have their datasets on the volume a" in found
    assert refusals(fleet("b"), fleet("a")) == []
    assert refusals(fleet("b"), FEED) == [], "the fleet is created"
    assert len(refusals(fleet(""), fleet("a"), made("Channel", "fires"))) == 1


def test_a_change_that_may_be_taken_back_is_left_to_the_operator() -> None:
    assert refusals(fleet("a"), fleet("b", accepted="False"), FEED) == []
    assert refusals(fleet("a"), made("BrokerFleet", "f", datasets={"volume": "of another version"}), FEED) == []


def test_other_objects_are_not_asked_for_without_need() -> None:
    place = Namespace(fleet("a"), FEED)
    assert refused_moves(place, fleet("a")) == []
    assert place.asked == []


def test_nothing_is_sent_if_the_fleet_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    place, asked = KubernetesBackend("ns", None), list[tuple[str, dict[str, Any]]]()  # type: ignore[arg-type]  # nothing is asked of it
    known = {"BrokerFleet": [fleet("a")], "Feed": [FEED]}

    def get(kind: str, name: str) -> dict[str, Any]:
        if kind not in known:
            raise ObjectMissingError(kind)
        return known[kind][0]

    def patched(item: dict[str, Any], **options: str) -> dict[str, Any]:
        asked.append((item["kind"], options))
        return {**known["BrokerFleet"][0], **item}

    monkeypatch.setattr(place, "get", get)
    monkeypatch.setattr(place, "patched", patched)
    monkeypatch.setattr(place, "objects", lambda kind: known.get(kind, []))
    given = [SourceDocument({key: each[key] for key in ("apiVersion", "kind", "spec")} | {"metadata": {"name": "f"}})
             for each in (fleet("b"),)]  # fmt: skip
    with pytest.raises(InvalidResourcesError, match="on the volume a"):
        place.apply(given)
    assert asked == [("BrokerFleet", {"dry_run": "All"})]
    known["Feed"] = []
    assert place.apply(given) == [("unchanged", "BrokerFleet/f")]
    assert asked[1:] == [("BrokerFleet", {"dry_run": "All"}), ("BrokerFleet", {})]
