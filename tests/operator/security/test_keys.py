"""Pairs, and the Secrets that hold them."""

import base64

from tests.operator.world import World

from plimsoll.operator import names
from plimsoll.operator.security import keys


def test_a_secret_holds_one_line_for_each_key_and_says_whose_it_is():
    made = keys.new_secret("x", {"a": "b"}, {"uid": "u"}, "ns")
    assert made["metadata"] == {"name": "x", "namespace": "ns", "labels": {"a": "b"}, "ownerReferences": [{"uid": "u"}]}
    assert (found := keys.read_keys(made)) is not None
    assert len(found.public) == len(found.secret) == 40
    assert base64.b64decode(made["data"][names.SECRET_FILE]).decode() == found.secret + "\n"


def test_secrets_are_not_shown():
    pair = keys.make_key_pair()
    assert pair.secret not in repr(pair)
    assert pair.secret not in repr(keys.StoredKeys(pair.public, pair.secret))


def test_no_pair_no_keys():
    assert keys.read_keys({"data": {}}) is None
    assert keys.read_keys({}) is None
    made = keys.new_secret("x", {}, {"uid": "u"}, "ns")
    for spoiled in ("%", keys.base64_text("short"), keys.base64_text("ü" * 40), ""):
        assert keys.read_keys({**made, "data": {**made["data"], names.PUBLIC_FILE: spoiled}}) is None


def test_keys_of_brokers_that_still_run():
    world = World()
    world.settle()
    assert set(keys.broker_keys(world.observed())) == {"east-head-keys", "edge-0-keys", "edge-1-keys", "edge-2-keys"}
