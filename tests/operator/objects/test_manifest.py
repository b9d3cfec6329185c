"""When an object is written again, and which owner it has."""

from typing import Any

import pytest

from plimsoll.operator import names
from plimsoll.operator.objects.manifest import (
    by_ref,
    digest,
    is_leaving,
    is_ours,
    is_subset,
    needs_write,
    owner,
    pulled_with,
    ref,
    with_desired_hash,
)

OURS = {"app.kubernetes.io/managed-by": names.MANAGER}


def item(uid: str = "", owner_uid: str = "", labels: dict[str, str] | None = None) -> dict[str, Any]:
    owners = [{"uid": owner_uid, "controller": True}] if owner_uid else []
    return {"kind": "Service", "metadata": {"name": "s", "uid": uid, "labels": labels, "ownerReferences": owners}}


def test_the_hash_is_of_what_was_asked_for():
    wanted = with_desired_hash({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": {"a": 1}})
    assert not needs_write(wanted, wanted)
    more = with_desired_hash(
        {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": {"a": 1, "b": 2}}
    )
    assert needs_write(wanted, more)
    assert needs_write(more, wanted)  # it still has a field that is no longer desired
    assert digest({"a": 1, "b": 2}) == digest({"b": 2, "a": 1})


@pytest.mark.parametrize(
    ("live", "wanted", "same"),
    [
        ("1", "1000m", True), ("1Gi", "1024Mi", True), ("1G", "1000000000", True), (7, "7", True), ("a", "b", False),
        (True, "1", False), (None, "1", False), ({"a": 1, "b": 2}, {"a": 1}, True), ({"a": 1}, {"a": 1, "b": {}}, True),
        ({"a": {"x": 1}}, {"a": {}}, True), ([{"n": 2}, {"n": 1, "m": 3}], [{"n": 1}], True), ([], [{"n": 1}], False),
        ("text", ["text"], False), ({}, {"a": 0}, False),
    ],
)  # fmt: skip
def test_a_live_object_may_say_more(live: Any, wanted: Any, same: bool):
    assert is_subset(live, wanted) is same


def test_whose_an_object_is():
    wanted = item(owner_uid="me")
    assert is_ours(item(owner_uid="me", labels=OURS), wanted)
    assert is_ours(item(labels=OURS), wanted)
    assert not is_ours(item(owner_uid="another", labels=OURS), wanted)
    assert not is_ours(item(owner_uid="another"), wanted)
    assert not is_ours(item(), wanted)
    assert is_ours(item(owner_uid="me"), wanted), "its labels may have been taken off"


def test_names_and_owners():
    assert ref(item()) == ("Service", "s")
    assert by_ref([item()]) == {("Service", "s"): item()}
    assert owner({**item("u"), "apiVersion": "v1"})["uid"] == "u"
    assert is_leaving({"metadata": {"deletionTimestamp": "now"}})


@pytest.mark.parametrize(
    ("kind", "path"), [("Deployment", ()), ("StatefulSet", ()), ("CronJob", ("jobTemplate", "spec"))]
)
def test_pods_pull_with_the_secrets_that_are_named(kind: str, path: tuple[str, ...]):
    spec: dict[str, Any] = {"template": {"spec": {"containers": []}}}
    for part in reversed(path):
        spec = {part: spec}
    item = {"kind": kind, "spec": spec}
    assert pulled_with(item, ()) is item
    found = pulled_with(item, ("here", "there"))["spec"]
    for part in path:
        found = found[part]
    assert found["template"]["spec"] == {"containers": [], "imagePullSecrets": [{"name": "here"}, {"name": "there"}]}
    assert "imagePullSecrets" not in str(item)


def test_what_has_no_pods_pulls_nothing():
    item = {"kind": "Service", "spec": {}}
    assert pulled_with(item, ("here",)) is item
