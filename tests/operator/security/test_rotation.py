"""Key replacement step by step: the new key is accepted, then used, then the old one is removed."""

import base64
from typing import Any

from plimsoll.operator import names
from plimsoll.operator.security import keys, rotation
from plimsoll.operator.security.keys import Z85KeyPair

OLD, OLD_SECRET, NEW, NEW_SECRET = (f"{name:0<40}" for name in ("old", "old-secret", "new", "new-secret"))
PAIR = Z85KeyPair(NEW, NEW_SECRET)
START, LATER, MUCH_LATER = "2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z", "2026-01-01T02:00:00Z"


def secret() -> dict[str, Any]:
    data = {names.SECRET_FILE: keys.base64_text(OLD_SECRET + "\n"), names.PUBLIC_FILE: keys.base64_text(OLD + "\n")}
    return {"metadata": {"name": "e-keys"}, "data": data}


def patched(item: dict[str, Any], patch: Any) -> dict[str, Any]:
    data = {**item["data"], **patch["data"]}
    annotations = {**item["metadata"].get("annotations", {}), **patch["metadata"]["annotations"]}
    kept = {key: value for key, value in data.items() if value is not None}
    return {"metadata": {**item["metadata"], "annotations": annotations}, "data": kept}


def step(item: dict[str, Any], time: str, asked: str = "1", in_use: str | None = OLD) -> dict[str, Any] | None:
    patch = rotation.rotation_patch(item, asked, in_use=in_use, make=lambda: PAIR, time=time)
    return None if patch is None else patched(item, patch)


def test_without_a_request_nothing_happens():
    assert step(secret(), START, asked="") is None


def test_the_whole_way():
    first = step(secret(), START)
    assert first is not None
    assert (found := keys.read_keys(first)) is not None
    assert (found.public, set(found.publics)) == (OLD, {OLD, NEW})
    assert step(first, START) is None  # others have to read it first
    second = step(first, LATER)
    assert second is not None
    assert (found := keys.read_keys(second)) is not None
    assert (found.public, found.secret) == (NEW, NEW_SECRET)
    assert set(found.publics) == {OLD, NEW}
    assert step(second, MUCH_LATER) is None  # its holder still comes with the old one
    last = step(second, MUCH_LATER, in_use=NEW)
    assert last is not None
    assert (found := keys.read_keys(last)) is not None
    assert found.publics == (NEW,)
    assert step(last, MUCH_LATER, in_use=NEW) is None  # this request is done
    assert step(last, MUCH_LATER, asked="2", in_use=NEW) is not None


def test_a_clients_old_key_is_good_for_an_hour():
    first = step(secret(), START, in_use=None)
    assert first is not None
    second = step(first, LATER, in_use=None)
    assert second is not None
    assert step(second, "2026-01-01T00:30:00Z", in_use=None) is None
    assert step(second, MUCH_LATER, in_use=None) is not None


def test_secrets_hold_one_line_each():
    made = keys.new_secret("x", {}, {"uid": "u"}, "ns")
    assert (found := keys.read_keys(made)) is not None
    assert len(found.public) == len(found.secret) == 40
    assert base64.b64decode(made["data"][names.SECRET_FILE]).endswith(b"\n")
    assert "secret" not in repr(found).replace("secret=", "")
    assert keys.read_keys({"data": {}}) is None


def test_others_have_as_long_as_is_said_to_read_the_next_key():
    first = step(secret(), START)
    assert first is not None
    given: dict[str, Any] = {"in_use": OLD, "make": lambda: PAIR, "overlap": rotation.HEAD_OVERLAP_SECONDS}
    assert rotation.rotation_patch(first, "1", time="2026-01-01T00:01:59Z", **given) is None
    assert rotation.rotation_patch(first, "1", time="2026-01-01T00:02:00Z", **given) is not None
    held = keys.read_keys(first)
    assert held is not None
    assert held.next == NEW


def test_an_old_key_stays_while_its_holder_says_nothing():
    first = step(secret(), START)
    assert first is not None
    second = step(first, LATER)
    assert second is not None
    assert step(second, MUCH_LATER, in_use="") is None
